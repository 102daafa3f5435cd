//! The memory history: what the operator sees of it.

use super::*;
use crate::app::history::MarkKind;

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
