//! Two lines a card: what it is and how it is, then its memory by who holds it.
//!
//! ```text
//! ▌0 H200 NVL  busy  87 %  61 °C  512/700 W  1755 MHz  ok
//!    ████████████▒▒░░╱╱  118.2/141.0 GiB  22.2 free  server 116.9  others   1.3  driver 0.6  PCIe 1.2/0.4 GB/s
//! ```

use super::super::pen::{Pen, cells, first_columns, from_column, row as line};
use super::super::words::{Words, right, width};
use super::cards::{self, BUSY, FREE, GAP, NAME, POWER, Row, TEMP, USED};
use crate::gpu::Card;
use crate::theme::Role;
use crate::units::gib;
use ratatui::layout::Rect;

/// Cells of the clock, `1755 MHz`.
const CLOCK: usize = 8;
/// Cells that the state has at least.
const STATE: usize = 11;
/// The least and the longest bar.
const BAR: (usize, usize) = (12, 48);
/// Cells of `server 118.2`, `driver 0.6`, `PCIe  1.2/ 0.4 GB/s`.
const HOLDER: usize = 12;
const DRIVER: usize = 10;
const PCIE: usize = 19;

/// Which figures rows of a width have, the same for all cards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Widths {
    index: usize,
    name: usize,
    temp: bool,
    power: bool,
    clock: bool,
    bar: usize,
    free: bool,
    holders: bool,
    driver: bool,
    pcie: bool,
}

impl Widths {
    /// Chooses for rows of `room` cells.
    pub fn new(rows: &[Row<'_>], room: usize) -> Self {
        let index = cards::digits(rows);
        let longest = rows.iter().map(|row| width(&row.card.name)).max();
        let any = |has: fn(&Card) -> bool| rows.iter().any(|row| has(row.card));
        let take = |left: &mut usize, wanted: bool, cells: usize| {
            let fits = wanted && *left >= cells + GAP;
            if fits {
                *left -= cells + GAP;
            }
            fits
        };
        let mut above = room.saturating_sub(index + 2 + BUSY + GAP + STATE);
        let temp = take(&mut above, true, TEMP);
        let power = take(&mut above, true, POWER);
        let name = longest.unwrap_or(0).min(NAME);
        let named = take(&mut above, true, name);
        let clocks = any(|card| card.detail.sm_mhz.known().is_some());
        let clock = take(&mut above, clocks, CLOCK);
        let mut below = room.saturating_sub(index + 2 + BAR.0 + GAP + USED);
        let free = take(&mut below, true, FREE);
        let held = rows.iter().any(|row| row.held.is_some());
        let holders = take(&mut below, held, 2 * HOLDER + GAP);
        let reserved = any(|card| card.memory.known().is_some_and(|m| m.reserved > 0));
        let driver = take(&mut below, reserved, DRIVER);
        let pcie = take(&mut below, any(|card| traffic(card).is_some()), PCIE);
        Widths {
            index,
            name: if named { name } else { 0 },
            temp,
            power,
            clock,
            bar: (BAR.0 + below).min(BAR.1),
            free,
            holders,
            driver,
            pcie,
        }
    }
}

/// Draws one card into the first two rows of `area`.
pub fn draw(pen: &mut Pen<'_>, area: Rect, row: &Row<'_>, widths: Widths) {
    let head = cards::head(pen, row.card, widths.index, widths.name);
    let wide = cells(head.width());
    pen.put(line(area, 0), head);
    let rest = from_column(line(area, 0), wide);
    if !row.answers() {
        let mut words = cards::state(pen, row);
        if let Some(last) = row.last {
            words = words.gap(GAP).dim(format!("last: {} GiB used", gib(last)));
        }
        pen.put(rest, words);
        return;
    }
    let above = above(pen, row, widths);
    pen.put(rest, above);
    let below = from_column(line(area, 1), cells(widths.index + 2));
    let Some(memory) = row.card.memory.known() else {
        let why = row.card.memory.absent();
        let why = why.map_or_else(String::new, ToString::to_string);
        let words = pen.words().dim(format!("memory: {why}"));
        pen.put(below, words);
        return;
    };
    let bar = first_columns(below, cells(widths.bar));
    cards::bar(pen, bar, row, *memory);
    let figures = figures(pen, row, widths);
    pen.put(from_column(below, cells(widths.bar + GAP)), figures);
}

fn above<'t>(pen: &Pen<'t>, row: &Row<'_>, widths: Widths) -> Words<'t> {
    let card = row.card;
    let mut words = cards::busy(pen, card);
    if widths.temp {
        words = words.gap(GAP).and(cards::temperature(pen, card));
    }
    if widths.power {
        words = words.gap(GAP).and(cards::power(pen, card));
    }
    if widths.clock {
        let clock = card.detail.sm_mhz.known().map(u32::to_string);
        let clock = cards::fixed(pen, clock, 4);
        words = words.gap(GAP).text(clock).dim(" MHz");
    }
    words.gap(GAP).and(cards::state(pen, row))
}

fn figures<'t>(pen: &Pen<'t>, row: &Row<'_>, widths: Widths) -> Words<'t> {
    let ellipsis = pen.glyphs().ellipsis;
    let bytes = |n: Option<u64>, cells: usize| {
        let text = n.map_or_else(|| pen.glyphs().none.to_string(), gib);
        right(&text, cells, ellipsis)
    };
    let mut words = cards::memory_figures(pen, row, widths.free);
    if widths.holders {
        let (server, others) = (
            row.held.map(|held| held.server),
            row.held.map(|held| held.others),
        );
        words = words.gap(GAP).dim("server ").text(bytes(server, 5));
        words = words.gap(GAP).dim("others ").text(bytes(others, 5));
    }
    if widths.driver {
        let reserved = row.card.memory.known().map(|memory| memory.reserved);
        words = words
            .gap(GAP)
            .dim("driver ")
            .role(Role::Dim, bytes(reserved, 3));
    }
    if widths.pcie {
        let traffic = traffic(row.card).map(|(tx, rx)| {
            let gb = |bytes: u64| format!("{:.1}", bytes as f64 / 1e9);
            format!(
                "{}/{}",
                right(&gb(tx), 4, ellipsis),
                right(&gb(rx), 4, ellipsis)
            )
        });
        let none = || right(pen.glyphs().none, 9, ellipsis);
        words = words
            .gap(GAP)
            .dim("PCIe ")
            .text(traffic.unwrap_or_else(none))
            .dim(" GB/s");
    }
    words
}

/// Bytes a second out of the card and into it.
fn traffic(card: &Card) -> Option<(u64, u64)> {
    let pcie = card.detail.pcie.known()?;
    Some((*pcie.tx_bytes_s.known()?, *pcie.rx_bytes_s.known()?))
}
