//! The benchmark: what runs now, what was measured, as charts and as a table.

use super::super::pen::{Pen, first_columns, first_rows, from_column, from_row, last_rows, row};
use super::super::view::ViewState;
use super::super::widgets::bar::{bar, columns};
use super::super::words::{Words, wrap};
use super::{bench_charts, bench_compare, bench_table};
use crate::app::bench::compared::name;
use crate::app::bench::{Run, Timeline, View, series};
use crate::app::model::Model;
use crate::bench::plan::{Cell, PlanKind};
use crate::keymap::{Action, Context};
use crate::theme::Role;
use crate::units::{duration, mm_ss, short_count, thousands};
use ratatui::layout::Rect;

/// Rows of charts at least.
const CHARTS: u16 = 7;
/// Rows of the table at least, with its titles.
const TABLE: u16 = 4;
/// Cells of the bars of throughput beside the table, and of a pane that has room for them.
const SIDE: u16 = 31;
const WITH_SIDE: u16 = 104;

/// What is being measured, for the border.
pub fn title<'t>(pen: &Pen<'t>, model: &Model) -> Words<'t> {
    if let Some(compared) = &model.bench.compared {
        let words = pen.words().gap(2).dim(name(&compared.a.row));
        let words = words.dim(format!(" {} ", pen.glyphs().arrow));
        return words.text(name(&compared.b.row));
    }
    let Some(run) = &model.bench.run else {
        return pen.words();
    };
    let mut words = pen.words().gap(2).dim(kind_words(run.plan.kind));
    if let Some(cell) = run.cell() {
        let between = pen.glyphs().between;
        words = words.dim(match cell.kind {
            PlanKind::Throughput => format!(
                " {between} {} in {between} {} out",
                thousands(cell.input),
                thousands(cell.output)
            ),
            PlanKind::LongContext => {
                format!(
                    " {between} {} out {between} C={}",
                    thousands(cell.output),
                    cell.concurrency
                )
            }
        });
    }
    words
}

fn kind_words(kind: PlanKind) -> &'static str {
    match kind {
        PlanKind::Throughput => "throughput",
        PlanKind::LongContext => "long context",
    }
}

/// The short name of a cell on its chart's axis.
fn cell_name(cell: &Cell) -> String {
    match cell.kind {
        PlanKind::Throughput => format!("C={}", cell.concurrency),
        PlanKind::LongContext => short_count(cell.input),
    }
}

/// How far the run is, for the border.
pub fn facts<'t>(pen: &Pen<'t>, model: &Model) -> Words<'t> {
    if let Some(checks) = &model.bench.checks {
        return pen
            .words()
            .dim(format!("checks {} of {}", checks.done, checks.of));
    }
    let mut words = pen.words();
    if model.frozen.is_some() {
        words = words.role(Role::Warn, "frozen").gap(2);
    }
    if model.bench.shown() == View::Live
        && let Some(s) = model.bench.window_s
    {
        words = words
            .dim(format!("last {}", mm_ss(s.saturating_mul(1_000))))
            .gap(2);
    }
    let Some(run) = &model.bench.run else {
        let n = model.bench.points.len();
        return match (&model.bench.compared, n) {
            (Some(compared), _) => words.and(simulated(pen, compared.found.simulated)),
            (None, 0) => words,
            (None, n) => words.dim(format!("{n} points{}", contexts(model))),
        };
    };
    if let Some(cell) = run.cell() {
        words = words.strong(cell_name(cell)).gap(2);
    }
    words = words.text(format!("{} of {}", run.index + 1, run.cells.len()));
    if let Some(left) = run.live.run_left_ms {
        words = words.gap(2).dim(format!("~{}", mm_ss(left)));
    }
    words
}

fn simulated<'t>(pen: &Pen<'t>, is: bool) -> Words<'t> {
    if is {
        pen.words().role(Role::Simulated, " SIMULATED ")
    } else {
        pen.words()
    }
}

/// The contexts at which the points on show were measured: they may be of several.
fn contexts(model: &Model) -> String {
    let mut all: Vec<u64> = model
        .bench
        .rows()
        .iter()
        .filter_map(|p| p.context)
        .collect();
    all.sort_unstable();
    all.dedup();
    let names: Vec<String> = all.iter().map(|c| thousands(*c)).collect();
    match names.as_slice() {
        [] => String::new(),
        [one] => format!(" at {one}"),
        [first, .., last] => format!(" at {first} … {last}"),
    }
}

/// The line of a pane that is not open.
pub fn summary<'t>(pen: &Pen<'t>, model: &Model) -> Words<'t> {
    if let Some(run) = &model.bench.run {
        let name = run.cell().map(cell_name).unwrap_or_default();
        return pen
            .words()
            .dim(format!("{} ", kind_words(run.plan.kind)))
            .strong(name)
            .gap(2)
            .and(rate(pen, run))
            .gap(2)
            .dim(format!("{} of {}", run.index + 1, run.cells.len()))
            .and(failures(pen, run));
    }
    if let Some(fault) = &model.bench.fault {
        return pen.words().role(Role::Bad, fault.clone());
    }
    match model.bench.points.last() {
        None => pen.words().dim("nothing measured yet"),
        Some(point) => {
            let words = pen
                .words()
                .dim(format!("last: {} ", kind_words(point.cell.kind)));
            let words = words.text(cell_name(&point.cell)).gap(2);
            match (point.speed_counts(), point.cell.kind) {
                (true, PlanKind::LongContext) => {
                    let rate = point.decode_tok_s.unwrap_or_default();
                    words.strong(format!("{rate:.1}")).dim(" tok/s decode")
                }
                (true, PlanKind::Throughput) if point.output_tok_s.is_some() => {
                    let rate = point.output_tok_s.unwrap_or_default();
                    words.strong(format!("{rate:.1}")).dim(" tok/s")
                }
                _ => words.role(Role::Warn, point.validity.word()),
            }
        }
    }
}

pub fn draw(pen: &mut Pen<'_>, area: Rect, model: &Model, view: &mut ViewState) {
    let mut area = area;
    for content in head(pen, model) {
        draw_head(pen, row(area, 0), content);
        area = from_row(area, 1);
    }
    let pane = &model.bench;
    if pane.points.is_empty() && pane.run.is_none() && pane.compared.is_none() {
        nothing_yet(pen, area, model);
        return;
    }
    let kind = pane.kind();
    // By the height alone, so that nothing moves when a row comes; the table scrolls.
    let charts = if area.height >= CHARTS + TABLE {
        (area.height * 11 / 20).max(CHARTS)
    } else {
        0
    };
    if charts > 0 {
        bench_charts::draw(pen, first_rows(area, charts), model, kind);
    }
    let below = last_rows(area, area.height - charts);
    if let Some(compared) = &pane.compared {
        bench_compare::draw(pen, below, model, compared, view);
        return;
    }
    let throughput = |one: &series::Series<'_>| one.shape.kind == PlanKind::Throughput;
    let side = kind == PlanKind::LongContext
        && area.width >= WITH_SIDE
        && pane.listed().iter().any(throughput);
    let wide = if side {
        below.width.saturating_sub(SIDE + 2)
    } else {
        below.width
    };
    bench_table::draw(pen, first_columns(below, wide), model, kind, view);
    if side {
        bench_table::bars(pen, from_column(below, wide + 2), model);
    }
}

/// A line above the charts.
enum Head<'t> {
    /// The small chart of the rate, then figures.
    Live(Vec<f64>, f64, Words<'t>),
    Words(Words<'t>),
    /// Share of 1, and words.
    Bar(f64, Words<'t>),
}

fn head<'t>(pen: &Pen<'t>, model: &Model) -> Vec<Head<'t>> {
    let mut lines = Vec::new();
    if let Some(checks) = &model.bench.checks {
        let share = checks.done as f64 / checks.of.max(1) as f64;
        lines.push(Head::Bar(
            share,
            pen.words().dim("check ").text(checks.name.clone()),
        ));
    }
    if let Some(run) = &model.bench.run {
        let words = live(pen, model, run);
        let line = model.bench.timeline.as_ref();
        // Where the charts show the rate over time, it needs no small one.
        match line.filter(|_| model.bench.shown() != View::Live) {
            Some(line) => {
                let rates = line.rates();
                let high = rates.iter().copied().fold(1.0, f64::max);
                lines.push(Head::Live(rates, high, words));
            }
            None => lines.push(Head::Words(words)),
        }
        if let Some(text) = line.and_then(Timeline::plateau) {
            lines.push(Head::Words(pen.words().role(Role::Warn, text)));
        }
        if let Some(failure) = run.failures.front() {
            let text = format!("{} {}", pen.glyphs().failed, failure.message);
            lines.push(Head::Words(pen.words().role(Role::Bad, text)));
        }
    }
    if let Some(fault) = &model.bench.fault {
        let text = format!("{} {fault}", pen.glyphs().failed);
        lines.push(Head::Words(pen.words().role(Role::Bad, text)));
    }
    lines
}

fn draw_head(pen: &mut Pen<'_>, place: Rect, content: Head<'_>) {
    match content {
        Head::Words(words) => {
            pen.put(place, words);
        }
        Head::Bar(share, words) => {
            let fill = pen.style(Role::BarFill);
            bar(pen, first_columns(place, 20), share, fill);
            pen.put(from_column(place, 22), words);
        }
        Head::Live(rates, high, words) => {
            let wide = if place.width >= 100 { 18 } else { 10 };
            let label = pen.words().dim("now");
            pen.put(first_columns(place, 3), label);
            let style = pen.style(Role::Rate);
            columns(
                pen,
                first_columns(from_column(place, 4), wide),
                &rates,
                high,
                style,
            );
            pen.put(from_column(place, wide + 5), words);
        }
    }
}

fn rate<'t>(pen: &Pen<'t>, run: &Run) -> Words<'t> {
    pen.words()
        .strong(format!("{:6.1}", run.live.output_tok_s))
        .dim(" tok/s")
}

fn failures<'t>(pen: &Pen<'t>, run: &Run) -> Words<'t> {
    let role = if run.live.failed > 0 {
        Role::Bad
    } else {
        Role::Good
    };
    pen.words()
        .gap(2)
        .dim("failures ")
        .role(role, run.live.failed.to_string())
}

/// The live figures, the important ones first: what finds no room is cut.
fn live<'t>(pen: &Pen<'t>, model: &Model, run: &Run) -> Words<'t> {
    let live = &run.live;
    let none = || pen.glyphs().none.to_string();
    let mut words = rate(pen, run)
        .gap(2)
        .dim("TTFT ")
        .text(format!("{:>7}", live.ttft_ms.map_or_else(none, duration)));
    words = words.and(failures(pen, run));
    words = words
        .gap(2)
        .dim("in flight ")
        .text(live.in_flight.to_string());
    if let Some(running) = model.rig.load.running.known() {
        words = words.gap(2).dim("running ").text(running.to_string());
    }
    if let Some(waiting) = model.rig.load.waiting.known() {
        words = words.gap(2).dim("waiting ").text(waiting.to_string());
    }
    if let Some(cached) = live.cached_share {
        let role = if cached > 0.01 {
            Role::Warn
        } else {
            Role::Text
        };
        words = words
            .gap(2)
            .dim("cached ")
            .role(role, format!("{:.1} %", cached * 100.0));
    }
    words
        .gap(2)
        .dim("client ")
        .text(format!("{:.0} %", live.client_cpu * 100.0))
}

/// What would fill the pane, and which key.
fn nothing_yet(pen: &mut Pen<'_>, area: Rect, model: &Model) {
    let mut lines = vec![pen.words().text("Nothing is measured yet.")];
    let place = match model.focus {
        crate::app::model::Pane::Bench => Context::Benchmark,
        _ => Context::Global,
    };
    if model.rig.up() {
        lines.push(pen.key(
            place,
            Action::RunBenchmark,
            "runs the selected task's benchmark, or the next open one",
        ));
    }
    for blocked in &model.bench.blocked {
        let text = format!(
            "{} {} in: needs {} tokens",
            pen.glyphs().blocked,
            thousands(blocked.cell.input),
            thousands(blocked.needs)
        );
        lines.push(pen.words().role(Role::Warn, text));
    }
    let text = "Throughput is drawn against concurrency, decode rate and time to first token against input length. Each point says whether it counts.";
    for line in wrap(text, usize::from(area.width).min(90)) {
        lines.push(pen.words().dim(line));
    }
    for (y, words) in (0u16..).zip(lines) {
        pen.put(row(area, y), words);
    }
}
