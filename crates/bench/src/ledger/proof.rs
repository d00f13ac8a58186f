//! The proof of an invoice of ten thousand lines over half a million records: how long it takes to write and to verify, how
//! large it is, and how long leases wait meanwhile.

use super::hours::percentile;
use super::proof_month::{RECORDS, closed};
use super::served::served;
use crate::outcome::Outcome;
use crate::scratch;
use crate::stall::paced;
use crate::work::Dice;
use leasehold_tlog::{MultiproofBuilder, VerifierKey, leaf_hash};
use leasehold_verify::Trust;
use leasehold_verify::invoice::verify_invoice;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant as Stopwatch};

const QUIET: Duration = Duration::from_millis(1500);
const ROUNDS: usize = 3;
/// The tenant has one in so many of the records of a busy month.
const ONE_IN: u64 = 10;
const MEGABYTE: f64 = 1e6;

/// The file, by HTTP/1.0: its end is the end of the answer.
fn fetch(address: SocketAddr, token: &str) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).expect("the daemon listens");
    let ask = format!("GET /api/v1/invoices/INV-000001/proof HTTP/1.0\r\nauthorization: Bearer {token}\r\n\r\n");
    stream.write_all(ask.as_bytes()).expect("the daemon reads");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("the daemon answers");
    let head = answer.windows(4).position(|end| end == b"\r\n\r\n").expect("a head") + 4;
    let status = String::from_utf8_lossy(&answer[..head]).into_owned();
    assert!(status.contains(" 200 "), "{status}{}", String::from_utf8_lossy(&answer[head..]));
    answer.split_off(head)
}

/// Bytes of hashes and links, if the records of a file lie among so many times as many others, at random.
fn sparse_bytes(times: u64) -> f64 {
    let (mut tree, mut dice) = (MultiproofBuilder::new(), Dice(5));
    let (mut links, mut left, mut before) = (0_u64, None, false);
    for sequence in 0..RECORDS * times {
        let (wanted, leaf) = (dice.below(times) == 0, leaf_hash(&[sequence as u8; 32]));
        links += u64::from(wanted && !before);
        // As the writer of a file: the leaf before a record with an odd sequence follows from its link.
        match (wanted, left.take()) {
            (false, None) if sequence.is_multiple_of(2) => left = Some(leaf),
            (true, Some(sibling)) => {
                tree.prove(sibling);
                tree.prove(leaf);
            }
            (false, Some(sibling)) => {
                tree.pass(sibling);
                tree.pass(leaf);
            }
            (true, None) => tree.prove(leaf),
            (false, None) => tree.pass(leaf),
        }
        before = wanted;
    }
    let (proof, _) = tree.finish().expect("records were chosen");
    32.0 * (links as f64 + proof.hashes.len() as f64)
}

pub(crate) fn invoice_proof() -> Vec<Outcome> {
    let folder = scratch::folder();
    eprintln!("  writing a month of {RECORDS} records of one tenant");
    let (daemon, mut work) = closed(&folder.path().join("data"));
    let cell = Arc::clone(daemon.cell());
    let size = cell.journal().head().size;
    let key = cell.now().read(|state| VerifierKey::new(scratch::ORIGIN, state.public_key())).expect("a valid key");
    eprintln!("  proving its invoice");
    let (file, took, quiet, busy) = served(daemon, |address, token| {
        let quiet = paced(&cell, &mut work, |began| began.elapsed() < QUIET);
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let renewals = scope.spawn(|| paced(&cell, &mut work, |_| !done.load(Ordering::Relaxed)));
            let began = Stopwatch::now();
            // The first one also collects the roots of all blocks.
            let file = fetch(address, token);
            let took = began.elapsed();
            (1..ROUNDS).for_each(|_| drop(fetch(address, token)));
            done.store(true, Ordering::Relaxed);
            (file, took, quiet, renewals.join().expect("the renewals are valid"))
        })
    });
    if let Some(kept) = std::env::var_os("LEASEHOLD_BENCH_PROOF") {
        std::fs::write(&kept, &file).expect("the file can be written");
        std::fs::write(std::path::Path::new(&kept).with_extension("trust"), Trust::new(key.clone()).to_text())
            .expect("the file can be written");
    }
    let verified = (0..ROUNDS).map(|_| verify(&file, &Trust::new(key.clone()))).fold(f64::INFINITY, f64::min);
    let (lines, records) = figures(&file, &Trust::new(key));
    let extra = (percentile(&busy, 990) - percentile(&quiet, 990)).max(0.0);
    let about = format!("{lines} lines, {records} records of a journal of {size}");
    let delay = format!(
        "99th percentile of {} renewals, one every 2 ms: {:.2} ms while a proof is made, {:.2} ms without; half within \
         {:.2} and {:.2} ms",
        busy.len(),
        percentile(&busy, 990),
        percentile(&quiet, 990),
        percentile(&busy, 500),
        percentile(&quiet, 500),
    );
    let sparse = (file.len() as f64 + sparse_bytes(ONE_IN)) / MEGABYTE;
    vec![
        Outcome::at_most("proof.write", took.as_secs_f64(), "s", "<= 10", 10.0)
            .note(format!("{about}; over HTTP, beside renewals")),
        Outcome::at_most("proof.write_delay", extra, "ms", "<= 5", 5.0).note(delay),
        Outcome::at_most("proof.verify", verified, "s", "<= 2", 2.0).note(format!("{about}; the best of {ROUNDS}")),
        Outcome::at_most("proof.size", file.len() as f64 / MEGABYTE, "MB", "<= 100", 100.0).note(about),
        Outcome::at_most("proof.size_sparse", sparse, "MB", "<= 100", 100.0)
            .note(format!("the same records at random places among {}", RECORDS * ONE_IN)),
    ]
}

/// Seconds in which the file is verified.
fn verify(file: &[u8], trust: &Trust) -> f64 {
    let began = Stopwatch::now();
    let judged = verify_invoice(file, &[], trust).unwrap_or_else(|(_, why)| panic!("{why}"));
    assert!(judged.is_proved(), "{:?}", judged.checked.report.mismatches.first());
    began.elapsed().as_secs_f64()
}

/// The lines of the invoice and the records of the file.
fn figures(file: &[u8], trust: &Trust) -> (usize, usize) {
    let judged = verify_invoice(file, &[], trust).unwrap_or_else(|(_, why)| panic!("{why}"));
    (judged.checked.report.lines.len(), judged.checked.records)
}
