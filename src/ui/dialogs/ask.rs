//! Yes or no: stop what runs, leave while something runs.

use super::super::pen::Pen;
use super::sheet::Sheet;
use super::text_width;
use crate::app::model::{Activity, Model};
use crate::keymap::{Action, Context};
use crate::theme::Role;
use ratatui::layout::Rect;

pub fn stop(pen: &mut Pen<'_>, area: Rect, model: &Model) {
    let Some(running) = &model.running else {
        return ask(
            pen,
            area,
            "Stop",
            "Stop? It is over by now.",
            "",
            ("stop", "close"),
        );
    };
    let question = format!("Stop the {}?", running.activity.words());
    let way_back = model.restart.as_ref().and_then(|view| view.way_back);
    let consequence = match (running.activity, way_back) {
        (Activity::Bench | Activity::Checks, _) => {
            "Requests in flight are cancelled. What was measured stays.".to_string()
        }
        (Activity::Restart, Some((context, kind))) => format!(
            "The restart is given up and {} ({}) comes back, proven with a token.",
            crate::units::thousands(context),
            kind.words()
        ),
        (Activity::Restart, None) => {
            "The start is given up. There is nothing to go back to: no server will run.".to_string()
        }
        (Activity::Attaching | Activity::Smoke, _) => "The task can be run again.".to_string(),
    };
    ask(
        pen,
        area,
        "Stop",
        &question,
        &consequence,
        ("stop it", "let it run"),
    );
}

pub fn quit(pen: &mut Pen<'_>, area: Rect, model: &Model) {
    let question = match &model.running {
        Some(running) => format!("Quit while a {} runs?", running.activity.words()),
        None => "Quit?".to_string(),
    };
    let restarts = model
        .running
        .as_ref()
        .is_some_and(|r| r.activity == Activity::Restart);
    let consequence = match (model.settings.demo, restarts) {
        (true, _) => "What was measured stays. The simulated server of the demo ends with it.",
        (false, true) => {
            "The restart stays where it is: the next start shows it and offers to go on or to go back. The server is not stopped."
        }
        (false, false) => "What was measured stays. The server goes on.",
    };
    ask(pen, area, "Quit", &question, consequence, ("quit", "stay"));
}

fn ask(
    pen: &mut Pen<'_>,
    area: Rect,
    title: &str,
    question: &str,
    consequence: &str,
    (yes, no): (&str, &str),
) {
    let width = text_width(area).min(70);
    let mut sheet = Sheet::new(pen, title);
    sheet.text(pen, Role::Strong, "", question, width);
    sheet.text(pen, Role::Dim, "", consequence, width);
    sheet.key(pen, Context::Confirm, Action::Yes, yes);
    sheet.key(pen, Context::Confirm, Action::No, no);
    sheet.draw(pen, area);
}
