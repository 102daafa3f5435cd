use super::super::tests_rig::{Rig, Start, change, config, confirmed};
use super::super::*;
use crate::engine::Phase;
use crate::service::Port;
use std::time::Duration;
use tokio::sync::{mpsc, watch};

pub(super) async fn run_to_end(rig: &Rig, plan: RestartPlan) -> (Outcome, Vec<Event>) {
    let deps = rig.deps().await;
    let (sender, mut receiver) = mpsc::channel(1000);
    let (_keep, cancel) = watch::channel(false);
    let outcome = run(confirmed(plan), &deps, sender, cancel).await;
    let mut events = Vec::new();
    while let Ok(event) = receiver.try_recv() {
        events.push(event);
    }
    assert_eq!(events.last(), Some(&Event::Ended(outcome.clone())));
    (outcome, events)
}

pub(super) async fn resume_to_end(rig: &Rig, way: WayOut) -> Outcome {
    let deps = rig.deps().await;
    let intent = find(deps.host.as_ref(), &deps.dir).await.unwrap();
    let intent = intent.expect("no intent is found");
    let (sender, _receiver) = mpsc::channel(1000);
    let (_keep, cancel) = watch::channel(false);
    resume(confirmed((intent, way)), &deps, sender, cancel).await
}

pub(super) fn calls(rig: &Rig) -> Vec<String> {
    rig.world.lock().unwrap().calls.clone()
}

pub(super) fn served(rig: &Rig) -> Option<u64> {
    rig.world.lock().unwrap().served()
}

pub(super) fn has_intent(rig: &Rig) -> bool {
    intent::path(&rig.dir()).exists()
}

const RAISED: [&str; 2] = ["stop @stop", "start 8192 @start"];
const RAISED_AND_BACK: [&str; 4] = [
    "stop @stop",
    "start 8192 @start",
    "stop @stop",
    "start 4096 @start",
];

#[tokio::test]
async fn a_raise_is_proven_and_leaves_no_intent() {
    let rig = Rig::serving(4096);
    let (outcome, events) = run_to_end(&rig, change(4096, 8192)).await;
    let Outcome::Ready { facts, .. } = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(facts.context.effective.known(), Some(&8192));
    assert_eq!(calls(&rig), RAISED);
    assert!(!has_intent(&rig));
    let steps: Vec<Step> = events
        .iter()
        .filter_map(|event| match event {
            Event::Step { step, context, .. } => {
                assert_eq!(*context, 8192);
                Some(*step)
            }
            _ => None,
        })
        .collect();
    use Step::*;
    assert_eq!(steps, [Validate, Stop, WaitCards, Start, Watch, Prove]);
}

#[tokio::test]
async fn a_first_start_has_nothing_to_stop_and_nothing_to_come_back_to() {
    let plan = RestartPlan {
        purpose: Purpose::Start,
        from: None,
        to: config(8192),
        on_failure: None,
        production: None,
        deadline_s: None,
    };
    let rig = Rig::idle();
    let (outcome, _) = run_to_end(&rig, plan.clone()).await;
    assert!(matches!(outcome, Outcome::Ready { .. }), "{outcome:?}");

    let rig = Rig::idle();
    rig.world.lock().unwrap().starts = vec![(8192, Start::Serves(4096))];
    let (outcome, _) = run_to_end(&rig, plan).await;
    let Outcome::Halted {
        failure,
        back: None,
    } = outcome
    else {
        panic!("{outcome:?}")
    };
    assert_eq!(failure.suggests, Some(4096));
    assert_eq!(served(&rig), None, "what failed is stopped");
    assert!(!has_intent(&rig), "there is nothing to offer");
}

async fn rolls_back(start: Start) -> StartFailure {
    let rig = Rig::serving(4096);
    rig.world.lock().unwrap().starts = vec![(8192, start)];
    let (outcome, _) = run_to_end(&rig, change(4096, 8192)).await;
    let Outcome::RolledBack { failure, to, facts } = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!((to.kind, to.config.context), (TargetKind::LastGood, 4096));
    assert_eq!(facts.context.effective.known(), Some(&4096));
    assert_eq!(calls(&rig), RAISED_AND_BACK);
    assert_eq!(served(&rig), Some(4096));
    assert!(!has_intent(&rig));
    failure
}

#[tokio::test]
async fn a_start_that_dies_tells_why_and_the_last_good_comes_back() {
    const WHY: &str = "ValueError: To serve at least one request with the model's max seq len (8192), (2.0 GiB KV cache is needed, which is larger than the available KV cache memory (1.5 GiB). Based on the available memory, the estimated maximum model length is 6144.";
    let lines: &'static str = Box::leak(
        format!("Loading weights took 3.0 seconds\n{WHY}\nRuntimeError: Engine core initialization failed. See root cause above.\n")
            .into_boxed_str(),
    );
    let failure = rolls_back(Start::Ends(1, lines)).await;
    assert_eq!(failure.step, Step::Watch);
    assert_eq!(failure.phase, Some(Phase::LoadingWeights));
    assert_eq!(
        failure.cause,
        "the KV pool cannot hold one request of this context; the server ended with exit code 1"
    );
    assert_eq!(failure.line.as_deref(), Some(WHY));
    assert_eq!(failure.suggests, Some(6144));
    let advice = failure.advice.unwrap();
    assert!(advice.contains("set --max-model-len to 6,144"), "{advice}");
    let failure = rolls_back(Start::Ends(-11, "last words\n")).await;
    assert!(failure.cause.contains("SIGSEGV"), "{failure:?}");
    assert_eq!(failure.line.as_deref(), Some("last words"));
}

#[tokio::test]
async fn a_start_that_serves_another_context_has_failed() {
    assert_eq!(rolls_back(Start::Serves(6000)).await.suggests, Some(6000));
    let more = rolls_back(Start::Serves(9000)).await;
    assert_eq!((more.step, more.suggests), (Step::Prove, None));
}

#[tokio::test]
async fn a_start_that_gets_nowhere_or_talks_nonsense_has_failed() {
    let failure = rolls_back(Start::Hangs("")).await;
    assert!(failure.cause.contains("no progress"), "{failure:?}");
    let failure = rolls_back(Start::Hangs("OSError: [Errno 98] Address already in use\n")).await;
    assert!(
        failure
            .cause
            .starts_with("the port is taken; the server neither ended"),
        "{failure:?}"
    );
    let failure = rolls_back(Start::Loops).await;
    assert!(failure.cause.contains("repeats itself"), "{failure:?}");
}

#[tokio::test]
async fn a_card_that_lets_go_late_is_waited_for() {
    let rig = Rig::serving(4096);
    rig.world.lock().unwrap().holds = Duration::from_millis(1_000);
    let (outcome, events) = run_to_end(&rig, change(4096, 8192)).await;
    assert!(matches!(outcome, Outcome::Ready { .. }), "{outcome:?}");
    let held = Event::CardsHeld(vec![(0, 40 << 30)]);
    assert!(events.contains(&held), "{events:?}");
}

#[tokio::test]
async fn on_a_card_that_never_lets_go_nothing_is_started() {
    let rig = Rig::serving(4096);
    rig.world.lock().unwrap().holds = Duration::from_secs(600);
    let (outcome, _) = run_to_end(&rig, change(4096, 8192)).await;
    let Outcome::Halted {
        failure,
        back: Some(back),
    } = outcome
    else {
        panic!("{outcome:?}")
    };
    assert_eq!(
        (failure.step, back.step),
        (Step::WaitCards, Step::WaitCards)
    );
    assert!(
        failure.cause.contains("card 0 still holds 40.0 GiB"),
        "{failure:?}"
    );
    assert_eq!(calls(&rig), ["stop @stop", "stop @stop"]);
    assert!(has_intent(&rig), "the operator's key is needed");

    rig.world.lock().unwrap().freed_after = None;
    let outcome = resume_to_end(&rig, WayOut::RollBack).await;
    let Outcome::RolledBack { failure: why, .. } = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(why.cause, failure.cause, "why it failed is not forgotten");
    assert_eq!(served(&rig), Some(4096));
}

#[tokio::test]
async fn a_way_back_that_fails_too_halts() {
    let rig = Rig::serving(4096);
    let mut plan = change(4096, 8192);
    // What runs answers; the last good is another and does not start any more.
    plan.on_failure = Some(Target {
        kind: TargetKind::LastGood,
        config: config(2048),
    });
    rig.world.lock().unwrap().starts = vec![(8192, Start::Ends(1, "")), (2048, Start::Ends(2, ""))];
    let (outcome, _) = run_to_end(&rig, plan).await;
    let Outcome::Halted {
        failure,
        back: Some(back),
    } = outcome
    else {
        panic!("{outcome:?}")
    };
    assert!(failure.cause.contains("code 1") && back.cause.contains("code 2"));
    assert_eq!(
        calls(&rig)[2..],
        ["stop @stop", "start 2048 @start"],
        "one automatic return, no more"
    );
    assert!(has_intent(&rig));
}

#[tokio::test]
async fn an_answer_of_another_server_on_the_port_is_no_proof() {
    let rig = Rig::serving(4096);
    rig.world.lock().unwrap().port = Port::Other("nginx (pid 7) listens".to_string());
    let (outcome, _) = run_to_end(&rig, change(4096, 8192)).await;
    let Outcome::Halted { failure, .. } = outcome else {
        panic!("{outcome:?}")
    };
    assert!(failure.cause.contains("nginx (pid 7)"), "{failure:?}");
}

#[tokio::test]
async fn what_cannot_go_well_is_refused_before_anything_is_stopped() {
    let refused = async |rig: &Rig, plan: RestartPlan| {
        let (outcome, _) = run_to_end(rig, plan).await;
        let Outcome::Refused { failure } = outcome else {
            panic!("{outcome:?}")
        };
        assert!(calls(rig).is_empty(), "something was touched");
        assert!(!has_intent(rig));
        failure.cause
    };
    for context in [4096, 8192] {
        let rig = Rig::serving(4096);
        rig.world.lock().unwrap().refuses = Some(context);
        assert!(refused(&rig, change(4096, 8192)).await.contains("nginx"));
    }
    let rig = Rig::serving(4096);
    let without = RestartPlan {
        on_failure: None,
        ..change(4096, 8192)
    };
    assert!(refused(&rig, without).await.contains("come back to"));
    assert!(
        refused(&rig, change(2048, 8192))
            .await
            .contains("another configuration")
    );
    rig.world.lock().unwrap().deaf = true;
    assert!(
        refused(&rig, change(4096, 8192))
            .await
            .contains("does not answer")
    );
    let dead = refused(&Rig::idle(), change(4096, 8192)).await;
    assert!(dead.contains("does not run any more"), "{dead}");
}

#[tokio::test]
async fn a_broken_trial_can_be_rolled_back() {
    let rig = Rig::serving(8192);
    rig.world.lock().unwrap().starts = vec![(8192, Start::Hangs(""))];
    let plan = RestartPlan {
        purpose: Purpose::RollBack,
        ..change(8192, 4096)
    };
    let (outcome, _) = run_to_end(&rig, plan).await;
    assert!(matches!(outcome, Outcome::Ready { .. }), "{outcome:?}");
    assert_eq!(served(&rig), Some(4096));
}

#[tokio::test]
async fn a_start_that_says_nothing_is_named_once_before_it_has_failed() {
    let rig = Rig::serving(4096);
    rig.world.lock().unwrap().starts = vec![(8192, Start::Hangs(""))];
    let (outcome, events) = run_to_end(&rig, change(4096, 8192)).await;
    assert!(matches!(outcome, Outcome::RolledBack { .. }), "{outcome:?}");
    let told: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            Event::Still(words) => words.clone(),
            _ => None,
        })
        .collect();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("no progress") && told[0].ends_with("it is given 3 s"));
}

#[tokio::test]
async fn the_operators_stop_leads_back() {
    let rig = Rig::serving(4096);
    rig.world.lock().unwrap().starts = vec![(8192, Start::Hangs(""))];
    let deps = rig.deps().await;
    let (sender, mut receiver) = mpsc::channel(1000);
    let (stop, cancel) = watch::channel(false);
    let plan = confirmed(change(4096, 8192));
    let task = tokio::spawn(async move { run(plan, &deps, sender, cancel).await });
    while let Some(event) = receiver.recv().await {
        if matches!(event, Event::Phase { .. }) {
            stop.send(true).unwrap();
        }
        if matches!(event, Event::Ended(_)) {
            break;
        }
    }
    let outcome = task.await.unwrap();
    let Outcome::RolledBack { failure, .. } = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(failure.cause, "stopped by the operator");
    assert_eq!(
        (calls(&rig), served(&rig)),
        (RAISED_AND_BACK.map(String::from).to_vec(), Some(4096))
    );
}

fn trials(rig: &Rig) -> Vec<String> {
    rig.world.lock().unwrap().trials.clone()
}

#[tokio::test]
async fn a_deadline_is_armed_before_the_stop_and_counts_from_the_first_answer() {
    let rig = Rig::serving(4096);
    let mut plan = change(4096, 8192);
    plan.deadline_s = Some(1800);
    let (outcome, _) = run_to_end(&rig, plan.clone()).await;
    assert!(matches!(outcome, Outcome::Ready { .. }), "{outcome:?}");
    assert_eq!(trials(&rig), ["arm 1800", "arm 1800", "settle"]);

    // A failure takes the trial away, and production needs no deadline.
    let rig = Rig::serving(4096);
    rig.world.lock().unwrap().starts = vec![(8192, Start::Ends(1, "ERROR no memory\n"))];
    let (outcome, _) = run_to_end(&rig, plan.clone()).await;
    assert!(matches!(outcome, Outcome::RolledBack { .. }), "{outcome:?}");
    assert_eq!(trials(&rig), ["arm 1800", "discard", "disarm", "settle"]);

    let rig = Rig::serving(4096);
    rig.world.lock().unwrap().no_deadline = Some("no lingering".to_string());
    let (outcome, _) = run_to_end(&rig, plan).await;
    let Outcome::Refused { failure } = outcome else {
        panic!("{outcome:?}")
    };
    assert!(failure.cause.contains("no lingering"), "{}", failure.cause);
    assert!(calls(&rig).is_empty(), "something was stopped");
}

#[tokio::test]
async fn a_refused_restart_leaves_the_deadline_of_the_trial_that_runs() {
    let rig = Rig::serving(8192);
    let mut plan = change(8192, 16_384);
    plan.production = Some(4096);
    plan.deadline_s = Some(1800);
    {
        let mut world = rig.world.lock().unwrap();
        world.production = Some(4096);
        world.stands = Some(crate::clock::unix_ms() + 600_000);
        world.refuses = Some(16_384);
    }
    let (outcome, _) = run_to_end(&rig, plan.clone()).await;
    assert!(matches!(outcome, Outcome::Refused { .. }), "{outcome:?}");
    assert_eq!(trials(&rig), [""; 0]);

    // Armed already, but the step to the stop cannot be kept on disk: nothing is stopped, and the old moment counts.
    {
        let mut world = rig.world.lock().unwrap();
        world.refuses = None;
        world.breaks_disk = true;
    }
    let (outcome, _) = run_to_end(&rig, plan).await;
    assert!(matches!(outcome, Outcome::Refused { .. }), "{outcome:?}");
    assert!(calls(&rig).is_empty(), "something was stopped");
    let said = trials(&rig);
    assert_eq!((said.len(), said[0].as_str()), (2, "arm 1800"), "{said:?}");
    let left: u64 = said[1].strip_prefix("arm ").unwrap().parse().unwrap();
    assert!((590..=600).contains(&left), "{left}");
}

#[tokio::test]
async fn a_trial_that_comes_back_keeps_its_deadline() {
    let rig = Rig::serving(8192);
    let mut plan = change(8192, 16_384);
    plan.production = Some(4096);
    {
        let mut world = rig.world.lock().unwrap();
        world.production = Some(4096);
        world.stands = Some(crate::clock::unix_ms() + 600_000);
        world.starts = vec![(16_384, Start::Ends(1, "ERROR no memory\n"))];
    }
    let (outcome, _) = run_to_end(&rig, plan).await;
    assert!(matches!(outcome, Outcome::RolledBack { .. }), "{outcome:?}");
    let said = trials(&rig);
    let words: Vec<&str> = said.iter().map(String::as_str).collect();
    let [before, "discard", after, "settle"] = words.as_slice() else {
        panic!("{said:?}")
    };
    assert_eq!(*before, "arm 900");
    let left: u64 = after.strip_prefix("arm ").unwrap().parse().unwrap();
    assert!((570..=600).contains(&left), "{left}");
}
