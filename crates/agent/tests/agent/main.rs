//! The agent as a process, against a real daemon: what it ends, what it confirms, and what it never does.

mod stage;

use leasehold_client::api::{CustodyState, LeaseState, Level, NewClaim, NewUser, RegisterAgent, ReleaseNodes};
use stage::{Fifo, Job, Stage};
use std::fs;
use std::process::Command;

/// Ends the process group, and nothing more.
const GROUP: &str = "gpu: { builtin: process_group, pid_dir: PIDS, term_wait: 20s }";

#[tokio::test(flavor = "multi_thread")]
async fn a_released_lease_is_ended_confirmed_and_idle_again() {
    let stage = Stage::new("1m", "1m").await;
    let mut agent = stage.agent("agent", GROUP).registered().await;
    let lease = stage.lease("gpu").await;
    let job = Job::start(&stage, &lease);
    let node = stage.client.show_node("n1").await.expect("the node");
    assert_eq!((node.capacity[0].held, node.agent_generation), (1, Some(1)));

    stage.release(&lease).await;
    assert_eq!(job.ended_by().await, Some(15), "it was asked");
    stage.until(&lease, "lease.torn_down").await;
    agent.says("torn down and confirmed").await;
    let node = stage.client.show_node("n1").await.expect("the node");
    let gpu = &node.capacity[0];
    assert_eq!((gpu.held, gpu.tearing_down, gpu.fenced, gpu.idle), (0, 0, 0, 2));
    assert_eq!(agent.stop().await, Some(0));
    assert_eq!(fs::read_dir(stage.path("agent/teardowns")).unwrap().count(), 0, "nothing is kept");
    assert!(!stage.path("pids").join(&lease).exists());
}

/// Released after sensitive work, the node is wiped by its agent; where that fails, nobody gets it.
#[tokio::test(flavor = "multi_thread")]
async fn a_released_node_is_wiped_or_quarantined() {
    let stage = Stage::new("1m", "1m").await;
    let user = NewUser { name: "ada".into(), tenant: Some("t".into()) };
    stage.client.create_user(&user).await.expect("a user");
    let mut runs = Fifo::new(stage.path("runs"));
    stage.script("wipe-node", "echo $LEASEHOLD_NODE > runs; test ! -e broken");
    let wipe = format!("{GROUP}\nwipe_node: {{ command: [{}] }}", stage.path("wipe-node").display());
    let mut agent = stage.agent("agent", &wipe).registered().await;
    let claim = NewClaim {
        nodes: vec!["n1".into()],
        tenant: Some("t".into()),
        project: Some("p".into()),
        user: Some("ada".into()),
        until: None,
    };
    let release = ReleaseNodes { nodes: vec!["n1".into()] };
    stage.client.claim_nodes(&claim).await.expect("it is free");
    stage.client.release_nodes(&release).await.expect("it is empty");
    assert_eq!(runs.line().await, "n1");
    agent.says("the node is wiped").await;
    let node = stage.client.show_node("n1").await.expect("the node");
    assert_eq!(node.custody.state, CustodyState::Open);

    fs::write(stage.path("broken"), "").unwrap();
    stage.client.claim_nodes(&claim).await.expect("it is open again");
    stage.client.release_nodes(&release).await.expect("it is empty");
    assert_eq!(runs.line().await, "n1");
    agent.says("THE WIPE FAILED").await;
    let mut state = CustodyState::Wiping;
    while state == CustodyState::Wiping {
        state = stage.client.show_node("n1").await.expect("the node").custody.state;
    }
    assert_eq!(state, CustodyState::Quarantined);
    assert_eq!(agent.stop().await, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn hooks_cut_off_by_a_kill_run_again_and_are_confirmed_once() {
    let stage = Stage::new("1m", "1m").await;
    let (mut runs, gate) = (Fifo::new(stage.path("runs")), Fifo::new(stage.path("gate")));
    let hooks = stage.script("slow", "echo $$ > runs; read go < gate");
    let agent = stage.agent("agent", &hooks).registered().await;
    let lease = stage.lease("gpu").await;
    stage.release(&lease).await;
    let first = runs.line().await;
    assert!(stage.path("agent/teardowns").join(format!("{lease}.begun")).exists());
    assert_eq!(stage.state(&lease).await, LeaseState::Releasing);
    agent.kill().await;

    let mut agent = stage.agent("agent", &hooks).registered().await;
    agent.says("its hooks run again").await;
    let second = runs.line().await;
    assert_ne!(first, second);
    assert!(!stage::is_alive(&first), "the hook that was left is not running beside the new one");
    assert_eq!(stage.state(&lease).await, LeaseState::Releasing, "nothing was confirmed early");
    gate.put("go");
    stage.until(&lease, "lease.torn_down").await;
    assert_eq!(stage.records(&lease, "lease.torn_down").await, 1);
    assert_eq!(agent.stop().await, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_done_before_a_crash_is_confirmed_without_its_hooks() {
    let stage = Stage::new("1m", "1m").await;
    let agent = stage.agent("agent", GROUP).registered().await;
    agent.kill().await;
    let lease = stage.lease("gpu").await;
    stage.release(&lease).await;
    // As the agent leaves it between the last hook and the confirmation.
    for mark in ["begun", "done"] {
        fs::write(stage.path("agent/teardowns").join(format!("{lease}.{mark}")), "").unwrap();
    }
    let hooks = stage.script("trace", "echo ran > ran");
    let mut agent = stage.agent("agent", &hooks).registered().await;
    stage.until(&lease, "lease.torn_down").await;
    assert!(!stage.path("ran").exists());
    let node = stage.client.show_node("n1").await.expect("the node");
    assert_eq!(node.agent_generation, Some(2), "confirmed under the new generation");
    assert_eq!(agent.stop().await, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_agent_is_refused() {
    let stage = Stage::new("1m", "1m").await;
    let mut first = stage.agent("agent", GROUP).registered().await;
    let mut second = stage.agent("another", GROUP);
    assert_eq!(second.ended().await, Some(1));
    let said = second.rest().await;
    assert!(said.contains("(agent_already_running)") && said.contains("detach-agent n1"), "{said}");
    let mut same_folder = stage.agent("agent", GROUP);
    assert_eq!(same_folder.ended().await, Some(1));
    let said = same_folder.rest().await;
    assert!(said.contains("(state_in_use)"), "{said}");
    assert_eq!(first.stop().await, Some(0), "the first is not disturbed");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_whose_place_is_taken_stops_and_confirms_nothing() {
    let stage = Stage::new("1m", "1m").await;
    let (mut runs, _gate) = (Fifo::new(stage.path("runs")), Fifo::new(stage.path("gate")));
    let hooks = stage.script("slow", "echo $$ > runs; read go < gate");
    let mut agent = stage.agent("agent", &hooks).registered().await;
    let lease = stage.lease("gpu").await;
    stage.release(&lease).await;
    let hook = runs.line().await;

    stage.client.detach_agent("n1").await.expect("an operator may");
    let other = RegisterAgent { instance: "0".repeat(31) + "1", capacity: None, labels: None };
    stage.client.register_agent("n1", &other).await.expect("the place is free");
    assert_eq!(agent.ended().await, Some(1));
    let said = agent.rest().await;
    assert!(said.contains("(stale_generation)"), "{said}");
    stage::gone(&hook).await;
    assert_eq!(stage.state(&lease).await, LeaseState::Releasing);
    assert_eq!(stage.records(&lease, "lease.torn_down").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hook_that_keeps_failing_leaves_the_lease_fenced() {
    let stage = Stage::new("1m", "1500ms").await;
    let hooks = stage.script("broken", "echo the device is busy >&2; exit 3");
    let mut agent = stage.agent("agent", &hooks).registered().await;
    let lease = stage.lease("gpu").await;
    stage.release(&lease).await;
    agent.says("the device is busy").await;
    agent.says("exit status: 3").await;
    stage.until(&lease, "lease.fenced").await;
    agent.says("NOT TORN DOWN IN TIME").await;
    assert_eq!(stage.state(&lease).await, LeaseState::Fenced);
    let node = stage.client.show_node("n1").await.expect("the node");
    assert_eq!((node.capacity[0].fenced, node.condition.errors), (1, Level::High));
    assert_eq!(agent.stop().await, Some(0));
    assert_eq!(stage.records(&lease, "lease.torn_down").await, 0);
    assert_eq!(fs::read_dir(stage.path("agent/teardowns")).unwrap().count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_hook_holds_up_neither_others_nor_heartbeats_nor_a_stop() {
    let stage = Stage::new("1m", "1m").await;
    let (mut runs, _gate) = (Fifo::new(stage.path("runs")), Fifo::new(stage.path("gate")));
    let slow = stage.script("slow", "echo $$ > runs; read go < gate");
    let throttled = stage.path("throttled");
    let more = "cpu: { builtin: none }\nheartbeat: 100ms\nstop_timeout: 0s";
    let more = format!("{slow}\n  {more}\nthrottled_file: {}", throttled.display());
    let mut agent = stage.agent("agent", &more).registered().await;
    let (held_up, quick) = (stage.lease("gpu").await, stage.lease("cpu").await);
    stage.release(&held_up).await;
    let hook = runs.line().await;
    stage.release(&quick).await;
    stage.until(&quick, "lease.torn_down").await;
    fs::write(&throttled, "1").unwrap();
    // Heartbeats go on.
    stage.until_throttled().await;
    assert_eq!(stage.state(&held_up).await, LeaseState::Releasing);
    assert_eq!(agent.stop().await, Some(0));
    stage::gone(&hook).await;
    assert_eq!(stage.state(&held_up).await, LeaseState::Releasing, "it stays as it is");
    assert!(stage.path("agent/teardowns").join(format!("{held_up}.begun")).exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_class_without_hooks_is_not_confirmed() {
    let stage = Stage::new("1m", "300ms").await;
    let mut agent = stage.agent("agent", GROUP).registered().await;
    let lease = stage.lease("cpu").await;
    stage.release(&lease).await;
    agent.says("no hooks for class cpu").await;
    stage.until(&lease, "lease.fenced").await;
    agent.says("NOT TORN DOWN IN TIME").await;
    assert_eq!(stage.records(&lease, "lease.torn_down").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn hooks_stop_when_an_operator_closes_the_lease() {
    let stage = Stage::new("1m", "1m").await;
    let (mut runs, _gate) = (Fifo::new(stage.path("runs")), Fifo::new(stage.path("gate")));
    let hooks = stage.script("slow", "echo $$ > runs; read go < gate");
    let mut agent = stage.agent("agent", &hooks).registered().await;
    let lease = stage.lease("gpu").await;
    stage.release(&lease).await;
    let hook = runs.line().await;
    let by_hand = leasehold_client::api::Fences::default();
    stage.client.confirm_teardown(&lease, &by_hand).await.expect("an operator vouches for it");
    agent.says("closed by an operator").await;
    stage::gone(&hook).await;
    assert_eq!(agent.stop().await, Some(0));
    assert_eq!(stage.records(&lease, "lease.torn_down").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn capacity_and_labels_come_from_the_machine() {
    let stage = Stage::new("1m", "1m").await;
    let more = format!("{GROUP}\ncapacity: {{ gpu: 2, cpu: auto, mem: auto }}\nlabels: {{ driver: '570' }}");
    let mut agent = stage.agent("agent", &more).registered().await;
    let node = stage.client.show_node("n1").await.expect("the node");
    let quanta: Vec<(&str, u64)> = node.capacity.iter().map(|class| (class.class.as_str(), class.quanta)).collect();
    assert!(matches!(quanta[..], [("gpu", 2), ("cpu", 1000..), ("mem", 100..)]), "{quanta:?}");
    assert_eq!(node.labels.get("driver").map(String::as_str), Some("570"));
    assert_eq!(agent.stop().await, Some(0));
}

#[test]
fn errors_of_the_command_line_and_the_file_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("agent.yaml");
    let run = |text: &str, more: &[&str]| {
        fs::write(&file, text).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold-agent"));
        let output = command.arg("--config").arg(&file).args(more).output().expect("it runs");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, said) = run("", &[]);
    assert!(code == Some(2) && said.contains("(node_needed)"), "{said}");
    let (code, said) = run("hoks: {}", &["--node", "n1"]);
    assert!(code == Some(1) && said.contains("did you mean `hooks`?"), "{said}");
    let (code, said) = run("hooks: { gpu: {} }", &["--node", "n1"]);
    assert!(code == Some(2) && said.contains("`hooks.gpu`: does nothing"), "{said}");
}
