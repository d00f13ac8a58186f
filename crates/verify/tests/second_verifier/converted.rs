//! Both verifiers, of a journal that was begun in format version 1 and converted.

use super::*;

/// The journals that `fixtures.py` writes.
pub(crate) fn fixtures() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let script = second_verifier().join("fixtures.py");
    let output = Command::new("python3").arg(script).arg(folder.path()).output().expect(MISSING);
    assert!(output.status.success(), "{MISSING}: {}", String::from_utf8_lossy(&output.stderr));
    folder
}

#[test]
fn of_converted_journals() {
    let folder = fixtures();
    let mut cases = Cases::default();
    let trust = Trust::parse(&fs::read_to_string(folder.path().join("converted-trust")).unwrap()).unwrap();
    let converted = |change: &dyn Fn(&Path)| {
        let data = tempfile::tempdir().unwrap();
        copy_files(&folder.path().join("converted"), data.path());
        change(&data.path().join("journal"));
        Sample { folder: data, trust: trust.clone(), archives: Vec::new() }
    };
    let edit = |path: PathBuf, change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = fs::read(&path).unwrap();
        change(&mut bytes);
        put(&path, &bytes);
    };
    cases.push("converted", Some(true), converted(&|_| ()));
    let without = |journal: &Path| {
        for number in 1..=2 {
            fs::remove_file(journal.join(format!("{number:08}.seg"))).unwrap();
            let _ = fs::remove_file(journal.join(format!("{number:08}.tree")));
        }
    };
    cases.push("converted, and version 1 moved away", Some(true), converted(&without));
    for (number, version) in [(1, 2), (2, 2), (3, 1), (4, 1)] {
        let name = format!("segment {number} passed off as one of version {version}");
        let change = |journal: &Path| {
            edit(journal.join(format!("{number:08}.seg")), &|bytes| {
                bytes[8] = version;
                mend_header(bytes);
            });
        };
        cases.push(&name, Some(false), converted(&change));
    }
    agree(&cases);
}
