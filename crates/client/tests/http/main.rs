//! The client against a scripted HTTP server.

mod calls;
mod fake;
mod leases;
mod pages;
mod streams;
mod tls;
