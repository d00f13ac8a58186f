//! Idempotency keys in a snapshot.

use super::BadSnapshot;
use crate::idempotency::{KeptAs, KeyIndex, RememberedKey, RememberedKeys};
use crate::state::State;
use leasehold_model::codec::{Field, Reader, put_varint};
use leasehold_model::{Instant, TenantNo};

pub(super) fn put(keys: &RememberedKeys, out: &mut Vec<u8>) {
    keys.examined().put(out);
    put_varint(keys.queues() as u64, out);
    for queue in 0..keys.queues() {
        put_varint(keys.queue_len(queue).into(), out);
        keys.queue(queue).for_each(|(_, key)| {
            key.stamp.put(out);
            key.sequence().put(out);
            out.extend_from_slice(&key.scope.to_be_bytes());
            out.extend_from_slice(&key.payload.to_be_bytes());
        });
    }
}

fn eight(r: &mut Reader<'_>) -> Result<u64, BadSnapshot> {
    let bytes = r.take(8)?.try_into().expect("eight bytes were taken");
    Ok(u64::from_be_bytes(bytes))
}

pub(super) fn get(state: &mut State, r: &mut Reader<'_>) -> Result<(), BadSnapshot> {
    let examined = Field::get(r)?;
    let queues = r.count(state.tenants.len() + 2)?;
    let mut index = KeyIndex::default();
    for queue in 0..queues {
        let kept = match queue {
            0 => KeptAs::Brief,
            1 => KeptAs::Counted(None),
            _ => {
                let tenant = u32::try_from(queue - 2).expect("there are fewer than 2^32 tenants");
                KeptAs::Counted(Some(TenantNo(tenant)))
            }
        };
        let mut last = Instant::default();
        for _ in 0..r.count(usize::MAX)? {
            let (stamp, sequence) = (Field::get(r)?, Field::get(r)?);
            let key = RememberedKey::new(stamp, sequence, eight(r)?, eight(r)?);
            if stamp < last || stamp > state.last_stamp {
                return Err(BadSnapshot::Inconsistent("idempotency keys are out of order"));
            }
            last = stamp;
            let (now, window) = (state.last_stamp, state.settings.idempotency_window);
            let slot = state.idempotency_keys.add(key, kept);
            let key = state.idempotency_keys.at(slot);
            if !key.is_over(now, window) && index.find(&state.idempotency_keys, key.scope, now, window).is_some() {
                return Err(BadSnapshot::Inconsistent("an idempotency key listed twice"));
            }
            index.add(slot, key);
        }
    }
    state.idempotency_keys.restore(examined, queues).map_err(BadSnapshot::Inconsistent)
}
