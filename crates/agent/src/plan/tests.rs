use super::*;
use leasehold_client::api::When;
use leasehold_model::Instant as Stamp;

const SECOND: Duration = Duration::from_secs(1);

/// A plan, and a clock that is set by hand.
struct Case {
    plan: Plan,
    now: Instant,
    size: u64,
}

fn id(letter: char) -> LeaseId {
    LeaseId::new(&letter.to_string().repeat(32)).expect("a hexadecimal digit")
}

fn set(letters: &str) -> BTreeSet<LeaseId> {
    letters.chars().map(id).collect()
}

/// `a` is due before `b`.
fn work(letter: char) -> Work {
    let by = Stamp::from_secs(u64::from(u32::from(letter)));
    Work { lease: id(letter), class: "gpu".into(), quantity: "1".into(), devices: vec![0], teardown_by: Some(When(by)) }
}

fn works(letters: &str) -> Vec<Work> {
    letters.chars().map(work).collect()
}

impl Case {
    fn new() -> Self {
        Self::after("", "")
    }
    /// With this on disk: begun, and done.
    fn after(begun: &str, done: &str) -> Self {
        let limits = Limits { parallel: 2, answer_age_max: 60 * SECOND };
        let plan = Plan::new(limits, Found { begun: set(begun), done: set(done) });
        Self { plan, now: Instant::now(), size: 100 }
    }
    fn answer(&mut self, teardown: &str, fenced: &str) -> Vec<String> {
        self.size += 1;
        self.answer_of(self.size, teardown, fenced)
    }
    fn answer_of(&mut self, size: u64, teardown: &str, fenced: &str) -> Vec<String> {
        let lists = Lists { size, teardown: works(teardown), fenced: works(fenced) };
        self.plan.answered(self.now, &lists);
        self.steps()
    }
    fn ended(&mut self, letter: char, succeeded: bool) -> Vec<String> {
        self.plan.ended(self.now, &id(letter), succeeded);
        self.steps()
    }
    fn pass(&mut self, time: Duration) -> Vec<String> {
        self.now += time;
        self.steps()
    }
    /// The steps in short: `begin a`, `confirm ab`.
    fn steps(&mut self) -> Vec<String> {
        let short = |lease: &LeaseId| lease.as_str()[..1].to_owned();
        let word = |step| match step {
            Step::Begin(work) => format!("begin {}", short(&work.lease)),
            Step::Stop(lease) => format!("stop {}", short(&lease)),
            Step::Confirm(leases) => format!("confirm {}", leases.iter().map(short).collect::<String>()),
            Step::Forget(lease) => format!("forget {}", short(&lease)),
            Step::Log(lease, word) => format!("{word:?} {}", short(&lease)),
        };
        self.plan.steps(self.now).into_iter().map(word).collect()
    }
}

fn nothing() -> Vec<String> {
    Vec::new()
}

#[test]
fn a_lease_is_torn_down_then_confirmed_then_forgotten() {
    let mut case = Case::new();
    assert_eq!(case.answer("a", ""), ["begin a"]);
    assert_eq!(case.answer("a", ""), nothing(), "it runs already");
    assert_eq!(case.ended('a', true), ["confirm a"]);
    assert_eq!(case.answer("a", ""), nothing(), "it is being confirmed");
    case.plan.confirmed(&id('a'), case.size + 5);
    assert_eq!(case.steps(), ["forget a"]);
    assert!(case.plan.is_at_rest());
}

#[test]
fn an_answer_that_was_on_its_way_does_not_bring_a_confirmed_lease_back() {
    let mut case = Case::new();
    case.answer("a", "");
    case.ended('a', true);
    case.plan.confirmed(&id('a'), 110);
    case.steps();
    // The lists know of the records 0 to 109: the confirmation is not among them.
    assert_eq!(case.answer_of(110, "a", ""), nothing());
    assert_eq!(case.answer_of(111, "", ""), nothing());
    assert!(case.plan.confirmed.is_empty(), "nothing is kept for ever");
}

#[test]
fn only_so_many_at_a_time_and_the_first_deadline_first() {
    let mut case = Case::new();
    assert_eq!(case.answer("cab", ""), ["begin a", "begin b"]);
    assert_eq!(case.plan.wake_at(case.now), None, "there is no room");
    assert_eq!(case.ended('b', true), ["begin c", "confirm b"]);
}

#[test]
fn what_is_done_at_the_same_time_is_confirmed_at_once() {
    let mut case = Case::new();
    case.answer("ab", "");
    case.plan.ended(case.now, &id('a'), true);
    case.plan.ended(case.now, &id('b'), true);
    assert_eq!(case.steps(), ["confirm ab"]);
}

#[test]
fn failures_are_tried_again_with_longer_pauses_until_the_daemon_fences() {
    let mut case = Case::new();
    case.answer("a", "");
    for pause in [500, 1000, 2000] {
        assert_eq!(case.ended('a', false), nothing());
        let pause = Duration::from_millis(pause);
        assert_eq!(case.plan.wake_at(case.now), Some(case.now + pause));
        assert_eq!(case.pass(pause - Duration::from_millis(1)), nothing());
        assert_eq!(case.pass(Duration::from_millis(1)), ["begin a"]);
    }
    assert_eq!(case.ended('a', false), nothing());
    assert_eq!(case.answer("", "a"), ["GivenUp { failures: 4 } a", "forget a"]);
    assert_eq!(case.pass(60 * SECOND), nothing(), "it is left to an operator");
    assert_eq!(case.answer("", "a"), nothing(), "and told once");
    assert_eq!(pause(40), PAUSE_MAX);
}

#[test]
fn hooks_that_run_when_the_deadline_passes_may_finish_and_are_never_confirmed() {
    let mut case = Case::new();
    case.answer("a", "");
    assert_eq!(case.answer("", "a"), ["GivenUp { failures: 0 } a"]);
    assert_eq!(case.answer("", "a"), nothing());
    assert_eq!(case.ended('a', true), ["Late a", "forget a"]);
}

#[test]
fn hooks_stop_when_the_capacity_may_be_someone_elses() {
    let mut case = Case::new();
    case.answer("ab", "");
    assert_eq!(case.answer("b", ""), ["ClosedElsewhere a", "stop a"]);
    assert_eq!(case.answer("b", ""), nothing(), "once");
    assert_eq!(case.ended('a', true), ["forget a"], "too late to matter");
    // Fenced first, and then cleared by an operator.
    case.answer("", "b");
    assert_eq!(case.answer("", ""), ["ClosedElsewhere b", "stop b"]);
    assert_eq!(case.ended('b', false), ["forget b"]);
}

#[test]
fn a_confirmation_without_an_answer_is_sent_again() {
    let mut case = Case::new();
    case.answer("a", "");
    case.ended('a', true);
    case.plan.not_confirmed(case.now, &id('a'));
    assert_eq!(case.steps(), nothing());
    assert_eq!(case.plan.wake_at(case.now), Some(case.now + CONFIRM_PAUSE));
    assert_eq!(case.pass(CONFIRM_PAUSE), ["confirm a"]);
    // It had arrived: the daemon does not list the lease any more.
    assert_eq!(case.answer("", ""), nothing());
    case.plan.not_confirmed(case.now, &id('a'));
    assert_eq!(case.steps(), ["forget a"]);
}

#[test]
fn what_was_done_before_a_crash_is_confirmed_and_what_was_begun_runs_again() {
    let mut case = Case::after("ab", "bc");
    assert_eq!(case.steps(), nothing(), "nothing before the daemon has spoken");
    let steps = case.answer("abd", "");
    assert_eq!(steps, ["Again a", "ConfirmAgain b", "forget c", "begin a", "begin d", "confirm b"]);
    assert_eq!(case.answer("abd", ""), nothing());
}

#[test]
fn what_was_fenced_while_the_agent_was_away_is_told_and_forgotten() {
    let mut case = Case::after("a", "b");
    assert_eq!(case.answer("", "ab"), ["forget a", "forget b", "Fenced a", "Fenced b"]);
}

#[test]
fn nothing_is_begun_after_too_long_a_silence() {
    let mut case = Case::new();
    case.answer("abc", "");
    case.now += 60 * SECOND;
    assert_eq!(case.ended('a', false), nothing(), "neither a again nor c");
    assert_eq!(case.plan.wake_at(case.now), None);
    assert_eq!(case.ended('b', true), ["confirm b"], "what is done may be said");
    assert_eq!(case.answer("abc", ""), ["begin c"]);
}

#[test]
fn a_stop_begins_nothing_and_confirms_what_is_done() {
    let mut case = Case::new();
    case.answer("abc", "");
    case.plan.stop();
    assert_eq!(case.ended('a', true), ["confirm a"]);
    assert!(!case.plan.is_at_rest());
    case.plan.confirmed(&id('a'), 200);
    assert_eq!(case.ended('b', false), ["forget a"]);
    assert!(case.plan.is_at_rest(), "c was never begun, b is left as it is");
}
