//! What the rows of cards are made of: the sign and number, the state in words, memory as a bar in segments and in figures.

use super::super::pen::Pen;
use super::super::widgets::bar::{Segments, memory_bar};
use super::super::words::{Words, cut, right, safe};
use crate::clock::Now;
use crate::gpu::{Card, Held, Memory, Trouble};
use crate::reading::{Absent, Reading};
use crate::theme::Role;
use crate::units::{GIB, gib};
use ratatui::layout::Rect;

/// Free memory below this is worth a look.
const TIGHT: u64 = 2 * GIB as u64;

/// Cells of figures.
pub const FREE: usize = 9;
pub const BUSY: usize = 10;
pub const TEMP: usize = 5;
pub const POWER: usize = 9;
pub const NAME: usize = 18;
pub const USED: usize = 15;
pub const GAP: usize = 2;

/// A card as the pane shows it.
#[derive(Debug)]
pub struct Row<'a> {
    pub card: &'a Card,
    pub now: Now,
    /// Who holds its memory; `None`: it cannot be told.
    pub held: Option<Held>,
    /// It has the least free memory of the server's cards, and is not the only one.
    pub tightest: bool,
    /// Bytes used when it was last read, of one that cannot be read.
    pub last: Option<u64>,
}

impl Row<'_> {
    /// The state of the card in words that fit a column, the worst first.
    pub fn state(&self) -> Vec<(Role, String)> {
        let troubles = self.card.troubles();
        if !troubles.is_empty() {
            let role = |trouble: &Trouble| match trouble.is_bad() {
                true => Role::Bad,
                false => Role::Warn,
            };
            return troubles
                .iter()
                .map(|trouble| (role(trouble), safe(trouble.word(self.now))))
                .collect();
        }
        let (role, word) = match &self.card.memory {
            Reading::Absent(Absent::Pending) => (Role::Dim, "wait"),
            Reading::Absent(_) => (Role::Warn, "?"),
            Reading::Value(memory) if memory.free < TIGHT => (Role::Warn, "tight"),
            Reading::Stale { .. } | Reading::Value(_) => (Role::Good, "ok"),
        };
        vec![(role, word.to_string())]
    }

    /// Whether the card answers at all.
    pub fn answers(&self) -> bool {
        self.card.state == crate::gpu::CardState::Ok
    }
}

/// The state of a card on a line.
pub fn state<'t>(pen: &Pen<'t>, row: &Row<'_>) -> Words<'t> {
    let parts = row.state();
    pen.words().join(
        parts
            .into_iter()
            .map(|(role, word)| pen.words().role(role, word)),
        1,
    )
}

/// The card's sign, its number in `digits` cells, and its name in `name` cells where there is room for one.
pub fn head<'t>(pen: &Pen<'t>, card: &Card, digits: usize, name: usize) -> Words<'t> {
    let ellipsis = pen.glyphs().ellipsis;
    let words = pen
        .words()
        .styled(pen.theme.card(card.index), pen.glyphs().card)
        .role(
            Role::Strong,
            right(&card.index.to_string(), digits, ellipsis),
        )
        .gap(1);
    if name == 0 {
        return words;
    }
    words
        .text(cut(&safe(card.name.clone()), name, ellipsis))
        .padded_to(digits + 2 + name)
        .gap(GAP)
}

/// Digits of the highest number.
pub fn digits(rows: &[Row<'_>]) -> usize {
    match rows.iter().any(|row| row.card.index > 9) {
        true => 2,
        false => 1,
    }
}

/// Used of all, and what is free.
pub fn memory_figures<'t>(pen: &Pen<'t>, row: &Row<'_>, free: bool) -> Words<'t> {
    let ellipsis = pen.glyphs().ellipsis;
    let memory = &row.card.memory;
    let Some(known) = memory.known() else {
        return pen.words().gap(USED + if free { GAP + FREE } else { 0 });
    };
    // Stale figures recede; they are the last that were seen.
    let role = if memory.fresh().is_some() {
        Role::Strong
    } else {
        Role::Dim
    };
    let words = pen
        .words()
        .role(role, right(&gib(known.used), 4, ellipsis))
        .dim(format!("/{} GiB", gib(known.total)))
        .padded_to(USED);
    if !free {
        return words;
    }
    let role = if known.free < TIGHT {
        Role::Warn
    } else if row.tightest {
        Role::Strong
    } else {
        Role::Text
    };
    words
        .gap(GAP)
        .role(role, right(&gib(known.free), 4, ellipsis))
        .dim(" free")
}

/// Share of time, heat and power, each in its fixed width.
pub fn busy<'t>(pen: &Pen<'t>, card: &Card) -> Words<'t> {
    let busy = card.busy_pct.known().map(u32::to_string);
    pen.words().dim("busy ").text(fixed(pen, busy, 3)).dim(" %")
}

pub fn temperature<'t>(pen: &Pen<'t>, card: &Card) -> Words<'t> {
    let temp = card.temp_c.known().map(u32::to_string);
    pen.words()
        .text(fixed(pen, temp, 2))
        .gap(1)
        .dim(pen.glyphs().celsius)
}

pub fn power<'t>(pen: &Pen<'t>, card: &Card) -> Words<'t> {
    let watts = |reading: &Reading<u32>| reading.known().map(|mw| ((mw + 500) / 1000).to_string());
    let words = pen.words().text(fixed(pen, watts(&card.power_mw), 3));
    match watts(&card.power_limit_mw) {
        Some(limit) => words.dim(format!("/{limit} W")),
        None => words.dim(" W"),
    }
    .padded_to(POWER)
}

/// Right-aligned in so many cells; a sign where there is no value.
pub fn fixed(pen: &Pen<'_>, text: Option<String>, cells: usize) -> String {
    let text = text.unwrap_or_else(|| pen.glyphs().none.to_string());
    right(&text, cells, pen.glyphs().ellipsis)
}

/// The bar of a card's memory: the server's, others', free, the driver's own.
pub fn bar(pen: &mut Pen<'_>, area: Rect, row: &Row<'_>, memory: Memory) {
    let hue = pen.theme.card(row.card.index);
    let held = row.held.unwrap_or(Held {
        server: memory.used,
        others: 0,
    });
    let segments = Segments {
        first: held.server,
        second: held.others,
        last: memory.reserved,
        total: memory.total,
    };
    memory_bar(pen, area, segments, hue);
}
