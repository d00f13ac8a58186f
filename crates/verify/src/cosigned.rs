//! Which witnesses of a trust file have cosigned a checkpoint (journal-format.md, "The trust file").

use crate::failure::Why;
use crate::report::Witnessed;
use crate::trust::{Trust, distinct};
use leasehold_tlog::{Checkpoint, CosignatureError, Note};

/// The witnesses of the trust file, by whether they have cosigned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cosigned {
    pub by: Vec<Witnessed>,
    /// The names of the others.
    pub missing: Vec<String>,
}

/// The cosignatures on a checkpoint. The log's own signature is not checked here.
///
/// # Errors
/// When a cosignature in the name of a witness is invalid, or fewer distinct witnesses have cosigned than are required.
pub fn cosigned(note: &Note, trust: &Trust) -> Result<Cosigned, Why> {
    let size = Checkpoint::from_body(note.text()).map_or(0, |checkpoint| checkpoint.size());
    let mut cosigned = Cosigned::default();
    let mut keys = Vec::new();
    for witness in trust.witnesses() {
        match witness.verify(note) {
            Ok(seconds) => {
                cosigned.by.push(Witnessed { name: witness.name().to_owned(), size, seconds });
                keys.push(witness);
            }
            Err(CosignatureError::Missing { .. }) => cosigned.missing.push(witness.name().to_owned()),
            Err(_) => return Err(Why::BadCosignature { witness: witness.name().to_owned() }),
        }
    }
    match (trust.required(), distinct(keys)) {
        (required, found) if found < required => {
            Err(Why::MissingCosignatures { required, found, missing: cosigned.missing })
        }
        _ => Ok(cosigned),
    }
}
