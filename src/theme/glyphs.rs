//! Signs on the screen, each with a twin for terminals that have ASCII only.

/// Which signs may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GlyphSet {
    Unicode,
    Ascii,
}

impl GlyphSet {
    /// Reads `unicode` or `ascii`; `auto` and everything else is `None`.
    pub fn from_setting(text: &str) -> Option<Self> {
        match text {
            "unicode" => Some(GlyphSet::Unicode),
            "ascii" => Some(GlyphSet::Ascii),
            _ => None,
        }
    }

    /// The set for an environment: the locale (`LC_ALL`, `LC_CTYPE`, `LANG`, the first that is set) must be UTF-8, and the Linux
    /// console has no font for it.
    pub fn detect(env: &dyn Fn(&str) -> Option<String>) -> Self {
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
            .iter()
            .filter_map(|name| env(name))
            .find(|value| !value.is_empty())
            .unwrap_or_default()
            .to_ascii_lowercase();
        let utf8 = locale.contains("utf-8") || locale.contains("utf8");
        if utf8 && env("TERM").as_deref() != Some("linux") {
            GlyphSet::Unicode
        } else {
            GlyphSet::Ascii
        }
    }
}

/// The characters of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Borders {
    pub top_left: &'static str,
    pub top_right: &'static str,
    pub bottom_left: &'static str,
    pub bottom_right: &'static str,
    pub horizontal: &'static str,
    pub vertical: &'static str,
}

/// One set of signs. Every sign is one cell wide, except where said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Glyphs {
    pub set: GlyphSet,
    pub done: &'static str,
    pub running: &'static str,
    pub blocked: &'static str,
    pub pending: &'static str,
    pub failed: &'static str,
    pub skipped: &'static str,
    pub waiting: &'static str,
    /// A task of the operator's own.
    pub own: &'static str,
    /// State of the server.
    pub dot: &'static str,
    pub warn: &'static str,
    /// The selected line.
    pub pointer: &'static str,
    /// From the old to the new, to what is to be done.
    pub arrow: &'static str,
    pub left: &'static str,
    pub right: &'static str,
    pub ellipsis: &'static str,
    /// Between facts on a line.
    pub between: &'static str,
    /// No value.
    pub none: &'static str,
    /// Times, as in `2.4 ×`.
    pub times: &'static str,
    /// Before the name of a card, in its hue.
    pub card: &'static str,
    /// Filled from nothing to a whole cell, in equal steps; the last is the whole cell.
    pub eighths: &'static [&'static str],
    /// The second part of a bar that has several, and what is kept at its end.
    pub second: &'static str,
    pub reserved: &'static str,
    /// The empty part of a bar where no ground can be drawn.
    pub track: &'static str,
    /// Columns of a small chart, from lowest to highest.
    pub levels: &'static [&'static str],
    /// A measured point.
    pub point: &'static str,
    /// Points of several series on one chart.
    pub series: [&'static str; 4],
    /// The point after which more brings nothing more.
    pub knee: &'static str,
    /// A point that is in doubt, void or blocked.
    pub hollow: &'static str,
    /// A mark on the time axis.
    pub mark: &'static str,
    /// The vertical axis, and its tick.
    pub axis: &'static str,
    pub tick: &'static str,
    /// A tick of the horizontal axis.
    pub down_tick: &'static str,
    /// The corner and the line of the horizontal axis.
    pub corner: &'static str,
    pub base: &'static str,
    /// Lines of charts may be drawn with braille dots (2 x 4 a cell).
    pub braille: bool,
    /// Degrees Celsius; two cells in Unicode, one in ASCII.
    pub celsius: &'static str,
    pub borders: Borders,
}

impl Glyphs {
    /// The signs of a set.
    pub const fn of(set: GlyphSet) -> Self {
        match set {
            GlyphSet::Unicode => UNICODE,
            GlyphSet::Ascii => ASCII,
        }
    }
}

const UNICODE: Glyphs = Glyphs {
    set: GlyphSet::Unicode,
    done: "✔",
    running: "▶",
    blocked: "⊘",
    pending: "○",
    failed: "✖",
    skipped: "–",
    waiting: "◆",
    own: "·",
    dot: "●",
    warn: "⚠",
    pointer: "▸",
    arrow: "→",
    left: "‹",
    right: "›",
    ellipsis: "…",
    between: "·",
    none: "–",
    times: "×",
    card: "▌",
    eighths: &["▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"],
    second: "▒",
    reserved: "╱",
    track: "░",
    levels: &["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"],
    point: "●",
    series: ["●", "■", "▲", "▼"],
    knee: "◆",
    hollow: "◌",
    mark: "┊",
    axis: "│",
    tick: "┤",
    down_tick: "┬",
    corner: "└",
    base: "─",
    braille: true,
    celsius: "°C",
    borders: Borders {
        top_left: "╭",
        top_right: "╮",
        bottom_left: "╰",
        bottom_right: "╯",
        horizontal: "─",
        vertical: "│",
    },
};

const ASCII: Glyphs = Glyphs {
    set: GlyphSet::Ascii,
    done: "+",
    running: ">",
    blocked: "!",
    pending: "o",
    failed: "X",
    skipped: "-",
    waiting: "?",
    own: ".",
    dot: "*",
    warn: "!",
    pointer: ">",
    arrow: ">",
    left: "<",
    right: ">",
    ellipsis: "~",
    between: "-",
    none: "-",
    times: "x",
    card: "|",
    eighths: &["#"],
    second: "=",
    reserved: "/",
    track: ".",
    levels: &["_", ".", "-", "=", "#"],
    point: "*",
    series: ["*", "#", "x", "%"],
    knee: "@",
    hollow: "o",
    mark: ":",
    axis: "|",
    tick: "+",
    down_tick: "+",
    corner: "+",
    base: "-",
    braille: false,
    celsius: "C",
    borders: Borders {
        top_left: "+",
        top_right: "+",
        bottom_left: "+",
        bottom_right: "+",
        horizontal: "-",
        vertical: "|",
    },
};

#[cfg(test)]
mod tests {
    use super::*;
    use unicode_width::UnicodeWidthStr;

    fn signs(g: &Glyphs) -> Vec<&'static str> {
        let b = g.borders;
        let mut all = vec![
            g.done,
            g.running,
            g.blocked,
            g.pending,
            g.failed,
            g.skipped,
            g.waiting,
            g.own,
            g.dot,
            g.warn,
            g.pointer,
            g.arrow,
            g.left,
            g.right,
            g.ellipsis,
            g.between,
            g.none,
            g.knee,
            g.times,
            g.card,
            g.second,
            g.reserved,
            g.track,
            g.point,
            g.hollow,
            g.mark,
            g.axis,
            g.tick,
            g.down_tick,
            g.corner,
            g.base,
            b.top_left,
            b.top_right,
            b.bottom_left,
            b.bottom_right,
            b.horizontal,
            b.vertical,
        ];
        all.extend_from_slice(g.eighths);
        all.extend_from_slice(g.levels);
        all
    }

    #[test]
    fn every_sign_is_one_cell_and_its_twin_is_ascii() {
        for sign in signs(&UNICODE).into_iter().chain(signs(&ASCII)) {
            assert_eq!(sign.width(), 1, "{sign:?}");
        }
        assert!(signs(&ASCII).iter().all(|sign| sign.is_ascii()));
        assert!(ASCII.celsius.is_ascii());
    }

    #[test]
    fn states_differ_without_colour() {
        for g in [UNICODE, ASCII] {
            let states = [
                g.done, g.running, g.blocked, g.pending, g.failed, g.skipped, g.waiting, g.own,
            ];
            let distinct: std::collections::BTreeSet<_> = states.iter().collect();
            assert_eq!(distinct.len(), states.len());
        }
    }

    #[test]
    fn the_locale_decides() {
        let with = |vars: &[(&str, &str)]| {
            GlyphSet::detect(&|name| {
                vars.iter()
                    .find(|(key, _)| *key == name)
                    .map(|(_, value)| (*value).to_string())
            })
        };
        assert_eq!(with(&[("LANG", "en_GB.UTF-8")]), GlyphSet::Unicode);
        assert_eq!(
            with(&[("LC_ALL", "C"), ("LANG", "en_GB.UTF-8")]),
            GlyphSet::Ascii
        );
        assert_eq!(
            with(&[("LC_ALL", ""), ("LANG", "C.utf8")]),
            GlyphSet::Unicode
        );
        assert_eq!(
            with(&[("LANG", "en_GB.UTF-8"), ("TERM", "linux")]),
            GlyphSet::Ascii
        );
        assert_eq!(with(&[]), GlyphSet::Ascii);
    }
}
