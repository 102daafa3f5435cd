//! Two runs figure by figure, with what can be said of each.

use super::super::pen::{Pen, row};
use super::super::view::ViewState;
use super::super::widgets::table::{Column, line, titles, total};
use super::super::words::Words;
use crate::app::bench::Compared;
use crate::app::bench::compared::Row;
use crate::app::model::{Model, Pane};
use crate::report::bench::{Figure, Verdict};
use crate::theme::Role;
use ratatui::layout::Rect;

const COLUMNS: [Column; 5] = [
    Column::text("figure", 17),
    Column::figures("before", 10),
    Column::figures("judged", 10),
    Column::text("", 5),
    Column::figures("change", 9),
];
/// Cells of an interval.
const INTERVAL: usize = 24;
/// Cells from which on intervals stand between change and verdict.
const WITH_INTERVAL: u16 = 108;

/// Draws titles and rows; the selected figure stays in sight.
pub fn draw(
    pen: &mut Pen<'_>,
    area: Rect,
    model: &Model,
    compared: &Compared,
    view: &mut ViewState,
) {
    if area.height == 0 {
        return;
    }
    let intervals = area.width >= WITH_INTERVAL;
    let mut columns = COLUMNS;
    // Which run is which, as the legend has it.
    let names = [compared.found.a, compared.found.b].map(|id| format!("run {id}"));
    for column in &mut columns {
        if !intervals {
            column.width = column.width.min(12);
        }
    }
    let head = titles(pen.words(), &columns);
    let head = head.gap(2);
    let head = if intervals {
        head.dim("95 % interval")
            .padded_to(usize::from(total(&columns)) + 4 + INTERVAL)
    } else {
        head
    };
    let between = pen.glyphs().arrow;
    pen.put(
        row(area, 0),
        head.dim(format!("verdict on {} {between} {}", names[0], names[1])),
    );
    let rows = compared.rows();
    let room = usize::from(area.height - 1);
    let chosen = |row: &Row<'_>| matches!(row, Row::Figure(_, at) if *at == compared.selected);
    let focus = rows.iter().position(chosen).unwrap_or(0);
    let top = (focus + 1).saturating_sub(room);
    for (y, content) in (1u16..).zip(rows.into_iter().skip(top).take(room)) {
        let place = row(area, y);
        let words = words(pen, &columns, &content, intervals);
        pen.put(place, words);
        if let Row::Figure(_, at) = content {
            view.lines.push((Pane::Bench, place.y, at));
        }
        if chosen(&content) && model.focus == Pane::Bench {
            pen.select(place);
        }
    }
}

fn words<'t>(pen: &Pen<'t>, columns: &[Column], row: &Row<'_>, intervals: bool) -> Words<'t> {
    match row {
        Row::Cell(cell) => {
            let words = pen.words().strong(cell.cell.clone());
            match &cell.void {
                Some(void) => words
                    .gap(2)
                    .role(Role::Bad, format!("not compared: {void}")),
                None => words,
            }
        }
        Row::Figure(figure, _) => figure_words(pen, columns, figure, intervals),
        Row::Only(run, cell) => pen
            .words()
            .dim(format!("only run {run} has: "))
            .text((*cell).to_string()),
        Row::Difference(what) => pen.words().dim("differs in ").text((*what).to_string()),
        Row::Nothing => pen
            .words()
            .role(Role::Warn, "the runs have no load in common"),
    }
}

fn figure_words<'t>(
    pen: &Pen<'t>,
    columns: &[Column],
    figure: &Figure,
    intervals: bool,
) -> Words<'t> {
    let none = pen.glyphs().none;
    let value = |v: Option<f64>| match v {
        Some(v) => (format!("{v:.1}"), Role::Text),
        None => (none.to_string(), Role::Dim),
    };
    let percent = |share: f64| format!("{:+.1} %", share * 100.0);
    let cells = vec![
        (figure.name.to_string(), Role::Text),
        value(figure.a),
        value(figure.b),
        (figure.unit.to_string(), Role::Dim),
        (figure.change.map_or(String::new(), percent), Role::Strong),
    ];
    let words = line(pen.words(), columns, cells).gap(2);
    let words = match (intervals, figure.low, figure.high) {
        (true, Some(low), Some(high)) => {
            words.dim(format!("{} to {}", percent(low), percent(high)))
        }
        _ => words,
    };
    let words = if intervals {
        words.padded_to(usize::from(total(columns)) + 4 + INTERVAL)
    } else {
        words
    };
    let role = match figure.verdict {
        Verdict::Better => Role::Good,
        Verdict::Worse => Role::Bad,
        Verdict::NoDifferenceShown => Role::Text,
        Verdict::TooFew => Role::Dim,
    };
    words.role(role, figure.verdict.words())
}
