//! How records about policies change the state.

use super::State;
use leasehold_model::body::AppPolicyPut;

impl State {
    pub(super) fn fold_app_policy(&mut self, put: &AppPolicyPut) -> Result<(), &'static str> {
        let before = self.policies.get(&put.of).map_or(0, |old| old.version);
        if put.version != before + 1 {
            return Err("the version of a policy is out of order");
        }
        self.policies.insert(put.of, put.clone());
        Ok(())
    }
}
