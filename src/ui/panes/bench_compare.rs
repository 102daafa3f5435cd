//! Two runs figure by figure, with what can be said of each.

use super::super::pen::{Pen, row};
use super::super::view::ViewState;
use super::super::widgets::table::{Column, line, total};
use super::super::words::Words;
use crate::app::bench::Compared;
use crate::app::bench::compared::Row;
use crate::app::model::{Model, Pane};
use crate::report::bench::{Figure, Verdict};
use crate::theme::Role;
use ratatui::layout::Rect;

/// How much of a figure has room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// With the interval of its change.
    Wide,
    /// Without; the unit goes with the name.
    Narrow,
    /// Only the change.
    Tiny,
}

const WIDE: [Column; 5] = [
    Column::text("figure", 17),
    Column::figures("a", 10),
    Column::figures("b", 10),
    Column::text("unit", 5),
    Column::figures("change", 9),
];
const NARROW: [Column; 4] = [
    Column::text("figure", 20),
    Column::figures("a", 8),
    Column::figures("b", 8),
    Column::figures("change", 8),
];
const TINY: [Column; 2] = [NARROW[0], NARROW[3]];
/// Cells of an interval.
const INTERVAL: usize = 20;

impl Form {
    fn of(width: u16) -> Self {
        match width {
            108.. => Form::Wide,
            76.. => Form::Narrow,
            _ => Form::Tiny,
        }
    }

    /// A row up to the verdict.
    fn row<'t>(self, words: Words<'t>, figure: [(String, Role); 5], interval: String) -> Words<'t> {
        let [name, a, b, unit, change] = figure;
        let with_unit = (format!("{} {}", name.0, unit.0), name.1);
        match self {
            Form::Wide => line(words, &WIDE, vec![name, a, b, unit, change])
                .gap(2)
                .dim(interval)
                .padded_to(verdict_at()),
            Form::Narrow => line(words, &NARROW, vec![with_unit, a, b, change]).gap(2),
            Form::Tiny => line(words, &TINY, vec![with_unit, change]).gap(2),
        }
    }
}

/// The column of the verdict after an interval.
fn verdict_at() -> usize {
    usize::from(total(&WIDE)) + 2 + INTERVAL + 2
}

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
    let form = Form::of(area.width);
    let dim = |text: &str| (text.to_string(), Role::Dim);
    let titles = [
        dim("figure"),
        dim(&format!("run {}", compared.found.a)),
        dim(&format!("run {}", compared.found.b)),
        dim(""),
        dim("change"),
    ];
    let head = form.row(pen.words(), titles, "95 % interval".into());
    pen.put(row(area, 0), head.dim("verdict"));
    let rows = compared.rows();
    let room = usize::from(area.height - 1);
    let chosen = |row: &Row<'_>| matches!(row, Row::Figure(_, at) if *at == compared.selected);
    let focus = rows.iter().position(chosen).unwrap_or(0);
    let top = (focus + 1).saturating_sub(room);
    for (y, content) in (1u16..).zip(rows.into_iter().skip(top).take(room)) {
        let place = row(area, y);
        let words = words(pen, &content, form);
        pen.put(place, words);
        if let Row::Figure(_, at) = content {
            view.lines.push((Pane::Bench, place, at));
        }
        if chosen(&content) && model.focus == Pane::Bench {
            pen.select(place);
        }
    }
}

fn words<'t>(pen: &Pen<'t>, row: &Row<'_>, form: Form) -> Words<'t> {
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
        Row::Figure(figure, _) => figure_words(pen, figure, form),
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

fn figure_words<'t>(pen: &Pen<'t>, figure: &Figure, form: Form) -> Words<'t> {
    let none = pen.glyphs().none;
    let value = |v: Option<f64>| match v {
        Some(v) => (format!("{v:.1}"), Role::Text),
        None => (none.to_string(), Role::Dim),
    };
    let percent = |share: f64| format!("{:+.1} %", share * 100.0);
    let cells = [
        (figure.name.to_string(), Role::Text),
        value(figure.a),
        value(figure.b),
        (figure.unit.to_string(), Role::Dim),
        (figure.change.map_or(String::new(), percent), Role::Strong),
    ];
    let interval = match (figure.low, figure.high) {
        (Some(low), Some(high)) => format!("{} to {}", percent(low), percent(high)),
        _ => String::new(),
    };
    let words = form.row(pen.words(), cells, interval);
    let role = match figure.verdict {
        Verdict::Better => Role::Good,
        Verdict::Worse => Role::Bad,
        Verdict::NoDifferenceShown => Role::Text,
        Verdict::TooFew => Role::Dim,
    };
    words.role(role, figure.verdict.words())
}
