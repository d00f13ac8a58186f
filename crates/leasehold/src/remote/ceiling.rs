//! `leasehold ceiling …`.

use super::details::{Details, word};
use super::failure::Failed;
use super::figures;
use super::session::Session;
use crate::cli::ceiling::{CeilingArgs, CeilingCommand, CeilingSetArgs};
use crate::numbers::counted;
use crate::problem::Problem;
use crate::table::{Align, Table};
use crate::term::Style;
use crate::time_format;
use leasehold_api::{Ceiling, CeilingChange, CeilingMode, Money};
use leasehold_client::{Answer, Call};

pub(super) async fn run(session: &Session, command: CeilingCommand) -> Result<(), Failed> {
    let client = &session.client;
    match command {
        CeilingCommand::List(args) => {
            let call = client.list_ceilings(&args.project).maybe("tenant", args.tenant.as_ref());
            session.list(call, ceilings).await
        }
        CeilingCommand::Show(args) => {
            session.show(of(client.show_ceiling(&args.project), &args), |ceiling| one(session, ceiling)).await
        }
        CeilingCommand::Set(args) => {
            let call = of(client.put_ceiling(&args.of.project, &change(&args)?), &args.of);
            session.change(call, &args.change, |put| one(session, &put.ceiling)).await
        }
        CeilingCommand::Delete(args) => {
            let call = of(client.delete_ceiling(&args.of.project), &args.of);
            session.change(call, &args.change, |_| format!("the ceiling of {} was deleted\n", name(&args.of))).await
        }
    }
}

fn of<T: Answer>(call: Call<T>, args: &CeilingArgs) -> Call<T> {
    call.maybe("tenant", args.tenant.as_ref()).maybe("app_instance", args.app_instance.as_ref())
}

fn name(args: &CeilingArgs) -> String {
    match &args.app_instance {
        Some(app) => format!("{}, app instance {app},", args.project),
        None => args.project.clone(),
    }
}

fn change(args: &CeilingSetArgs) -> Result<CeilingChange, Problem> {
    let (amount, mode) = match (&args.amount.hard, &args.amount.soft) {
        (Some(amount), _) => (amount, CeilingMode::Hard),
        (None, Some(amount)) => (amount, CeilingMode::Soft),
        (None, None) => return Err(Problem::usage("usage", "no amount is given").advice("give --hard or --soft")),
    };
    Ok(CeilingChange { amount: Money(amount.clone()), mode: Some(mode), currency: args.currency.clone() })
}

fn style(ceiling: &Ceiling) -> Style {
    if ceiling.exceeded { Style::Red } else { Style::Plain }
}

fn ceilings(ceilings: &[Ceiling]) -> Table {
    let headings = [
        ("project", Align::Left),
        ("app instance", Align::Left),
        ("spent", Align::Right),
        ("reserved", Align::Right),
        ("ceiling", Align::Right),
        ("", Align::Left),
        ("mode", Align::Left),
    ];
    let mut table = Table::new(&headings).shrink_first(&["project"]);
    for ceiling in ceilings {
        let plain = |text: String| (text, Style::Plain);
        let money = |amount: &Money| figures::one_amount(&amount.0, &ceiling.currency);
        table.styled([
            plain(ceiling.project.clone()),
            plain(ceiling.app_instance.clone().unwrap_or_else(|| "all".into())),
            (money(&ceiling.spent), style(ceiling)),
            (money(&ceiling.reserved), style(ceiling)),
            plain(money(&ceiling.amount)),
            plain(ceiling.currency.clone()),
            plain(word(ceiling.mode)),
        ]);
    }
    table
}

/// `2 leases`, `1 claimed node` or both.
fn holders(ceiling: &Ceiling) -> String {
    let (leases, claimed) = (counted(ceiling.leases, "lease"), counted(ceiling.claimed_nodes, "claimed node"));
    match (ceiling.leases, ceiling.claimed_nodes) {
        (_, 0) => leases,
        (0, _) => claimed,
        _ => format!("{leases} and {claimed}"),
    }
}

fn one(session: &Session, ceiling: &Ceiling) -> String {
    let money = |amount: &Money| figures::money([(amount.0.as_str(), ceiling.currency.as_str())]);
    let left = if ceiling.exceeded {
        session.paint.paint(Style::Red, "nothing; the ceiling is exceeded").to_string()
    } else {
        money(&ceiling.left)
    };
    Details::new()
        .add("tenant", &ceiling.tenant)
        .add("project", &ceiling.project)
        .maybe("app instance", ceiling.app_instance.as_ref())
        .add("ceiling", format!("{}, {}", money(&ceiling.amount), word(ceiling.mode)))
        .add("since", time_format::to_the_second(ceiling.since))
        .add("spent", money(&ceiling.spent))
        .add("reserved", format!("{} for {}", money(&ceiling.reserved), holders(ceiling)))
        .add("left", left)
        .text(session.paint)
}
