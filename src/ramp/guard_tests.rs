use super::super::run::run;
use super::super::tests_rig::{Rig, change, confirmed};
use super::super::*;
use super::{Guarded, guard};
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// Raises to 8,192, lets `happen` happen in the first minute, and gives what the watch came to.
async fn after_ready(rig: &Rig, happen: impl FnOnce(&Rig)) -> Option<Outcome> {
    let deps = rig.deps().await;
    let (sender, _receiver) = mpsc::channel(1000);
    let (_keep, cancel) = watch::channel(false);
    let plan = confirmed(change(4096, 8192));
    let guarded = Guarded::of(&plan);
    let outcome = run(plan, &deps, sender.clone(), cancel.clone()).await;
    assert!(matches!(outcome, Outcome::Ready { .. }), "{outcome:?}");
    let task = tokio::spawn(async move { guard(guarded, &deps, sender, cancel).await });
    tokio::time::sleep(Duration::from_millis(300)).await;
    happen(rig);
    tokio::time::timeout(Duration::from_secs(20), task)
        .await
        .expect("the watch goes on")
        .unwrap()
}

#[tokio::test]
async fn a_crash_in_the_first_minute_brings_back_what_came_before_once() {
    let rig = Rig::serving(4096);
    let outcome = after_ready(&rig, |rig| {
        let mut world = rig.world.lock().unwrap();
        world
            .log
            .push_str("RuntimeError: CUDA error: an illegal memory access\n");
        world.end(Some(1));
    });
    let Some(Outcome::RolledBack { failure, to, .. }) = outcome.await else {
        panic!("nothing came back")
    };
    assert_eq!(to.config.context, 4096);
    assert!(failure.cause.contains("crashed 0 s later"), "{failure:?}");
    assert!(
        failure.cause.contains("illegal memory access"),
        "{failure:?}"
    );
    let world = rig.world.lock().unwrap();
    assert_eq!(world.served(), Some(4096));
    assert_eq!(world.calls[2..], ["stop @stop", "start 4096 @start"]);
    assert!(!intent::path(&rig.dir()).exists());
}

#[tokio::test]
async fn the_operator_ends_the_watch_and_a_wish_from_before_does_not() {
    let rig = Rig::serving(4096);
    let deps = rig.deps().await;
    let (sender, _receiver) = mpsc::channel(1000);
    let (wish, cancel) = watch::channel(false);
    let plan = confirmed(change(4096, 8192));
    let guarded = Guarded::of(&plan);
    let outcome = run(plan, &deps, sender.clone(), cancel.clone()).await;
    assert!(matches!(outcome, Outcome::Ready { .. }), "{outcome:?}");
    wish.send_replace(true);
    let mut task = tokio::spawn(async move { guard(guarded, &deps, sender, cancel).await });
    let soon = tokio::time::timeout(Duration::from_secs(2), &mut task).await;
    assert!(soon.is_err(), "it came too late for the restart");
    wish.send_replace(true);
    let ended = tokio::time::timeout(Duration::from_secs(5), task).await;
    assert_eq!(ended.expect("the watch goes on").unwrap(), None);
    assert_eq!(rig.world.lock().unwrap().served(), Some(8192));
}

#[tokio::test]
async fn the_managers_word_for_the_end_reaches_the_reason() {
    let rig = Rig::serving(4096);
    let outcome = after_ready(&rig, |rig| {
        let mut world = rig.world.lock().unwrap();
        world.result = Some("oom-kill".to_string());
        world.log.push_str("RuntimeError: a worker died\n");
        world.end(Some(1));
    });
    let Some(Outcome::RolledBack { failure, .. }) = outcome.await else {
        panic!("nothing came back")
    };
    assert!(
        failure.cause.starts_with("out of host memory; "),
        "{failure:?}"
    );
}

#[tokio::test]
async fn a_server_that_somebody_stopped_or_replaced_on_purpose_is_left() {
    for exit in [-15, 143, 0] {
        let rig = Rig::serving(4096);
        let outcome = after_ready(&rig, |rig| rig.world.lock().unwrap().end(Some(exit)));
        assert_eq!(outcome.await, None, "{exit}");
        assert_eq!(rig.world.lock().unwrap().calls.len(), 2);
    }

    let rig = Rig::serving(4096);
    let outcome = after_ready(&rig, |rig| {
        let mut world = rig.world.lock().unwrap();
        let (id, _) = world.running.clone().unwrap();
        world.running = Some((id, super::super::tests_rig::config(2048)));
    });
    assert_eq!(outcome.await, None);
    assert_eq!(rig.world.lock().unwrap().calls.len(), 2);
}
