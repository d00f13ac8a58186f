//! `leasehold ledger …`, `period …`, `invoice …`, `payment …` and `tax …`.

use super::remote::ChangeArgs;
use clap::{Args, Subcommand};
use leasehold_api::{AccountKind, EntryKind, InvoiceStatus, Moment};
use leasehold_model::{Month, Words};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum LedgerCommand {
    /// Show how far usage is posted, which month is open, and whether settlement lags
    Status,
    /// Open the ledger, so that usage is posted from an hour on
    Open(OpenArgs),
    /// Settle all hours that are over now, and wait until they are posted
    Settle(SettleArgs),
    /// Show usage that is rated and not posted yet
    Draft(DraftArgs),
    /// List entries
    Entries(EntriesArgs),
    /// Show one entry
    Show(EntryArgs),
    /// Show where the amount of an entry comes from: leases, seconds, prices, factors and arithmetic
    Explain(EntryArgs),
    /// Book an entry by hand
    Post(PostArgs),
    /// Show the balances of accounts
    Balances(BalancesArgs),
    /// Correct an entry: reverse it and, with --amount, replace it
    Correct(CorrectArgs),
    /// Mark an entry as disputed, or close its dispute
    Dispute(DisputeArgs),
    /// List entries that are disputed
    Disputes(DisputesArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  leasehold ledger open                          # post usage from the present hour on
  leasehold ledger open --from 2026-11-01        # post what was used since the beginning of November

A new daemon opens its ledger by itself. It can be opened once, and never earlier than it was.")]
pub(crate) struct OpenArgs {
    /// Start of the first hour whose usage is posted [default: the present hour]
    #[arg(long, value_name = "TIME")]
    pub(crate) from: Option<Moment>,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SettleArgs {
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

/// Whose entries.
#[derive(Debug, Args)]
pub(crate) struct OwnerArgs {
    /// Only this tenant
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Option<String>,
    /// Only this project
    #[arg(long, value_name = "NAME")]
    pub(crate) project: Option<String>,
    /// Only this currency, such as EUR
    #[arg(long, value_name = "CODE")]
    pub(crate) currency: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct DraftArgs {
    #[command(flatten)]
    pub(crate) of: OwnerArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  leasehold ledger entries --tenant physics --month 2026-11
  leasehold ledger entries --kind reversal                # all corrections
  leasehold ledger entries --account cash_clearing        # all payments")]
pub(crate) struct EntriesArgs {
    #[command(flatten)]
    pub(crate) of: OwnerArgs,
    /// Only entries that are booked in this month, such as 2026-11
    #[arg(long, value_name = "MONTH")]
    pub(crate) month: Option<Month>,
    /// Only entries of this kind
    #[arg(long, value_enum, value_name = "KIND")]
    pub(crate) kind: Option<EntryKind>,
    /// Only entries on an account of this kind
    #[arg(long, value_enum, value_name = "ACCOUNT")]
    pub(crate) account: Option<AccountKind>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  leasehold ledger explain entry-48211-0")]
pub(crate) struct EntryArgs {
    /// ID of the entry, such as entry-48211-0
    pub(crate) entry: String,
}

/// One side of an entry: the account, the class of a revenue account, and the amount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LegArg {
    pub(crate) account: AccountKind,
    pub(crate) class: Option<String>,
    pub(crate) amount: String,
}

fn leg(text: &str) -> Result<LegArg, String> {
    let (account, amount) = text.split_once('=').ok_or("expected ACCOUNT=AMOUNT, such as receivable=-25.00")?;
    let (word, class) = account.split_once(':').map_or((account, None), |(word, class)| (word, Some(class)));
    let account = AccountKind::from_word(word)
        .ok_or_else(|| format!("`{word}` is no account; expected one of {}", AccountKind::WORDS.join(", ")))?;
    Ok(LegArg { account, class: class.map(str::to_owned), amount: amount.to_owned() })
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  leasehold ledger post lattice --currency EUR --reason outage --leg receivable=-25.00 --leg operator_loss=25.00
  leasehold ledger post lattice --currency EUR --reason \"setup fee\" --leg receivable=100 --leg adjustments=-100

The amounts must sum to zero. A positive amount is a debit; a debit of `receivable` makes the project owe more.
The class of a revenue account follows a colon: --leg revenue:h100=-12.50
So does a usage unit: --leg revenue:unit:requests=-12.50")]
pub(crate) struct PostArgs {
    /// Project that the entry concerns
    pub(crate) project: String,
    /// Tenant of the project, needed if several tenants have a project of that name
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Option<String>,
    /// Currency code of three capital letters
    #[arg(long, value_name = "CODE")]
    pub(crate) currency: String,
    /// Amount on an account; repeatable
    #[arg(long = "leg", value_name = "ACCOUNT=AMOUNT", value_parser = leg, required = true)]
    pub(crate) legs: Vec<LegArg>,
    /// Month that the entry is about [default: the open month]
    #[arg(long, value_name = "MONTH")]
    pub(crate) month: Option<Month>,
    /// Reason, which the tenant also sees
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: String,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  leasehold ledger balances --account receivable        # what projects owe and was not invoiced yet
  leasehold ledger balances --account invoiced          # what tenants owe by their invoices
  leasehold ledger balances --tenant physics")]
pub(crate) struct BalancesArgs {
    #[command(flatten)]
    pub(crate) of: OwnerArgs,
    /// Only accounts of this kind
    #[arg(long, value_enum, value_name = "ACCOUNT")]
    pub(crate) account: Option<AccountKind>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  leasehold ledger correct entry-48211-0 --amount 12.50 --reason \"price agreed by contract\"
  leasehold ledger correct entry-48211-0 --reason \"the node was broken\"      # reverse it only

The correction is booked in the open month. To correct a correction, name its replacement.")]
pub(crate) struct CorrectArgs {
    /// ID of the entry
    pub(crate) entry: String,
    /// Right amount, which takes the place of the wrong one [default: none; the entry is only reversed]
    #[arg(long, value_name = "AMOUNT", allow_hyphen_values = true)]
    pub(crate) amount: Option<String>,
    /// Reason, which the tenant also sees
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: String,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  leasehold ledger dispute entry-48211-0 --reason \"the node did not respond\"
  leasehold ledger dispute entry-48211-0 --close --reason \"corrected\"")]
pub(crate) struct DisputeArgs {
    /// ID of the entry
    pub(crate) entry: String,
    /// Close the dispute
    #[arg(long)]
    pub(crate) close: bool,
    /// Reason of the dispute, or how it was resolved
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: String,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

#[derive(Debug, Args)]
pub(crate) struct DisputesArgs {
    /// Only this tenant
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PeriodCommand {
    /// List the months of the ledger
    List,
    /// Show a month, what is missing before it can be closed, and its draft invoices
    Show(PeriodArgs),
    /// Close a month: settle it, issue its invoices, and book nothing in it any more
    Close(PeriodCloseArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  leasehold period show 2026-11")]
pub(crate) struct PeriodArgs {
    /// Month in UTC, such as 2026-11
    pub(crate) month: Month,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  leasehold period close 2026-11              # only shows what would be invoiced
  leasehold period close 2026-11 --yes
  leasehold period close 2026-11 --yes --no-wait

Months are closed in order, when they are over. What is wrong in a closed month is corrected in the open one.")]
pub(crate) struct PeriodCloseArgs {
    /// Month in UTC, such as 2026-11
    pub(crate) month: Month,
    /// Close the month; without it, what would be invoiced is only shown
    #[arg(long)]
    pub(crate) yes: bool,
    /// Do not wait until all invoices are issued
    #[arg(long)]
    pub(crate) no_wait: bool,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum InvoiceCommand {
    /// List invoices and credit notes, and what is still owed
    List(InvoiceListArgs),
    /// Show an invoice, or write it as a page to print or as CSV
    Show(InvoiceShowArgs),
    /// Show what the invoices of a tenant for an open month would be now
    Draft(InvoiceDraftArgs),
    /// Download the file that proves an invoice, for `leasehold-verify invoice`
    Prove(InvoiceProveArgs),
    /// Explain why two invoices differ, line by line
    Diff(InvoiceDiffArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  leasehold invoice list --month 2026-11
  leasehold invoice list --status overdue")]
pub(crate) struct InvoiceListArgs {
    /// Only this tenant
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Option<String>,
    /// Only for this month, such as 2026-11
    #[arg(long, value_name = "MONTH")]
    pub(crate) month: Option<Month>,
    /// Only this currency, such as EUR
    #[arg(long, value_name = "CODE")]
    pub(crate) currency: Option<String>,
    /// Only with this status
    #[arg(long, value_enum, value_name = "STATUS")]
    pub(crate) status: Option<InvoiceStatus>,
}

/// How an invoice is written.
#[derive(Debug, Args)]
pub(crate) struct InvoiceFormArgs {
    /// Write a page that can be printed
    #[arg(long)]
    pub(crate) html: bool,
    /// Write comma-separated values; an apostrophe precedes text that a spreadsheet would run as a formula
    #[arg(long, conflicts_with = "html")]
    pub(crate) csv: bool,
    /// Write to this file instead of the terminal
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  leasehold invoice show INV-000012
  leasehold invoice show INV-000012 --html --out INV-000012.html")]
pub(crate) struct InvoiceShowArgs {
    /// Number, such as INV-000012 or CN-000003
    pub(crate) number: String,
    #[command(flatten)]
    pub(crate) form: InvoiceFormArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  leasehold invoice draft --tenant physics
  leasehold invoice draft --tenant physics --month 2026-11 --html --out draft.html")]
pub(crate) struct InvoiceDraftArgs {
    /// Tenant [default: the tenant of the token]
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Option<String>,
    /// Month that is not closed, such as 2026-11 [default: the first open month]
    #[arg(long, value_name = "MONTH")]
    pub(crate) month: Option<Month>,
    /// Only this currency, such as EUR
    #[arg(long, value_name = "CODE")]
    pub(crate) currency: Option<String>,
    #[command(flatten)]
    pub(crate) form: InvoiceFormArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  leasehold invoice prove INV-000012
  leasehold invoice prove INV-000012 --out november.proof

The file holds the tenant's own records of the month, and nothing of other tenants. Whoever has it
can check the invoice without the daemon:
  leasehold-verify invoice FILE --trust TRUST_FILE

If a checkpoint is pinned in the trust file, its size is the second line of that checkpoint: with --since-size
the file also proves that the journal continues the pinned one.")]
pub(crate) struct InvoiceProveArgs {
    /// Number, such as INV-000012 or CN-000003
    pub(crate) number: String,
    /// Prove, too, that the journal continues that of this size, which is pinned in the trust file
    #[arg(long, value_name = "RECORDS")]
    pub(crate) since_size: Option<u64>,
    /// Write to this file [default: the number with the ending .proof]
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Replace an existing file
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  leasehold invoice diff INV-000011 INV-000012
  leasehold invoice diff INV-000012 draft --tenant physics
  leasehold invoice diff november-draft.json INV-000012

Each side is the number of an invoice, the word draft, or a file that `leasehold invoice show --json` or
`leasehold invoice draft --json` wrote. The parts add up to the difference of the totals.")]
pub(crate) struct InvoiceDiffArgs {
    /// Earlier invoice: a number, the word draft, or a file with JSON
    #[arg(value_name = "A")]
    pub(crate) before: String,
    /// Later invoice: a number, the word draft, or a file with JSON
    #[arg(value_name = "B")]
    pub(crate) after: String,
    /// Tenant of a draft [default: the tenant of the token]
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Option<String>,
    /// Month of a draft, such as 2026-11 [default: the first open month]
    #[arg(long, value_name = "MONTH")]
    pub(crate) month: Option<Month>,
    /// Currency of a draft, such as EUR
    #[arg(long, value_name = "CODE")]
    pub(crate) currency: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PaymentCommand {
    /// Record a payment of a tenant
    Record(PaymentRecordArgs),
    /// List payments
    List(PaymentListArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  leasehold payment record 1190.00 --invoice INV-000012 --reference \"bank 2026-12-09/17\"
  leasehold payment record 500 --tenant physics --currency EUR --reference \"bank 2026-12-11/3\" --received yesterday

The same reference with the same payment changes nothing and shows what was recorded; with another amount it is refused.
Without --invoice, the payment is for the oldest invoices that are not paid.")]
pub(crate) struct PaymentRecordArgs {
    /// Amount; negative if it was paid back
    #[arg(allow_hyphen_values = true)]
    pub(crate) amount: String,
    /// Invoice that was paid
    #[arg(long, value_name = "NUMBER")]
    pub(crate) invoice: Option<String>,
    /// Tenant that paid [default: the tenant of the invoice]
    #[arg(long, value_name = "NAME", required_unless_present = "invoice")]
    pub(crate) tenant: Option<String>,
    /// Currency code of three capital letters [default: the currency of the invoice]
    #[arg(long, value_name = "CODE", required_unless_present = "invoice")]
    pub(crate) currency: Option<String>,
    /// Reference, such as that of the bank; unique for the tenant
    #[arg(long, value_name = "TEXT")]
    pub(crate) reference: String,
    /// When it was received [default: now]
    #[arg(long, value_name = "TIME")]
    pub(crate) received: Option<Moment>,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

#[derive(Debug, Args)]
pub(crate) struct PaymentListArgs {
    /// Only this tenant
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Option<String>,
    /// Only this currency, such as EUR
    #[arg(long, value_name = "CODE")]
    pub(crate) currency: Option<String>,
    /// Only for this invoice
    #[arg(long, value_name = "NUMBER")]
    pub(crate) invoice: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TaxCommand {
    /// Set the tax rate of a tenant from a month on
    Set(TaxSetArgs),
    /// Show the tax rates of a tenant
    Show(TaxShowArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  leasehold tax set physics 24%
  leasehold tax set physics 0.255 --from 2027-01")]
pub(crate) struct TaxSetArgs {
    /// Name or number of the tenant
    pub(crate) tenant: String,
    /// Rate, as a factor such as 0.24 or in percent such as 24%
    #[arg(value_parser = rate)]
    pub(crate) rate: String,
    /// First month in which it applies [default: the present month]
    #[arg(long, value_name = "MONTH")]
    pub(crate) from: Option<Month>,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

#[derive(Debug, Args)]
pub(crate) struct TaxShowArgs {
    /// Name or number of the tenant
    pub(crate) tenant: String,
}

/// A factor. A percentage moves the decimal point by two digits.
fn rate(text: &str) -> Result<String, String> {
    let Some(percent) = text.strip_suffix('%') else { return Ok(text.to_owned()) };
    let (whole, part) = percent.trim().split_once('.').unwrap_or((percent.trim(), ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(part) {
        return Err("expected a factor such as 0.24, or a percentage such as 24%".into());
    }
    let padded = format!("{whole:0>3}");
    let (units, hundredths) = padded.split_at(padded.len() - 2);
    Ok(format!("{units}.{hundredths}{part}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_factors_or_percentages() {
        let read = |text: &str| rate(text).expect("a rate");
        assert_eq!([read("24%"), read("25.5 %"), read("5%"), read("100%")], ["0.24", "0.255", "0.05", "1.00"]);
        assert_eq!(read("0.19"), "0.19");
        assert!(rate("x%").is_err() && rate("%").is_err());
    }

    #[test]
    fn legs_name_an_account_and_an_amount() {
        let read = leg("revenue:h100=-12.50").expect("a leg");
        assert_eq!(
            (read.account, read.class.as_deref(), read.amount.as_str()),
            (AccountKind::Revenue, Some("h100"), "-12.50")
        );
        assert!(leg("receivable").is_err() && leg("cash=1").is_err());
    }
}
