use super::*;

const EXAMPLE: &str = include_str!("../../../../packaging/agent.example.yaml");

fn read(text: &str) -> Result<Config, String> {
    Config::parse(text, Path::new("agent.yaml")).map_err(|wrong| wrong.to_string())
}

#[test]
fn values_are_written_as_people_write_them() {
    let config = read(
        "
node: gpu-17
state: /tmp/agent
capacity: { cpu: auto, mem: 80GiB, h100: 8, slice: 1/7 }
labels: { driver: '570' }
heartbeat: 1500ms
hooks:
  h100:
    builtin: process_group
    pid_dir: /run/jobs
    term_wait: 5s
    teardown: { command: [/usr/bin/true, -v], timeout: 90s }
    wipe: { command: [wipe] }
  '*': { builtin: none }
",
    );
    let config = config.expect("it can be read");
    assert_eq!(config.check(), Ok(()));
    let given = |text: &str| Amount::Given(text.into());
    let capacity = [("cpu", Amount::Auto), ("mem", given("80GiB")), ("h100", given("8")), ("slice", given("1/7"))];
    assert_eq!(config.capacity, Some(capacity.map(|(class, amount)| (class.to_owned(), amount)).into()));
    let hooks = &config.hooks["h100"];
    let commands: Vec<_> = hooks.commands().map(|(name, hook, limit)| (name, hook.command.len(), limit)).collect();
    let secs = Duration::from_secs;
    assert_eq!(commands, [("teardown", 2, secs(90)), ("wipe", 1, secs(600))]);
    assert_eq!((hooks.builtin(), hooks.longest()), (Builtin::ProcessGroup, secs(695)));
    assert_eq!(config.hooks["*"].longest(), Duration::ZERO);
    for empty in ["", "# nothing\n"] {
        assert_eq!(read(empty), Ok(Config::default()));
    }
}

#[test]
fn errors_name_the_line_and_suggest_a_key() {
    let error = |text: &str| read(text).expect_err("it is wrong");
    let mut all = String::new();
    for text in [
        "node: a\nstat: /x",
        "hooks:\n  h100:\n    teardwn: {}",
        "hooks:\n  h100: { builtin: cgroups }",
        "hooks: { h100: { wipe: { command: [x], timeout: 10 } } }",
        "node: a\nnode: b",
        "hooks: { h100: { wipe: { timeout: 10s } } }",
        "hooks: { h100: { frobnicate: 1 } }",
    ] {
        all += &format!("{}\n", error(text));
    }
    let expected = "\
agent.yaml: unknown key `stat` at line 2; did you mean `state`?
agent.yaml: unknown key `teardwn` at line 3; did you mean `teardown`?
agent.yaml: unknown value `cgroups` at line 2; did you mean `cgroup`?
agent.yaml: `10` is not a length of time at line 1; write it like 90s, 10m, 1h30m, 2d or 250ms
agent.yaml: duplicate key `node` at line 2; keep one of the two
agent.yaml: missing field `command` at line 1; docs/how-to/agent.md shows every key
agent.yaml: unknown key `frobnicate` at line 1; the keys here are builtin, cgroup_root, pid_dir, term_wait, teardown, wipe
";
    assert_eq!(all, expected);
    let missing = Config::load(Path::new("/nowhere/agent.yaml")).expect_err("there is none");
    assert!(missing.to_string().starts_with("/nowhere/agent.yaml: "), "{missing}");
}

#[test]
fn all_problems_are_reported_at_once() {
    let config = read(
        "
parallel: 0
heartbeat: 1ms
stop_timeout: 2h
hooks:
  a: {}
  b: { builtin: none, pid_dir: /x }
  c: { builtin: cgroup, cgroup_root: here }
  d: { wipe: { command: [] }, term_wait: 8d }
  e: { teardown: { command: [x], timeout: 0s } }
",
    );
    let expected = "\
`parallel`: 0 is out of range; give 1 to 256
`heartbeat`: 1ms is too short; give 50ms to 1h
`stop_timeout`: 2h is too long; give 0s to 1h
`hooks.a`: does nothing; write `builtin: none` if leases of this class need no teardown
`hooks.b.pid_dir`: has no effect without `builtin: process_group`
`hooks.c.cgroup_root`: here is not an absolute path
`hooks.d.term_wait`: 8d is too long; give 0s to 7d
`hooks.d.wipe.command`: no program; write it like [/usr/local/bin/wipe]
`hooks.e.teardown.timeout`: 0s is too short; give 1ms to 7d";
    assert_eq!(config.expect("it can be read").check().expect_err("it makes no sense"), expected);
}

/// The example with its settings in force: a `#` without a space before a key stands for nothing but itself.
fn uncommented() -> String {
    let is_key = |line: &str| {
        let rest = line.trim_start().strip_prefix('#');
        rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_lowercase() || c == '"'))
    };
    EXAMPLE.lines().map(|line| if is_key(line) { line.replacen('#', "", 1) } else { line.to_owned() } + "\n").collect()
}

#[test]
fn the_example_holds() {
    let example = read(EXAMPLE).expect("it can be read");
    assert_eq!(example.check(), Ok(()));
    // The example runs under the default deadline of the daemon, after which capacity is fenced.
    let deadline = Duration::from_secs(120);
    assert!(example.hooks.values().all(|hooks| hooks.longest() <= deadline), "{:?}", example.hooks);
    let all = read(&uncommented()).expect("it can be read");
    assert_eq!(all.check(), Ok(()));
    let default = Config::default();
    assert_eq!((&all.state, all.parallel, all.stop_timeout), (&default.state, default.parallel, default.stop_timeout));
    for key in ["node", "url", "token_file", "ca_file", "capacity", "labels", "heartbeat", "throttled_file", "hooks"] {
        assert!(uncommented().lines().any(|line| line.starts_with(&format!("{key}:"))), "{key}");
    }
}
