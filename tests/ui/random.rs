//! Whatever the state and the size: nothing panics, nothing is drawn that a terminal would obey, no unknown key is shown.

use crate::pictures::{cards, states};
use crate::rig::*;
use proptest::prelude::*;
use vramp::app::bench::{self, Run, View};
use vramp::app::config::Edit;
use vramp::app::dialog::{Dialog, DiffLine, Entry, EntryKind, RunsDialog};
use vramp::app::history::{Mark, MarkKind};
use vramp::app::model::{Model, Pane};
use vramp::app::task::{Task, TaskKind, TaskState};
use vramp::app::window::Window;
use vramp::bench::Live;
use vramp::bench::plan::Plan;
use vramp::reading::Reading;
use vramp::theme::{Depth, GlyphSet, SHIPPED};

#[derive(Debug, Clone)]
struct Knobs {
    state: usize,
    theme: usize,
    ascii: bool,
    focus: usize,
    zoomed: bool,
    text: String,
    number: u64,
    small: usize,
    rate: f64,
    time: i64,
    cards: u32,
    dialog: usize,
    window: Option<u64>,
}

fn knobs() -> impl Strategy<Value = Knobs> {
    let number = prop_oneof![Just(0), Just(1), Just(u64::MAX), 1u64..2_000_000];
    let text = prop_oneof![
        any::<String>(),
        "[a-z ]{0,200}",
        Just("模型\u{1b}[2J名\u{7}称é\u{301}👩‍👩‍👧".to_string())
    ];
    let time = prop_oneof![
        Just(0),
        Just(i64::MIN),
        Just(i64::MAX),
        Just(noon()),
        -100_000i64..100_000
    ];
    let window = prop_oneof![
        Just(None),
        Just(Some(0)),
        Just(Some(60)),
        Just(Some(u64::MAX)),
        (1u64..100_000).prop_map(Some)
    ];
    (
        (
            0usize..64,
            0usize..8,
            any::<bool>(),
            0usize..4,
            any::<bool>(),
        ),
        (text, number, any::<usize>(), any::<f64>(), time),
        (0u32..17, 0usize..12, window),
    )
        .prop_map(
            |(
                (state, theme, ascii, focus, zoomed),
                (text, number, small, rate, time),
                (cards, dialog, window),
            )| Knobs {
                state,
                theme,
                ascii,
                focus,
                zoomed,
                text,
                number,
                small,
                rate,
                time,
                cards,
                dialog,
                window,
            },
        )
}

fn model(k: &Knobs) -> Model {
    let mut all = states();
    let at = k.state % all.len();
    let mut m = if k.small.is_multiple_of(3) {
        cards(k.cards)
    } else {
        all.swap_remove(at).1
    };
    m.focus = Pane::ALL[k.focus];
    m.zoomed = k.zoomed;
    m.window = Window {
        length_s: k.window.and_then(|s| i64::try_from(s).ok()),
        end: k.dialog.is_multiple_of(2).then_some(k.time / 1000),
        cursor: k.dialog.is_multiple_of(3).then_some(k.time),
        overlaid: k.dialog.is_multiple_of(5),
    };
    m.gpu_scroll = k.small;
    m.tasks.selected = k.small % 20;
    m.bench.scroll = k.small % 30;
    m.now.unix_ms = if k.dialog > 8 { k.time } else { m.now.unix_ms };
    m.marks.push(Mark {
        unix_ms: k.time,
        kind: MarkKind::Own,
        context: Some(k.number),
        text: Some(k.text.clone()),
    });
    let states = [
        TaskState::Pending,
        TaskState::Running {
            since_unix_ms: k.time,
            share: Some((k.number % 2000) as u16),
            left_ms: Some(k.number),
        },
        TaskState::Failed {
            took_ms: k.number,
            why: k.text.clone(),
        },
        TaskState::Blocked {
            why: k.text.clone(),
            raise_to: Some(k.number),
        },
    ];
    for (i, state) in states.into_iter().enumerate() {
        m.tasks.list.push(Task {
            id: 100 + i as u64,
            title: k.text.clone(),
            kind: TaskKind::Own,
            state,
            note: Some(k.text.clone()),
        });
    }
    for card in m.rig.gpus.cards.iter_mut().step_by(2) {
        card.name = k.text.clone();
        card.index = (k.number % 300) as u32;
        card.memory = card.memory.clone().map(|mut memory| {
            memory.used = k.number;
            memory.total = k.number / 2;
            memory
        });
    }
    if let Some(facts) = &mut m.rig.facts {
        facts.model = Reading::Value(k.text.clone());
        facts.context.pool_tokens = Reading::Value(k.number);
    }
    for point in m.bench.points.iter_mut().step_by(2) {
        point.output_tok_s = Some(k.rate);
        point.decode_tok_s = Some(k.rate);
        point.ttft_ms.p50 = Some(-k.rate);
        point.cell.input = k.number / 2;
    }
    if k.small.is_multiple_of(5) {
        let mut run = Run::new(
            Plan::throughput(true),
            Plan::throughput(true).cells(),
            Some(k.number),
        );
        run.live = Live {
            output_tok_s: k.rate,
            cached_share: Some(k.rate),
            client_cpu: k.rate,
            run_left_ms: Some(k.number),
            ..Live::default()
        };
        run.index = k.small % 9;
        m.bench.run = Some(run);
        timeline(&mut m, 3 + k.number % 900, |i| bench::timeline::Reading {
            rate: k.rate,
            ttft_ms: Some(-k.rate),
            asked: i as u32,
            running: Some(k.number),
            waiting: Some(k.number),
        });
    }
    m.bench.view = [
        None,
        Some(View::Live),
        Some(View::Curves),
        Some(View::Latency),
    ][k.small % 4];
    m.bench.hidden = k.small % 12;
    m.bench.window_s = k.window;
    if let Some(compared) = &mut m.bench.compared {
        compared.selected = k.small % 40;
        compared.b.row.name = Some(k.text.clone());
    }
    m.log.push_back(k.text.clone());
    m.search = Some(k.text.clone());
    m.config.chosen = Some(k.number);
    let edit = Edit {
        text: k.text.clone(),
        cursor: (k.small % 7, k.small % 90),
    };
    match k.dialog {
        0 => m.dialogs.push(Dialog::Log { back: k.small }),
        1 => m.dialogs.push(Dialog::Help {
            query: edit,
            scroll: k.small,
        }),
        2 => m.dialogs.push(Dialog::Commands {
            query: edit,
            selected: k.small,
        }),
        3 => m.dialogs.push(Dialog::Entry(Entry {
            kind: EntryKind::Context,
            edit,
            error: Some(k.text.clone()),
        })),
        4 => m.dialogs.push(Dialog::Origin {
            lines: vec![k.text.clone(); 40],
        }),
        5 => m.dialogs.push(Dialog::Diff {
            lines: vec![DiffLine::Added(k.text.clone()); 3],
            scroll: k.small,
        }),
        6 => m.config.editing = Some(edit),
        7 => m.dialogs.push(Dialog::Runs(RunsDialog {
            rows: Some(vec![
                run_row(
                    (k.number % 100_000) as i64,
                    Some(&k.text),
                    k.number
                );
                30
            ]),
            query: edit,
            selected: k.small % 40,
            first: Some(1),
        })),
        _ => {}
    }
    m
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_state_draws_at_any_size(k in knobs(), width in 0u16..=200, height in 0u16..=60) {
        let set = if k.ascii { GlyphSet::Ascii } else { GlyphSet::Unicode };
        let theme = theme(SHIPPED[k.theme].0, Depth::Ansi256, set);
        let model = model(&k);
        let buffer = cells(&model, &theme, width, height);
        for cell in buffer.content() {
            let obeyed = cell.symbol().chars().any(|c| c.is_control() || c == '\u{202e}');
            prop_assert!(!obeyed, "{:?}", cell.symbol());
        }
    }
}

#[test]
fn every_state_draws_at_every_small_size() {
    let theme = default_theme();
    for (name, model) in states() {
        for (width, height) in [
            (0, 0),
            (1, 1),
            (59, 15),
            (60, 14),
            (60, 15),
            (61, 16),
            (109, 30),
            (110, 29),
            (110, 30),
            (200, 60),
        ] {
            let buffer = cells(&model, &theme, width, height);
            assert_eq!(buffer.area.width, width, "{name}");
        }
    }
}
