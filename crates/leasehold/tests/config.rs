//! `leasehold config`.

mod common;

use common::leasehold;
use std::fs;

#[test]
fn the_example_is_valid() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("leasehold.yaml");
    let example = leasehold(["config", "example"]).ok().out;
    assert!(example.contains("#listen: 127.0.0.1:8420\n"), "{example}");
    // Except for the data directory, whose parent may not exist on this machine.
    fs::write(&file, format!("{example}\ndata: {}\n", folder.path().join("data").display())).expect("written");
    let said = leasehold(["config".as_ref(), "check".as_ref(), file.as_os_str()]).ok();
    assert!(said.out.is_empty() && said.err.ends_with("the configuration is valid\n"), "{said:?}");
    assert!(!folder.path().join("data").exists(), "looking changes nothing");
    let said = leasehold(["config".as_ref(), "check".as_ref(), "--json".as_ref(), file.as_os_str()]).ok();
    assert_eq!(said.json()["ok"], true);
}

#[test]
fn all_errors_of_a_file_are_reported() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("leasehold.yaml");
    let check = |text: &str, json: bool| {
        fs::write(&file, text).expect("written");
        let flags = if json { vec!["config", "check", "--json"] } else { vec!["config", "check"] };
        leasehold(flags.into_iter().map(std::ffi::OsStr::new).chain([file.as_os_str()]))
    };
    let said = check("listen: nowhere\nlimits: { connections: 0 }\ndata: .\n", false);
    assert_eq!((said.code, said.err.lines().count()), (1, 2), "{said:?}");
    assert!(
        said.err.contains("`listen`: `nowhere` is not an address")
            && said.err.contains("`limits.connections`: is zero"),
        "{said:?}"
    );
    let said = check("data: .\n\nlisen: 1\n", false);
    assert_eq!(said.code, 1);
    assert!(said.err.ends_with("unknown key `lisen` at line 3 (config_wrong); did you mean `listen`?\n"), "{said:?}");
    let said = check("data: .\n\nlisen: 1\n", true);
    assert_eq!((said.code, &said.json()["problems"][0]["line"]), (1, &3.into()));
    // Three mistakes of three kinds, two of them in the way the file is written.
    let text = "data: .\nlimts:\n  connections: 5\n  streams: 3\nscrub:\n  enabled: perhaps\nlimits: { streams: 0 }\n";
    let said = check(text, false);
    assert_eq!((said.code, said.err.lines().count()), (1, 3), "{said:?}");
    for part in ["unknown key `limts` at line 2", "true or false at line 6", "`limits.streams`: is zero"] {
        assert!(said.err.contains(part), "no {part:?} in {said:?}");
    }
    let lines = check(text, true).json()["problems"].clone();
    assert_eq!(
        (&lines[0]["line"], &lines[1]["line"], &lines[2]["key"]),
        (&2.into(), &6.into(), &"limits.streams".into())
    );
    let said = check("data: .\nlisten: x\n", true);
    assert_eq!((said.code, &said.json()["problems"][0]["key"]), (1, &"listen".into()));
}
