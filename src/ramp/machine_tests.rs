use super::*;
use crate::engine::{Context, Health, Kind};
use crate::reading::Reading;

const STEPS: [Step; 6] = [
    Step::Validate,
    Step::Stop,
    Step::WaitCards,
    Step::Start,
    Step::Watch,
    Step::Prove,
];

fn failure(cause: &str) -> StartFailure {
    StartFailure {
        step: Step::Watch,
        phase: None,
        cause: cause.to_string(),
        line: None,
        advice: None,
        suggests: None,
        held: Vec::new(),
    }
}

fn facts() -> Box<Facts> {
    Box::new(Facts {
        kind: Kind::Sglang,
        version: Reading::default(),
        model: Reading::default(),
        model_file: None,
        health: Health::Up,
        context: Context::default(),
        simulated: false,
        notes: vec![],
    })
}

fn seen(word: &str) -> Seen {
    match word {
        "ok" => Seen::Passed,
        "token" => Seen::Proven(facts()),
        "cancelled before the stop" => Seen::Untouched(failure(word)),
        cause => Seen::Failed(failure(cause)),
    }
}

/// Feeds what was seen, and writes down the steps taken and the end.
fn walk(way_back: bool, words: &[&str]) -> Vec<String> {
    let mut state = State::Forward(Step::Validate);
    let mut trace = Vec::new();
    for word in words {
        match next(state, seen(word), way_back) {
            Next::Take(to) => {
                trace.push(format!("{:?} {:?}", to.leg(), to.step()));
                state = to;
            }
            Next::End(end) => {
                trace.push(match end {
                    End::Ready(_) => "ready".to_string(),
                    End::Refused(failure) => format!("refused: {}", failure.cause),
                    End::RolledBack(failure, _) => format!("rolled back: {}", failure.cause),
                    End::Halted { failure, back } => format!(
                        "halted: {} / {}",
                        failure.cause,
                        back.map_or("-".to_string(), |back| back.cause)
                    ),
                });
                return trace;
            }
        }
    }
    trace
}

#[test]
fn what_fails_before_the_order_to_stop_stops_nothing() {
    assert_eq!(
        walk(true, &["ok", "cancelled before the stop"]),
        ["Forward Stop", "refused: cancelled before the stop"]
    );
}

#[test]
fn all_is_well() {
    assert_eq!(
        walk(true, &["ok", "ok", "ok", "ok", "ok", "token"]),
        [
            "Forward Stop",
            "Forward WaitCards",
            "Forward Start",
            "Forward Watch",
            "Forward Prove",
            "ready"
        ]
    );
}

#[test]
fn a_plan_that_is_refused_stops_nothing() {
    assert_eq!(walk(true, &["no program"]), ["refused: no program"]);
    assert_eq!(walk(false, &["no program"]), ["refused: no program"]);
}

#[test]
fn any_later_failure_leads_back_once() {
    let back = [
        "Back Stop",
        "Back WaitCards",
        "Back Start",
        "Back Watch",
        "Back Prove",
        "rolled back: broken",
    ];
    for passed in 1..=5 {
        let mut words = vec!["ok"; passed];
        words.push("broken");
        words.extend(["ok", "ok", "ok", "ok", "token"]);
        let trace = walk(true, &words);
        assert_eq!(trace[passed..], back);
    }
}

#[test]
fn a_failure_on_the_way_back_halts_and_starts_nothing_more() {
    for passed in 0..=4 {
        let mut words = vec!["ok", "ok", "ok", "ok", "broken"];
        words.extend(vec!["ok"; passed]);
        words.push("also broken");
        let trace = walk(true, &words);
        assert_eq!(trace.last().unwrap(), "halted: broken / also broken");
        assert_eq!(trace.len(), words.len());
    }
}

#[test]
fn without_a_way_back_what_is_left_is_stopped() {
    assert_eq!(
        walk(false, &["ok", "ok", "ok", "ok", "broken", "ok"])[4..],
        ["Back Stop", "halted: broken / -"]
    );
    assert_eq!(
        walk(false, &["ok", "broken", "stays"])[1..],
        ["Back Stop", "halted: broken / stays"]
    );
}

#[test]
fn a_start_is_only_ever_taken_after_the_cards_let_go() {
    for step in STEPS {
        for state in [State::Forward(step), State::Back(step, failure("x"))] {
            for word in ["ok", "token", "broken"] {
                for way_back in [true, false] {
                    let to = next(state.clone(), seen(word), way_back);
                    if let Next::Take(to) = &to
                        && to.step() == Step::Start
                    {
                        assert_eq!(step, Step::WaitCards);
                    }
                    // And ready is only ever proven.
                    if matches!(to, Next::End(End::Ready(_) | End::RolledBack(..))) {
                        assert_eq!((step, word), (Step::Prove, "token"));
                    }
                }
            }
        }
    }
}

fn entered(leg: Leg, step: Step, way: WayOut, running: Running) -> String {
    match enter((leg, step), way, running, true, failure("interrupted")) {
        Next::Take(state) => format!("{:?} {:?}", state.leg(), state.step()),
        Next::End(end) => format!("{end:?}"),
    }
}

#[test]
fn going_on_watches_a_new_process_and_else_begins_with_the_stop() {
    use Running::{Asked, Nothing, Other, Target};
    for (step, running, expected) in [
        (Step::Validate, Other, "Forward Validate"),
        (Step::Stop, Other, "Forward Stop"),
        (Step::Stop, Nothing, "Forward Stop"),
        // Before the start on disk, the same configuration can only be the old process.
        (Step::WaitCards, Asked, "Forward Stop"),
        (Step::Start, Nothing, "Forward Stop"),
        (Step::Start, Asked, "Forward Watch"),
        (Step::Watch, Asked, "Forward Watch"),
        (Step::Prove, Asked, "Forward Watch"),
        (Step::Prove, Target, "Forward Stop"),
        (Step::Watch, Nothing, "Forward Stop"),
    ] {
        assert_eq!(entered(Leg::Forward, step, WayOut::GoOn, running), expected);
    }
}

#[test]
fn rolling_back_leaves_alone_what_was_never_stopped() {
    use Running::{Asked, Nothing, Other, Target};
    let way = WayOut::RollBack;
    for running in [Other, Target, Asked] {
        assert_eq!(
            entered(Leg::Forward, Step::Validate, way, running),
            "Back Prove"
        );
    }
    assert_eq!(
        entered(Leg::Forward, Step::Validate, way, Nothing),
        "Back Stop"
    );
    for step in &STEPS[1..] {
        for running in [Other, Target, Asked, Nothing] {
            assert_eq!(entered(Leg::Forward, *step, way, running), "Back Stop");
        }
    }
    let end = enter(
        (Leg::Forward, Step::Validate),
        way,
        Nothing,
        false,
        failure("x"),
    );
    assert_eq!(end, Next::End(End::Refused(failure("x"))));
}

#[test]
fn a_way_back_that_was_interrupted_is_finished_either_way() {
    use Running::{Nothing, Other, Target};
    for way in [WayOut::GoOn, WayOut::RollBack] {
        assert_eq!(entered(Leg::Back, Step::Watch, way, Target), "Back Watch");
        assert_eq!(entered(Leg::Back, Step::Prove, way, Target), "Back Watch");
        assert_eq!(entered(Leg::Back, Step::Stop, way, Target), "Back Stop");
        assert_eq!(entered(Leg::Back, Step::Start, way, Nothing), "Back Stop");
        assert_eq!(entered(Leg::Back, Step::Prove, way, Other), "Back Stop");
    }
}
