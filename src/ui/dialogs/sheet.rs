//! The form of every dialog: a question in the first line, what belongs to it, the keys in the last line.

use super::super::pen::{Pen, cells, first_rows, last_rows, row};
use super::super::widgets::frame::frame;
use super::super::words::{Words, wrap};
use crate::keymap::{Action, Context};
use crate::theme::Role;
use ratatui::layout::Rect;

/// A dialog in the making.
pub struct Sheet<'t> {
    pub title: String,
    pub facts: Words<'t>,
    pub body: Vec<Words<'t>>,
    pub keys: Vec<Words<'t>>,
    /// The line of the body that is selected.
    pub selected: Option<usize>,
    /// Inner width that is wanted at least.
    pub width: u16,
}

/// Blanks between keys.
const GAP: usize = 4;
/// Cells of border and blanks at both sides.
const SIDES: u16 = 4;
/// Rows besides the body: border, a blank above and below, the rule, the keys.
const ROWS: u16 = 6;

impl<'t> Sheet<'t> {
    pub fn new(pen: &Pen<'t>, title: &str) -> Self {
        Sheet {
            title: title.to_string(),
            facts: pen.words(),
            body: Vec::new(),
            keys: Vec::new(),
            selected: None,
            width: 44,
        }
    }

    /// Adds a line.
    pub fn line(&mut self, words: Words<'t>) {
        self.body.push(words);
    }

    /// Adds an empty line, unless one is there.
    pub fn space(&mut self, pen: &Pen<'t>) {
        if self.body.last().is_some_and(|last| !last.is_empty()) {
            self.body.push(pen.words());
        }
    }

    /// Adds text in lines of at most `cells`; `lead` stands before the first.
    pub fn text(&mut self, pen: &Pen<'t>, role: Role, lead: &str, text: &str, cells: usize) {
        let indent = super::super::words::width(lead);
        for (i, part) in wrap(text, cells.saturating_sub(indent))
            .into_iter()
            .enumerate()
        {
            let words = if i == 0 {
                pen.words().role(role, lead)
            } else {
                pen.words().gap(indent)
            };
            self.body.push(words.role(role, part));
        }
    }

    /// Adds a key, if there is one for the action.
    pub fn key(&mut self, pen: &Pen<'t>, context: Context, action: Action, words: &str) {
        let key = pen.key(context, action, words);
        if !key.is_empty() {
            self.keys.push(key);
        }
    }

    /// Rows that its body can have over `area`, with the keys that it has by now.
    pub fn rows(&self, pen: &Pen<'t>, area: Rect) -> usize {
        let room = usize::from(area.width.saturating_sub(SIDES + 2));
        let foot = key_lines(pen, self.keys.clone(), room).len();
        // Border and rule.
        usize::from(area.height).saturating_sub(foot + 3)
    }

    /// Draws the sheet in the middle of `area`. Gives the rows of its body.
    pub fn draw(self, pen: &mut Pen<'_>, area: Rect) -> Rect {
        let area = area.intersection(pen.buf.area);
        let room = usize::from(area.width.saturating_sub(SIDES + 2));
        let keys = key_lines(pen, self.keys, room);
        let longest = self
            .body
            .iter()
            .map(Words::width)
            .chain(keys.iter().map(Words::width))
            .max()
            .unwrap_or(0)
            .max(self.title.len() + self.facts.width() + 8);
        let width = cells(longest)
            .max(self.width)
            .saturating_add(SIDES)
            .min(area.width);
        let rows = cells(self.body.len()) + cells(keys.len().saturating_sub(1));
        let height = rows.saturating_add(ROWS).min(area.height);
        let place = Rect {
            x: area.x + (area.width - width) / 2,
            y: area.y + (area.height - height) / 2,
            width,
            height,
        };
        pen.clear(place);
        let title = pen.words().role(Role::Title, self.title);
        let mut facts = pen.words();
        for (text, style) in self.facts.fitted(usize::from(width / 2)) {
            facts = facts.styled(style, text);
        }
        let inner = frame(pen, place, true, title, facts);
        let foot = cells(keys.len()).min(inner.height);
        for (y, words) in (0..foot).zip(keys) {
            pen.put(row(last_rows(inner, foot), y), words);
        }
        self::rule(pen, place, inner, foot);
        let body = first_rows(inner, inner.height.saturating_sub(foot + 1));
        // With little room the blank first line goes, then the end of the body.
        let blank = u16::from(body.height > cells(self.body.len()));
        let body = Rect {
            y: body.y + blank,
            height: body.height - blank,
            ..body
        };
        for (y, (index, words)) in (0..body.height).zip(self.body.into_iter().enumerate()) {
            let place = row(body, y);
            pen.put(place, words);
            if self.selected == Some(index) {
                pen.select(place);
            }
        }
        body
    }
}

/// The line between the body and the keys.
fn rule(pen: &mut Pen<'_>, place: Rect, inner: Rect, foot: u16) {
    if foot == 0 || inner.height < foot + 2 {
        return;
    }
    let y = inner.bottom() - foot - 1;
    let (sign, style) = (pen.glyphs().borders.horizontal, pen.style(Role::Border));
    for x in place.x + 1..place.right() - 1 {
        pen.sign(x, y, sign, style);
    }
}

/// The keys in as many lines as they need: none is ever left out of a question.
fn key_lines<'t>(pen: &Pen<'t>, keys: Vec<Words<'t>>, room: usize) -> Vec<Words<'t>> {
    let mut lines: Vec<Words<'t>> = Vec::new();
    for key in keys {
        match lines.last_mut() {
            Some(line) if line.width() + GAP + key.width() <= room => {
                *line = line.clone().gap(GAP).and(key);
            }
            _ => lines.push(pen.words().and(key)),
        }
    }
    lines
}
