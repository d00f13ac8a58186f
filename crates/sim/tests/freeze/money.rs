//! What the daemon does with the books, and commands about money that a line of a story cannot express. WHO is `op`:
//!
//! - `open from=0` opens the ledger at that time; `ledger` at the present hour.
//! - `hours [parts=2] [cut]` settles the hours that are over: only so many parts, or with the first part of a payer that
//!   has several lines cut in two.
//! - `close 1970-01` makes the cut and posts what is left, `invoices 1970-01 [most=1]` issues the invoices, and
//!   `finish 1970-01` closes the month.
//! - `correct usage/2 [to=1.5]`, `dispute usage/2`, `undispute usage/2`: the second entry of that kind.
//! - `adjust a -5 operator_loss [month=1970-01] [currency=CHF]`
//! - `tax a 0.19 [from=1970-02]`, `pay a 24 ref=bank-1 [invoice=INV-000001] [received=100] [currency=CHF]`
//! - `credit a 5 ref=bank-1 [tenant] [granted] [priority=1] [expires=100] [currency=CHF]`
//! - `bill a address=Main_Street_1|Town taxid=1`: where invoices go.
//! - `settles`: the loss of a node, as the books have it.
//! - `grant … cp` and `submit … cp`: for the control plane; `use … q=0.5 corr=9`: another quantity and correlation ID;
//!   `unitprice … currency=CHF`; `entitle … softq=0.5 hardq=0.75`: limits that are not whole.
//! - `show ledger`: the entries since the last time, and all balances.

use crate::support::{Story, name};
use leasehold_books::{Books, EndedOnNode, Entry, EntryQuestion, Keeper, Row, Settlement};
use leasehold_engine::command::{
    AdjustLedger, CorrectEntry, DisputeEntry, EndedClaim, EndedLease, OpenLedger, PostUsage, PutTaxRate, RecordPayment,
    SettleHour, SettleLoss, TopUp, UpdateTenant,
};
use leasehold_engine::{Command, Request};
use leasehold_model::body::{BelongsTo, CorrectedLine};
use leasehold_model::rate::Currency;
use leasehold_model::tenant::Address;
use leasehold_model::{
    Account, ClassNo, CreditSource, EntryId, Identity, Instant, InvoiceNo, Leg, Month, ProjectNo, Span, Steps,
    TenantNo, TenantSettingsChange,
};
use std::collections::BTreeMap;
use std::fmt::Write;

/// A story, and books that follow it.
pub(crate) struct Teller {
    pub(crate) story: Story,
    books: Books,
    followed: usize,
    shown: Option<EntryId>,
}

struct Line<'a> {
    time: &'a str,
    words: Vec<&'a str>,
    options: BTreeMap<&'a str, &'a str>,
}

impl Line<'_> {
    fn currency(&self) -> Currency {
        self.options.get("currency").map_or(Currency::DEFAULT, |text| Currency::new(text).unwrap())
    }
    fn amount(&self, place: usize) -> Steps {
        self.words[place].parse().unwrap()
    }
    fn month(&self, option: &str) -> Option<Month> {
        self.options.get(option).map(|text| text.parse().unwrap())
    }
}

fn at(text: &str) -> Instant {
    Instant::from_secs(text.parse().unwrap())
}

impl Teller {
    pub(crate) fn new(story: Story) -> Self {
        Self { story, books: Keeper::in_memory().books, followed: 0, shown: None }
    }

    fn books(&mut self) -> &Books {
        for record in &self.story.world.records[self.followed..] {
            self.books.apply(record).unwrap_or_else(|error| panic!("{error}: {record:?}"));
        }
        self.followed = self.story.world.records.len();
        &self.books
    }

    /// The sequence of its first record.
    fn decide(&mut self, line: &Line<'_>, command: Command) -> Option<u64> {
        self.story.decide(line.time, &Request::new(Identity::default(), command))
    }

    pub(crate) fn line(&mut self, text: &str, words: &[&str]) {
        let [time, who, verb, ..] = words[..] else { return drop(self.story.line(text)) };
        if (who, verb) == ("show", "ledger") {
            return self.show();
        }
        let (options, rest): (Vec<&str>, Vec<&str>) = words[3..].iter().partition(|word| word.contains('='));
        let options = options.iter().map(|word| word.split_once('=').unwrap()).collect();
        let line = Line { time, words: rest, options };
        let is_for_books = who == "op" && (self.about_books(verb, &line) || self.by_hand(verb, &line));
        if !is_for_books && !self.about_apps(verb, &line, &words[1..]) {
            self.story.line(text);
        }
    }

    /// What a line cannot say of app runtimes is added to its request.
    fn about_apps(&mut self, verb: &str, line: &Line<'_>, words: &[&str]) -> bool {
        let option = |name: &str| line.options.get(name).copied();
        let (cp, more) = (
            line.words.contains(&"cp"),
            ["q", "corr", "currency", "softq", "hardq"].iter().any(|of| option(of).is_some()),
        );
        if !matches!((verb, cp, more), ("grant" | "submit", true, _) | ("use" | "unitprice" | "entitle", _, true)) {
            return false;
        }
        let words: Vec<&str> = words.iter().copied().filter(|word| verb == "use" || *word != "cp").collect();
        let mut request = self.story.request(&words).expect("a request");
        if let Command::Request(lease) = &mut request.command {
            lease.control_plane = cp;
        } else if let Command::SubmitAllocation(submit) = &mut request.command {
            submit.spec.control_plane = cp;
        } else if let Command::RecordUsage(usage) = &mut request.command {
            let report = &mut usage.report;
            report.quantity = option("q").map_or(report.quantity, |text| text.parse().unwrap());
            report.correlation = option("corr").map_or(report.correlation, |text| text.parse().unwrap());
        } else if let Command::PutUnitPrice(put) = &mut request.command {
            put.currency = line.currency();
        } else if let Command::PutEntitlement(put) = &mut request.command {
            put.soft = option("softq").map_or(put.soft, |text| Some(text.parse().unwrap()));
            put.hard = option("hardq").map_or(put.hard, |text| Some(text.parse().unwrap()));
        }
        self.story.decide(line.time, &request);
        true
    }

    fn about_books(&mut self, verb: &str, line: &Line<'_>) -> bool {
        let terms = Span::from_secs(14 * 86_400);
        match verb {
            "hours" => self.hours(line),
            "close" => {
                let month = line.words[0].parse().unwrap();
                self.decide(line, Command::ClosePeriod(month));
                let settlement = self.books().closing_settlement().unwrap();
                settlement.map(|settlement| self.post(line, settlement, &mut usize::MAX.clone()));
            }
            "invoices" => {
                let most = line.options.get("most").map_or(usize::MAX, |most| most.parse().unwrap());
                for invoice in self.books().invoices_to_issue(terms).unwrap().into_iter().take(most) {
                    self.decide(line, Command::IssueInvoice(invoice));
                }
            }
            "finish" => drop(self.decide(line, Command::FinishPeriod(line.words[0].parse().unwrap()))),
            "settles" => self.settle_loss(line),
            "correct" => {
                let correct = self.correction(line);
                self.decide(line, Command::CorrectEntry(correct));
            }
            "dispute" | "undispute" => {
                let found = self.entry(line.words[0]);
                let (tenant, project, entry) = (found.tenant, found.project.unwrap(), found.id);
                let dispute =
                    DisputeEntry { tenant, project, entry, open: verb == "dispute", reason: name("not ours") };
                self.decide(line, Command::DisputeEntry(dispute));
            }
            _ => return false,
        }
        true
    }

    fn by_hand(&mut self, verb: &str, line: &Line<'_>) -> bool {
        let state = self.story.world.state();
        let tenant = |text: &str| state.tenant_named(text.split('/').next().unwrap()).unwrap_or(TenantNo(99));
        let project = |text: &str| {
            let (_, project) = text.split_once('/').unwrap_or((text, text));
            state.project_named(tenant(text), project).unwrap_or(ProjectNo(99))
        };
        let command = match verb {
            "open" => Command::OpenLedger(OpenLedger { from: Some(at(line.options["from"])) }),
            "adjust" => {
                let (project, amount) = (project(line.words[0]), line.amount(1));
                let other = match line.words[2] {
                    "operator_loss" => Account::OperatorLoss,
                    "adjustments" => Account::Adjustments(project),
                    "rounding" => Account::Rounding,
                    _ => Account::Revenue(ClassNo(0)),
                };
                let leg = |account, amount| Leg { account, amount };
                Command::AdjustLedger(AdjustLedger {
                    project,
                    currency: line.currency(),
                    original_month: line.month("month"),
                    legs: vec![leg(Account::Receivable(project), amount), leg(other, -amount)],
                    reason: name("by hand"),
                })
            }
            "tax" => Command::PutTaxRate(PutTaxRate {
                tenant: tenant(line.words[0]),
                from: line.month("from"),
                rate: line.words[1].parse().unwrap(),
            }),
            "pay" => Command::RecordPayment(RecordPayment {
                tenant: tenant(line.words[0]),
                currency: line.currency(),
                amount: line.amount(1),
                invoice: line.options.get("invoice").map(|text| InvoiceNo::parse(text).unwrap()),
                reference: name(line.options["ref"]),
                received_at: line.options.get("received").map(|text| at(text)),
            }),
            "credit" => Command::TopUp(TopUp {
                tenant: tenant(line.words[0]),
                project: (!line.words.contains(&"tenant")).then(|| project(line.words[0])),
                currency: line.currency(),
                amount: line.amount(1),
                priority: line.options.get("priority").map_or(0, |text| text.parse().unwrap()),
                expires_at: line.options.get("expires").map(|text| at(text)),
                source: if line.words.contains(&"granted") { CreditSource::Granted } else { CreditSource::Paid },
                reference: name(line.options["ref"]),
            }),
            "bill" => {
                let lines = |text: &str| text.split('|').map(|line| name(&line.replace('_', " "))).collect();
                let settings = TenantSettingsChange {
                    billing_address: line.options.get("address").map(|text| Address::new(lines(text))),
                    tax_id: line.options.get("taxid").map(|text| Some(name(text))),
                    ..TenantSettingsChange::default()
                };
                Command::UpdateTenant(UpdateTenant {
                    tenant: tenant(line.words[0]),
                    max_nodes: None,
                    max_leases: None,
                    max_concurrent_allocations: None,
                    gpu_hours_budget: None,
                    node_hours_budget: None,
                    budget_period_days: None,
                    fair_share_target: None,
                    burst_allowance: None,
                    max_pending: None,
                    settings,
                })
            }
            _ => return false,
        };
        self.decide(line, command);
        true
    }

    /// As the daemon does it (`server/src/settlement.rs`).
    fn hours(&mut self, line: &Line<'_>) {
        let mut left = line.options.get("parts").map_or(usize::MAX, |parts| parts.parse().unwrap());
        let mut hours = 0;
        while let Some(settlement) = self.books().next_settlement().unwrap() {
            let (through, as_of_size) = (settlement.through, settlement.as_of_size);
            let quiet = settlement.postings.is_empty();
            if !self.post(line, settlement, &mut left) {
                return;
            }
            let before = self.story.text.len();
            self.decide(line, Command::SettleHour(SettleHour { through, as_of_size }));
            hours += u32::from(quiet);
            // Hours in which nothing happened are told once.
            if quiet && hours > 3 {
                self.story.text.truncate(before);
            }
        }
        if hours > 3 {
            writeln!(self.story.text, "  {hours} hours without a posting").unwrap();
        }
    }

    fn post(&mut self, line: &Line<'_>, settlement: Settlement, left: &mut usize) -> bool {
        let mut cuts = line.words.contains(&"cut");
        for posting in settlement.postings {
            let mut previous = None;
            for part in posting.parts {
                let parts = match cuts && part.lines.len() > 1 {
                    true => cut(part),
                    false => vec![part],
                };
                cuts &= parts.len() == 1;
                for mut part in parts {
                    if *left == 0 {
                        return false;
                    }
                    *left -= 1;
                    if previous.is_some() {
                        part.previous = previous;
                    }
                    previous = self.decide(line, Command::PostUsage(part));
                }
            }
        }
        true
    }

    fn entries(&mut self) -> Vec<Entry> {
        self.books().entries(&EntryQuestion { limit: 10_000, ..EntryQuestion::default() }).unwrap().entries
    }

    /// `usage/2`: the second of that kind.
    fn entry(&mut self, text: &str) -> Entry {
        let (kind, place) = text.split_once('/').unwrap();
        let place: usize = place.parse().unwrap();
        let mut entries = self.entries().into_iter().filter(|entry| entry.kind.word() == kind);
        entries.nth(place - 1).unwrap_or_else(|| panic!("no {text}"))
    }

    fn correction(&mut self, line: &Line<'_>) -> CorrectEntry {
        let found = self.entry(line.words[0]);
        let project = found.project.unwrap();
        let own = Account::Receivable(project);
        let replaced = |text: &&str| {
            let amount: Steps = text.parse().unwrap();
            let other = found.legs.iter().find(|leg| leg.account != own).unwrap().account;
            vec![Leg { account: own, amount }, Leg { account: other, amount: -amount }]
        };
        CorrectEntry {
            tenant: found.tenant,
            project,
            currency: found.currency,
            original_month: found.original_month.unwrap(),
            corrects: found.id,
            previous: self.books().last_entry_of(project, found.currency),
            line: found.line.as_ref().map(|line| CorrectedLine {
                key: line.key.clone(),
                usage: line.usage,
                exact: line.exact.clone(),
            }),
            reversal: found.legs.iter().map(|leg| Leg { account: leg.account, amount: -leg.amount }).collect(),
            replacement: line.options.get("to").map(replaced).unwrap_or_default(),
            reason: name("wrong"),
        }
    }

    /// As `server/src/losses.rs` does it.
    fn settle_loss(&mut self, line: &Line<'_>) {
        let (loss, open) = self.story.world.state().open_losses().next().expect("an open loss");
        let EndedOnNode { leases, claims } = self.books().ended_after(loss, open.node, open.last_seen).unwrap();
        let lease = |row: &Row| EndedLease {
            lease: row.lease,
            tenant: row.tenant,
            project: row.project,
            user: row.user,
            workload: row.workload.clone(),
            belongs_to: BelongsTo { allocation: row.allocation, correlation: row.correlation() },
        };
        let claim = |ended: &leasehold_books::EndedClaim| EndedClaim {
            claim: ended.claim,
            tenant: ended.tenant,
            project: ended.project,
            user: ended.user,
        };
        let (leases, claims) = (leases.iter().map(lease).collect(), claims.iter().map(claim).collect());
        self.decide(line, Command::SettleLoss(SettleLoss { loss, leases, claims, complete: true }));
    }

    fn show(&mut self) {
        let shown = self.shown;
        let mut places: BTreeMap<&str, u32> = BTreeMap::new();
        for entry in self.entries() {
            let place = places.entry(entry.kind.word()).or_default();
            *place += 1;
            if shown.is_some_and(|shown| entry.id <= shown) {
                continue;
            }
            self.shown = Some(entry.id);
            let month = entry.month.map_or_else(|| "-".into(), |month| month.to_string());
            let payer = entry.project.map_or_else(|| entry.tenant.to_string(), |project| project.to_string());
            let hour = entry.line.map_or_else(String::new, |line| format!(" of {}", line.key.hour.0 / 1_000_000_000));
            let legs = entry.legs.iter().map(|leg| format!("{} {}", leg.account.word(), leg.amount));
            let legs = legs.collect::<Vec<_>>().join(", ");
            let kind = entry.kind;
            writeln!(self.story.text, "  {kind}/{place}{hour} in {month}, {payer} {}: {legs}", entry.currency).unwrap();
        }
        let balances: Vec<_> = self.books().account_balances().collect();
        for (account, currency, balance) in balances {
            writeln!(self.story.text, "  {} {currency}: {balance}", account.word()).unwrap();
        }
    }
}

/// In two, as if it were too long.
fn cut(part: PostUsage) -> Vec<PostUsage> {
    let (mut first, mut second) = (part.clone(), part);
    second.lines = first.lines.split_off(1);
    first.complete = false;
    vec![first, second]
}
