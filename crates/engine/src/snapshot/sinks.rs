//! Encoding and decoding of sinks.

use super::{BadSnapshot, get_table, put_table};
use crate::sinks::Sink;
use crate::state::Table;
use leasehold_model::codec::{Field, Reader};

pub(super) fn put(sinks: &Table<Sink>, out: &mut Vec<u8>) {
    put_table(sinks, out, |sink, out| {
        sink.put.put(out);
        sink.made_by.put(out);
        sink.disabled.put(out);
    });
}

pub(super) fn get(r: &mut Reader<'_>) -> Result<Table<Sink>, BadSnapshot> {
    get_table(r, |_, r| Ok(Sink { put: Field::get(r)?, made_by: Field::get(r)?, disabled: Field::get(r)? }))
}
