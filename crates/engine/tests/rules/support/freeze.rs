//! For the program that writes frozen journals (`sim/tests/freeze`).

use super::tell::Names;
use super::{Story, World};
use leasehold_engine::Request;
use leasehold_model::Record;
use std::collections::BTreeMap;
use std::fmt::Write;

impl Story {
    /// A story that goes on after these records.
    #[allow(dead_code, reason = "for the frozen journals")]
    pub(crate) fn after(records: Vec<Record>) -> Self {
        let mut names = Names::default();
        records.iter().for_each(|record| names.meet(record));
        let world = World::after(records);
        for (number, user) in world.state().users() {
            let tenant = world.state().tenant(user.tenant).expect("a tenant");
            names.users.insert(format!("{}/{}", tenant.settings.name.as_str(), user.name.as_str()), number);
        }
        Self { world, names, text: String::new(), quotas: BTreeMap::new() }
    }

    /// A request that a line cannot express. Returns the sequence of its first record.
    #[allow(dead_code, reason = "for the frozen journals")]
    pub(crate) fn decide(&mut self, time: &str, request: &Request) -> Option<u64> {
        let now = self.names.read_time(time);
        let (answer, records) = self.world.step(now, request);
        self.tell(&records);
        match answer {
            Ok(sealed) => Some(sealed.records.first),
            Err(refusal) => {
                writeln!(self.text, "{} refused: {}", self.names.time(now), refusal.code()).expect("text grows");
                None
            }
        }
    }
}
