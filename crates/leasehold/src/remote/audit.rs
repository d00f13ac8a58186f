//! `leasehold audit …` without `--data`: the daemon answers.

use super::events::records;
use super::failure::Failed;
use super::session::{Session, settings};
use crate::cli::remote::DaemonArgs;
use crate::cli::{Audit, CheckpointArgs, ExportArgs, ProveArgs, RecordsArgs, TrustArgs};
use crate::numbers::counted;
use crate::output::{failed, print, print_json, print_on};
use crate::problem::{EXIT_NOT_VERIFIED, EXIT_OK, Problem};
use crate::term;
use leasehold_client::{Client, Error};
use leasehold_model::hex;
use leasehold_tlog::{ConsistencyFile, VerifierKey};
use leasehold_verify::Trust;
use serde_json::{Value, json};

/// Runs an audit command, with the daemon or on files.
pub(crate) fn run(daemon: &DaemonArgs, audit: Audit) -> Result<u8, Problem> {
    let remote = match &audit {
        Audit::Records(_) | Audit::Status(_) | Audit::Scrub(_) => true,
        Audit::Trust(args) => args.journal.data.is_none(),
        Audit::Checkpoint(args) => args.journal.data.is_none(),
        Audit::Export(args) => args.journal.data.is_none(),
        Audit::Replay(args) => args.journal.data.is_none(),
        Audit::Prove(args) => args.data.is_none() && args.check.is_none(),
        Audit::Verify(_) | Audit::Evidence(_) | Audit::Collect(_) => false,
    };
    if remote { ask(daemon, audit) } else { crate::audit::run(audit) }
}

fn ask(daemon: &DaemonArgs, audit: Audit) -> Result<u8, Problem> {
    let settings = settings(daemon)?;
    if !settings.named && !matches!(audit, Audit::Records(_) | Audit::Status(_) | Audit::Scrub(_)) {
        return Err(Problem::usage("usage", "no journal is given")
            .advice("give --data DIR to read files, or --url or LEASEHOLD_URL to ask a daemon"));
    }
    Session::with(settings, daemon.json)?.during(async |session| {
        match audit {
            Audit::Records(args) => records(session, &args).await?,
            Audit::Status(args) => return super::scrub::status(session, args.wait).await,
            Audit::Scrub(args) => return super::scrub::scrub(session, args.wait).await,
            Audit::Checkpoint(CheckpointArgs { .. }) => {
                session.show(session.client.checkpoint(), |checkpoint| checkpoint.note.clone()).await?;
            }
            Audit::Export(args) => export(session, &args).await?,
            Audit::Replay(args) => return replay(session, args.sequence).await,
            Audit::Prove(args) => prove(session, &args).await?,
            Audit::Trust(TrustArgs { .. }) => trust(session).await?,
            Audit::Verify(_) | Audit::Evidence(_) | Audit::Collect(_) => {
                unreachable!("these commands read files or run elsewhere")
            }
        }
        Ok(EXIT_OK)
    })
}

/// The daemon's replay. The exit code is the same as for a replay from files.
async fn replay(session: &Session, sequence: u64) -> Result<u8, Failed> {
    let explanation = session.client.explain_decision(sequence).await?;
    if session.json {
        print_json(&serde_json::to_value(&explanation).unwrap_or_default())?;
    } else {
        print(&super::explain::text(session, &explanation))?;
    }
    Ok(if explanation.replayed.as_deref() == Some("differs") { EXIT_NOT_VERIFIED } else { EXIT_OK })
}

/// All records as JSON lines. With a filter they are read page by page, which needs no right to export everything.
async fn export(session: &Session, args: &ExportArgs) -> Result<(), Failed> {
    if args.tenant.is_some() || args.kind.is_some() {
        let limit = None;
        let after = args.from.and_then(|from| from.checked_sub(1));
        if args.to.is_some() {
            let what = "a daemon does not support --to together with --tenant or --kind";
            return Err(Problem::usage("usage", what).advice("omit one of them, or read the files with --data").into());
        }
        let args = RecordsArgs { after, tenant: args.tenant.clone(), kind: args.kind.clone(), limit };
        let lines =
            Session { client: session.client.clone(), json: true, paint: session.paint, times: session.times.clone() };
        return records(&lines, &args).await;
    }
    let call = session.client.export().maybe("from", args.from).maybe("to", args.to);
    let mut download = call.download().await?;
    while let Some(chunk) = download.chunk().await? {
        let text = String::from_utf8_lossy(&chunk);
        if print_on(&text)?.is_break() {
            break;
        }
    }
    Ok(())
}

async fn prove(session: &Session, args: &ProveArgs) -> Result<(), Failed> {
    let client = &session.client;
    let (proof, summary, object) = match (args.sequence, args.consistency_from) {
        (Some(sequence), _) => {
            let call = client.prove_inclusion().query("sequence", sequence);
            let object = call.clone().json().await?;
            let proof = call.await?;
            let summary = format!(
                "Record {sequence} of {} is in the checkpoint of {}.\nhash {}\n",
                proof.checkpoint.origin,
                counted(proof.checkpoint.size, "record"),
                proof.record_hash
            );
            (proof.proof, summary, object)
        }
        (None, Some(from)) => {
            let call = client.prove_consistency().query("from", from);
            let object = call.clone().json().await?;
            let proof = call.await?;
            let summary = format!(
                "The first {} of {} are unchanged in its {}.\n",
                counted(from, "record"),
                proof.checkpoint.origin,
                counted(proof.to, "record")
            );
            (growth_file(client, &proof)?, summary, object)
        }
        (None, None) => unreachable!("clap requires one of them"),
    };
    deliver(session, args, &proof, &summary, object)
}

fn deliver(session: &Session, args: &ProveArgs, proof: &str, summary: &str, object: Value) -> Result<(), Failed> {
    if let Some(path) = &args.out {
        std::fs::write(path, proof).map_err(|error| failed(&error).at(path))?;
    }
    match (session.json, &args.out) {
        (true, _) => print_json(&object)?,
        (false, Some(path)) => print(&format!("{summary}The proof is in {}.\n", path.display()))?,
        (false, None) => {
            term::say(summary);
            print(proof)?;
        }
    }
    Ok(())
}

/// The proof in the text format that `audit prove --check` reads.
fn growth_file(client: &Client, proof: &leasehold_api::ConsistencyProof) -> Result<String, Failed> {
    let bad = |what: String| Failed::from(Error::Protocol { url: client.url().to_owned(), what });
    // A proof for a journal that did not grow has no hashes.
    let hashes: String = proof.path.iter().map(|hash| format!("{hash}\n")).collect();
    let text = format!("old {}\n{hashes}\n{}", proof.from, proof.checkpoint.note);
    // Parse it as the checker does, so that an invalid proof is never written.
    let file = ConsistencyFile::parse(&text).map_err(|error| bad(format!("its proof cannot be read: {error}")))?;
    Ok(file.to_string())
}

/// The trust file according to the daemon; only as trustworthy as the connection to it.
async fn trust(session: &Session) -> Result<(), Failed> {
    let client = &session.client;
    let bad = |what: String| Failed::from(Error::Protocol { url: client.url().to_owned(), what });
    let checkpoint = client.checkpoint().await?;
    let mut trust: Option<Trust> = None;
    for record in client.list_records().query("kind", "journal").all().await? {
        let field = match record.get("kind").and_then(Value::as_str) {
            Some("journal.genesis") => "/body/public_key",
            Some("journal.key_rotated") => "/body/new_key",
            _ => continue,
        };
        // Keys that follow the checkpoint have not signed anything yet; the first key is needed even for an empty one.
        let sequence = record.get("sequence").and_then(Value::as_u64);
        if sequence.is_none_or(|sequence| sequence >= checkpoint.size.max(1)) {
            break;
        }
        let key = record.pointer(field).and_then(Value::as_str).and_then(hex::decode_hash);
        let key = key.ok_or_else(|| bad("a key of the journal is invalid".into()))?;
        let key = VerifierKey::new(&checkpoint.origin, &key).map_err(|error| bad(error.to_string()))?;
        match &mut trust {
            None => trust = Some(Trust::new(key)),
            Some(trust) => trust.add_key(key).map_err(|error| bad(error.to_string()))?,
        }
    }
    let mut trust = trust.ok_or_else(|| {
        Problem::refused("role_forbids", "the daemon does not show its first record to this token")
            .advice("use an operator's or an auditor's token")
    })?;
    if checkpoint.size > 0 {
        let pinned = trust.pin(&checkpoint.note);
        pinned.map_err(|error| Problem::not_verified("trust_not_derivable", error.to_string()))?;
    }
    if session.json {
        let keys: Vec<String> = trust.keys().iter().map(ToString::to_string).collect();
        let root = &checkpoint.root;
        let checkpoint = json!({ "size": checkpoint.size, "root": root, "note": checkpoint.note });
        return Ok(print_json(&json!({
            "origin": trust.origin(), "keys": keys, "checkpoint": checkpoint, "trust_file": trust.to_text(),
        }))?);
    }
    Ok(print(&format!("{}{}", crate::audit::TRUST_REMARK, trust.to_text()))?)
}
