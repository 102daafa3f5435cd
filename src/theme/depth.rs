//! How many colours the terminal has, and the nearest one it can show.

use ratatui::style::Color;

/// Colours that may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    /// None (`NO_COLOR`, `TERM=dumb`); bold, dim and reversed remain.
    None,
    /// The terminal's own 16.
    Ansi16,
    /// xterm's 256.
    Ansi256,
    /// 24 bits.
    True,
}

impl Depth {
    /// Reads `none`, `16`, `256`, `truecolor`; `auto` and everything else is `None`.
    pub fn from_setting(text: &str) -> Option<Self> {
        match text {
            "none" | "off" | "never" => Some(Depth::None),
            "16" => Some(Depth::Ansi16),
            "256" => Some(Depth::Ansi256),
            "truecolor" | "24bit" => Some(Depth::True),
            _ => None,
        }
    }

    /// The depth for an environment: `NO_COLOR` (no-color.org: set and not empty), then `COLORTERM`, then `TERM`.
    pub fn detect(env: &dyn Fn(&str) -> Option<String>) -> Self {
        let get = |name: &str| env(name).unwrap_or_default().to_ascii_lowercase();
        let term = get("TERM");
        if !get("NO_COLOR").is_empty() || term == "dumb" {
            return Depth::None;
        }
        let colorterm = get("COLORTERM");
        if colorterm.contains("truecolor") || colorterm.contains("24bit") {
            return Depth::True;
        }
        const TRUE: [&str; 7] = [
            "direct",
            "kitty",
            "alacritty",
            "foot",
            "wezterm",
            "ghostty",
            "contour",
        ];
        if TRUE.iter().any(|name| term.contains(name)) || env("WT_SESSION").is_some() {
            Depth::True
        } else if term.contains("256") {
            Depth::Ansi256
        } else {
            Depth::Ansi16
        }
    }

    /// The nearest colour that can be shown; `Color::Reset` where there is none.
    pub fn nearest(self, color: Color) -> Color {
        match (self, color) {
            (_, Color::Reset) | (Depth::None, _) => Color::Reset,
            (Depth::True, color) => color,
            (Depth::Ansi256, Color::Rgb(r, g, b)) => Color::Indexed(to_256([r, g, b])),
            (Depth::Ansi16, Color::Rgb(r, g, b)) => named(to_16([r, g, b])),
            (Depth::Ansi16, Color::Indexed(n)) if n >= 16 => named(to_16(rgb_of(n))),
            (_, color) => color,
        }
    }
}

/// The sixteen colours in the order of their numbers.
const NAMED: [Color; 16] = [
    Color::Black,
    Color::Red,
    Color::Green,
    Color::Yellow,
    Color::Blue,
    Color::Magenta,
    Color::Cyan,
    Color::Gray,
    Color::DarkGray,
    Color::LightRed,
    Color::LightGreen,
    Color::LightYellow,
    Color::LightBlue,
    Color::LightMagenta,
    Color::LightCyan,
    Color::White,
];

/// Colour number `n` of 16.
pub(super) fn named(n: u8) -> Color {
    NAMED.get(usize::from(n)).copied().unwrap_or(Color::Reset)
}

/// xterm's default values for the 16; terminals change them, so these only serve to find the nearest.
const BASE: [[u8; 3]; 16] = [
    [0, 0, 0],
    [205, 0, 0],
    [0, 205, 0],
    [205, 205, 0],
    [0, 0, 238],
    [205, 0, 205],
    [0, 205, 205],
    [229, 229, 229],
    [127, 127, 127],
    [255, 0, 0],
    [0, 255, 0],
    [255, 255, 0],
    [92, 92, 255],
    [255, 0, 255],
    [0, 255, 255],
    [255, 255, 255],
];

/// xterm's value of colour `n`: 16 named, a cube of 6 x 6 x 6, 24 greys.
fn rgb_of(n: u8) -> [u8; 3] {
    match n {
        0..=15 => BASE.get(usize::from(n)).copied().unwrap_or_default(),
        16..=231 => {
            let n = n - 16;
            [n / 36, n / 6 % 6, n % 6].map(cube)
        }
        232..=255 => [8 + 10 * (n - 232); 3],
    }
}

fn cube(step: u8) -> u8 {
    if step == 0 { 0 } else { 55 + 40 * step }
}

/// Distance with the eye's weights (the "redmean" approximation of compuphase.com).
fn distance(a: [u8; 3], b: [u8; 3]) -> i64 {
    let [r, g, bl] = [0, 1, 2].map(|i: usize| {
        let part = |c: [u8; 3]| i64::from(c.get(i).copied().unwrap_or_default());
        part(a) - part(b)
    });
    let mean = (i64::from(a[0]) + i64::from(b[0])) / 2;
    (((512 + mean) * r * r) >> 8) + 4 * g * g + (((767 - mean) * bl * bl) >> 8)
}

/// The nearest of the cube and the greys; the 16 named ones are left out, since nobody knows their look.
fn to_256(rgb: [u8; 3]) -> u8 {
    (16..=255u8)
        .min_by_key(|n| distance(rgb, rgb_of(*n)))
        .unwrap_or(15)
}

/// The one of the 16 that says the same: a colour keeps its hue (a pale green must not become yellow, which is another state),
/// a grey stays a grey.
fn to_16(rgb: [u8; 3]) -> u8 {
    let [r, g, b] = rgb.map(f64::from);
    let max = r.max(g).max(b);
    let spread = max - r.min(g).min(b);
    if spread <= 48.0 {
        return [0, 7, 8, 15]
            .into_iter()
            .min_by_key(|n| distance(rgb, rgb_of(*n)))
            .unwrap_or(7);
    }
    let sextant = if max <= r {
        (g - b) / spread
    } else if max <= g {
        2.0 + (b - r) / spread
    } else {
        4.0 + (r - g) / spread
    };
    let plain = match (sextant * 60.0).rem_euclid(360.0) {
        20.0..70.0 => 3,
        70.0..160.0 => 2,
        160.0..200.0 => 6,
        200.0..255.0 => 4,
        255.0..335.0 => 5,
        _ => 1,
    };
    let luminance = 0.299 * r + 0.587 * g + 0.114 * b;
    if luminance > 128.0 { plain + 8 } else { plain }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn depth(vars: &[(&str, &str)]) -> Depth {
        Depth::detect(&|name| {
            vars.iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| (*value).to_string())
        })
    }

    #[test]
    fn the_environment_decides_in_order() {
        assert_eq!(depth(&[("TERM", "xterm-256color")]), Depth::Ansi256);
        assert_eq!(
            depth(&[("TERM", "xterm-256color"), ("COLORTERM", "truecolor")]),
            Depth::True
        );
        assert_eq!(
            depth(&[("NO_COLOR", "1"), ("COLORTERM", "truecolor")]),
            Depth::None
        );
        assert_eq!(depth(&[("NO_COLOR", ""), ("TERM", "linux")]), Depth::Ansi16);
        assert_eq!(depth(&[("TERM", "dumb")]), Depth::None);
        assert_eq!(depth(&[("TERM", "xterm-kitty")]), Depth::True);
        assert_eq!(depth(&[]), Depth::Ansi16);
    }

    #[test]
    fn colours_above_the_depth_become_the_nearest() {
        let blue = Color::Rgb(122, 162, 255);
        assert_eq!(Depth::True.nearest(blue), blue);
        assert_eq!(Depth::Ansi256.nearest(blue), Color::Indexed(111));
        assert_eq!(Depth::Ansi16.nearest(blue), Color::LightBlue);
        assert_eq!(
            Depth::Ansi16.nearest(Color::Rgb(158, 206, 106)),
            Color::LightGreen
        );
        assert_eq!(
            Depth::Ansi16.nearest(Color::Rgb(250, 179, 135)),
            Color::LightYellow
        );
        assert_eq!(Depth::Ansi16.nearest(Color::Indexed(236)), Color::Black);
        assert_eq!(Depth::None.nearest(blue), Color::Reset);
        assert_eq!(Depth::None.nearest(Color::Red), Color::Reset);
        assert_eq!(Depth::Ansi16.nearest(Color::Red), Color::Red);
    }
}
