//! The restart before it happens: what changes, what it will cost, what comes back if it fails.

use super::super::pen::Pen;
use super::super::words::Words;
use super::sentence;
use super::sheet::Sheet;
use super::text_width;
use crate::app::deadline;
use crate::app::dialog::{DiffLine, RestartDialog};
use crate::app::model::Model;
use crate::app::update::deadline_offered;
use crate::keymap::{Action, Context};
use crate::ramp::Purpose;
use crate::ramp::{Drain, QUIET_MS};
use crate::theme::Role;
use crate::units::{mm_ss, thousands};
use ratatui::layout::Rect;

/// Lines of the diff at most.
const DIFF: usize = 8;

pub fn draw(pen: &mut Pen<'_>, area: Rect, model: &Model, dialog: &RestartDialog) {
    let plan = dialog.pending.action();
    let to = thousands(plan.to.context);
    let width = text_width(area);
    let (title, question, yes) = match plan.purpose {
        Purpose::Start => (
            "Start",
            format!("Start the server at {to} tokens?"),
            "start it",
        ),
        Purpose::Change => (
            "Restart",
            format!("Restart the server at {to} tokens, as a trial?"),
            "restart",
        ),
        Purpose::RollBack => (
            "Roll back",
            format!("Restart the server at its production value of {to} tokens?"),
            "roll back",
        ),
    };
    let mut sheet = Sheet::new(pen, title);
    if let Some(service) = &model.rig.service {
        sheet.facts = pen.words().dim(service.name.clone());
    }
    sheet.text(pen, Role::Strong, "", &question, width);
    sheet.space(pen);
    if let Some(from) = &plan.from {
        sheet.line(
            pen.words()
                .dim("context length  ")
                .text(thousands(from.context))
                .dim(format!(" {} ", pen.glyphs().arrow))
                .role(Role::Accent, to.clone()),
        );
    }
    let slots = plan.to.launch.slots;
    if slots > 1 {
        let all = thousands(plan.to.context.saturating_mul(slots));
        let text = format!("{slots} slots of {to}: the argument is their total, {all}");
        sheet.text(pen, Role::Dim, "", &text, width);
    }
    for line in &dialog.forecast {
        let lead = format!("{} ", pen.glyphs().between);
        sheet.text(pen, Role::Text, &lead, line, width);
    }
    others(pen, &mut sheet, model, dialog.drain.as_ref(), width);
    for line in &dialog.warnings {
        let lead = format!("{} ", pen.glyphs().warn);
        sheet.text(pen, Role::Warn, &lead, line, width);
    }
    if let Some(service) = &model.rig.service
        && plan.purpose == Purpose::Change
    {
        sheet.text(pen, Role::Dim, "", &sentence(&service.trial_note), width);
    }
    let changes = diff_lines(pen, &dialog.diff);
    if plan.from.is_some() && !changes.is_empty() {
        sheet.space(pen);
        for line in changes {
            sheet.line(line);
        }
    }
    sheet.key(pen, Context::Confirm, Action::Yes, yes);
    if let Some(deadline) = deadline_offered(model) {
        let words = deadline::words(deadline);
        sheet.key(pen, Context::Confirm, Action::Deadline, &words);
    }
    sheet.key(pen, Context::Confirm, Action::No, "change nothing");
    if dialog.drain.is_none() && model.foreign().is_some_and(|n| n > 0) {
        sheet.key(pen, Context::Confirm, Action::Drain, "wait for the others");
    }
    sheet.draw(pen, area);
}

/// Who else uses the server, and whether we wait for them.
fn others<'t>(
    pen: &Pen<'t>,
    sheet: &mut Sheet<'t>,
    model: &Model,
    drain: Option<&Drain>,
    width: usize,
) {
    let lead = format!("{} ", pen.glyphs().warn);
    match model.foreign() {
        Some(0) => {}
        Some(n) => {
            let text =
                format!("{n} requests of others are on the server now; a restart cuts them off");
            sheet.text(pen, Role::Bad, &lead, &text, width);
        }
        None if model.rig.up() => {
            let text = "whether others use the server now is unknown: it does not say";
            sheet.text(pen, Role::Warn, &lead, text, width);
        }
        None => {}
    }
    if let Some(drain) = drain {
        let waited = mm_ss(model.now.since(drain.since));
        let text = match drain.quiet_since {
            Some(since) if model.now.since(since) >= QUIET_MS => {
                format!(
                    "nobody else for {} s: it is quiet",
                    model.now.since(since) / 1000
                )
            }
            Some(since) => format!(
                "waiting {waited}: nobody else for {} of {} s",
                model.now.since(since) / 1000,
                QUIET_MS / 1000
            ),
            None => format!("waiting {waited} for the others to end"),
        };
        sheet.text(pen, Role::Accent, "", &text, width);
    }
}

/// The lines that change, each with what it was.
fn diff_lines<'t>(pen: &Pen<'t>, diff: &[DiffLine]) -> Vec<Words<'t>> {
    let changed = diff
        .iter()
        .filter(|line| !matches!(line, DiffLine::Same(_)));
    let count = changed.clone().count();
    let mut lines: Vec<Words<'t>> = changed
        .take(DIFF)
        .map(|line| diff_line(pen, line))
        .collect();
    if count > DIFF {
        lines.push(pen.words().dim(format!("and {} more lines", count - DIFF)));
    }
    lines
}

/// One line of a diff, by sign and colour.
pub fn diff_line<'t>(pen: &Pen<'t>, line: &DiffLine) -> Words<'t> {
    match line {
        DiffLine::Same(text) => pen.words().dim(format!("  {text}")),
        DiffLine::Removed(text) => pen.words().role(Role::Removed, format!("- {text}")),
        DiffLine::Added(text) => pen.words().role(Role::Added, format!("+ {text}")),
    }
}
