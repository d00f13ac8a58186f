//! What ended on a lost node after it was last seen (SEMANTICS 11, "Lost nodes").

use super::{BelongsTo, Leases};
use crate::fields;
use crate::id::NodeNo;

fields! {
    /// These leases had ended after their node was last seen. They are billed up to that instant only, which is the
    /// record's effective instant. `loss` is the sequence of the record that declared the node lost.
    pub struct EndsCorrected { pub loss: u64, pub leases: Leases, pub belongs_to: BelongsTo }
}
fields! {
    /// The same for a claim that had ended after its node was last seen; `claim` is the sequence of the record that
    /// made it. The head names the former claimer.
    pub struct ClaimEndCorrected { pub loss: u64, pub node: NodeNo, pub claim: u64 }
}
fields! {
    /// Everything that ended on a lost node after it was last seen has been named.
    pub struct LossSettled { pub loss: u64, pub node: NodeNo }
}
