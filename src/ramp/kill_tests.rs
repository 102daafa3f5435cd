//! A cockpit killed between any two steps, and the next one that takes the restart up.

use super::super::tests_rig::{Rig, Start, change, confirmed};
use super::super::*;
use super::tests::{calls, has_intent, resume_to_end, run_to_end, served};
use futures_util::future::join_all;
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// Runs until the step begins, and then is no more, as after `kill -9`.
async fn killed_at(rig: &Rig, leg: Leg, step: Step) {
    let deps = rig.deps().await;
    let (sender, mut receiver) = mpsc::channel(1);
    let (_keep, cancel) = watch::channel(false);
    let plan = confirmed(change(4096, 8192));
    let task = tokio::spawn(async move { run(plan, &deps, sender, cancel).await });
    while let Some(event) = receiver.recv().await {
        if matches!(event, Event::Step { leg: l, step: s, .. } if (l, s) == (leg, step)) {
            break;
        }
    }
    task.abort();
    let _ = task.await;
    // Unlike a killed process, this one ends the write that it had begun.
    tokio::time::sleep(Duration::from_millis(50)).await;
}

const STEPS: [Step; 6] = [
    Step::Validate,
    Step::Stop,
    Step::WaitCards,
    Step::Start,
    Step::Watch,
    Step::Prove,
];

#[tokio::test]
async fn killed_at_any_step_both_ways_out_end_in_a_server_that_answers() {
    let go_on = async |step: Step| {
        let rig = Rig::serving(4096);
        killed_at(&rig, Leg::Forward, step).await;
        let outcome = resume_to_end(&rig, WayOut::GoOn).await;
        assert!(
            matches!(outcome, Outcome::Ready { .. }),
            "{step:?}: {outcome:?}"
        );
        assert_eq!(served(&rig), Some(8192), "{step:?}");
        assert!(!has_intent(&rig));
    };
    let roll_back = async |step: Step| {
        let rig = Rig::serving(4096);
        killed_at(&rig, Leg::Forward, step).await;
        let outcome = resume_to_end(&rig, WayOut::RollBack).await;
        assert!(
            matches!(outcome, Outcome::RolledBack { .. }),
            "{step:?}: {outcome:?}"
        );
        assert_eq!(served(&rig), Some(4096), "{step:?}");
        assert!(!has_intent(&rig));
        if step == Step::Validate {
            assert!(calls(&rig).is_empty(), "it was never stopped");
        }
    };
    join_all(STEPS.map(|step| async move { tokio::join!(go_on(step), roll_back(step)) })).await;
}

#[tokio::test]
async fn killed_on_the_way_back_it_is_finished() {
    let finished = async |step: Step, way: WayOut| {
        let rig = Rig::serving(4096);
        rig.world.lock().unwrap().starts = vec![(8192, Start::Ends(1, ""))];
        killed_at(&rig, Leg::Back, step).await;
        let outcome = resume_to_end(&rig, way).await;
        let Outcome::RolledBack { failure, .. } = outcome else {
            panic!("{step:?}: {outcome:?}")
        };
        assert!(failure.cause.contains("code 1"), "{failure:?}");
        assert_eq!(served(&rig), Some(4096), "{step:?}");
    };
    let both = |step: &Step| {
        let step = *step;
        async move {
            tokio::join!(
                finished(step, WayOut::GoOn),
                finished(step, WayOut::RollBack)
            )
        }
    };
    join_all(STEPS[1..].iter().map(both)).await;
}

#[tokio::test]
async fn an_intent_that_is_not_understood_or_not_the_confirmed_one_is_left() {
    let rig = Rig::serving(4096);
    let newer = "{\"version\": 99}";
    std::fs::write(intent::path(&rig.dir()), newer).unwrap();
    let (outcome, _) = run_to_end(&rig, change(4096, 8192)).await;
    assert!(matches!(outcome, Outcome::Refused { .. }), "{outcome:?}");
    assert!(calls(&rig).is_empty());
    let kept = std::fs::read_to_string(intent::path(&rig.dir())).unwrap();
    assert_eq!(kept, newer);

    let rig = Rig::serving(4096);
    killed_at(&rig, Leg::Forward, Step::Start).await;
    let deps = rig.deps().await;
    let mut intent = find(deps.host.as_ref(), &deps.dir).await.unwrap().unwrap();
    intent.step = Step::Stop;
    let (sender, _receiver) = mpsc::channel(10);
    let (_keep, cancel) = watch::channel(false);
    let outcome = resume(confirmed((intent, WayOut::GoOn)), &deps, sender, cancel).await;
    assert!(matches!(outcome, Outcome::Refused { .. }), "{outcome:?}");
    assert!(has_intent(&rig));
}
