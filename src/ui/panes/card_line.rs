//! One line a card: memory as a bar, then figures in fixed widths. What finds no room leaves, memory last.

use super::super::pen::{Pen, cells, first_columns, from_column};
use super::super::words::{Words, width};
use super::cards::{self, BUSY, FREE, GAP, NAME, POWER, Row, TEMP, USED};
use ratatui::layout::Rect;

/// The least bar that says something.
const BAR: usize = 8;
/// The longest bar.
const LONG_BAR: usize = 40;
/// Cells of a state that is no trouble, and the most that a trouble gets.
const STATE: (usize, usize) = (5, 12);

/// Which columns a row of a width has, the same for all cards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Columns {
    /// Digits of the highest index.
    index: usize,
    name: usize,
    bar: usize,
    free: bool,
    busy: bool,
    temp: bool,
    power: bool,
    state: bool,
}

impl Columns {
    /// Chooses the columns for rows of `room` cells.
    pub fn new(rows: &[Row<'_>], room: usize) -> Self {
        let longest = rows.iter().map(|row| width(&row.card.name)).max();
        let index = cards::digits(rows);
        // Sign, index and memory are always there.
        let mut left = room.saturating_sub(index + 2 + USED + GAP + BAR);
        let mut take = |cells: usize| {
            let fits = left >= cells + GAP;
            if fits {
                left -= cells + GAP;
            }
            fits
        };
        let states = rows.iter().filter(|row| row.answers());
        let state = states
            .flat_map(|row| row.state().into_iter().next())
            .map(|(_, word)| width(&word))
            .max()
            .unwrap_or(0)
            .clamp(STATE.0, STATE.1);
        let free = take(FREE);
        let busy = take(BUSY);
        let name = longest.unwrap_or(0).min(NAME);
        let named = take(name);
        let state = take(state);
        let temp = take(TEMP);
        let power = take(POWER);
        Columns {
            index,
            name: if named { name } else { 0 },
            bar: (BAR + left).min(LONG_BAR),
            free,
            busy,
            temp,
            power,
            state,
        }
    }

    /// Cells of everything that is said about memory.
    fn memory(self) -> usize {
        self.bar + GAP + USED + if self.free { GAP + FREE } else { 0 }
    }
}

/// Draws one card into the first row of `area`.
pub fn draw(pen: &mut Pen<'_>, area: Rect, row: &Row<'_>, columns: Columns) {
    let head = cards::head(pen, row.card, columns.index, columns.name);
    let wide = cells(head.width());
    pen.put(area, head);
    let rest = from_column(area, wide);
    if !row.answers() {
        let state = cards::state(pen, row);
        pen.put(rest, state);
        return;
    }
    let figures = figures(pen, row, columns);
    pen.put(from_column(rest, cells(columns.bar + GAP)), figures);
    match row.card.memory.known() {
        Some(memory) => {
            let bar = first_columns(rest, cells(columns.bar));
            cards::bar(pen, bar, row, *memory);
        }
        None => {
            let why = row.card.memory.absent();
            let why = why.map_or_else(String::new, ToString::to_string);
            let words = pen.words().dim(format!("memory: {why}"));
            pen.put(first_columns(rest, cells(columns.memory())), words);
        }
    }
}

fn figures<'t>(pen: &Pen<'t>, row: &Row<'_>, columns: Columns) -> Words<'t> {
    let card = row.card;
    let parts = [
        (columns.busy, cards::busy(pen, card)),
        (columns.temp, cards::temperature(pen, card)),
        (columns.power, cards::power(pen, card)),
        (columns.state, cards::state(pen, row)),
    ];
    let mut words = cards::memory_figures(pen, row, columns.free);
    for (_, part) in parts.into_iter().filter(|(wanted, _)| *wanted) {
        words = words.gap(GAP).and(part);
    }
    words
}
