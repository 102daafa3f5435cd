//! The cards: a row each, their memory over the session, and what the KV pool holds.

use super::super::pen::{
    Pen, cells, first_columns, first_rows, from_column, from_row, last_rows, row,
};
use super::super::view::ViewState;
use super::super::words::{Words, wrap};
use super::card_line::{self, Columns};
use super::card_lines::{self, Widths};
use super::cards::Row;
use super::{memory, served};
use crate::app::model::{Model, Pane};
use crate::clock::hm;
use crate::keymap::{Action, Context};
use crate::theme::Role;
use crate::units::gib;
use ratatui::layout::Rect;

/// More cards than this stand in two columns where the pane is wide.
const ONE_COLUMN: usize = 4;
/// Cells that a pane needs for two columns.
const TWO_COLUMNS: u16 = 96;
/// Rows of the least chart, and of one that gives rows to the lines below it.
const CHART: u16 = 6;
const GOOD_CHART: u16 = 7;
/// Cells of a pane's frame, left and right.
const FRAME: u16 = 4;

/// The time window and the keys that change it.
pub fn facts<'t>(pen: &Pen<'t>, model: &Model) -> Words<'t> {
    let mut words = pen.words();
    if model.frozen.is_some() {
        words = words.role(Role::Warn, "frozen").gap(2);
    }
    words = words.dim(window(model));
    let key = |action| pen.keymap.key_for(Context::Gpus, action);
    if model.focus == Pane::Gpus
        && let (Some(shorter), Some(longer)) =
            (key(Action::WindowShorter), key(Action::WindowLonger))
    {
        words = words.gap(1).role(Role::Key, format!("{shorter} {longer}"));
    }
    words
}

/// The part of the history on screen, in words.
fn window(model: &Model) -> String {
    if model.window.overlaid {
        return "two starts".to_string();
    }
    let length = match model.window.length_s {
        None => return "whole session".to_string(),
        Some(s) if s < 3600 => format!("{} min", s / 60),
        Some(s) => format!("{} h", s / 3600),
    };
    match model.window.end {
        Some(end) => format!("{length} to {}", hm(end.saturating_mul(1000))),
        None => length,
    }
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
        let lines = served::rows(area.width);
        served::draw(pen, last_rows(from_row(area, y + 2), lines), model);
        return;
    }
    let rows = rows(model);
    let list = List::new(pen, area, &rows);
    let used = list.draw(pen, area, &rows, model, view);
    let rest = from_row(area, used);
    // Lines below the chart take what it does not need; without room for it they take all.
    let below = match rest.height {
        0..CHART => rest.height,
        more => more.saturating_sub(GOOD_CHART),
    };
    let below = below.min(served::rows(area.width));
    let chart = first_rows(rest, rest.height - below);
    if chart.height >= CHART {
        memory::draw(pen, chart, model, view);
    }
    served::draw(pen, last_rows(rest, below), model);
}

/// The cards with what the pane says of each.
fn rows(model: &Model) -> Vec<Row<'_>> {
    let gpus = &model.rig.gpus;
    let tightest = gpus.tightest(model.cards()).map(|(card, _)| card.index);
    gpus.cards
        .iter()
        .enumerate()
        .map(|(place, card)| Row {
            card,
            now: model.now,
            held: model.rig.held(card),
            tightest: tightest == Some(card.index) && gpus.cards.len() > 1,
            last: match card.memory.known() {
                Some(memory) => Some(memory.used),
                None => model
                    .history
                    .last_known(place)
                    .map(|mib| u64::from(mib) << 20),
            },
        })
        .collect()
}

/// How the cards stand: in one or two lanes, each with one line or two.
#[derive(Debug, Clone, Copy)]
struct List {
    /// Cells of a lane.
    lane: u16,
    lines: u16,
    per_lane: usize,
}

impl List {
    /// Two lines a card where that leaves room for the chart, or where the pane has the whole width of the screen; else one.
    fn new(pen: &Pen<'_>, area: Rect, rows: &[Row<'_>]) -> Self {
        let two = rows.len() > ONE_COLUMN && area.width >= TWO_COLUMNS;
        let lanes: u16 = if two { 2 } else { 1 };
        let per_lane = rows.len().div_ceil(usize::from(lanes)).max(1);
        let alone = area.width + FRAME >= pen.buf.area.width;
        let fits = cells(2 * per_lane) + CHART <= area.height;
        List {
            lane: area.width / lanes - (lanes - 1),
            lines: if fits || alone { 2 } else { 1 },
            per_lane,
        }
    }

    /// Draws the cards; gives the number of rows used.
    fn draw(
        self,
        pen: &mut Pen<'_>,
        area: Rect,
        rows: &[Row<'_>],
        model: &Model,
        view: &mut ViewState,
    ) -> u16 {
        let columns = Columns::new(rows, usize::from(self.lane));
        let widths = Widths::new(rows, usize::from(self.lane));
        let shown = self.per_lane.min(usize::from(area.height / self.lines));
        // The selected card stays in sight.
        let selected = model.gpu_scroll % self.per_lane;
        let top = (selected + 1).saturating_sub(shown);
        for (index, row) in rows.iter().enumerate() {
            let (column, line) = (index / self.per_lane, index % self.per_lane);
            let Some(y) = line.checked_sub(top).filter(|y| *y < shown) else {
                continue;
            };
            let place = from_row(area, cells(y) * self.lines);
            let place = from_column(place, cells(column) * (self.lane + 2));
            let place = first_rows(first_columns(place, self.lane), self.lines);
            match self.lines {
                1 => card_line::draw(pen, place, row, columns),
                _ => card_lines::draw(pen, place, row, widths),
            }
            if model.focus == Pane::Gpus && index == model.gpu_scroll && rows.len() > 1 {
                let style = pen.style(Role::Selection);
                pen.tint(first_columns(super::super::pen::row(place, 0), 3), style);
            }
            view.lines.push((Pane::Gpus, place, index));
        }
        cells(shown) * self.lines
    }
}
