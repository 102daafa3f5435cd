//! What a long session costs: 24 hours of sixteen cards, with a second going by before each frame. `cargo bench --bench history` prints
//! the figures and fails where a frame takes 2 ms or the history grows on.

// A measurement that cannot go on may say so.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout
)]

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use std::time::{Duration, Instant};
use vramp::app::history::{Mark, MarkKind};
use vramp::app::model::{Model, Pane, Restored, Settings, Who};
use vramp::app::msg::Msg;
use vramp::app::update::update;
use vramp::clock::Now;
use vramp::gpu::{Card, CardState, Memory, Snapshot};
use vramp::keymap::Keymap;
use vramp::reading::{Absent, Reading};
use vramp::theme::{DEFAULT, Depth, GlyphSet, Theme};
use vramp::ui::{ViewState, draw};

const CARDS: u32 = 16;
const DAY: u64 = 86_400;
const FRAMES: usize = 500;
/// A frame may take so long, and a second day may add so much memory in KiB.
const LIMIT: Duration = Duration::from_millis(2);
const GROWTH: u64 = 1_024;

fn now(second: u64) -> Now {
    Now {
        mono_ms: second * 1_000,
        unix_ms: 1_700_000_000_000 + i64::try_from(second).unwrap() * 1_000,
    }
}

/// The cards at one second; their memory wanders.
fn snapshot(second: u64) -> Snapshot {
    let card = |index: u32| {
        let why = Absent::Unsupported;
        let state = CardState::Ok;
        let mut card = Card::bare(index, format!("GPU-{index}"), "H100".into(), state, &why);
        let used = (u64::from(index) * 3 + second / 7 % 20) << 30;
        card.memory = Reading::Value(Memory {
            total: 80 << 30,
            used,
            free: (80 << 30) - used,
            reserved: 0,
        });
        card
    };
    Snapshot {
        at: now(second),
        cards: (0..CARDS).map(card).collect(),
        ..Snapshot::default()
    }
}

/// Resident memory of this process in KiB.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:"));
    let number = line.and_then(|l| l.split_whitespace().next());
    number.unwrap().parse().unwrap()
}

fn pass(model: &mut Model, seconds: std::ops::Range<u64>) {
    for second in seconds {
        update(model, now(second), Msg::Gpus(snapshot(second)));
    }
}

fn main() {
    let (who, settings) = (Who::default(), Settings::default());
    let mut model = Model::new(now(0), who, settings, None, Restored::default());
    // A screen without a profile shows how to begin; the session is what is measured.
    model.profile = Some(profile());
    model.focus = Pane::Gpus;
    model.zoomed = true;
    model.window.length_s = None;
    let bare = resident();
    pass(&mut model, 0..DAY);
    let day = resident();
    for hour in 1..24 {
        model.marks.push(Mark {
            unix_ms: now(hour * 3_600).unix_ms,
            kind: MarkKind::Start,
            context: Some(hour * 8_192),
            text: None,
        });
    }
    let theme = Theme::load(DEFAULT, &|_| None, Depth::True, GlyphSet::Unicode).unwrap();
    let (keymap, mut view) = (Keymap::default(), ViewState::default());
    let mut terminal = Terminal::new(TestBackend::new(160, 48)).unwrap();
    let mut took: Vec<Duration> = (0..FRAMES as u64)
        .map(|frame| {
            pass(&mut model, DAY + frame..DAY + frame + 1);
            let began = Instant::now();
            terminal
                .draw(|frame| draw(&model, &mut view, &theme, &keymap, frame))
                .unwrap();
            began.elapsed()
        })
        .collect();
    let screen = format!("{:?}", terminal.backend().buffer());
    assert!(screen.contains("GiB"), "the chart is on screen");
    took.sort();
    let (median, most) = (took[FRAMES / 2], took[FRAMES * 99 / 100]);
    let drawn = resident();
    pass(&mut model, 2 * DAY..3 * DAY);
    let grown = resident().saturating_sub(drawn);
    println!(
        "24 h of {CARDS} cards at 160x48: a frame takes {median:.2?}, 99 of 100 less than {most:.2?}; the day takes {} KiB, another one {grown} KiB more",
        day.saturating_sub(bare)
    );
    assert!(median < LIMIT, "a frame takes {median:?}");
    assert!(grown < GROWTH, "another day takes {grown} KiB more");
}

fn profile() -> vramp::profile::Profile {
    let path = std::path::Path::new("/nowhere/vramp.toml");
    let text = "[profile.day]\nurl = \"http://127.0.0.1:30000\"\n";
    vramp::profile::parse(path, text, Some("day"))
        .unwrap()
        .unwrap()
        .profile
}
