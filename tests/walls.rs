//! The walls between the rooms: what may know of what.

// A test that cannot go on may say so.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::path::{Path, PathBuf};

/// Rooms that draw or touch the world, which nobody else may know.
const OUTER: [&str; 2] = ["ui", "runtime"];

/// Everything that must not know them: the core, the domain folders, and what they share.
const INNER: [&str; 21] = [
    "app",
    "bench",
    "clock.rs",
    "confirm.rs",
    "discover",
    "engine",
    "gpu",
    "host",
    "keymap",
    "launch",
    "memory",
    "places.rs",
    "profile",
    "ramp",
    "reading.rs",
    "report",
    "service",
    "sim",
    "store",
    "theme",
    "units.rs",
];

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

fn files_under(path: &Path, found: &mut Vec<PathBuf>) {
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            files_under(&entry.unwrap().path(), found);
        }
    } else if path.extension().is_some_and(|e| e == "rs") {
        found.push(path.to_path_buf());
    }
}

/// The code without comments and without what stands in quotes, so that only real paths are left.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        let mut quoted = false;
        let mut last = ' ';
        for c in line.split("//").next().unwrap_or_default().chars() {
            if c == '"' && last != '\\' && last != '\'' {
                quoted = !quoted;
            } else if !quoted {
                out.push(c);
            }
            last = c;
        }
        out.push('\n');
    }
    out
}

/// Whether `code` names the module or crate `name` in a path: after `crate::`, `vramp::`, `super::` or alone before `::`,
/// or as the first part of a group in `use crate::{…}`.
fn names(code: &str, name: &str) -> bool {
    let squeezed: String = code.split_whitespace().collect::<Vec<_>>().join(" ");
    let bytes = squeezed.as_bytes();
    squeezed.match_indices(name).any(|(at, _)| {
        let word =
            |byte: Option<&u8>| byte.is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
        let end = at + name.len();
        if (at > 0 && word(bytes.get(at - 1))) || word(bytes.get(end)) {
            return false;
        }
        let before = squeezed.get(..at).unwrap_or_default();
        let after = squeezed.get(end..).unwrap_or_default();
        let from_root = before.ends_with("crate::") || before.ends_with("vramp::");
        let in_group = before
            .rsplit_once("use crate::{")
            .is_some_and(|(_, group)| {
                !group.contains(';') && depth(group) == 0 && !before.ends_with("::")
            });
        from_root || in_group || (after.starts_with("::") && !before.ends_with("::"))
    })
}

/// How many braces of `text` stand open.
fn depth(text: &str) -> i32 {
    text.chars().fold(0, |open, c| match c {
        '{' => open + 1,
        '}' => open - 1,
        _ => open,
    })
}

fn offences(rooms: &[&str], forbidden: &[&str]) -> Vec<String> {
    let mut files = Vec::new();
    for room in rooms {
        let path = source().join(room);
        assert!(path.exists(), "{} is gone: mend this test", path.display());
        files_under(&path, &mut files);
    }
    let mut found = Vec::new();
    for file in &files {
        let code = code(file);
        for name in forbidden.iter().filter(|name| names(&code, name)) {
            found.push(format!("{} knows {name}", file.display()));
        }
    }
    found
}

#[test]
fn core_and_domain_know_nothing_of_the_screen_and_the_runtime() {
    let found = offences(&INNER, &OUTER);
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn the_core_does_nothing_itself() {
    let forbidden = [
        "tokio",
        "ratatui",
        "crossterm",
        "reqwest",
        "rusqlite",
        "axum",
        "rustix",
        "jiff",
        "Instant",
        "SystemTime",
    ];
    let mut found = offences(&["app"], &forbidden);
    let mut files = Vec::new();
    files_under(&source().join("app"), &mut files);
    for file in files {
        let code = code(&file);
        for path in [
            "std::fs",
            "std::time",
            "std::net",
            "std::process",
            "std::thread",
            "std::env",
        ] {
            if code.contains(path) {
                found.push(format!("{} uses {path}", file.display()));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn every_room_is_known_to_this_test() {
    let outside = ["ui", "runtime", "cli", "cli.rs", "lib.rs", "main.rs"];
    for entry in fs::read_dir(source()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(
            INNER.contains(&name.as_str()) || outside.contains(&name.as_str()),
            "src/{name}: which side of the wall is it on?"
        );
    }
}

#[test]
fn this_test_sees_what_it_should() {
    for yes in [
        "use crate::ui::draw;",
        "use crate::{app::Model, ui};",
        "use crate::{\n    app,\n    ui::draw,\n};",
        "let x = vramp::ui::draw();",
        "use tokio::sync; ui::draw()",
    ] {
        assert!(names(yes, "ui"), "{yes}");
    }
    for no in [
        "build::gui",
        "fn ui_name() {}",
        "let ui = 3;",
        "use crate::{app::ui_state};",
    ] {
        assert!(!names(no, "ui"), "{no}");
    }
}
