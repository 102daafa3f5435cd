//! Measured points as a table, and throughput as bars.

use super::super::pen::{Pen, first_columns, from_column, row};
use super::super::view::ViewState;
use super::super::widgets::bar::bar;
use super::super::widgets::table::{Column, line, titles, total};
use super::super::words::Words;
use crate::app::bench::view::Row;
use crate::app::model::{Model, Pane};
use crate::bench::plan::{Cell, PlanKind};
use crate::bench::point::{Point, TokensSource, Validity};
use crate::theme::Role;
use crate::units::{duration, gib, short_count, thousands};
use ratatui::layout::Rect;

const LONG: [Column; 7] = [
    Column::figures("input", 7),
    Column::figures("TTFT", 7),
    Column::figures("decode", 6),
    Column::figures("vs short", 8),
    Column::figures("free low", 8),
    Column::figures("n", 3),
    Column::text("validity", 8),
];

const MANY: [Column; 7] = [
    Column::figures("C", 4),
    Column::figures("tok/s", 8),
    Column::figures("decode", 7),
    Column::figures("TTFT", 7),
    Column::figures("n", 4),
    Column::figures("fails", 5),
    Column::text("validity", 8),
];

/// Draws titles and rows; the selected row stays in sight.
pub fn draw(pen: &mut Pen<'_>, area: Rect, model: &Model, kind: PlanKind, view: &mut ViewState) {
    if area.height == 0 {
        return;
    }
    let rows = model.bench.table(kind);
    let columns = match kind {
        PlanKind::Throughput => MANY,
        PlanKind::LongContext => LONG,
    };
    let head = titles(pen.words(), &columns);
    pen.put(row(area, 0), head);
    let room = usize::from(area.height - 1);
    let is_selected =
        |row: &Row<'_>| matches!(row, Row::Point { at, .. } if *at == model.bench.scroll);
    // While a run goes on its newest rows are in sight, else the selected one.
    let running = rows.iter().position(|r| matches!(r, Row::Running(..)));
    let focus = running.or_else(|| rows.iter().position(is_selected));
    let top = (focus.unwrap_or(0) + 1).saturating_sub(room);
    for (y, content) in (1u16..).zip(rows.into_iter().skip(top).take(room)) {
        let place = row(area, y);
        let selected = is_selected(&content);
        if let Row::Point { at, .. } = &content {
            view.lines.push((Pane::Bench, place, *at));
        }
        let words = words(pen, &columns, &content);
        pen.put(place, words);
        if selected && model.focus == Pane::Bench {
            pen.select(place);
        }
    }
}

fn words<'t>(pen: &Pen<'t>, columns: &[Column], content: &Row<'_>) -> Words<'t> {
    let after = usize::from(total(columns));
    match content {
        Row::Heading(name) => pen.words().dim("at ").strong(name.clone()),
        Row::Point { point, short, .. } => {
            let cells = match point.cell.kind {
                PlanKind::LongContext => long_cells(pen, point, *short),
                PlanKind::Throughput => many_cells(pen, point),
            };
            let reason = point
                .reasons
                .first()
                .map(|r| r.text.clone())
                .unwrap_or_default();
            line(pen.words(), columns, cells)
                .padded_to(after + 2)
                .dim(reason)
        }
        Row::Running(cell, done, of) => {
            let mut cells = vec![(String::new(), Role::Text); columns.len() - 1];
            cells.push(("running".into(), Role::Accent));
            if let Some(first) = cells.first_mut() {
                *first = (name(cell), Role::Text);
            }
            line(pen.words(), columns, cells)
                .padded_to(after + 2)
                .dim(format!("{done} of {of}"))
        }
        Row::Blocked(blocked) => {
            let before = after - usize::from(columns.last().map_or(0, |last| last.width));
            let needs = thousands(blocked.needs);
            let text = format!("{} needs {needs}", pen.glyphs().blocked);
            let mut words = line(pen.words(), columns, vec![(name(&blocked.cell), Role::Dim)])
                .padded_to(before)
                .role(Role::Warn, text);
            if let Some(to) = blocked.raise_to {
                let text = format!(" {} {}", pen.glyphs().arrow, thousands(to));
                words = words.dim(text);
            }
            words
        }
    }
}

fn name(cell: &Cell) -> String {
    match cell.kind {
        PlanKind::LongContext => thousands(cell.input),
        PlanKind::Throughput => cell.concurrency.to_string(),
    }
}

fn validity(point: &Point) -> (String, Role) {
    let role = match point.validity {
        Validity::Valid => Role::Good,
        Validity::Suspect => Role::Warn,
        Validity::Void => Role::Bad,
    };
    (point.validity.word().to_string(), role)
}

/// A speed, with `~` where tokens were only counted as chunks; none where the point does not count.
fn speed(pen: &Pen<'_>, point: &Point, value: Option<f64>) -> (String, Role) {
    let counts = point.validity != Validity::Void;
    match value.filter(|v| counts && v.is_finite()) {
        Some(value) if point.tokens_source == TokensSource::Chunks => {
            (format!("~{value:.1}"), Role::Text)
        }
        Some(value) => (format!("{value:.1}"), Role::Text),
        None => (pen.glyphs().none.to_string(), Role::Dim),
    }
}

fn ttft(pen: &Pen<'_>, point: &Point) -> (String, Role) {
    let counts = point.validity != Validity::Void;
    match point.ttft_ms.p50.filter(|_| counts) {
        Some(ms) => (duration(ms), Role::Text),
        None => (pen.glyphs().none.to_string(), Role::Dim),
    }
}

fn long_cells(pen: &Pen<'_>, point: &Point, short: Option<f64>) -> Vec<(String, Role)> {
    let vs = match (point.decode_tok_s.filter(|_| point.speed_counts()), short) {
        (Some(rate), Some(base)) if base > 0.0 && (rate - base).abs() > 1e-9 => {
            (format!("{:+.0} %", (rate / base - 1.0) * 100.0), Role::Text)
        }
        _ => (String::new(), Role::Dim),
    };
    let free = point.cards.iter().map(|card| card.free_min).min();
    vec![
        (thousands(point.cell.input), Role::Text),
        ttft(pen, point),
        speed(pen, point, point.decode_tok_s),
        vs,
        free.map_or((pen.glyphs().none.to_string(), Role::Dim), |bytes| {
            (format!("{} GiB", gib(bytes)), Role::Text)
        }),
        (point.ok.to_string(), Role::Text),
        validity(point),
    ]
}

fn many_cells(pen: &Pen<'_>, point: &Point) -> Vec<(String, Role)> {
    let fails = if point.failed > 0 {
        Role::Bad
    } else {
        Role::Text
    };
    vec![
        (point.cell.concurrency.to_string(), Role::Text),
        speed(pen, point, point.offered_output()),
        speed(pen, point, point.decode_tok_s),
        ttft(pen, point),
        (point.ok.to_string(), Role::Text),
        (point.failed.to_string(), fails),
        validity(point),
    ]
}

/// Throughput by concurrency as bars, beside the table of the long context: of the line measured last.
pub fn bars(pen: &mut Pen<'_>, area: Rect, model: &Model) {
    let all = model.bench.listed();
    let line = all
        .iter()
        .find(|one| one.shape.kind == PlanKind::Throughput);
    let Some((first, line)) = line.and_then(|one| Some((one.points.first()?, one))) else {
        return;
    };
    let context = line.shape.context.map_or(String::new(), |context| {
        format!(" at {}", thousands(context))
    });
    let head = pen.words().dim(format!(
        "{} in {} {} out{context}",
        short_count(first.cell.input),
        pen.glyphs().between,
        short_count(first.cell.output),
    ));
    pen.put(row(area, 0), head);
    let unit = pen.words().dim("tok/s");
    pen.put_right(row(area, 0), unit);
    let counts = Point::offered_output;
    let high = line
        .points
        .iter()
        .filter_map(|p| counts(p))
        .fold(1.0, f64::max);
    let room = usize::from(area.height.saturating_sub(1));
    for (y, point) in (1u16..).zip(spread(&line.points, room)) {
        let place = row(area, y);
        let label = pen.words().dim(format!("C {:>3}", point.cell.concurrency));
        pen.put(place, label);
        let value = match counts(point) {
            Some(rate) => pen.words().text(format!("{rate:.1}")),
            None => pen.words().dim(point.validity.word()),
        };
        pen.put_right(place, value);
        let fill = pen.style(Role::Rate);
        let room = from_column(place, 7);
        let wide = room.width.saturating_sub(8);
        bar(
            pen,
            first_columns(room, wide),
            counts(point).unwrap_or(0.0) / high,
            fill,
        );
    }
}

/// At most `room` of the points, first and last among them, evenly chosen.
fn spread<'p>(points: &[&'p Point], room: usize) -> Vec<&'p Point> {
    if points.len() <= room || room < 2 {
        return points.iter().copied().take(room).collect();
    }
    (0..room)
        .filter_map(|i| points.get(i * (points.len() - 1) / (room - 1)).copied())
        .collect()
}
