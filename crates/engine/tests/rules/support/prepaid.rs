//! How stories speak of money that was paid in advance: `op ledger`, `op topup a 5 priority=1 expires=100 ref=x`,
//! `op prepaid a low=1 window=60s pending=downgrade depleted=drain grace=5s`, `op endcredit a 1`; `tenant` says that it is
//! the tenant's. `op posted a 1.5 through=3600` posts the hour before that (with
//! `plane=shared` for the control plane of an app instance), and `op settled 3600` ends it; `op adjusted a
//! -1` books by hand.

use super::Story;
use super::line::Line;
use super::world::name;
use leasehold_engine::command::{
    AdjustLedger, Command, EndCredit, OpenLedger, PostUsage, PutPrepaidPolicy, RatedLine, SettleHour, TopUp,
};
use leasehold_engine::{PrepaidScope, State};
use leasehold_ledger::Amount;
use leasehold_model::rate::Currency;
use leasehold_model::{
    Account, AppInstanceNo, Body, ClassNo, CreditSource, Instant, Item, Leg, LineKey, Month, PoolNo, PrepaidAction,
    PrepaidPolicy, Priority, ProjectNo, Span, Steps, TenantNo, UsageDelta,
};
use std::fmt::Write;

pub(super) const VERBS: &[&str] = &["ledger", "topup", "prepaid", "endcredit", "posted", "settled", "adjusted"];

const HOUR: u64 = 3_600_000_000_000;

impl Story {
    pub(super) fn prepaid(&mut self, verb: &str, line: &Line<'_>) -> Command {
        let currency = Currency::DEFAULT;
        if verb == "ledger" {
            return Command::OpenLedger(OpenLedger { from: None });
        }
        if verb == "settled" {
            let through = self.names.read_time(line.words[0]);
            return Command::SettleHour(SettleHour { through, as_of_size: self.world.state().size() });
        }
        let (tenant, project) = self.payer(line.words[0]);
        let of = (!line.flag("tenant")).then_some(project);
        let amount = || line.words[1].parse::<Steps>().expect("an amount");
        match verb {
            "topup" => Command::TopUp(TopUp {
                tenant,
                project: of,
                currency,
                amount: amount(),
                priority: line.number("priority").unwrap_or(0),
                expires_at: line.options.get("expires").map(|at| self.names.read_time(at)),
                source: CreditSource::Paid,
                reference: name(line.options.get("ref").copied().unwrap_or(line.words[1])),
            }),
            "prepaid" => {
                let action = |option: &str, usual| {
                    let word = line.options.get(option);
                    word.map_or(usual, |word| PrepaidAction::from_word(word).expect("an action"))
                };
                let span = |option: &str| line.options.get(option).map(|text| text.parse::<Span>().expect("a span"));
                let usual = PrepaidPolicy::DEFAULT;
                let policy = PrepaidPolicy {
                    low_below: line.options.get("low_below").map_or(Steps::ZERO, |text| text.parse().expect("steps")),
                    window: span("window").unwrap_or(usual.window),
                    low: action("low", usual.low),
                    pending: action("pending", usual.pending),
                    depleted: action("depleted", usual.depleted),
                    grace: span("grace"),
                };
                Command::PutPrepaidPolicy(PutPrepaidPolicy { tenant, project: of, currency, policy })
            }
            "endcredit" => {
                let credit = line.words[1].parse().expect("a number");
                Command::EndCredit(EndCredit { tenant, project: of, currency, credit })
            }
            "posted" => {
                let through = self.names.read_time(line.options["through"]);
                let control_plane = line.options.get("plane").map(|on| self.instance(on));
                self.posting((tenant, project), amount(), through, control_plane)
            }
            "adjusted" => {
                let leg = |account, amount| Leg { account, amount };
                let legs = vec![leg(Account::Receivable(project), amount()), leg(Account::OperatorLoss, -amount())];
                Command::AdjustLedger(AdjustLedger {
                    project,
                    currency,
                    original_month: None,
                    legs,
                    reason: name("why"),
                })
            }
            other => panic!("{other} is no word for prepaid credit"),
        }
    }

    fn payer(&self, text: &str) -> (TenantNo, ProjectNo) {
        let project = self.project(text);
        (self.world.state().project(project).expect("a project").tenant, project)
    }

    fn posting(
        &self,
        (tenant, project): (TenantNo, ProjectNo),
        amount: Steps,
        through: Instant,
        control_plane: Option<AppInstanceNo>,
    ) -> Command {
        let hour = Instant(through.0 - HOUR);
        let key = LineKey {
            hour,
            project,
            pool: PoolNo(0),
            item: Item::Class(ClassNo(0)),
            priority: Priority::Standard,
            priced: Priority::Standard,
            tag: None,
            app_instance: control_plane,
            attachment: None,
            control_plane: control_plane.is_some(),
            card: None,
        };
        let exact = Amount::from(amount).encoded().expect("short");
        let state = self.world.state();
        Command::PostUsage(PostUsage {
            tenant,
            project,
            currency: Currency::DEFAULT,
            month: Month::of(hour),
            through,
            complete: true,
            as_of_size: state.size(),
            previous: state.ledger().payer(project, Currency::DEFAULT).and_then(|payer| payer.last),
            lines: vec![RatedLine { key, usage: UsageDelta(1), exact }],
        })
    }
}

/// What a record of prepaid credit says.
pub(super) fn tell(body: &Body) -> Option<String> {
    Some(if let Body::PrepaidToppedUp(topped) = body {
        format!("credit {} of {}", topped.credit, topped.amount)
    } else if let Body::PrepaidLapsed(lapsed) = body {
        format!("credit {} lapsed, {}", lapsed.credit, lapsed.amount)
    } else if let Body::PrepaidChanged(changed) = body {
        format!("prepaid {} -> {} at {}, {}", changed.from, changed.to, changed.balance, changed.action)
    } else {
        return None;
    })
}

/// What is left of every account.
pub(super) fn show(state: &State) -> Vec<String> {
    let now = state.last_stamp();
    let account = |(key, account): (leasehold_engine::PrepaidKey, &leasehold_engine::Prepaid)| {
        let of = match key.0 {
            PrepaidScope::Project(project) => state.project(project).map_or("?", |project| project.name.as_str()),
            PrepaidScope::Tenant(_) => "tenant",
        };
        let used = state.prepaid_use(key, now).expect("the account exists");
        let mut text = format!(
            "{of}: {}, spent {}, reserved {}, balance {}, available {}",
            account.state, used.spent, used.reserved, used.balance, used.available
        );
        for credit in state.credits_left(key, now) {
            let _ = write!(text, "; credit {} has {}", credit.number, credit.left);
        }
        text
    };
    state.prepaid_accounts().map(account).collect()
}
