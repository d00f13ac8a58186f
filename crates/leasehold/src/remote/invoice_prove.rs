//! `leasehold invoice prove`: downloads the file that proves an invoice.

use super::failure::Failed;
use super::session::Session;
use crate::cli::ledger::InvoiceProveArgs;
use crate::output::{print, print_json};
use crate::problem::Problem;
use crate::term;
use leasehold_model::InvoiceNo;
use serde_json::json;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The daemon reads all records of the month before it answers.
const PROOF_TIMEOUT: Duration = Duration::from_secs(15 * 60);

pub(super) async fn prove(session: &Session, args: InvoiceProveArgs) -> Result<(), Failed> {
    // The name of the file is the number as it is written on the invoice, and nothing that could be a path.
    let number = InvoiceNo::parse(&args.number).map(|number| number.to_string());
    let number = number.ok_or_else(|| {
        let what = format!("{:?} is not the number of an invoice", args.number);
        Problem::usage("usage", what).advice("`leasehold invoice list` lists them; a number looks like INV-000012")
    })?;
    let path = args.out.unwrap_or_else(|| PathBuf::from(format!("{number}.proof")));
    if !args.force && path.try_exists().map_err(|error| not_written(&path, &error))? {
        let what = format!("{} exists", path.display());
        return Err(Problem::refused("file_exists", what)
            .advice("choose another file with --out, or add --force")
            .into());
    }
    let bytes = download(session, &number, &path).await?;
    if session.json {
        return Ok(print_json(&json!({ "invoice": number, "file": path.display().to_string(), "bytes": bytes }))?);
    }
    let shown = term::shell_word(&path.display().to_string());
    Ok(print(&format!(
        "The proof of {number} is in {} ({bytes} bytes).\nCheck it, on any machine: leasehold-verify invoice {shown} --trust \
         TRUST_FILE\n",
        path.display()
    ))?)
}

fn not_written(path: &Path, error: &io::Error) -> Problem {
    Problem::refused("output_failed", format!("{} cannot be written: {error}", path.display()))
}

/// Writes to a file beside it, which replaces it when it is complete.
async fn download(session: &Session, number: &str, path: &Path) -> Result<u64, Failed> {
    let drawn = term::drawable().is_some();
    let draw = |text: &str| {
        if drawn {
            term::say(&format!("\r\x1b[K{text}"));
        }
    };
    draw("leasehold: the daemon makes the proof …");
    let call = session.client.prove_invoice(number).patiently(PROOF_TIMEOUT);
    let begun = call.download().await;
    draw("");
    let mut download = begun?;
    let mut name = path.as_os_str().to_owned();
    name.push(".part");
    let part = PathBuf::from(name);
    let failed = |error: &io::Error| not_written(path, error);
    let mut file = File::create(&part).map_err(|error| failed(&error))?;
    let mut bytes = 0;
    let written: Result<(), Failed> = async {
        while let Some(chunk) = download.chunk().await? {
            file.write_all(&chunk).map_err(|error| failed(&error))?;
            bytes += chunk.len() as u64;
            draw(&format!("leasehold: {} KiB", bytes >> 10));
        }
        file.sync_all().map_err(|error| failed(&error))?;
        fs::rename(&part, path).map_err(|error| failed(&error))?;
        Ok(())
    }
    .await;
    draw("");
    if written.is_err() {
        // What was written so far proves nothing; if it cannot be removed, it stays.
        let _ = fs::remove_file(&part);
    }
    written.map(|()| bytes)
}
