//! The client against a small server that answers as it is told: what is sent again and how, pages, streams, leases.

mod calls;
mod fake;
mod leases;
mod pages;
mod streams;
mod tls;
