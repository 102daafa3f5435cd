//! A terminal screen as SVG that looks the same everywhere: lines, blocks and braille are drawn, only letters are text.

use std::fmt::Write;
use vt100::{Cell, Color, Screen};

/// Size of a cell in SVG units, and of the letters in it.
const W: f64 = 9.0;
const H: f64 = 19.0;
const FONT: f64 = 15.0;
/// Margin around the screen.
const MARGIN: f64 = 14.0;

const BACKGROUND: &str = "#15181e";
const FOREGROUND: &str = "#d4d8df";

/// The sixteen colours of a terminal, dark, of even weight.
const PALETTE: [&str; 16] = [
    "#1b1f27", "#e06c75", "#8fc379", "#e2b86b", "#61a5e8", "#c080d8", "#52b9c4", "#b9c0cb",
    "#6b7380", "#f0838b", "#a5d68f", "#f0cb84", "#7fbcf5", "#d49bea", "#70d1db", "#f2f4f8",
];

#[derive(Clone, PartialEq)]
struct Style {
    ink: String,
    paper: Option<String>,
    bold: bool,
    italic: bool,
    underline: bool,
}

/// The whole screen as an SVG document.
pub fn of(screen: &Screen) -> String {
    let (rows, columns) = screen.size();
    let width = f64::from(columns) * W + 2.0 * MARGIN;
    let height = f64::from(rows) * H + 2.0 * MARGIN;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         font-family=\"ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace\" font-size=\"{FONT}\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{BACKGROUND}\"/>\n"
    );
    for row in 0..rows {
        papers(screen, row, columns, &mut out);
        signs(screen, row, columns, &mut out);
    }
    out.push_str("</svg>\n");
    out
}

fn left(column: u16) -> f64 {
    MARGIN + f64::from(column) * W
}

fn top(row: u16) -> f64 {
    MARGIN + f64::from(row) * H
}

fn style(cell: &Cell) -> Style {
    let ink = colour(cell.fgcolor()).unwrap_or_else(|| FOREGROUND.to_string());
    let paper = colour(cell.bgcolor());
    let (ink, paper) = if cell.inverse() {
        (paper.unwrap_or_else(|| BACKGROUND.to_string()), Some(ink))
    } else {
        (ink, paper)
    };
    let ink = if cell.dim() {
        blend(&ink, paper.as_deref().unwrap_or(BACKGROUND))
    } else {
        ink
    };
    Style {
        ink,
        paper,
        bold: cell.bold(),
        italic: cell.italic(),
        underline: cell.underline(),
    }
}

fn colour(colour: Color) -> Option<String> {
    match colour {
        Color::Default => None,
        Color::Rgb(r, g, b) => Some(format!("#{r:02x}{g:02x}{b:02x}")),
        Color::Idx(index @ 0..=15) => Some(PALETTE[usize::from(index)].to_string()),
        Color::Idx(index @ 16..=231) => {
            let level = |part: u8| {
                if part == 0 {
                    0
                } else {
                    55 + 40 * u16::from(part)
                }
            };
            let cube = index - 16;
            let (r, g, b) = (level(cube / 36), level(cube / 6 % 6), level(cube % 6));
            Some(format!("#{r:02x}{g:02x}{b:02x}"))
        }
        Color::Idx(index) => {
            let grey = 8 + 10 * u16::from(index - 232);
            Some(format!("#{grey:02x}{grey:02x}{grey:02x}"))
        }
    }
}

/// Dim text is its colour, two thirds of the way from the paper.
fn blend(ink: &str, paper: &str) -> String {
    let part = |text: &str, at: usize| u16::from_str_radix(&text[at..at + 2], 16).unwrap();
    let mix = |at: usize| (part(ink, at) * 2 + part(paper, at)) / 3;
    format!("#{:02x}{:02x}{:02x}", mix(1), mix(3), mix(5))
}

/// Coloured backgrounds of a row, one rectangle a run.
fn papers(screen: &Screen, row: u16, columns: u16, out: &mut String) {
    let paper = |column: u16| screen.cell(row, column).and_then(|cell| style(cell).paper);
    let mut column = 0;
    while column < columns {
        let start = column;
        let fill = paper(column);
        while column < columns && paper(column) == fill {
            column += 1;
        }
        if let Some(fill) = fill {
            rect(
                out,
                left(start),
                top(row),
                f64::from(column - start) * W,
                H,
                &fill,
            );
        }
    }
}

/// Everything that stands in a row.
fn signs(screen: &Screen, row: u16, columns: u16, out: &mut String) {
    let mut column = 0;
    while column < columns {
        let Some(cell) = screen.cell(row, column).filter(|cell| cell.has_contents()) else {
            column += 1;
            continue;
        };
        let look = style(cell);
        let sign = cell.contents().chars().next().unwrap_or(' ');
        if draw(sign, left(column), top(row), &look.ink, out) {
            column += 1;
            continue;
        }
        let start = column;
        let mut word = String::new();
        while let Some(cell) = screen.cell(row, column) {
            let sign = cell.contents().chars().next();
            let stays = sign.is_some_and(|c| c != ' ' && !is_drawn(c)) && style(cell) == look;
            if !(stays || cell.is_wide_continuation() && column > start) {
                break;
            }
            word.push_str(cell.contents());
            column += 1;
        }
        if column == start {
            // A blank.
            column += 1;
            continue;
        }
        text(out, left(start), top(row), column - start, &word, &look);
    }
}

fn text(out: &mut String, x: f64, y: f64, cells: u16, word: &str, look: &Style) {
    let word = word
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    let mut more = String::new();
    if look.bold {
        more.push_str(" font-weight=\"bold\"");
    }
    if look.italic {
        more.push_str(" font-style=\"italic\"");
    }
    if look.underline {
        more.push_str(" text-decoration=\"underline\"");
    }
    let _ = writeln!(
        out,
        "<text x=\"{x}\" y=\"{}\" textLength=\"{}\" lengthAdjust=\"spacingAndGlyphs\" fill=\"{}\"{more}>{word}</text>",
        y + H * 0.74,
        f64::from(cells) * W,
        look.ink
    );
}

fn rect(out: &mut String, x: f64, y: f64, width: f64, height: f64, fill: &str) {
    let _ = writeln!(
        out,
        "<rect x=\"{x:.2}\" y=\"{y:.2}\" width=\"{width:.2}\" height=\"{height:.2}\" fill=\"{fill}\"/>"
    );
}

fn is_drawn(sign: char) -> bool {
    matches!(sign, '\u{2500}'..='\u{259f}' | '\u{2800}'..='\u{28ff}')
        && draw(sign, 0.0, 0.0, "", &mut String::new())
}

/// Draws a line, block or braille sign; whether it is one.
fn draw(sign: char, x: f64, y: f64, ink: &str, out: &mut String) -> bool {
    match sign {
        '\u{2800}'..='\u{28ff}' => braille(sign, x, y, ink, out),
        // From the bottom up, in eighths.
        '▁'..='█' => {
            let eighths = f64::from(u32::from(sign) - 0x2580);
            rect(
                out,
                x,
                y + H * (1.0 - eighths / 8.0),
                W,
                H * eighths / 8.0,
                ink,
            );
        }
        // From the left, in eighths.
        '▉'..='▏' => {
            let eighths = f64::from(0x2590 - u32::from(sign));
            rect(out, x, y, W * eighths / 8.0, H, ink);
        }
        '▀' => rect(out, x, y, W, H / 2.0, ink),
        '▐' => rect(out, x + W / 2.0, y, W / 2.0, H, ink),
        '░' | '▒' | '▓' => {
            let share = f64::from(u32::from(sign) - 0x2590) / 4.0;
            let _ = writeln!(
                out,
                "<rect x=\"{x:.2}\" y=\"{y:.2}\" width=\"{W}\" height=\"{H}\" fill=\"{ink}\" fill-opacity=\"{share}\"/>"
            );
        }
        _ => return lines(sign, x, y, ink, out),
    }
    true
}

fn braille(sign: char, x: f64, y: f64, ink: &str, out: &mut String) {
    // Bit to column and row of the 2 x 4 dots.
    const DOTS: [(f64, f64); 8] = [
        (0.0, 0.0),
        (0.0, 1.0),
        (0.0, 2.0),
        (1.0, 0.0),
        (1.0, 1.0),
        (1.0, 2.0),
        (0.0, 3.0),
        (1.0, 3.0),
    ];
    let bits = u32::from(sign) - 0x2800;
    let mut path = String::new();
    for (bit, (column, row)) in DOTS.iter().enumerate() {
        if bits & (1 << bit) != 0 {
            let (cx, cy) = (x + W * (0.25 + column * 0.5), y + H * (0.125 + row * 0.25));
            let _ = write!(path, "M{cx:.2} {cy:.2}h0");
        }
    }
    if !path.is_empty() {
        let _ = writeln!(
            out,
            "<path d=\"{path}\" stroke=\"{ink}\" stroke-width=\"2.6\" stroke-linecap=\"round\"/>"
        );
    }
}

/// Box drawing: an arm to each side that the sign has.
fn lines(sign: char, x: f64, y: f64, ink: &str, out: &mut String) -> bool {
    let (mx, my, r, b) = (x + W / 2.0, y + H / 2.0, x + W, y + H);
    let turn = W / 2.0;
    let (path, dash) = match sign {
        '─' | '━' => (format!("M{x} {my}H{r}"), ""),
        '│' | '┃' => (format!("M{mx} {y}V{b}"), ""),
        '┆' | '┊' | '╎' => (format!("M{mx} {y}V{b}"), " stroke-dasharray=\"3 3.33\""),
        '╌' | '┄' | '┈' => (format!("M{x} {my}H{r}"), " stroke-dasharray=\"2.5 2\""),
        '╭' => (format!("M{mx} {b}V{}Q{mx} {my} {r} {my}", my + turn), ""),
        '╮' => (format!("M{mx} {b}V{}Q{mx} {my} {x} {my}", my + turn), ""),
        '╰' => (format!("M{mx} {y}V{}Q{mx} {my} {r} {my}", my - turn), ""),
        '╯' => (format!("M{mx} {y}V{}Q{mx} {my} {x} {my}", my - turn), ""),
        '┌' => (format!("M{mx} {b}V{my}H{r}"), ""),
        '┐' => (format!("M{mx} {b}V{my}H{x}"), ""),
        '└' => (format!("M{mx} {y}V{my}H{r}"), ""),
        '┘' => (format!("M{mx} {y}V{my}H{x}"), ""),
        '├' => (format!("M{mx} {y}V{b}M{mx} {my}H{r}"), ""),
        '┤' => (format!("M{mx} {y}V{b}M{mx} {my}H{x}"), ""),
        '┬' => (format!("M{x} {my}H{r}M{mx} {my}V{b}"), ""),
        '┴' => (format!("M{x} {my}H{r}M{mx} {my}V{y}"), ""),
        '┼' => (format!("M{x} {my}H{r}M{mx} {y}V{b}"), ""),
        _ => return false,
    };
    let width = if matches!(sign, '━' | '┃') {
        2.4
    } else {
        1.2
    };
    let _ = writeln!(
        out,
        "<path d=\"{path}\" fill=\"none\" stroke=\"{ink}\" stroke-width=\"{width}\"{dash}/>"
    );
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_text_and_the_rest_is_drawn() {
        let mut parser = vt100::Parser::new(2, 20, 0);
        parser.process("╭─ a<b ─╮\r\n\x1b[31;1mred\x1b[0m \x1b[7mx\x1b[0m ⣿▌█".as_bytes());
        let svg = of(parser.screen());
        for part in [
            "&lt;b</text>",
            "font-weight=\"bold\">red",
            &format!("fill=\"{}\"", PALETTE[1]),
            "<path",
            "h0",
        ] {
            assert!(svg.contains(part), "{part} in {svg}");
        }
        for sign in ['╭', '─', '⣿', '█', '▌'] {
            assert!(!svg.contains(sign));
        }
        assert_eq!(svg.matches("<text").count(), 3);
    }
}
