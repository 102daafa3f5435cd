//! The question: the trial runs; keep it, or what else. The evidence of every value stands side by side.

use super::super::pen::Pen;
use super::super::widgets::table::{Column, line, titles, total};
use super::super::words::{Words, cut, width as text_cells};
use super::sentence;
use super::sheet::Sheet;
use super::text_width;
use crate::app::deadline;
use crate::app::evidence::{Evidence, evidence};
use crate::app::model::Model;
use crate::app::question::KeepPlan;
use crate::app::update::deadline_offered;
use crate::clock::hm;
use crate::keymap::{Action, Context};
use crate::theme::Role;
use crate::units::{duration, gib, mm_ss, short_count, thousands};
use ratatui::layout::Rect;

/// Columns of the evidence. With little room the comparison leaves first, then the failures where there are none, then what the checks
/// say in words, and on the smallest screen the first token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Context,
    Capacity,
    Free,
    Ttft,
    Decode,
    Against,
    Fails,
    Checks,
}

impl Part {
    const ALL: [Part; 8] = [
        Part::Context,
        Part::Capacity,
        Part::Free,
        Part::Ttft,
        Part::Decode,
        Part::Against,
        Part::Fails,
        Part::Checks,
    ];

    fn column(self) -> Column {
        match self {
            Part::Context => Column::figures("context", 9),
            Part::Capacity => Column::figures("capacity", 8),
            Part::Free => Column::figures("tightest", 8),
            Part::Ttft => Column::figures("TTFT at", 13),
            Part::Decode => Column::figures("decode", 6),
            Part::Against => Column::figures("vs short", 8),
            Part::Fails => Column::figures("fails", 5),
            Part::Checks => Column::text("checks", 6),
        }
    }

    fn cell(self, pen: &Pen<'_>, e: &Evidence) -> (String, Role) {
        let none = || (pen.glyphs().none.to_string(), Role::Dim);
        let text = |text: String| (text, Role::Text);
        match self {
            Part::Context => (thousands(e.context), Role::Strong),
            Part::Capacity => e
                .capacity
                .map_or_else(none, |c| text(format!("{c:.1} {}", pen.glyphs().times))),
            Part::Free => e
                .tightest
                .map_or_else(none, |(_, free)| text(format!("{} GiB", gib(free)))),
            Part::Ttft => e.longest.map_or_else(none, |(input, ms)| {
                text(format!("{} {}", short_count(input), duration(ms)))
            }),
            Part::Decode => e.decode.map_or_else(none, |d| text(format!("{d:.1}"))),
            Part::Against => e.vs_short.map_or_else(none, |v| text(format!("{v:+.0} %"))),
            Part::Fails => (
                e.fails.map_or_else(|| "–".to_string(), |n| n.to_string()),
                if e.fails.is_some_and(|n| n > 0) {
                    Role::Bad
                } else {
                    Role::Text
                },
            ),
            Part::Checks => e.checks.map_or_else(none, |(passed, of)| {
                let role = if passed == of { Role::Good } else { Role::Warn };
                (format!("{passed} of {of}"), role)
            }),
        }
    }
}

/// Cells from which on all that is to be noted stands after the figures, cut where it is longer; with less only which value is the
/// production value.
const NOTES: usize = 18;
/// Cells before the table.
const LEAD: usize = 1;

pub fn draw(pen: &mut Pen<'_>, area: Rect, model: &Model, plan: &KeepPlan) {
    let value = plan.config.context;
    let room = usize::from(area.width.saturating_sub(6));
    let width = text_width(area);
    let mut sheet = Sheet::new(pen, "Production value");
    if let Some(since) = model.rig.serving_since {
        sheet.facts = pen
            .words()
            .dim(format!("trial since {}", hm(since.unix_ms)));
    }
    keys(pen, &mut sheet, model, plan);
    // As it stands now: what is measured while the question waits belongs to it.
    let all = evidence(model);
    let rows = sheet.rows(pen, area);
    let question = format!(
        "The server is running at {} tokens (trial). Keep it as the production value, or adjust?",
        thousands(value)
    );
    // The question, a blank and the titles before the values.
    if rows >= all.len() + 4 {
        sheet.text(pen, Role::Strong, "", &question, width);
        sheet.space(pen);
    } else {
        let short = format!("{} runs as a trial. Keep it, or adjust?", thousands(value));
        sheet.text(pen, Role::Strong, "", &short, width);
    }
    let values = rows.saturating_sub(sheet.body.len() + 1);
    table(pen, &mut sheet, plan, &shown(&all, value, values), room);
    sheet.space(pen);
    for sentence in sentences(pen, plan, &all) {
        sheet.text(pen, Role::Text, "", &sentence, width);
    }
    if let Some(service) = &model.rig.service {
        sheet.text(pen, Role::Dim, "", &sentence(&service.trial_note), width);
    }
    if let (Some(left), Some(previous)) = (model.deadline_left_ms(), plan.previous) {
        let text = format!(
            "Unless it is kept within {}, {} comes back by itself, also without this cockpit.",
            mm_ss(left),
            thousands(previous)
        );
        sheet.text(pen, Role::Warn, "", &text, width);
    }
    if plan.launch_changed {
        sheet.text(
            pen,
            Role::Warn,
            "",
            "The launch text was edited; keeping writes it too.",
            width,
        );
    }
    sheet.draw(pen, area);
}

/// The values that have room: the trial and the production value stay, then the nearest below.
fn shown(all: &[Evidence], trial: u64, room: usize) -> Vec<Evidence> {
    let mut order: Vec<&Evidence> = all.iter().collect();
    order.sort_by_key(|e| {
        let rank = if e.context == trial {
            0
        } else if e.production {
            1
        } else {
            2
        };
        (rank, e.context.abs_diff(trial))
    });
    let mut chosen: Vec<Evidence> = order.into_iter().take(room.max(1)).cloned().collect();
    chosen.sort_by_key(|e| e.context);
    chosen
}

fn keys<'t>(pen: &Pen<'t>, sheet: &mut Sheet<'t>, model: &Model, plan: &KeepPlan) {
    let value = plan.config.context;
    let c = Context::Question;
    let keep = match plan.previous {
        Some(previous) if previous != value => {
            format!(
                "keep {} {} {}",
                thousands(previous),
                pen.glyphs().arrow,
                thousands(value)
            )
        }
        _ => format!("keep {}", thousands(value)),
    };
    sheet.key(pen, c, Action::Keep, &keep);
    sheet.key(
        pen,
        c,
        Action::Adjust,
        &format!("adjust {}", pen.glyphs().ellipsis),
    );
    if let Some(previous) = plan.previous {
        sheet.key(
            pen,
            c,
            Action::RollBack,
            &format!("roll back to {}", thousands(previous)),
        );
    }
    sheet.key(pen, c, Action::MeasureFirst, "measure first");
    if let Some(deadline) = deadline_offered(model) {
        sheet.key(pen, c, Action::Deadline, &deadline::words(deadline));
    }
    sheet.key(pen, c, Action::Later, "decide later");
}

/// The columns that fit into `room` cells, with room for the notes after them.
fn parts(evidence: &[Evidence], room: usize) -> Vec<Part> {
    let wide = |parts: &[Part], notes: usize| {
        let columns: Vec<Column> = parts.iter().map(|part| part.column()).collect();
        usize::from(total(&columns)) + LEAD + if notes > 0 { 2 + notes } else { 0 }
    };
    let longest = |notes: fn(&Evidence) -> String| {
        let all = evidence.iter().map(notes);
        all.map(|note| text_cells(&note)).max().unwrap_or(0)
    };
    let (full, least) = (longest(notes), longest(|e| production_note(e, 0)));
    let mut parts = Part::ALL.to_vec();
    let no_fails = evidence.iter().all(|e| e.fails.unwrap_or(0) == 0);
    let leave = [
        (Part::Against, full, true),
        (Part::Fails, full, no_fails),
        // By now the words of the checks are gone.
        (Part::Ttft, least, true),
        (Part::Free, least, true),
    ];
    for (part, notes, may_leave) in leave {
        if wide(&parts, notes) > room && may_leave {
            parts.retain(|one| *one != part);
        }
    }
    parts
}

fn table<'t>(pen: &Pen<'t>, sheet: &mut Sheet<'t>, plan: &KeepPlan, all: &[Evidence], room: usize) {
    let parts = parts(all, room);
    let columns: Vec<Column> = parts.iter().map(|part| part.column()).collect();
    sheet.line(titles(pen.words().gap(LEAD), &columns));
    let notes_room = room.saturating_sub(LEAD + usize::from(total(&columns)) + 2);
    for evidence in all {
        let here = evidence.context == plan.config.context;
        let lead = pen.words().gap(LEAD);
        if here {
            sheet.selected = Some(sheet.body.len());
        }
        let words = match &evidence.failed {
            Some(why) => failed(pen, lead, evidence, why, room),
            None => {
                let cells = parts.iter().map(|part| part.cell(pen, evidence)).collect();
                let words = line(lead, &columns, cells);
                let full = notes(evidence);
                let note = if text_cells(&full) <= notes_room || notes_room >= NOTES {
                    cut(&full, notes_room, pen.glyphs().ellipsis)
                } else {
                    production_note(evidence, notes_room)
                };
                words.gap(2).dim(note)
            }
        };
        sheet.line(words);
    }
}

fn failed<'t>(
    pen: &Pen<'t>,
    lead: Words<'t>,
    evidence: &Evidence,
    why: &str,
    room: usize,
) -> Words<'t> {
    let head = line(
        lead,
        &[Part::Context.column()],
        vec![(thousands(evidence.context), Role::Strong)],
    );
    let text = format!("{} did not serve: {why}", pen.glyphs().failed);
    let text = cut(
        &text,
        room.saturating_sub(head.width() + 2),
        pen.glyphs().ellipsis,
    );
    head.gap(2).role(Role::Bad, text)
}

fn production_note(evidence: &Evidence, room: usize) -> String {
    let note = match (evidence.production, room < 10) {
        (true, false) => "production",
        (true, true) => "prod.",
        (false, _) => "",
    };
    note.to_string()
}

/// What the figures do not say.
fn notes(evidence: &Evidence) -> String {
    let mut notes = Vec::new();
    if evidence.production {
        notes.push("production".to_string());
    }
    if evidence.suspect > 0 {
        notes.push(format!("{} suspect", evidence.suspect));
    }
    if evidence.void > 0 {
        notes.push(format!("{} void", evidence.void));
    }
    notes.extend(evidence.checks_open.iter().cloned());
    notes.join(", ")
}

/// The evidence of the value in words, and what is missing.
fn sentences(pen: &Pen<'_>, plan: &KeepPlan, all: &[Evidence]) -> Vec<String> {
    let value = plan.config.context;
    let Some(here) = all.iter().find(|e| e.context == value) else {
        return vec![format!("Nothing is measured at {} yet.", thousands(value))];
    };
    let mut facts = Vec::new();
    if let (Some((input, _)), Some(vs)) = (here.longest, here.vs_short) {
        let verb = if vs < 0.0 { "costs" } else { "gains" };
        let than = here
            .short
            .map_or(String::new(), |n| format!(" against {}", thousands(n)));
        facts.push(format!(
            "{verb} {:.0} % decode rate at {} tokens in{than}",
            vs.abs(),
            thousands(input)
        ));
    }
    if let Some(capacity) = here.capacity {
        facts.push(format!(
            "has room for {capacity:.1} full-length requests at once"
        ));
    }
    let mut out = Vec::new();
    if !facts.is_empty() {
        out.push(format!("{} {}.", thousands(value), facts.join(" and ")));
    }
    if here.longest.is_none() {
        let key = pen
            .keymap
            .key_for(Context::Question, Action::MeasureFirst)
            .map_or(String::new(), |key| format!(" ({key})"));
        out.push(format!(
            "Not measured at {} yet: a long input{key}.",
            thousands(value)
        ));
    }
    if here.checks.is_none() {
        out.push(format!(
            "The checks have not run at {}: they are a task of their own.",
            thousands(value)
        ));
    }
    out
}
