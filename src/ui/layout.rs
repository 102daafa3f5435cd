//! Where everything stands, as a function of the size, the focus and the zoom.
//!
//! ```text
//! header
//! ╭1 Tasks─╮╭2 GPUs─────────╮      header                   header
//! │        ││               │      1 Tasks …                ╭2 GPUs ────────╮
//! ╰────────╯╰───────────────╯      ╭2 GPUs ────────╮        │               │
//! ╭4 Config╮╭3 Benchmark────╮      │               │        │               │
//! │        ││               │      ╰───────────────╯        │               │
//! ╰────────╯╰───────────────╯      3 Benchmark …            │               │
//! message                          4 Config …               ╰───────────────╯
//! footer                           message, footer          message, footer
//!        wide                           narrow                    zoomed
//! ```

use crate::app::model::Pane;
use ratatui::layout::Rect;

/// The least size that has room for a pane.
pub const LEAST: (u16, u16) = (60, 15);
/// From here on all four panes are open.
const WIDE: (u16, u16) = (110, 30);

/// The places of a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Layout {
    /// Too small for anything but a notice.
    Small(Rect),
    Full {
        header: Rect,
        /// In the order of drawing; a zoomed pane stands alone.
        panes: Vec<(Pane, Rect, bool)>,
        /// Everything between header and message.
        body: Rect,
        message: Rect,
        footer: Rect,
    },
}

/// Lays out `area`. A pane's flag says whether it is open (a frame) or one line.
pub fn layout(area: Rect, focus: Pane, zoomed: bool) -> Layout {
    if area.width < LEAST.0 || area.height < LEAST.1 {
        return Layout::Small(area);
    }
    let line = |y: u16| Rect {
        y,
        height: 1,
        ..area
    };
    let body = Rect {
        y: area.y + 1,
        height: area.height - 3,
        ..area
    };
    let panes = if zoomed {
        vec![(focus, body, true)]
    } else if area.width >= WIDE.0 && area.height >= WIDE.1 {
        wide(body)
    } else {
        narrow(body, focus)
    };
    Layout::Full {
        header: line(area.y),
        panes,
        body,
        message: line(area.bottom() - 2),
        footer: line(area.bottom() - 1),
    }
}

fn wide(body: Rect) -> Vec<(Pane, Rect, bool)> {
    let left = (body.width * 29 / 100).clamp(36, 52);
    let top = body.height * 53 / 100;
    let place = |right: bool, lower: bool| Rect {
        x: if right { body.x + left } else { body.x },
        width: if right { body.width - left } else { left },
        y: if lower { body.y + top } else { body.y },
        height: if lower { body.height - top } else { top },
    };
    vec![
        (Pane::Tasks, place(false, false), true),
        (Pane::Gpus, place(true, false), true),
        (Pane::Bench, place(true, true), true),
        (Pane::Config, place(false, true), true),
    ]
}

fn narrow(body: Rect, focus: Pane) -> Vec<(Pane, Rect, bool)> {
    let mut y = body.y;
    Pane::ALL
        .into_iter()
        .map(|pane| {
            let open = pane == focus;
            let height = if open { body.height - 3 } else { 1 };
            let place = Rect { y, height, ..body };
            y += height;
            (pane, place, open)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn panes(width: u16, height: u16, focus: Pane, zoomed: bool) -> Vec<(Pane, Rect, bool)> {
        match layout(Rect::new(0, 0, width, height), focus, zoomed) {
            Layout::Full { panes, .. } => panes,
            Layout::Small(_) => Vec::new(),
        }
    }

    #[test]
    fn panes_fill_the_body_and_never_overlap() {
        for width in 0..=200 {
            for height in 0..=60 {
                for focus in Pane::ALL {
                    for zoomed in [false, true] {
                        let all = panes(width, height, focus, zoomed);
                        if all.is_empty() {
                            assert!(width < LEAST.0 || height < LEAST.1);
                            continue;
                        }
                        let sum: u32 = all.iter().map(|(_, r, _)| r.area()).sum();
                        assert_eq!(sum, u32::from(width) * u32::from(height - 3));
                        let frame = Rect::new(0, 1, width, height - 3);
                        for (i, (_, a, _)) in all.iter().enumerate() {
                            assert_eq!(a.intersection(frame), *a);
                            for (_, b, _) in all.iter().skip(i + 1) {
                                assert!(!a.intersects(*b), "{width}x{height}");
                            }
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn the_designed_sizes_have_their_form() {
        assert!(panes(160, 48, Pane::Tasks, false).iter().all(|p| p.2));
        assert!(panes(120, 36, Pane::Tasks, false).iter().all(|p| p.2));
        let narrow = panes(80, 24, Pane::Gpus, false);
        let open: Vec<_> = narrow.iter().filter(|p| p.2).collect();
        assert_eq!(open.len(), 1);
        assert_eq!((open[0].0, open[0].1.height), (Pane::Gpus, 18));
        assert_eq!(panes(80, 24, Pane::Bench, true).len(), 1);
    }
}
