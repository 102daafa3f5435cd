//! Writes screens as ANSI text, to be looked at: `cargo test --test ui -- --ignored show`, then `cat target/screens/*.ansi`.

use crate::rig;
use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Modifier};
use std::fmt::Write;
use unicode_width::UnicodeWidthStr;
use vramp::theme::{Depth, GlyphSet};

fn colour(color: Color, base: u8) -> Option<String> {
    let index = |n: u8| {
        if n < 8 {
            format!("{}", base + n)
        } else {
            format!("{}", base + 52 + n)
        }
    };
    Some(match color {
        Color::Reset => return None,
        Color::Black => index(0),
        Color::Red => index(1),
        Color::Green => index(2),
        Color::Yellow => index(3),
        Color::Blue => index(4),
        Color::Magenta => index(5),
        Color::Cyan => index(6),
        Color::Gray => index(7),
        Color::DarkGray => index(8),
        Color::LightRed => index(9),
        Color::LightGreen => index(10),
        Color::LightYellow => index(11),
        Color::LightBlue => index(12),
        Color::LightMagenta => index(13),
        Color::LightCyan => index(14),
        Color::White => index(15),
        Color::Indexed(n) => format!("{};5;{n}", base + 8),
        Color::Rgb(r, g, b) => format!("{};2;{r};{g};{b}", base + 8),
    })
}

fn sgr(cell: &Cell) -> String {
    let mut codes = vec!["0".to_string()];
    for (modifier, code) in [
        (Modifier::BOLD, "1"),
        (Modifier::DIM, "2"),
        (Modifier::ITALIC, "3"),
        (Modifier::UNDERLINED, "4"),
        (Modifier::REVERSED, "7"),
    ] {
        if cell.modifier.contains(modifier) {
            codes.push(code.to_string());
        }
    }
    codes.extend(colour(cell.fg, 30));
    codes.extend(colour(cell.bg, 40));
    format!("\x1b[{}m", codes.join(";"))
}

pub fn ansi(buffer: &Buffer) -> String {
    let mut out = String::new();
    for y in 0..buffer.area.height {
        let mut look = String::new();
        let mut after = 0;
        for x in 0..buffer.area.width {
            let cell = &buffer[(x, y)];
            if x < after {
                continue;
            }
            after = x + cell.symbol().width().max(1) as u16;
            let next = sgr(cell);
            if next != look {
                out.push_str(&next);
                look = next;
            }
            out.push_str(cell.symbol());
        }
        let _ = writeln!(out, "\x1b[0m");
    }
    out
}

#[test]
#[ignore = "writes files to look at"]
fn show() {
    let dir = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("screens");
    std::fs::create_dir_all(&dir).unwrap();
    for (name, model) in crate::pictures::states() {
        for (width, height) in crate::pictures::SIZES {
            let buffer = rig::cells(&model, &rig::default_theme(), width, height);
            let file = dir.join(format!("{name}-{width}x{height}.ansi"));
            std::fs::write(file, ansi(&buffer)).unwrap();
        }
    }
    for (theme, _) in vramp::theme::SHIPPED {
        let theme_ = rig::theme(theme, Depth::True, GlyphSet::Unicode);
        let buffer = rig::cells(&rig::walk(), &theme_, 120, 36);
        std::fs::write(dir.join(format!("theme-{theme}.ansi")), ansi(&buffer)).unwrap();
    }
    let none = rig::theme(vramp::theme::DEFAULT, Depth::None, GlyphSet::Unicode);
    for (name, model) in crate::pictures::states() {
        let buffer = rig::cells(&model, &none, 120, 36);
        std::fs::write(dir.join(format!("{name}-none.ansi")), ansi(&buffer)).unwrap();
        let buffer = rig::cells(&model, &rig::default_theme(), 60, 15);
        std::fs::write(dir.join(format!("{name}-60x15.ansi")), ansi(&buffer)).unwrap();
    }
    println!("{}", dir.display());
}

/// What one frame costs: eight cards with an hour of history, everything drawn anew. Run it with `--release -- --ignored cost`.
#[test]
#[ignore = "measures time"]
fn cost() {
    use std::time::Instant;
    let mut model = crate::pictures::cards(8);
    model.window.length_s = Some(3_600);
    let theme = rig::default_theme();
    let keymap = vramp::keymap::Keymap::default();
    let mut view = vramp::ui::ViewState::default();
    let backend = ratatui::backend::TestBackend::new(160, 48);
    let mut terminal = ratatui::Terminal::new(backend).unwrap();
    let mut frames = |what: &str, model: &mut vramp::app::model::Model, step: i64| {
        let began = Instant::now();
        for _ in 0..200 {
            model.now.unix_ms += step;
            terminal
                .draw(|frame| vramp::ui::draw(model, &mut view, &theme, &keymap, frame))
                .unwrap();
        }
        println!(
            "{what}: {:.0} µs a frame",
            began.elapsed().as_secs_f64() * 1e6 / 200.0
        );
    };
    frames("nothing changed", &mut model, 0);
    frames("a second passed", &mut model, 1_000);
}
