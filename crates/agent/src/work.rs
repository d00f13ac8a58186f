//! A lease to tear down, from the daemon's answer.

use leasehold_client::api::{NodeWork, When};
use std::fmt;

/// The ID of a lease: 32 hexadecimal digits, and therefore a safe file name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct LeaseId(String);

impl LeaseId {
    /// Rejects anything else, because the ID becomes part of a path.
    pub(crate) fn new(text: &str) -> Option<Self> {
        let digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        (text.len() == 32 && text.bytes().all(digit)).then(|| Self(text.to_owned()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for LeaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}
impl fmt::Debug for LeaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Work {
    pub(crate) lease: LeaseId,
    pub(crate) class: String,
    pub(crate) quantity: String,
    pub(crate) devices: Vec<u32>,
    /// When the daemon fences the lease, by the daemon's clock.
    pub(crate) teardown_by: Option<When>,
}

impl Work {
    /// `None` if the ID is invalid.
    pub(crate) fn read(work: &NodeWork) -> Option<Self> {
        Some(Self {
            lease: LeaseId::new(&work.lease)?,
            class: work.class.clone(),
            quantity: work.quantity.clone(),
            devices: work.devices.clone(),
            teardown_by: work.teardown_by,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_hexadecimal_ids_are_accepted() {
        assert!(LeaseId::new("0123456789abcdef0123456789abcdef").is_some());
        for text in ["", "../../../../../../../etc/passwd00", "0123456789ABCDEF0123456789ABCDEF", "0123"] {
            assert_eq!(LeaseId::new(text), None, "{text}");
        }
    }
}
