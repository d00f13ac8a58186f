//! Checks a configuration. All problems are reported at once, each with advice.

use super::{Builtin, Config, Hook, Hooks};
use leasehold_model::Span;
use leasehold_model::limits::LIMIT_SPAN_MAX;

const PARALLEL_MAX: u32 = 256;
const HEARTBEAT: (Span, Span) = (Span::from_millis(50), Span::from_secs(3600));

impl Config {
    /// Returns all problems, one per line.
    pub(crate) fn check(&self) -> Result<(), String> {
        let mut found = Vec::new();
        if !(1..=PARALLEL_MAX).contains(&self.parallel) {
            let what = format!("`parallel`: {} is out of range; give 1 to {PARALLEL_MAX}", self.parallel);
            found.push(what);
        }
        if let Some(heartbeat) = self.heartbeat {
            within(&mut found, "heartbeat", heartbeat, HEARTBEAT);
        }
        within(&mut found, "stop_timeout", self.stop_timeout, (Span::ZERO, Span::from_secs(3600)));
        if let Some(hook) = &self.wipe_node {
            hook.check("wipe_node", "wipe-node", &mut found);
        }
        for (class, hooks) in &self.hooks {
            hooks.check(&format!("hooks.{class}"), &mut found);
        }
        if found.is_empty() { Ok(()) } else { Err(found.join("\n")) }
    }
}

impl Hooks {
    fn check(&self, key: &str, found: &mut Vec<String>) {
        within(found, &format!("{key}.term_wait"), self.term_wait, (Span::ZERO, LIMIT_SPAN_MAX));
        for (name, hook) in [("teardown", &self.teardown), ("wipe", &self.wipe)] {
            let Some(hook) = hook else { continue };
            hook.check(&format!("{key}.{name}"), name, found);
        }
        // Confirming without any teardown has to be requested explicitly.
        if self.builtin.is_none() && self.commands().next().is_none() {
            found
                .push(format!("`{key}`: does nothing; write `builtin: none` if leases of this class need no teardown"));
        }
        let default = Self::default();
        for (name, path, default, of) in [
            ("cgroup_root", &self.cgroup_root, &default.cgroup_root, Builtin::Cgroup),
            ("pid_dir", &self.pid_dir, &default.pid_dir, Builtin::ProcessGroup),
        ] {
            if path != default && self.builtin() != of {
                let word = if of == Builtin::Cgroup { "cgroup" } else { "process_group" };
                found.push(format!("`{key}.{name}`: has no effect without `builtin: {word}`"));
            }
            if !path.is_absolute() {
                found.push(format!("`{key}.{name}`: {} is not an absolute path", path.display()));
            }
        }
    }
}

impl Hook {
    fn check(&self, key: &str, program: &str, found: &mut Vec<String>) {
        if self.command.first().is_none_or(String::is_empty) {
            found.push(format!("`{key}.command`: no program; write it like [/usr/local/bin/{program}]"));
        }
        if let Some(timeout) = self.timeout {
            within(found, &format!("{key}.timeout"), timeout, (Span::from_millis(1), LIMIT_SPAN_MAX));
        }
    }
}

fn within(found: &mut Vec<String>, key: &str, value: Span, (least, most): (Span, Span)) {
    if !(least..=most).contains(&value) {
        let too = if value < least { "short" } else { "long" };
        found.push(format!("`{key}`: {value} is too {too}; give {least} to {most}"));
    }
}
