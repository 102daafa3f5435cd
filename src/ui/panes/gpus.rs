//! The cards: a row each, their memory over the session, and what the KV pool holds.

use super::super::pen::{
    Pen, cells, first_columns, first_rows, from_column, from_row, last_rows, row,
};
use super::super::view::ViewState;
use super::super::words::{Words, wrap};
use super::cards::{self, Columns};
use super::memory;
use crate::app::model::{Activity, Model, Pane};
use crate::keymap::{Action, Context};
use crate::ramp::Leg;
use crate::theme::Role;
use crate::units::{gib, mm_ss, thousands};
use ratatui::layout::Rect;

/// More cards than this stand in two columns where the pane is wide.
const ONE_COLUMN: usize = 4;
/// Cells that a pane needs for two columns.
const TWO_COLUMNS: u16 = 96;
/// Rows of the least chart.
const CHART: u16 = 6;

/// The time window and the keys that change it.
pub fn facts<'t>(pen: &Pen<'t>, model: &Model) -> Words<'t> {
    let mut words = pen.words();
    if model.frozen.is_some() {
        words = words.role(Role::Warn, "frozen").gap(2);
    }
    let window = match model.window_s {
        None => "whole session".to_string(),
        Some(s) if s < 3600 => format!("{} min", s / 60),
        Some(s) => format!("{} h", s / 3600),
    };
    words = words.dim(window);
    let key = |action| pen.keymap.key_for(Context::Gpus, action);
    if model.focus == Pane::Gpus
        && let (Some(shorter), Some(longer)) =
            (key(Action::WindowShorter), key(Action::WindowLonger))
    {
        words = words.gap(1).role(Role::Key, format!("{shorter} {longer}"));
    }
    words
}

/// The line of a pane that is not open: the tightest card.
pub fn summary<'t>(pen: &Pen<'t>, model: &Model) -> Words<'t> {
    let gpus = &model.rig.gpus;
    if let Some(fault) = &gpus.fault {
        return pen.words().dim(fault.clone());
    }
    let Some((card, free)) = gpus.tightest(model.cards()) else {
        return pen.words().dim("no readings yet");
    };
    let mut words = pen.words().dim(format!("tightest card {} ", card.index));
    if let Some(memory) = card.memory.fresh() {
        words = words
            .styled(pen.theme.card(card.index), pen.glyphs().card)
            .strong(gib(memory.used))
            .dim(format!("/{} GiB", gib(memory.total)))
            .gap(2);
    }
    words.text(gib(free)).dim(" GiB free")
}

pub fn draw(pen: &mut Pen<'_>, area: Rect, model: &Model, view: &mut ViewState) {
    let gpus = &model.rig.gpus;
    if gpus.cards.is_empty() {
        let text = gpus
            .fault
            .clone()
            .unwrap_or_else(|| "Looking for cards …".into());
        let mut y = 0;
        for line in wrap(&text, usize::from(area.width)) {
            let words = pen.words().text(line);
            pen.put(row(area, y), words);
            y += 1;
        }
        if gpus.fault.is_some() {
            let words = pen
                .words()
                .dim("Memory of the cards is unknown here; everything else works.");
            pen.put(row(area, y), words);
        }
        pool_lines(pen, last_rows(from_row(area, y + 2), POOL), model);
        return;
    }
    let used = rows(pen, area, model, view);
    let rest = from_row(area, used);
    let without_chart = rest.height < CHART && rest.height >= POOL;
    let pool = if rest.height >= CHART + POOL || without_chart {
        POOL
    } else {
        0
    };
    let chart = first_rows(rest, rest.height - pool);
    if chart.height >= CHART {
        memory::draw(pen, chart, model, view);
    }
    pool_lines(pen, last_rows(rest, pool), model);
}

/// The rows of the cards; gives the number of rows used.
fn rows(pen: &mut Pen<'_>, area: Rect, model: &Model, view: &mut ViewState) -> u16 {
    let list = &model.rig.gpus.cards;
    let two = list.len() > ONE_COLUMN && area.width >= TWO_COLUMNS;
    let lanes: u16 = if two { 2 } else { 1 };
    let lane = area.width / lanes - (lanes - 1);
    let columns = Columns::new(list, usize::from(lane));
    let per_lane = list.len().div_ceil(usize::from(lanes));
    let shown = per_lane.min(usize::from(area.height));
    // The selected card stays in sight.
    let selected = model.gpu_scroll % per_lane.max(1);
    let top = (selected + 1).saturating_sub(shown);
    let tightest = model
        .rig
        .gpus
        .tightest(model.cards())
        .map(|(card, _)| card.index);
    for (index, card) in list.iter().enumerate() {
        let (column, line) = (index / per_lane.max(1), index % per_lane.max(1));
        let Some(y) = line.checked_sub(top).filter(|y| *y < shown) else {
            continue;
        };
        let place = row(area, cells(y));
        let place = first_columns(from_column(place, cells(column) * (lane + 2)), lane);
        cards::draw(
            pen,
            place,
            card,
            columns,
            tightest == Some(card.index) && list.len() > 1,
        );
        if model.focus == Pane::Gpus && index == model.gpu_scroll && list.len() > 1 {
            let style = pen.style(Role::Selection);
            pen.tint(first_columns(place, 3), style);
        }
        view.lines.push((Pane::Gpus, place.y, index));
    }
    cells(shown)
}

/// Rows under the chart.
const POOL: u16 = 3;

/// What the pool holds, what bounds a request, and what the context does to memory here; while a restart runs, how far it is.
fn pool_lines(pen: &mut Pen<'_>, area: Rect, model: &Model) {
    if area.is_empty() {
        return;
    }
    let restarts = model
        .running
        .as_ref()
        .is_some_and(|r| r.activity == Activity::Restart);
    if !restarts && !model.rig.up() {
        // What the pool held is history.
        return;
    }
    let lines = if restarts {
        restart_lines(pen, model)
    } else {
        served_lines(pen, model)
    };
    for (y, words) in (0u16..).zip(lines) {
        pen.put(row(area, y), words);
    }
}

fn restart_lines<'t>(pen: &Pen<'t>, model: &Model) -> Vec<Words<'t>> {
    let Some(restart) = &model.restart else {
        return Vec::new();
    };
    let mut line = pen
        .words()
        .role(Role::Accent, format!("{} ", pen.glyphs().running));
    if restart.leg == Leg::Back {
        line = line
            .role(
                Role::Bad,
                format!("{} failed", thousands(restart.asked.context)),
            )
            .dim(", going back to ");
    } else if let Some(from) = restart.from {
        line = line
            .text(thousands(from))
            .dim(format!(" {} ", pen.glyphs().arrow));
    }
    line = line
        .strong(thousands(restart.to))
        .gap(2)
        .role(Role::Accent, restart.step.words());
    if let Some(phase) = restart.phase {
        line = line
            .dim(format!(" {} ", pen.glyphs().between))
            .text(phase.words());
    }
    if let Some(percent) = restart.percent {
        line = line.text(format!(" {percent} %"));
    }
    line = line.gap(2).dim(mm_ss(model.now.since(restart.since)));
    let mut lines = vec![line];
    if !restart.held.is_empty() {
        let held: Vec<String> = restart
            .held
            .iter()
            .map(|(card, bytes)| format!("card {card} {} GiB", gib(*bytes)))
            .collect();
        lines.push(
            pen.words()
                .dim("still held: ")
                .role(Role::Warn, held.join(", ")),
        );
    }
    if let Some(last) = model.log.back() {
        lines.push(pen.words().dim(last.clone()));
    }
    lines
}

fn served_lines<'t>(pen: &Pen<'t>, model: &Model) -> Vec<Words<'t>> {
    let Some(facts) = &model.rig.facts else {
        return Vec::new();
    };
    let context = &facts.context;
    let load = &model.rig.load;
    let g = pen.glyphs();
    let mut now = Vec::new();
    if let Some(tokens) = context.pool_tokens.known() {
        let words = pen.words().dim("KV pool ").text(thousands(*tokens));
        now.push(words.dim(" tokens"));
    }
    if let Some(used) = load.kv_use.known() {
        let percent = format!("{:.0} %", used * 100.0);
        now.push(pen.words().dim("used ").text(percent));
    }
    if let (Some(capacity), Some(served)) = (context.capacity(), model.served()) {
        let text = format!("{capacity:.1} {} {}", g.times, thousands(served));
        now.push(pen.words().dim("capacity ").strong(text));
    }
    for (name, value) in [("running ", &load.running), ("waiting ", &load.waiting)] {
        if let Some(n) = value.known() {
            now.push(pen.words().dim(name).text(n.to_string()));
        }
    }
    if let Some(accept) = load.accept_length.known() {
        now.push(pen.words().dim("accept ").text(format!("{accept:.1}")));
    }
    let show = |n: Option<&u64>| n.map_or(g.none.to_string(), |n| thousands(*n));
    // A server that does not tell its flag was started by a service that knows it.
    let started = model.rig.config.as_ref().map(|config| &config.context);
    let bounds = [
        ("flag", context.configured.known().or(started)),
        ("model", context.model_limit.known()),
        ("pool", context.pool_tokens.known()),
        ("slot", context.per_slot.known()),
    ];
    let bounds: Vec<String> = bounds
        .iter()
        .map(|(name, n)| format!("{name} {}", show(*n)))
        .collect();
    let line = pen
        .words()
        .dim("effective ")
        .strong(show(context.effective.known()))
        .gap(2)
        .dim(bounds.join(&format!(" {} ", g.between)));
    let note = match facts.kind.memory_grows_with_context() {
        Some(false) => {
            "The pool is taken at start: memory stays, capacity falls as the context grows."
        }
        Some(true) => "The KV cache is taken at start for the whole context: memory grows with it.",
        None => "This engine does not say what the context costs.",
    };
    let mut lines = vec![line, pen.words().dim(note)];
    if !now.is_empty() {
        lines.insert(0, pen.words().join(now, 3));
    }
    lines
}
