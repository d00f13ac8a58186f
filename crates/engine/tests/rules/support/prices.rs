//! How stories speak of prices: `op card gpu=0.012 cpu=2/h class.core=1 tier.h100=2 pool=main from=100 no=0`, where what is not
//! said is as in the default card, `op policy preempted=none fenced=60s from=100 no=0`, `op ceiling a hard=1.5 app=7` and
//! `op uncap a app=7`.

use super::Story;
use super::line::Line;
use super::world::name;
use leasehold_engine::command::{DeleteCeiling, PutCeiling, PutChargePolicy, PutRateCard};
use leasehold_model::rate::{Charge, Charges, Currency, Decimal, Period, Prices};
use leasehold_model::{AppInstanceNo, CeilingMode, ResourceKind, Span};

impl Story {
    pub(super) fn put_card(&mut self, line: &Line<'_>) -> PutRateCard {
        let mut prices = Prices::default_card();
        prices.currency = currency(line).unwrap_or(prices.currency);
        for (option, text) in &line.options {
            let (number, period) = text.split_once('/').unwrap_or((text, "s"));
            let value = || number.parse::<Decimal>().expect("a decimal");
            let period = || Period::from_word(period).expect("a period");
            if let Some(kind) = ResourceKind::from_word(option) {
                prices.kinds.0[kind as usize - 1] = value();
                prices.periods.kinds[kind as usize - 1] = period();
            } else if let Some(class) = option.strip_prefix("class.") {
                prices.classes.push((self.class(class), value()));
                prices.periods.classes.extend(Some((self.class(class), period())).filter(|of| of.1 != Period::Second));
            } else if let Some(tier) = option.strip_prefix("tier.") {
                prices.tiers.push((name(tier), value()));
            }
        }
        // Options come in order of their names; a story that wants another order says so.
        if !line.flag("unsorted") {
            prices.classes.sort();
            prices.periods.classes.sort();
        }
        PutRateCard {
            card: line.number("no"),
            pool: line.options.get("pool").map(|pool| self.pool(pool)),
            from: line.options.get("from").map(|at| self.names.read_time(at)),
            prices,
        }
    }

    pub(super) fn put_ceiling(&self, line: &Line<'_>) -> PutCeiling {
        let given = |option: &str| line.options.get(option).map(|text| text.parse().expect("an amount"));
        let (amount, mode) = match (given("hard"), given("soft")) {
            (Some(amount), _) => (amount, CeilingMode::Hard),
            (None, soft) => (soft.expect("hard or soft"), CeilingMode::Soft),
        };
        PutCeiling {
            project: self.project(line.words[0]),
            app_instance: line.number("app").map(AppInstanceNo),
            amount,
            currency: currency(line).unwrap_or(Currency::DEFAULT),
            mode,
        }
    }

    pub(super) fn delete_ceiling(&self, line: &Line<'_>) -> DeleteCeiling {
        DeleteCeiling { project: self.project(line.words[0]), app_instance: line.number("app").map(AppInstanceNo) }
    }

    pub(super) fn put_policy(&mut self, line: &Line<'_>) -> PutChargePolicy {
        let charge = |option: &str| match line.options.get(option).copied() {
            None | Some("full") => Charge::Full,
            Some("none") => Charge::None,
            Some(span) => Charge::MinusLast(span.parse::<Span>().expect("a span")),
        };
        let charges = Charges {
            preempted: charge("preempted"),
            fenced: charge("fenced"),
            node_lost: charge("node_lost"),
            failed_start: charge("failed_start"),
        };
        PutChargePolicy {
            policy: line.number("no"),
            from: line.options.get("from").map(|at| self.names.read_time(at)),
            charges,
        }
    }
}

fn currency(line: &Line<'_>) -> Option<Currency> {
    line.options.get("currency").map(|text| Currency::new(text).expect("three letters"))
}
