//! Bars in eighths of a cell, and small charts of columns.

use super::super::pen::{Pen, from_column};
use crate::theme::Role;
use ratatui::layout::Rect;
use ratatui::style::Style;

/// Draws a bar over the first row of `area`: `share` of 1 in `fill`, the rest as track. Where there is no ground for the track, or no
/// eighths, signs of the set stand for it.
pub fn bar(pen: &mut Pen<'_>, area: Rect, share: f64, fill: Style) {
    if area.is_empty() {
        return;
    }
    track(pen, area);
    let steps = pen.glyphs().eighths.len();
    let full = usize::from(area.width) * steps;
    let share = if share.is_finite() {
        share.clamp(0.0, 1.0)
    } else {
        0.0
    };
    let mut parts = (share * full as f64).round() as usize;
    // Something is never nothing, and not quite all is never all.
    if share > 0.0 {
        parts = parts.max(1);
    }
    if share < 1.0 {
        parts = parts.min(full.saturating_sub(1));
    }
    let (whole, rest) = (parts / steps, parts % steps);
    let signs = pen.glyphs().eighths;
    for i in 0..whole {
        if let (Some(sign), Ok(i)) = (signs.last(), u16::try_from(i)) {
            pen.sign(area.x + i, area.y, sign, fill);
        }
    }
    if rest > 0
        && let (Some(sign), Ok(i)) = (signs.get(rest - 1), u16::try_from(whole))
    {
        pen.sign(area.x + i, area.y, sign, fill);
    }
}

fn track(pen: &mut Pen<'_>, area: Rect) {
    let style = pen.style(Role::BarTrack);
    let sign = if style.bg.is_some() {
        " "
    } else {
        pen.glyphs().track
    };
    let style = if style.bg.is_some() {
        style
    } else {
        pen.style(Role::Dim)
    };
    for x in area.x..area.right() {
        pen.sign(x, area.y, sign, style);
    }
}

/// Parts of a bar, in one unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segments {
    /// From the left, solid.
    pub first: u64,
    /// After it, by a sign of its own.
    pub second: u64,
    /// At the right end, by a sign of its own.
    pub last: u64,
    pub total: u64,
}

/// Memory of one card in the first row of `area`: the first two parts in the card's hue, what the driver keeps at the right end, free
/// between. Each is told by its sign where there are no colours.
pub fn memory_bar(pen: &mut Pen<'_>, area: Rect, parts: Segments, hue: Style) {
    if area.is_empty() {
        return;
    }
    let share = |n: u64| match parts.total {
        0 => 0.0,
        total => (n as f64 / total as f64).clamp(0.0, 1.0),
    };
    let wide = f64::from(area.width);
    let end = |n: u64| (share(n) * wide).round() as u16;
    let used = parts.first.saturating_add(parts.second);
    let kept = end(parts.last).min(area.width - end(used));
    // The second begins at a whole cell; its sign has no eighths, and less than half a cell of it is not shown.
    if end(used) > end(parts.first) && share(parts.second) * wide >= 0.5 {
        bar(pen, area, f64::from(end(parts.first)) / wide, hue);
        let sign = pen.glyphs().second;
        for x in end(parts.first)..end(used) {
            pen.sign(area.x + x, area.y, sign, hue);
        }
    } else {
        bar(pen, area, share(used), hue);
    }
    let (sign, style) = (pen.glyphs().reserved, pen.style(Role::Reserved));
    let dim = pen.style(Role::Dim);
    for x in area.width - kept..area.width {
        pen.sign(area.x + x, area.y, sign, dim);
    }
    pen.tint(from_column(area, area.width - kept), style);
}

/// Columns of `values` to the right end of `area`, each up to `high`; older ones fall off at the left.
pub fn columns(pen: &mut Pen<'_>, area: Rect, values: &[f64], high: f64, style: Style) {
    let levels = pen.glyphs().levels;
    let first = values.len().saturating_sub(usize::from(area.width));
    let shown = values.get(first..).unwrap_or_default();
    let start = area
        .right()
        .saturating_sub(u16::try_from(shown.len()).unwrap_or(0));
    for (x, value) in (start..area.right()).zip(shown) {
        if !value.is_finite() || high <= 0.0 {
            continue;
        }
        let share = (value / high).clamp(0.0, 1.0);
        let level = (share * levels.len() as f64).ceil() as usize;
        if let Some(sign) = level.checked_sub(1).and_then(|at| levels.get(at)) {
            pen.sign(x, area.y, sign, style);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::widgets::paper::Paper;

    fn drawn(share: f64) -> String {
        let mut paper = Paper::new(8, 1);
        let fill = Style::new();
        paper.draw(|pen, area| bar(pen, area, share, fill));
        paper.row(0)
    }

    #[test]
    fn something_is_never_nothing_and_almost_all_is_never_all() {
        assert_eq!(drawn(0.0), "        ");
        assert_eq!(drawn(0.5), "████    ");
        assert_eq!(drawn(0.53), "████▎   ");
        assert_eq!(drawn(1.0), "████████");
        assert_eq!(drawn(0.000_1), "▏       ");
        assert_eq!(drawn(0.999_9), "███████▉");
        assert_eq!(drawn(f64::NAN), "        ");
        assert_eq!(drawn(7.0), "████████");
    }

    #[test]
    fn the_parts_of_memory_are_told_by_their_signs() {
        let drawn = |first, second, last| {
            let mut paper = Paper::new(10, 1);
            let parts = Segments {
                first,
                second,
                last,
                total: 100,
            };
            paper.draw(|pen, area| memory_bar(pen, area, parts, Style::new()));
            paper.row(0)
        };
        assert_eq!(drawn(40, 20, 10), "████▒▒   ╱");
        assert_eq!(drawn(0, 30, 0), "▒▒▒       ");
        assert_eq!(drawn(45, 0, 0), "████▌     ");
        assert_eq!(drawn(45, 2, 0), "████▊     ", "too little for a sign");
        assert_eq!(drawn(44, 4, 0), "████▊     ", "too little for a sign");
        assert_eq!(
            drawn(90, 0, 30),
            "█████████╱",
            "what is used is never hidden"
        );
        assert_eq!(drawn(70, 60, 30), "███████▒▒▒");
    }

    #[test]
    fn columns_stand_at_the_right_and_old_ones_fall_off() {
        let mut paper = Paper::new(4, 1);
        let style = Style::new();
        paper.draw(|pen, area| columns(pen, area, &[4.0, 8.0], 8.0, style));
        assert_eq!(paper.row(0), "  ▄█");
        paper.draw(|pen, area| columns(pen, area, &[1.0, 8.0, 8.0, 0.0, 4.0], 8.0, style));
        assert_eq!(paper.row(0), "██ ▄");
    }
}
