use super::super::tests_rig::{Rig, change, confirmed, lives};
use super::super::*;
use std::process::{Child, Command};
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// A process that holds the card of a rig; gone with the test.
struct Worker(Child);

impl Worker {
    /// `deaf`: SIGTERM does not end it.
    fn new(deaf: bool) -> Worker {
        let script = if deaf {
            "trap '' TERM; exec sleep 600"
        } else {
            "exec sleep 600"
        };
        let child = Command::new("sh").args(["-c", script]).spawn().unwrap();
        let worker = Worker(child);
        // Until it has become what it will be: a signal before that would find another one.
        let comm = format!("/proc/{}/comm", worker.pid());
        while !std::fs::read_to_string(&comm).unwrap().starts_with("sleep") {
            std::thread::sleep(Duration::from_millis(2));
        }
        worker
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A rig at 4096 whose card stays occupied by `worker` after the stop.
fn rig(worker: &Worker, of_the_service: bool, listed: bool) -> Rig {
    let rig = Rig::serving(4096);
    let mut world = rig.world.lock().unwrap();
    world.holders = vec![worker.pid()];
    world.lists = listed;
    if of_the_service {
        world.workers = vec![worker.pid()];
    }
    drop(world);
    rig
}

async fn deps(rig: &Rig) -> Deps {
    let deps = rig.deps().await;
    Deps {
        limits: Limits {
            release_after: Duration::from_millis(200),
            ..deps.limits
        },
        ..deps
    }
}

/// What the operator does when asked; `None` for the questions that stay open.
type Operator<'a> = &'a mut (dyn FnMut(&Occupied) -> Option<CardsChoice> + Send);

/// A raise to 8192 with an operator: how it ended, and what was said.
async fn asked(rig: &Rig, operator: Operator<'_>) -> (Outcome, Vec<String>) {
    let (choices, answers) = Answers::new();
    let deps = Deps {
        answers: Some(answers),
        ..deps(rig).await
    };
    let (sender, mut receiver) = mpsc::channel(1000);
    let (_keep, cancel) = watch::channel(false);
    let mut said = Vec::new();
    let talk = async {
        while let Some(event) = receiver.recv().await {
            match event {
                Event::CardsOccupied(occupied) => {
                    assert!(rig.world.lock().unwrap().running.is_none());
                    if let Some(choice) = operator(&occupied) {
                        choices.send(confirmed(choice)).await.unwrap();
                    }
                }
                Event::Log(line) => said.push(line),
                _ => {}
            }
        }
    };
    let plan = confirmed(change(4096, 8192));
    let (outcome, ()) = tokio::join!(run(plan, &deps, sender, cancel), talk);
    (outcome, said)
}

fn starts(rig: &Rig) -> Vec<String> {
    let calls = rig.world.lock().unwrap().calls.clone();
    calls
        .into_iter()
        .filter(|call| call.starts_with("start"))
        .collect()
}

#[tokio::test]
async fn without_anybody_to_ask_nothing_is_started_and_the_holder_is_named() {
    for listed in [true, false] {
        let worker = Worker::new(false);
        let rig = rig(&worker, true, listed);
        let deps = deps(&rig).await;
        let (sender, _receiver) = mpsc::channel(1000);
        let (_keep, cancel) = watch::channel(false);
        let outcome = run(confirmed(change(4096, 8192)), &deps, sender, cancel).await;
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
        let [card] = failure.held.as_slice() else {
            panic!("{failure:?}")
        };
        assert!(card.above_bytes.is_some());
        if listed {
            assert_eq!(card.holders[0].pid, worker.pid());
            assert!(card.holders[0].left_over);
            let named = format!("worker (pid {}", worker.pid());
            assert!(failure.cause.contains(&named), "{}", failure.cause);
        } else {
            assert!(failure.cause.contains(NONE_LISTED), "{}", failure.cause);
        }
        assert_eq!(starts(&rig), Vec::<String>::new());
        assert!(lives(worker.pid()), "nothing is ended without an operator");
    }
}

#[tokio::test]
async fn a_left_over_is_ended_by_choice_and_the_server_starts_after_it() {
    for (deaf, listed) in [(false, true), (true, true), (false, false)] {
        let worker = Worker::new(deaf);
        let rig = rig(&worker, true, listed);
        let mut questions = 0;
        let (outcome, said) = asked(&rig, &mut |occupied| {
            questions += 1;
            let [left_over] = occupied.left_overs.as_slice() else {
                panic!("{occupied:?}")
            };
            assert_eq!(left_over.id.pid, worker.pid());
            assert_eq!(left_over.name, "sleep");
            Some(CardsChoice::End(occupied.left_overs.clone()))
        })
        .await;
        assert!(matches!(outcome, Outcome::Ready { .. }), "{outcome:?}");
        assert_eq!(questions, 1);
        // The rig refuses a start on an occupied card.
        assert_eq!(starts(&rig), ["start 8192 @start"]);
        let told = |signal: &str| {
            let words = format!("{signal} to sleep (pid {})", worker.pid());
            said.iter().any(|line| line.contains(&words))
        };
        assert!(told("SIGTERM"), "{said:?}");
        assert_eq!(told("SIGKILL"), deaf, "{said:?}");
    }
}

#[tokio::test]
async fn a_foreign_holder_is_named_and_never_ended() {
    let worker = Worker::new(false);
    let rig = rig(&worker, false, true);
    let mut questions = 0;
    let (outcome, said) = asked(&rig, &mut |occupied| {
        questions += 1;
        assert!(occupied.left_overs.is_empty(), "{occupied:?}");
        let holder = &occupied.held[0].holders[0];
        assert_eq!((holder.pid, holder.left_over), (worker.pid(), false));
        // Even who asks for it by force gets nothing.
        let stat = std::fs::read(format!("/proc/{}/stat", worker.pid())).unwrap();
        let forged = LeftOver {
            id: crate::service::ProcessId {
                pid: worker.pid(),
                start_ticks: crate::service::stats(&stat)[0].start_ticks,
                boot_id: crate::host::boot_id().unwrap(),
            },
            name: "sleep".to_string(),
        };
        Some(match questions {
            1 => CardsChoice::End(vec![forged]),
            _ => CardsChoice::GiveUp,
        })
    })
    .await;
    assert!(lives(worker.pid()));
    assert!(!said.iter().any(|line| line.contains("SIG")), "{said:?}");
    // Given up on the way there, and on the way back.
    assert_eq!(questions, 3);
    assert!(matches!(outcome, Outcome::Halted { .. }), "{outcome:?}");
    assert_eq!(starts(&rig), Vec::<String>::new());
}

#[tokio::test]
async fn another_process_with_the_number_of_a_left_over_is_left_alone() {
    let worker = Worker::new(false);
    let mut id = left_over::identify(&crate::host::Local, &[worker.pid()])
        .await
        .unwrap()
        .remove(0)
        .id;
    let host = crate::host::Local;
    assert_eq!(
        left_over::living(&host, &[id.clone()]).await.unwrap().len(),
        1
    );
    let other_boot = crate::service::ProcessId {
        boot_id: "another".to_string(),
        ..id.clone()
    };
    assert!(
        left_over::living(&host, &[other_boot])
            .await
            .unwrap()
            .is_empty()
    );
    id.start_ticks += 1;
    assert!(
        left_over::living(&host, &[id.clone()])
            .await
            .unwrap()
            .is_empty()
    );
    left_over::signal(&host, &id, "KILL").await.unwrap();
    assert!(lives(worker.pid()));
    id.start_ticks -= 1;
    left_over::signal(&host, &id, "KILL").await.unwrap();
    while lives(worker.pid()) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn the_operator_waits_on_until_the_cards_are_freed_late() {
    let worker = Worker::new(false);
    let rig = rig(&worker, false, true);
    let mut questions = 0;
    let (outcome, _) = asked(&rig, &mut |_| {
        questions += 1;
        if questions == 2 {
            // They are freed while the second question is open: it needs no answer.
            let pid = worker.pid().to_string();
            assert!(Command::new("kill").arg(pid).status().unwrap().success());
            return None;
        }
        Some(CardsChoice::WaitOn)
    })
    .await;
    assert!(matches!(outcome, Outcome::Ready { .. }), "{outcome:?}");
    assert_eq!(questions, 2);
    assert_eq!(starts(&rig), ["start 8192 @start"]);
}

#[tokio::test]
async fn given_up_the_old_value_comes_back_once_the_cards_are_free() {
    let mut worker = Some(Worker::new(false));
    let rig = rig(worker.as_ref().unwrap(), false, true);
    let mut questions = 0;
    let (outcome, _) = asked(&rig, &mut |_| {
        questions += 1;
        match questions {
            1 => Some(CardsChoice::GiveUp),
            _ => {
                worker = None;
                None
            }
        }
    })
    .await;
    let Outcome::RolledBack { failure, to, .. } = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!((failure.step, to.config.context), (Step::WaitCards, 4096));
    assert_eq!(questions, 2);
    assert_eq!(starts(&rig), ["start 4096 @start"]);
}

#[tokio::test]
async fn what_belongs_to_the_server_is_on_disk_before_the_stop() {
    let worker = Worker::new(false);
    let rig = rig(&worker, true, true);
    let mut found = Vec::new();
    asked(&rig, &mut |_| {
        let text = std::fs::read(intent::path(&rig.dir())).unwrap();
        let json: serde_json::Value = serde_json::from_slice(&text).unwrap();
        let members = json["members"].as_array().unwrap().iter();
        found = members.filter_map(|one| one["pid"].as_u64()).collect();
        Some(CardsChoice::GiveUp)
    })
    .await;
    assert!(found.contains(&u64::from(worker.pid())), "{found:?}");
}
