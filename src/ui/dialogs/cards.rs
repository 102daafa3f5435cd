//! Cards that were not free in time: who holds them, and what can be done about it.

use super::super::pen::Pen;
use super::super::words::Words;
use super::sheet::Sheet;
use super::text_width;
use crate::app::dialog::CardsDialog;
use crate::app::model::Model;
use crate::keymap::{Action, Context};
use crate::ramp::{Holder, LeftOver, Leg, NONE_LISTED};
use crate::theme::Role;
use crate::units::{gib, thousands};
use ratatui::layout::Rect;

pub fn draw(pen: &mut Pen<'_>, area: Rect, model: &Model, dialog: &CardsDialog) {
    let occupied = &dialog.occupied;
    let width = text_width(area);
    let mut sheet = Sheet::new(pen, "Occupied cards");
    let question = format!(
        "The cards were not free within {} s, and nothing was started. Wait on?",
        occupied.waited_s
    );
    sheet.text(pen, Role::Strong, "", &question, width);
    sheet.space(pen);
    let end = end_words(&occupied.left_overs);
    if dialog.end.is_some() {
        sheet.key(pen, Context::Cards, Action::EndLeftOver, &end);
    }
    sheet.key(pen, Context::Cards, Action::WaitOn, "wait on");
    let give_up = give_up_words(model);
    sheet.key(pen, Context::Cards, Action::GiveUp, &give_up);
    // What explains stands last: with little room the end of the body goes.
    let foot = explained(dialog.end.is_some(), occupied.grace_s);
    let room = sheet.rows(pen, area).saturating_sub(sheet.body.len());
    let lines = held_lines(pen, dialog, width);
    let more = lines.len().saturating_sub(room.max(1));
    if more > 0 {
        let shown = lines.len() - more - 1;
        lines.into_iter().take(shown).for_each(|l| sheet.line(l));
        sheet.line(pen.words().dim(format!("and {} more lines", more + 1)));
    } else {
        lines.into_iter().for_each(|line| sheet.line(line));
    }
    sheet.space(pen);
    sheet.text(pen, Role::Dim, "", &foot, width);
    sheet.draw(pen, area);
}

/// A line for a card and one for each holder; one for both where there is a single holder and they fit.
fn held_lines<'t>(pen: &Pen<'t>, dialog: &CardsDialog, width: usize) -> Vec<Words<'t>> {
    let mut lines = Vec::new();
    for card in &dialog.occupied.held {
        let amount = match card.above_bytes {
            Some(bytes) => format!("card {} holds {} GiB too much", card.card, gib(bytes)),
            None => card.amount(),
        };
        let head = pen.words().role(Role::Warn, amount);
        let mut below: Vec<Words<'t>> = card.holders.iter().map(|h| holder_line(pen, h)).collect();
        if below.is_empty() {
            below.push(pen.words().gap(2).dim(NONE_LISTED));
        }
        match below.as_slice() {
            [one] if head.width() + one.width() <= width => lines.push(head.and(one.clone())),
            _ => {
                lines.push(head);
                lines.extend(below);
            }
        }
    }
    let holders = || dialog.occupied.held.iter().flat_map(|card| &card.holders);
    let unlisted = |one: &&LeftOver| !holders().any(|holder| holder.pid == one.id.pid);
    for one in dialog.occupied.left_overs.iter().filter(unlisted) {
        let words = pen.words().text(one.words());
        lines.push(words.dim(" lives on from the stopped server"));
    }
    lines
}

fn holder_line<'t>(pen: &Pen<'t>, holder: &Holder) -> Words<'t> {
    let mut line = pen
        .words()
        .gap(2)
        .text(holder.named())
        .dim(format!(" pid {}", holder.pid))
        .gap(2)
        .text(holder.size());
    if let Some(container) = &holder.container {
        line = line.gap(2).dim(container.words());
    }
    if holder.left_over {
        line = line.gap(2).role(Role::Warn, "left over");
    }
    line
}

/// The very processes that the key ends, as far as a line holds them.
fn end_words(left_overs: &[LeftOver]) -> String {
    match left_overs {
        [one] => format!("end {}", one.words()),
        many => format!("end the {} left-overs", many.len()),
    }
}

fn give_up_words(model: &Model) -> String {
    let Some(view) = &model.restart else {
        return "give up".to_string();
    };
    match (view.leg, view.way_back) {
        (Leg::Forward, Some((context, kind))) => format!(
            "give up, {} ({}) comes back once they are free",
            thousands(context),
            kind.words()
        ),
        _ => "give up: no server will run".to_string(),
    }
}

fn explained(can_end: bool, grace_s: u64) -> String {
    if !can_end {
        return "Only a process that belonged to the stopped server can be ended from here; what else holds a card is yours to end."
            .to_string();
    }
    format!(
        "A left-over belonged to the server before its stop. It is sent SIGTERM, and SIGKILL after {grace_s} s; then the cards are waited for."
    )
}
