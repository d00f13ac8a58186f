//! Every filter of a list or report can be given over HTTP and on the command line.

use super::Cli;
use clap::CommandFactory;
use leasehold_api::Endpoint;
use leasehold_api::endpoint::by_id;
use std::collections::BTreeSet;

/// Options that have another name than their parameter.
const RENAMED: &[(&str, &str)] = &[("alloc", "allocation"), ("until", "to")];

/// Options about output.
const OUTPUT: &[&str] = &["csv", "csv-raw", "html", "out", "watch", "help"];

/// The commands with their endpoints, and the parameters that only the endpoint has, with the reason.
const PAIRS: &[(&[&str], &Endpoint, &[&str])] = &[
    (&["usage"], by_id::usage, &[]),
    (&["usage", "capacity"], by_id::capacity, &[]),
    (&["cost"], by_id::costs, &[]),
    // The window is there to be refused with a reason: these are about now, and about the current month.
    (&["cost", "rate"], by_id::cost_rate, &["from", "to", "window"]),
    (&["cost", "forecast"], by_id::forecast, &["from", "to", "window"]),
    (&["waste"], by_id::waste, &[]),
    (&["sensitivity"], by_id::sensitivity, &[]),
    (&["ledger", "draft"], by_id::ledger_draft, &[]),
    (&["invoice", "draft"], by_id::draft_invoices, &["format"]),
    // The command line fetches all pages.
    (&["ledger", "entries"], by_id::list_entries, &["cursor", "limit"]),
    (&["ledger", "balances"], by_id::list_balances, &["cursor", "limit"]),
    (&["ledger", "disputes"], by_id::list_disputes, &["cursor", "limit"]),
    (&["invoice", "list"], by_id::list_invoices, &["cursor", "limit"]),
    (&["payment", "list"], by_id::list_payments, &["cursor", "limit"]),
    (&["timeline"], by_id::timeline, &["cursor", "limit"]),
    (&["lease", "list"], by_id::list_leases, &["cursor", "limit"]),
    (&["alloc", "list"], by_id::list_allocations, &["cursor", "limit"]),
    (&["node", "list"], by_id::list_nodes, &["cursor", "limit"]),
    (&["project", "list"], by_id::list_projects, &["cursor", "limit"]),
    (&["user", "list"], by_id::list_users, &["cursor", "limit"]),
];

#[test]
fn http_and_the_command_line_have_the_same_filters() {
    let all = Cli::command();
    for (path, endpoint, only_http) in PAIRS {
        let command = path.iter().fold(&all, |command, name| command.find_subcommand(name).expect("a command"));
        let options: BTreeSet<String> = command
            .get_arguments()
            .filter_map(clap::Arg::get_long)
            .filter(|long| !OUTPUT.contains(long))
            .map(|long| RENAMED.iter().find(|(option, _)| *option == long).map_or(long, |(_, name)| name))
            .map(|long| long.replace('-', "_"))
            .collect();
        let parameters: BTreeSet<String> = endpoint
            .query()
            .map(|query| query.name.to_owned())
            // On the command line it is an option of every command.
            .filter(|name| name != "time_zone" && !only_http.contains(&name.as_str()))
            .collect();
        assert_eq!(options, parameters, "leasehold {} and {}", path.join(" "), endpoint.path);
    }
}
