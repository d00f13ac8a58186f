//! The repository keeps its own rules: short files, narrow prose, no kind of record that passes unseen, and pages that
//! name only what is there.

use leasehold_tidy::{
    all_files, anchors, catch_alls, check_allowed, counts_of, files, inline_code, is_too_long, links, named_tests,
    prose, read, root,
};
use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

const FILE_LINES_MAX: usize = 600;

#[test]
fn files_are_short() {
    let counts =
        counts_of(&files("rs"), |_, text| Some(text.lines().count()).filter(|n| *n > FILE_LINES_MAX).unwrap_or(0));
    check_allowed("file-lines", &counts, "an idea in it wants a file of its own");
}

#[test]
fn prose_is_narrow() {
    let counts = counts_of(&files("md"), |_, text| prose(text).iter().filter(|(_, line)| is_too_long(line)).count());
    check_allowed("wide-markdown", &counts, "break the lines before column 120");
}

#[test]
fn no_kind_passes_unseen() {
    let counts = counts_of(&files("rs"), |path, text| {
        // A test picks what it looks at.
        let counts = path.contains("/src/") && !path.starts_with("crates/tidy/");
        if counts { catch_alls(text, &["Body", "Command", "Refusal"]).len() } else { 0 }
    });
    check_allowed("catch-alls", &counts, "name the kinds that it does nothing for");
}

/// Every page that a link points at is there, and so is the heading.
#[test]
fn links_lead_somewhere() {
    let mut wrong = Vec::new();
    for page in files("md") {
        let text = read(&page);
        for (line, target) in links(&text) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let (path, anchor) = target.split_once('#').map_or((&*target, None), |(path, anchor)| (path, Some(anchor)));
            let cited = if path.is_empty() { PathBuf::from(&page) } else { beside(&page, path) };
            if !root().join(&cited).exists() {
                wrong.push(format!("{page}:{line}: there is no {}", cited.display()));
            } else if let Some(anchor) = anchor.filter(|_| cited.extension().is_some_and(|kind| kind == "md"))
                && !anchors(&read(&cited.to_string_lossy())).contains(anchor)
            {
                wrong.push(format!("{page}:{line}: {} has no heading #{anchor}", cited.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A path from the folder of a page, as one from the root.
fn beside(page: &str, path: &str) -> PathBuf {
    let mut found = PathBuf::from(page);
    found.pop();
    for part in Path::new(path).components() {
        match part {
            Component::ParentDir => drop(found.pop()),
            Component::CurDir => {}
            part => found.push(part),
        }
    }
    found
}

/// Every file of ours that prose names in `code` is there, under that path or the end of it: `state/fold.rs`.
#[test]
fn paths_in_prose_exist() {
    let all = all_files();
    let mut wrong = Vec::new();
    for page in files("md").iter().filter(|page| *page != "CHANGELOG.md") {
        for (line, code) in inline_code(&read(page)) {
            for path in expand(&code).iter().filter(|path| is_our_path(path)) {
                let (path, ending) = (path.trim_end_matches('/'), format!("/{}", path.trim_start_matches("../")));
                let there = all.iter().any(|file| {
                    file == path
                        || file.ends_with(&ending)
                        || file.starts_with(&format!("{path}/"))
                        || file.contains(&format!("{}/", ending.trim_end_matches('/')))
                });
                if !there {
                    wrong.push(format!("{page}:{line}: there is no {path}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Every test that a table of proofs names is there: in the file that is said, under that name.
#[test]
fn proofs_are_tests() {
    let (mut wrong, mut functions) = (Vec::new(), 0);
    for page in files("md") {
        for test in named_tests(&read(&page)).into_iter().flatten() {
            functions += usize::from(test.function.is_some());
            let source = test.file.as_deref().filter(|file| root().join(file).is_file()).map(read);
            wrong.extend(test.wrong(source.as_deref()).map(|why| format!("{page}:{}: {why}", test.line)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(functions > 50, "only {functions} tests are named: are the tables still read?");
}

/// Whether a word looks like a file or folder of this repository: source by its ending, all else by where it lies.
fn is_our_path(word: &str) -> bool {
    let plain = !word.is_empty() && word.bytes().all(|b| b.is_ascii_alphanumeric() || b"/._-".contains(&b));
    let source = [".rs", ".py", ".md"].iter().any(|ending| word.ends_with(ending) && word.len() > ending.len());
    let ours = ["crates/", "adapters/", "docs/", "packaging/", "tests/"].iter().any(|folder| word.starts_with(folder));
    plain && (source || ours)
}

/// `model/src/{record,body}.rs` names two files.
fn expand(code: &str) -> Vec<String> {
    let Some((before, rest)) = code.split_once('{') else { return vec![code.to_owned()] };
    let Some((inside, after)) = rest.split_once('}') else { return vec![code.to_owned()] };
    inside.split(',').map(|one| format!("{before}{one}{after}")).collect()
}

/// Each crate and each adapter is in the table of ARCHITECTURE.md, and nothing else is.
#[test]
fn every_crate_is_on_the_map() {
    let folders: BTreeSet<String> = files("toml")
        .iter()
        .filter_map(|path| path.strip_suffix("/Cargo.toml"))
        .map(|folder| folder.strip_prefix("crates/").unwrap_or(folder).to_owned())
        .collect();
    let text = read("ARCHITECTURE.md");
    let rows =
        text.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`').map(|(name, _)| name.to_owned()));
    let rows: BTreeSet<String> = rows.collect();
    assert_eq!(folders, rows, "the crates, and the rows of the table in ARCHITECTURE.md");
}
