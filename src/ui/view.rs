//! What belongs to the view alone: where things were drawn, how far lists are scrolled, charts that did not change.

use super::widgets::time_chart::Span;
use crate::app::history::History;
use crate::app::model::Pane;
use ratatui::layout::{Position, Rect};

/// What lies under the mouse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hit {
    pub pane: Pane,
    /// The line of the pane's list.
    pub line: Option<usize>,
}

/// State of the view between two frames.
#[derive(Debug, Default)]
pub struct ViewState {
    pub(super) panes: Vec<(Pane, Rect)>,
    /// Where the lines of lists stand in the frame drawn last.
    pub(super) lines: Vec<(Pane, Rect, usize)>,
    /// First row of the task list on screen.
    pub(super) tasks_top: usize,
    /// The topmost dialog is on screen: it was not on one that is too small for it.
    pub(super) asked: bool,
    memory: Memory,
}

impl ViewState {
    /// What the cell at column `x`, row `y` of the frame drawn last belongs to.
    pub fn hit(&self, x: u16, y: u16) -> Option<Hit> {
        let at = Position { x, y };
        let (pane, _) = self.panes.iter().find(|(_, area)| area.contains(at))?;
        let line = self
            .lines
            .iter()
            .find(|(of, place, _)| of == pane && place.contains(at))
            .map(|(_, _, line)| *line);
        Some(Hit { pane: *pane, line })
    }

    /// Whether the frame drawn last shows the topmost dialog.
    pub fn asked(&self) -> bool {
        self.asked
    }

    /// Forgets what the last frame drew.
    pub(super) fn begin(&mut self) {
        self.panes.clear();
        self.lines.clear();
        self.asked = false;
    }

    /// The memory of every card in GiB, packed into columns of dots; made anew only when something of it changed.
    pub(super) fn memory(
        &mut self,
        history: &History,
        from: i64,
        to: i64,
        columns: usize,
    ) -> &[Vec<Span>] {
        let key = (history.extent(), history.cards(), from, to, columns);
        if self.memory.key != Some(key) {
            let gib = |mib: u32| f64::from(mib) / 1024.0;
            self.memory.spans = (0..history.cards())
                .map(|card| {
                    history
                        .columns(card, from, to, columns)
                        .into_iter()
                        .map(|span| span.map(|(low, high)| (gib(low), gib(high))))
                        .collect()
                })
                .collect();
            self.memory.key = Some(key);
        }
        &self.memory.spans
    }
}

/// Extent of the history, its cards, the window, columns.
type Key = (Option<(i64, i64)>, usize, i64, i64, usize);

#[derive(Debug, Default)]
struct Memory {
    key: Option<Key>,
    spans: Vec<Vec<Span>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packed_chart_follows_its_history() {
        let mut history = History::default();
        let mut view = ViewState::default();
        history.append(0, vec![Some(1024)]);
        assert_eq!(view.memory(&history, 0, 10, 10).len(), 1);
        history.append(5, vec![Some(2048), Some(1024)]);
        let spans = view.memory(&history, 0, 10, 10);
        assert_eq!(spans.len(), 2);
        assert_eq!(spans[0][5], Some((2.0, 2.0)));
        history.append(9, vec![None, Some(1024)]);
        assert_eq!(view.memory(&history, 0, 10, 10)[0][9], None);
    }
}
