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

/// Memory of one card: used in the card's hue from the left, what the driver keeps at the right end, free between.
pub fn memory_bar(pen: &mut Pen<'_>, area: Rect, used: u64, reserved: u64, total: u64, hue: Style) {
    if area.is_empty() {
        return;
    }
    let of = |bytes: u64| {
        if total == 0 {
            0.0
        } else {
            bytes as f64 / total as f64
        }
    };
    bar(pen, area, of(used), hue);
    let kept = (of(reserved).clamp(0.0, 1.0) * f64::from(area.width)).round() as u16;
    if kept > 0 {
        let style = pen.style(Role::Reserved);
        pen.tint(from_column(area, area.width - kept), style);
    }
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
    fn columns_stand_at_the_right_and_old_ones_fall_off() {
        let mut paper = Paper::new(4, 1);
        let style = Style::new();
        paper.draw(|pen, area| columns(pen, area, &[4.0, 8.0], 8.0, style));
        assert_eq!(paper.row(0), "  ▄█");
        paper.draw(|pen, area| columns(pen, area, &[1.0, 8.0, 8.0, 0.0, 4.0], 8.0, style));
        assert_eq!(paper.row(0), "██ ▄");
    }
}
