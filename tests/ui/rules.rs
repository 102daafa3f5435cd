//! Rules of the screen that a picture does not tell.

use crate::pictures::*;
use crate::rig::*;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::style::Color;
use vramp::app::keys::{context, possible};
use vramp::app::model::Pane;
use vramp::keymap::{Action, Keymap};
use vramp::theme::{Depth, GlyphSet};
use vramp::ui::{Hit, ViewState, draw};

fn drawn(
    model: &vramp::app::model::Model,
    keymap: &Keymap,
    view: &mut ViewState,
    size: (u16, u16),
) -> String {
    let mut terminal = Terminal::new(TestBackend::new(size.0, size.1)).unwrap();
    let theme = default_theme();
    terminal
        .draw(|frame| draw(model, view, &theme, keymap, frame))
        .unwrap();
    text(terminal.backend().buffer())
}

#[test]
fn the_footer_shows_the_keys_of_the_keymap_and_only_what_is_possible() {
    let keymap =
        Keymap::with_user("[global]\nhelp = \"F9\"\nlog = \"none\"\n[tasks]\ntask-add = \"+\"\n")
            .unwrap();
    for (name, model) in states() {
        let screen = drawn(&model, &keymap, &mut ViewState::default(), (160, 48));
        let footer = screen.lines().last().unwrap_or_default();
        let mut left = footer.to_string();
        for (action, words) in possible(&model) {
            if let Some(key) = keymap.key_for(context(&model), action) {
                let shown = format!("{key} {words}");
                assert!(
                    footer.contains(&shown),
                    "{name}: {shown:?} is not in {footer:?}"
                );
                left = left.replacen(&shown, "", 1);
            }
        }
        assert_eq!(
            left.trim(),
            "",
            "{name}: the footer shows more than is possible"
        );
    }
}

#[test]
fn help_and_quit_stand_in_the_footer_at_every_width() {
    for width in 60..=160 {
        let screen = drawn(
            &walk(),
            &Keymap::default(),
            &mut ViewState::default(),
            (width, 24),
        );
        let footer = screen.lines().last().unwrap_or_default();
        assert!(
            footer.ends_with("? help   q quit") || footer.ends_with("? help  q quit"),
            "{width}: {footer:?}"
        );
    }
}

#[test]
fn the_question_shows_its_five_answers_at_every_size() {
    for (width, height) in [(60, 15), (80, 24), (100, 20), (160, 48)] {
        let screen = screen(&question(), width, height);
        for words in [
            "keep 32,768 → 131,072",
            "adjust …",
            "roll back to 32,768",
            "measure first",
            "decide later",
        ] {
            assert!(
                screen.contains(words),
                "{width}x{height}: {words}\n{screen}"
            );
        }
    }
}

#[test]
fn the_restart_shows_old_and_new_and_its_answers_at_every_size() {
    for (width, height) in [(60, 15), (80, 24), (160, 48)] {
        let screen = screen(&restart_asked(), width, height);
        for words in ["65,536 → 131,072", "y restart", "Esc change nothing"] {
            assert!(
                screen.contains(words),
                "{width}x{height}: {words}\n{screen}"
            );
        }
    }
}

#[test]
fn simulated_stands_on_every_screen() {
    for (name, mut model) in states() {
        model.settings.demo = true;
        for (width, height) in [(60, 15), (80, 24), (120, 36), (160, 48)] {
            let screen = screen(&model, width, height);
            assert!(screen.contains("SIMULATED"), "{name} {width}x{height}");
        }
    }
}

#[test]
fn without_colours_every_state_is_told_by_sign_and_word() {
    let theme = theme("default-dark", Depth::None, GlyphSet::Unicode);
    let buffer = cells(&walk(), &theme, 160, 48);
    assert!(
        buffer
            .content()
            .iter()
            .all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset)
    );
    let screen = text(&buffer);
    for words in [
        "✔ Attach",
        "▶ Long context 60K",
        "⊘ Long context 100K",
        "blocked",
        "● ready",
        "trial",
        "valid",
        "running",
    ] {
        assert!(screen.contains(words), "{words}");
    }
}

#[test]
fn ascii_screens_are_ascii() {
    let theme = theme("default-dark", Depth::Ansi16, GlyphSet::Ascii);
    for (name, model) in states() {
        let buffer = cells(&model, &theme, 160, 48);
        let own = buffer
            .content()
            .iter()
            .find(|cell| !cell.symbol().is_ascii());
        assert_eq!(own.map(|cell| cell.symbol()), None, "{name}");
    }
}

#[test]
fn an_unknown_reading_is_never_shown_as_zero() {
    let screen = screen(&cards(8), 160, 48);
    let lines: Vec<&str> = screen.lines().collect();
    let at = lines
        .iter()
        .position(|line| line.contains("Insufficient"))
        .unwrap();
    let (head, row) = (lines[at - 1], lines[at]);
    assert!(
        row.contains("Insufficient Permissions") && !row.contains("0.0"),
        "{row}"
    );
    assert!(head.contains("busy   – %"), "{head}");
}

#[test]
fn a_click_finds_the_card_under_it_in_both_lanes_and_on_both_lines() {
    let mut view = ViewState::default();
    let screen = drawn(&cards(8), &Keymap::default(), &mut view, (160, 48));
    let lines: Vec<&str> = screen.lines().collect();
    let y = lines.iter().position(|line| line.contains("▌4")).unwrap();
    let x = lines[y].chars().take_while(|c| *c != '▌').count() as u16;
    let line = |x: u16, y: usize| view.hit(x, y as u16).and_then(|hit| hit.line);
    for y in [y, y + 1] {
        assert_eq!(line(x + 4, y), Some(0));
        assert_eq!(line(x + 60, y), Some(4));
    }
}

#[test]
fn a_card_has_one_hue_in_its_row_and_on_the_chart() {
    let theme = default_theme();
    let buffer = cells(&cards(2), &theme, 160, 48);
    for index in 0..2 {
        let hue = theme.card(index).fg.unwrap();
        let signs: Vec<&str> = buffer
            .content()
            .iter()
            .filter(|cell| cell.fg == hue)
            .map(|cell| cell.symbol())
            .collect();
        assert!(signs.contains(&"▌"), "row of card {index}");
        assert!(signs.contains(&"●"), "last value of card {index}");
        assert!(
            signs.iter().any(|sign| ('\u{2801}'..='\u{28ff}').contains(&sign.chars().next().unwrap_or(' '))),
            "line of card {index}"
        );
    }
}

#[test]
fn the_mouse_finds_panes_and_lines() {
    let mut view = ViewState::default();
    let screen = drawn(&walk(), &Keymap::default(), &mut view, (160, 48));
    let y = screen
        .lines()
        .position(|line| line.contains("Smoke test"))
        .unwrap() as u16;
    assert_eq!(
        view.hit(10, y),
        Some(Hit {
            pane: Pane::Tasks,
            line: Some(1)
        })
    );
    let y = screen
        .lines()
        .position(|line| line.contains("10,000   1.24 s"))
        .unwrap() as u16;
    let bench = Hit {
        pane: Pane::Bench,
        line: Some(1),
    };
    assert_eq!(view.hit(100, y), Some(bench));
    assert_eq!(view.hit(10, 0), None, "the header is no pane");
    assert_eq!(view.hit(500, 500), None);
}

#[test]
fn commands_show_the_key_that_would_have_done_it() {
    let (_, model) = states()
        .into_iter()
        .find(|(name, _)| *name == "commands")
        .unwrap();
    let screen = screen(&model, 120, 36);
    let key = Keymap::default()
        .key_for(vramp::keymap::Context::Tasks, Action::TaskAdd)
        .unwrap();
    let row = screen
        .lines()
        .find(|line| line.contains("task-add"))
        .unwrap();
    assert!(row.contains(&format!(" {key} ")), "{row}");
}

#[test]
fn a_screen_that_is_too_small_says_what_it_needs() {
    for (width, height) in [(59, 30), (80, 14), (40, 5)] {
        let screen = screen(&walk(), width, height);
        assert!(
            screen.contains("needs 60 x 15"),
            "{width}x{height}: {screen}"
        );
    }
}

#[test]
fn what_went_wrong_is_told_to_its_end_at_every_size() {
    let (_, model) = states()
        .into_iter()
        .find(|(name, _)| *name == "down")
        .unwrap();
    for (width, height) in [(60, 15), (80, 24), (160, 48)] {
        let screen = screen(&model, width, height);
        let words = screen.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("is the port right?"), "{screen}");
        let last: Vec<&str> = screen.lines().rev().take(4).collect();
        assert!(
            last.iter().any(|line| line.contains("port right?")),
            "{screen}"
        );
    }
}

#[test]
fn the_question_shows_the_trial_and_which_value_is_the_production_value_at_every_size() {
    for (width, height) in [(60, 15), (80, 24), (100, 20), (120, 36), (160, 48)] {
        let screen = screen(&question(), width, height);
        let row = |context: &str| {
            let mut rows = screen
                .lines()
                .filter(|l| l.contains("│") && l.contains(" × "));
            rows.find(|l| l.contains(context))
                .unwrap_or_default()
                .to_string()
        };
        assert!(
            row("131,072").contains("5 of 6"),
            "{width}x{height}\n{screen}"
        );
        assert!(row("32,768").contains("prod"), "{width}x{height}\n{screen}");
    }
}

#[test]
fn the_verdict_of_a_comparison_is_whole_at_every_size() {
    for (width, height) in [(60, 15), (80, 24), (120, 36), (160, 48)] {
        let screen = screen(&compared(), width, height);
        assert!(
            screen.contains("too few requests to tell"),
            "{width}x{height}\n{screen}"
        );
    }
    let screen = screen(&compared(), 160, 48);
    assert!(
        screen.contains("● run 12, 65,536   ■ run 7 (before), 32,768"),
        "{screen}"
    );
}

#[test]
fn a_plateau_and_both_counts_of_requests_are_said_while_a_run_goes_on() {
    let screen = screen(&sweep(), 160, 48);
    assert!(screen.contains("64 clients, 48 running: the plateau is the server's request limit"));
    assert!(
        screen.contains("64 asked") && screen.contains("64 there"),
        "{screen}"
    );
}

#[test]
fn the_knee_is_named_and_contexts_have_their_own_rows() {
    let all = states();
    let of = |wanted: &str| {
        let (_, model) = all.iter().find(|(name, _)| *name == wanted).unwrap();
        screen(model, 160, 48)
    };
    assert!(of("latency").contains("32 knee"));
    let contexts = of("contexts");
    for words in [
        "● 65,536, 1K in, 500 out",
        "■ 32,768, 1K in, 100 out",
        "at 65,536, 1K in, 500 out",
    ] {
        assert!(contexts.contains(words), "{words}\n{contexts}");
    }
}

#[test]
fn a_selected_row_is_readable_without_colours() {
    use ratatui::style::Modifier;
    let mut model = throughput_selected();
    model.focus = Pane::Bench;
    let theme = theme("default-dark", Depth::None, GlyphSet::Unicode);
    let buffer = cells(&model, &theme, 160, 48);
    let reversed: Vec<_> = buffer
        .content()
        .iter()
        .filter(|cell| cell.modifier.contains(Modifier::REVERSED))
        .collect();
    assert!(reversed.iter().any(|cell| cell.symbol() == "▸"));
    let dim = reversed
        .iter()
        .filter(|cell| cell.modifier.contains(Modifier::DIM));
    assert_eq!(dim.count(), 0, "nothing dim on the reversed ground");
}

#[test]
fn the_footer_says_how_many_keys_found_no_room() {
    let mut model = walk();
    model.focus = Pane::Bench;
    let narrow = screen(&model, 60, 24);
    let footer = narrow.lines().last().unwrap_or_default();
    let number = |s: &str| {
        let (_, rest) = s.split_once('+')?;
        rest.split_once(" in ")?.0.parse::<usize>().ok()
    };
    let left_out = number(footer).expect(footer);
    let shown = possible(&model)
        .iter()
        .filter(|(action, words)| {
            let key = Keymap::default().key_for(context(&model), *action);
            key.is_some_and(|key| footer.contains(&format!("{key} {words}")))
        })
        .count();
    assert_eq!(shown + left_out, possible(&model).len(), "{footer:?}");
}

#[test]
fn the_limit_of_the_model_is_that_of_its_file_where_the_server_tells_none() {
    let mut model = forecast();
    let facts = model.rig.facts.as_mut().unwrap();
    facts.context.model_limit = vramp::reading::Reading::unsupported();
    let told = "model 262,144";
    assert!(screen(&model, 160, 48).contains(told));
    model.rig.geometry = None;
    assert!(!screen(&model, 160, 48).contains(told));
}

#[test]
fn a_chart_of_the_past_ends_with_the_values_of_then() {
    let mut model = idle();
    history(&mut model, 2);
    let now = screen(&model, 160, 48);
    // Five minutes ago the cards held less.
    model.window.length_s = Some(300);
    model.window.end = Some(noon() / 1000 - 440);
    let then = screen(&model, 160, 48);
    let last = |screen: &str| {
        // `41.4 ● 0 │` at the right end of its line.
        let ends = screen.lines().filter_map(|line| {
            let figure = line.strip_suffix("● 0 │")?.trim_end().rsplit(' ').next()?;
            figure.parse::<f64>().ok()
        });
        ends.fold(0.0, f64::max)
    };
    let held = model.history.reach(0, noon() / 1000 - 445, 6).unwrap();
    assert!(last(&now) > 35.0, "{now}");
    assert!(
        (last(&then) - f64::from(held.high) / 1024.0).abs() < 0.1,
        "{held:?}\n{then}"
    );
}

#[test]
fn a_history_keeps_its_scale_when_no_card_is_read_any_more() {
    let mut model = idle();
    history(&mut model, 2);
    for card in &mut model.rig.gpus.cards {
        card.memory = vramp::reading::Reading::Absent(vramp::reading::Absent::Lost);
    }
    let screen = screen(&model, 160, 48);
    assert!(
        !screen.contains(" 1┤") && !screen.contains("1.0┤"),
        "{screen}"
    );
    assert!(screen.contains("42"), "{screen}");
}
