//! The clipboard and the bell, through the terminal itself: both work over ssh.

use crossterm::clipboard::CopyToClipboard;
use crossterm::execute;
use std::io::{self, Write};

/// Copies by OSC 52 and says how. Inside tmux it needs `set-clipboard on`.
pub fn copy(text: &str) -> String {
    match execute!(io::stdout(), CopyToClipboard::to_clipboard_from(text)) {
        Ok(()) => {
            let hint = if std::env::var_os("TMUX").is_some() {
                "; in tmux this needs set-clipboard on"
            } else {
                ""
            };
            format!("copied through the terminal (OSC 52){hint}")
        }
        Err(error) => format!("the terminal did not take the text: {error}"),
    }
}

/// Rings, and shows `text` where the terminal knows how (OSC 9). Errors do not matter here.
pub fn ring(text: &str) {
    let clean = crate::units::clean(text);
    let mut out = io::stdout();
    let _ = write!(out, "\x07\x1b]9;vramp: {clean}\x1b\\");
    let _ = out.flush();
}
