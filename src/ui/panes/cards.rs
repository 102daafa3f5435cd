//! One row a card: memory as a bar, then figures in fixed widths. What finds no room leaves, memory last.

use super::super::pen::{Pen, cells, first_columns, from_column};
use super::super::widgets::bar::memory_bar;
use super::super::words::{Words, cut, right, width};
use crate::clock::hm;
use crate::gpu::{Card, CardState, Memory};
use crate::reading::{Absent, Reading};
use crate::theme::Role;
use crate::units::{GIB, gib};
use ratatui::layout::Rect;

/// Free memory below this is worth a look.
const TIGHT: u64 = 2 * GIB as u64;

/// Columns beside the bar, in the order in which they find room: name, cells.
const FREE: usize = 9;
const BUSY: usize = 10;
const TEMP: usize = 5;
const POWER: usize = 9;
const NAME: usize = 18;
const STATE: usize = 5;
const USED: usize = 15;
/// The least bar that says something.
const BAR: usize = 8;
/// The longest bar.
const LONG_BAR: usize = 40;
const GAP: usize = 2;

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
    pub fn new(cards: &[Card], room: usize) -> Self {
        let longest = cards
            .iter()
            .map(|card| width(&card.name))
            .max()
            .unwrap_or(0);
        // Sign, index and memory are always there.
        let index = if cards.iter().any(|card| card.index > 9) {
            2
        } else {
            1
        };
        let mut left = room.saturating_sub(index + 2 + USED + GAP + BAR);
        let mut take = |cells: usize| {
            let fits = left >= cells + GAP;
            if fits {
                left -= cells + GAP;
            }
            fits
        };
        let free = take(FREE);
        let busy = take(BUSY);
        let name = longest.min(NAME);
        let named = take(name);
        let temp = take(TEMP);
        let power = take(POWER);
        let state = take(STATE);
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
}

impl Columns {
    /// Cells of everything that is said about memory.
    fn memory(self) -> usize {
        self.bar + GAP + USED + if self.free { GAP + FREE } else { 0 }
    }
}

/// Draws one card into the first row of `area`.
pub fn draw(pen: &mut Pen<'_>, area: Rect, card: &Card, columns: Columns, tightest: bool) {
    let hue = pen.theme.card(card.index);
    let ellipsis = pen.glyphs().ellipsis;
    let sign = pen.glyphs().card;
    let mut head = pen
        .words()
        .styled(hue, sign)
        .role(
            Role::Strong,
            right(&card.index.to_string(), columns.index, ellipsis),
        )
        .gap(1);
    if columns.name > 0 {
        head = head
            .text(cut(
                &super::super::words::safe(card.name.clone()),
                columns.name,
                ellipsis,
            ))
            .padded_to(columns.index + 2 + columns.name)
            .gap(GAP);
    }
    let used = pen.put(area, head.clone());
    let rest = from_column(area, used.max(cells(head.width())));
    if let Some(why) = lost(card) {
        let words = pen
            .words()
            .role(Role::Bad, format!("{} {why}", pen.glyphs().failed));
        pen.put(rest, words);
        return;
    }
    let figures = figures(pen, card, columns, tightest);
    pen.put(from_column(rest, cells(columns.bar + GAP)), figures);
    let bar = first_columns(rest, cells(columns.bar));
    match card.memory.known() {
        Some(memory) => memory_bar(pen, bar, memory.used, memory.reserved, memory.total, hue),
        None => {
            let why = card
                .memory
                .absent()
                .map_or_else(String::new, ToString::to_string);
            let words = pen.words().dim(format!("memory: {why}"));
            pen.put(first_columns(rest, cells(columns.memory())), words);
        }
    }
}

/// Why a card cannot be read at all.
fn lost(card: &Card) -> Option<String> {
    match &card.state {
        CardState::Ok => None,
        CardState::Lost { since_unix_ms } => Some(format!("lost since {}", hm(*since_unix_ms))),
        CardState::Unknown(why) => Some(why.clone()),
    }
}

fn figures<'t>(pen: &Pen<'t>, card: &Card, columns: Columns, tightest: bool) -> Words<'t> {
    let mut words = memory_figures(pen, &card.memory, columns.free, tightest);
    let ellipsis = pen.glyphs().ellipsis;
    let fixed = |text: Option<String>, cells: usize| {
        right(
            &text.unwrap_or_else(|| pen.glyphs().none.to_string()),
            cells,
            ellipsis,
        )
    };
    if columns.busy {
        let busy = card.busy_pct.known().map(u32::to_string);
        words = words.gap(GAP).dim("busy ").text(fixed(busy, 3)).dim(" %");
    }
    if columns.temp {
        let temp = card.temp_c.known().map(u32::to_string);
        words = words
            .gap(GAP)
            .text(fixed(temp, 2))
            .gap(1)
            .dim(pen.glyphs().celsius);
    }
    if columns.power {
        let watts =
            |reading: &Reading<u32>| reading.known().map(|mw| ((mw + 500) / 1000).to_string());
        let power = fixed(watts(&card.power_mw), 3);
        words = words.gap(GAP).text(power);
        words = match watts(&card.power_limit_mw) {
            Some(limit) => words.dim(format!("/{limit} W")),
            None => words.dim(" W"),
        };
    }
    if columns.state {
        words = words.gap(GAP).and(state(pen, card));
    }
    words
}

fn memory_figures<'t>(
    pen: &Pen<'t>,
    memory: &Reading<Memory>,
    free: bool,
    tightest: bool,
) -> Words<'t> {
    let ellipsis = pen.glyphs().ellipsis;
    let Some(known) = memory.known() else {
        return pen.words().gap(USED + if free { GAP + FREE } else { 0 });
    };
    // Stale figures recede; they are the last that were seen.
    let role = if memory.fresh().is_some() {
        Role::Strong
    } else {
        Role::Dim
    };
    let mut words = pen
        .words()
        .role(role, right(&gib(known.used), 4, ellipsis))
        .dim(format!("/{} GiB", gib(known.total)))
        .padded_to(USED);
    if free {
        let role = if known.free < TIGHT {
            Role::Warn
        } else if tightest {
            Role::Strong
        } else {
            Role::Text
        };
        words = words
            .gap(GAP)
            .role(role, right(&gib(known.free), 4, ellipsis))
            .dim(" free");
    }
    words
}

/// The state of a card in a word.
fn state<'t>(pen: &Pen<'t>, card: &Card) -> Words<'t> {
    match &card.memory {
        Reading::Stale { age_ms, .. } => pen
            .words()
            .role(Role::Warn, format!("{} s old", age_ms / 1000)),
        Reading::Absent(Absent::Pending) => pen.words().dim("wait"),
        Reading::Absent(_) => pen.words().role(Role::Warn, "?"),
        Reading::Value(memory) if memory.free < TIGHT => pen.words().role(Role::Warn, "tight"),
        Reading::Value(_) => pen.words().role(Role::Good, "ok"),
    }
}
