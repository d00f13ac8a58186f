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

/// The daemon reads all records of the month before it sends more than the first line.
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
    let bytes = download(session, &number, args.since_size, &path).await?;
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

/// How much of the file has arrived; `None` while that is its first line, and the daemon still makes the rest.
fn progress(bytes: u64, whole: Option<u64>) -> Option<String> {
    match whole {
        Some(whole) => Some(format!("leasehold: {} of {} KiB", bytes >> 10, whole >> 10)),
        None if bytes < 1024 => None,
        None => Some(format!("leasehold: {} KiB", bytes >> 10)),
    }
}

/// Writes to a file beside it, which replaces it when it is complete.
async fn download(session: &Session, number: &str, since_size: Option<u64>, path: &Path) -> Result<u64, Failed> {
    let drawn = term::drawable().is_some();
    let draw = |text: &str| {
        if drawn {
            term::say(&format!("\r\x1b[K{text}"));
        }
    };
    const MAKING: &str = "leasehold: the daemon makes the proof …";
    draw(MAKING);
    let call = session.client.prove_invoice(number).maybe("since_size", since_size).patiently(PROOF_TIMEOUT);
    let begun = call.download().await.inspect_err(|_| draw(""));
    let mut download = begun?;
    let whole = download.bytes();
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
            draw(&progress(bytes, whole).unwrap_or_else(|| MAKING.to_owned()));
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

#[cfg(test)]
mod tests {
    use super::progress;

    #[test]
    fn progress_says_how_much_has_arrived() {
        assert_eq!(progress(2048, Some(10_240)).as_deref(), Some("leasehold: 2 of 10 KiB"));
        assert_eq!(progress(2048, None).as_deref(), Some("leasehold: 2 KiB"));
        assert_eq!(progress(27, None), None);
    }
}
