//! The runs on record, with a filter to type: first the one to compare with, then the one that is judged.

use super::super::pen::{Pen, row};
use super::super::widgets::field::field;
use super::super::widgets::table::{Column, line, titles};
use super::sheet::Sheet;
use crate::app::dialog::RunsDialog;
use crate::clock::date_time;
use crate::keymap::{Action, Context};
use crate::store::{Ending, RunRow};
use crate::theme::Role;
use crate::units::thousands;
use ratatui::layout::Rect;

const COLUMNS: [Column; 6] = [
    Column::figures("run", 5),
    Column::text("name", 10),
    Column::text("plan", 12),
    Column::figures("context", 9),
    Column::figures("points", 6),
    Column::text("measured", 36),
];

pub fn draw(pen: &mut Pen<'_>, area: Rect, dialog: &RunsDialog) {
    let found = dialog.found();
    let all = dialog.rows.as_ref().map_or(0, Vec::len);
    // The list keeps its size while the filter makes it shorter: nothing jumps.
    let room = usize::from(area.height.saturating_sub(11)).clamp(1, 20);
    let selected = dialog.selected.min(found.len().saturating_sub(1));
    let top = (selected + 1).saturating_sub(room);
    let mut sheet = Sheet::new(pen, "Compare runs");
    sheet.width = 90;
    sheet.facts = pen.words().dim(format!("{} of {all}", found.len()));
    let question = match dialog.first {
        None => "Compare with which run? Then choose the one to judge.".to_string(),
        Some(first) => format!("Which run is judged against run {first}?"),
    };
    sheet.line(pen.words().strong(question));
    let at = sheet.body.len();
    sheet.line(pen.words());
    sheet.line(titles(pen.words().gap(1), &COLUMNS));
    let first_row = sheet.body.len();
    for run in found.iter().skip(top).take(room) {
        sheet.line(line(pen.words().gap(1), &COLUMNS, cells(run)));
    }
    if found.is_empty() {
        let text = match (&dialog.rows, all) {
            (None, _) => "reading the record …",
            (Some(_), 0 | 1) => {
                "two finished runs are needed: b measures, vramp bench --save NAME keeps one from the command line"
            }
            _ => "no run has these words",
        };
        sheet.line(pen.words().gap(1).dim(text));
    }
    while sheet.body.len() < room + first_row {
        sheet.line(pen.words());
    }
    sheet.selected = (!found.is_empty()).then_some(selected - top + first_row);
    let c = Context::List;
    sheet.key(pen, c, Action::Act, "choose");
    let back = if dialog.first.is_some() {
        "choose the first again"
    } else {
        "close"
    };
    sheet.key(pen, c, Action::Back, back);
    let body = sheet.draw(pen, area);
    field(
        pen,
        row(body, u16::try_from(at).unwrap_or(0)),
        &dialog.query,
    );
}

fn cells(run: &RunRow) -> Vec<(String, Role)> {
    let void = match run.void {
        0 => String::new(),
        n => format!(", {n} void"),
    };
    let ended = match run.ending {
        Some(Ending::Finished) => "",
        Some(Ending::Stopped) => ", stopped",
        Some(Ending::Failed) => ", failed",
        None => ", open",
    };
    let text = |text: String| (text, Role::Text);
    vec![
        (run.id.to_string(), Role::Accent),
        text(run.name.clone().unwrap_or_default()),
        text(run.plan.clone()),
        text(run.context.map_or("?".into(), thousands)),
        text(run.points.to_string()),
        (
            format!("{}{ended}{void}", date_time(run.started_unix_ms)),
            Role::Dim,
        ),
    ]
}
