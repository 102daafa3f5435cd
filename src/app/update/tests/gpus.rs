//! The memory history: what the operator sees of it.

use super::*;
use crate::app::history::MarkKind;
use crate::gpu::Tenant;

/// A cockpit with the GPU pane focused and an hour on record.
fn hour() -> Play {
    let mut play = Play::attached(32_768);
    let now = play.model.now.unix_ms / 1000;
    for second in now - 3_600..now {
        play.model.history.append(second, vec![Some(500)]);
    }
    play.key(Action::FocusGpus);
    play
}

#[test]
fn keys_zoom_scroll_and_read_and_escape_takes_them_back() {
    let mut play = hour();
    play.key(Action::WindowShorter);
    assert_eq!(play.model.window.length_s, Some(300));
    play.key(Action::WindowEarlier);
    let end = play.model.window.end.unwrap();
    assert_eq!(end, play.model.record().now - 75, "a quarter of the window");
    play.key(Action::MoveLeft).key(Action::MoveLeft);
    assert_eq!(play.model.window.cursor, Some(end - 3));
    play.key(Action::MoveRight);
    assert_eq!(play.model.window.cursor, Some(end));
    // What happens meanwhile moves neither.
    play.msg(Msg::Tick);
    assert_eq!(play.model.window.end, Some(end));
    play.key(Action::Back);
    assert_eq!(
        (play.model.window.cursor, play.model.window.end),
        (None, Some(end))
    );
    play.key(Action::Back);
    assert_eq!(play.model.window.end, None);
    play.key(Action::WindowEarlier);
    play.key(Action::WindowLater).key(Action::WindowLater);
    assert_eq!(play.model.window.end, None, "the present goes on");
}

#[test]
fn two_starts_can_be_overlaid_once_there_are_two() {
    let mut play = hour();
    play.key(Action::OverlayStarts);
    assert!(!play.model.window.overlaid && play.said().contains("two starts"));
    for at in [1_000, 2_000] {
        play.model.marks.push(crate::app::history::Mark {
            unix_ms: at,
            kind: MarkKind::Start,
            context: None,
            text: None,
        });
    }
    play.key(Action::OverlayStarts);
    assert!(play.model.window.overlaid);
    play.key(Action::Back);
    assert!(!play.model.window.overlaid);
}

#[test]
fn the_peak_of_the_pool_and_the_lowest_free_memory_count_from_the_start() {
    let mut play = Play::attached(32_768);
    let load = |used: f64| {
        Msg::Load(engine::Load {
            kv_use: Reading::Value(used),
            ..Default::default()
        })
    };
    play.msg(load(0.4)).msg(load(0.7)).msg(load(0.1));
    assert_eq!(play.model.rig.since_start.kv_peak, Some(0.7));
    // Whose memory it is, is not known before its processes are.
    play.msg(free(1, 1));
    assert_eq!(play.model.rig.since_start.lowest, None);
    play.msg(Msg::Tenant(Tenant::default()));
    play.msg(free(9, 5)).msg(free(4, 6)).msg(free(7, 7));
    assert_eq!(play.model.rig.since_start.lowest, Some((0, 4 << 30)));
    let url = "http://127.0.0.1:30000".into();
    play.msg(Msg::Unreachable(engine::EngineError::Refused { url }));
    play.msg(Msg::Facts(Box::new(facts(65_536))));
    assert_eq!(play.model.rig.since_start.kv_peak, None);
    play.msg(free(2, 2)).msg(Msg::Tenant(Tenant::default()));
    play.msg(free(7, 6));
    assert_eq!(play.model.rig.since_start.lowest, Some((1, 6 << 30)));
}

#[test]
fn a_source_that_hangs_leaves_a_gap() {
    let mut play = Play::attached(32_768);
    let read_at = |now: Now, fresh: bool| {
        let Msg::Gpus(mut shot) = free(9, 5) else {
            panic!("not a reading");
        };
        shot.at = now;
        for card in &mut shot.cards {
            if let (false, Reading::Value(value)) = (fresh, card.memory.clone()) {
                card.memory = Reading::Stale {
                    value,
                    age_ms: 3_000,
                };
            }
        }
        Msg::Gpus(shot)
    };
    let first = play.now;
    play.msg(read_at(first, true));
    for _ in 0..4 {
        play.wait(500).msg(read_at(first, false));
    }
    let last = play.wait(500).now;
    play.msg(read_at(last, true));
    let second = |now: Now| now.unix_ms.div_euclid(1000);
    let (from, to) = (second(first), second(last));
    let known: Vec<bool> = (from..=to)
        .map(|at| play.model.history.reach(0, at, 1).is_some())
        .collect();
    assert!(known[0] && known[known.len() - 1], "{known:?}");
    let columns = play.model.history.columns(0, from, to, known.len());
    assert!(columns.iter().any(Option::is_none), "{columns:?}");
    let unread = play
        .model
        .unsaved
        .iter()
        .filter(|(_, used)| used[0].is_none());
    assert_eq!(unread.count(), 4);
}

#[test]
fn a_server_that_falls_and_comes_back_is_marked() {
    let mut play = Play::attached(32_768);
    let url = "http://127.0.0.1:30000".into();
    play.msg(Msg::Unreachable(engine::EngineError::Refused { url }));
    play.msg(Msg::Facts(Box::new(facts(32_768))));
    let marks: Vec<_> = play
        .model
        .marks
        .iter()
        .map(|m| (m.kind, m.context))
        .collect();
    assert_eq!(
        marks,
        [
            (MarkKind::Lost, Some(32_768)),
            (MarkKind::Back, Some(32_768))
        ]
    );
}

/// Two cards with so many GiB free.
fn free(first: u64, second: u64) -> Msg {
    let card = |(index, free): (u32, u64)| {
        let why = crate::reading::Absent::Unsupported;
        let state = crate::gpu::CardState::Ok;
        let mut card = crate::gpu::Card::bare(index, String::new(), "H100".into(), state, &why);
        card.memory = Reading::Value(crate::gpu::Memory {
            total: 80 << 30,
            used: (80 - free) << 30,
            free: free << 30,
            reserved: 0,
        });
        card
    };
    Msg::Gpus(crate::gpu::Snapshot {
        at: Now {
            mono_ms: 1_000_000,
            unix_ms: 1_800_000_000_000,
        },
        cards: (0..).zip([first, second]).map(card).collect(),
        ..Default::default()
    })
}

#[test]
fn the_log_of_the_last_start_tells_how_large_the_pool_is() {
    let line = |gib: &str| {
        format!(
            "[2026-03-01 12:00:00 TP0] KV Cache is allocated. #tokens: 159744, K size: {gib} GB, V size: {gib} GB"
        )
    };
    let mut play = Play::attached(32_768);
    play.msg(Msg::Log(vec!["Decode batch.".into()]));
    assert_eq!(play.model.rig.since_start.pool, None);
    play.msg(Msg::Log(vec![line("4.88")]));
    let found = play.model.rig.since_start.pool;
    assert_eq!(
        found,
        Some(crate::app::rig::PoolSize::Card(
            (9.76 * crate::units::GIB).round() as u64
        ))
    );
    // Said without a context it is nobody's in particular.
    assert_eq!(play.model.tried[&32_768].measured, None);
    play.model.rig.since_start.pool = None;
    let done = "[2026-03-01 12:00:09 TP0] max_total_num_tokens=159744, chunked_prefill_size=8192, max_prefill_tokens=16384, max_running_requests=48, context_len=32768, available_gpu_mem=5.90 GB";
    play.msg(Msg::Log(vec![done.into()]));
    let measured = play.model.tried[&32_768].measured.expect("of what runs");
    assert_eq!(
        (measured.context, measured.pool_tokens, measured.requests),
        (32_768, Some(159_744), Some(48))
    );
    assert!(
        play.effects
            .iter()
            .any(|effect| matches!(effect, Effect::Save(crate::app::effect::Save::Tried(_))))
    );
    play.wait(61_000);
    play.model.rig.since_start.pool = None;
    play.msg(Msg::Log(vec![line("5.00")]));
    assert_eq!(
        play.model.rig.since_start.pool, None,
        "long after the start it is not looked for"
    );
}
