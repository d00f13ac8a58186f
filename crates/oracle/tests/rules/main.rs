//! Every rule of the oracle, both ways: what is legal passes, what is not is named.

mod access;
mod bursts;
mod catalog;
mod claims;
mod custody;
mod grants;
mod independence;
mod journal;
mod language;
mod lifecycle;
mod losses;
mod quotas;
mod rates;
mod requests;
mod summaries;
mod timers;
mod vectors;
