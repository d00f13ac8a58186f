//! Compares answers with those that the oracle predicts.

use crate::life::{Asked, Step, Truth};
use crate::{apps, prepaid};
use leasehold_cell::{Reply, Sealed, Unsealed};
use leasehold_engine::Refusal;
use leasehold_model::Instant;
use leasehold_oracle::{Foretold, Wish};

impl Truth {
    /// Checks that a command about tokens, agents, tenants or prices gets the answer that the oracle predicts; any
    /// other command is refused for its token exactly if the token is invalid.
    pub(crate) fn check_foretold(&mut self, asked: &Asked, reply: &Reply, now: Instant) -> Step<()> {
        let at_rest = self.oracle.check_at_rest(now).and_then(|()| self.oracle.check_assured_starts(now));
        at_rest.map_err(|violation| violation.to_string())?;
        let foretold = self.oracle.foretell(&asked.caller, &asked.wish, now);
        let refused = |code: &str| matches!(reply, Err(Unsealed::Refused(refusal)) if refusal.code() == code);
        // The key is checked after the token and before everything else.
        let decided_before = asked.sent.is_some()
            && foretold != Foretold::Refused("token_not_live")
            && (matches!(reply, Ok(Sealed { repeated: true, .. })) || refused("idempotency_mismatch"));
        let as_foretold = match &foretold {
            Foretold::Refused(code) => refused(code),
            Foretold::RefusedAs(codes) => codes.iter().any(|code| refused(code)),
            Foretold::Sealed { tenant, bodies } => matches!(reply, Ok(Sealed { records, repeated: false, .. })
                if records[0].identity.tenant == *tenant
                    && records.iter().map(|r| &r.body).take_while(|body| !prepaid::is_change(body)).eq(bodies)),
            Foretold::OneOf { tenant, bodies } => matches!(reply, Ok(Sealed { records, repeated: false, .. })
                if records[0].identity.tenant == *tenant && bodies.contains(&records[0].body)),
            Foretold::Again { sequence } => {
                matches!(reply, Err(Unsealed::Refused(Refusal::TopUpExists { sequence: first }))
                if first == sequence)
            }
            Foretold::FirstAnswer { sequence } => matches!(reply, Ok(Sealed { records, repeated: true, .. })
                if records[0].sequence == *sequence),
            Foretold::Faulty => matches!(reply, Err(Unsealed::Refused(_))),
            Foretold::Stands => matches!(reply, Ok(Sealed { repeated: false, .. })),
            Foretold::Open => !Foretold::CODES.iter().any(|code| refused(code)),
            Foretold::OpenBut(code) => !refused(code) && !Foretold::CODES.iter().any(|code| refused(code)),
        };
        if !decided_before && !as_foretold {
            let (Asked { caller, wish, .. }, but) = (asked, format!("foretold {foretold:?}\n  answered {reply:?}"));
            return Err(format!("{caller:?} asks for {wish:?}\n  {but}"));
        }
        if let Err(Unsealed::Refused(Refusal::CeilingExceeded { lease, requested, used, amount, .. })) = reply
            && matches!(&asked.renews, Some(1))
        {
            if !self.oracle.stands_against(*lease, *requested, *used, *amount, now) {
                return Err(format!("no ceiling stands against {lease}: {reply:?}"));
            }
            *self.tally.foretold.entry("ceiling_exceeded").or_insert(0) += 1;
        }
        if let Err(Unsealed::Refused(Refusal::ClaimOverCeiling { requested, used, amount, .. })) = reply
            && let (Wish::ClaimNodes { nodes, until: Some(until), .. }, Some(project)) =
                (&asked.wish, asked.caller.project)
        {
            let figures = (*requested, *used, *amount);
            if !self.oracle.stands_against_claim(project, (nodes, *until), figures, now) {
                return Err(format!("no ceiling stands against {:?}: {reply:?}", asked.wish));
            }
        }
        if let Err(Unsealed::Refused(Refusal::EntitlementExceeded { of, month, used, hard })) = reply
            && let Wish::RecordUsage(usage) = &asked.wish
            && !self.oracle.is_refused_by(usage, (*of, *month), (*used, *hard), now)
        {
            return Err(format!("no entitlement refuses {usage:?}: {reply:?}"));
        }
        apps::check_refusals(&self.oracle, reply)?;
        let is_single = matches!(&asked.renews, Some(1));
        let stated = prepaid::check_refusal(&self.oracle, (&asked.caller, &asked.wish, is_single), reply, now)?;
        stated.into_iter().for_each(|code| *self.tally.foretold.entry(code).or_insert(0) += 1);
        if let Foretold::Again { .. } = foretold {
            *self.tally.foretold.entry("top_up_exists").or_insert(0) += 1;
        }
        if let Foretold::FirstAnswer { .. } = foretold {
            *self.tally.foretold.entry("usage_repeated").or_insert(0) += 1;
        }
        if let (Foretold::RefusedAs(codes), Err(Unsealed::Refused(refusal))) = (&foretold, reply) {
            let code = codes.iter().find(|code| refusal.code() == **code);
            code.into_iter().for_each(|code| *self.tally.foretold.entry(code).or_insert(0) += 1);
        }
        if let Foretold::Refused(code) = foretold {
            *self.tally.foretold.entry(code).or_insert(0) += u64::from(!decided_before);
        }
        Ok(())
    }
}
