//! Keys and other events from the terminal, and the end of the terminal itself.

use crate::keymap::{Code, Key};
use crossterm::event::{
    Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEventKind,
};
use rustix::event::{PollFd, PollFlags, poll};
use tokio::sync::mpsc::Sender;

/// What comes from the terminal.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    Key(Key),
    Paste(String),
    /// Column, row.
    Click(u16, u16),
    /// Column, row, lines down.
    Wheel(u16, u16, isize),
    Resized,
    /// The terminal window has, or has not, the attention.
    Attention(bool),
    /// The terminal is gone.
    HungUp,
}

/// Starts the thread that reads events. It blocks in the read: at rest nothing wakes.
///
/// # Errors
/// No thread can be started.
pub fn read_events(to: Sender<Input>) -> std::io::Result<()> {
    let thread = std::thread::Builder::new().name("input".into());
    thread.spawn(move || {
        while let Ok(event) = crossterm::event::read() {
            if let Some(input) = translate(event)
                && to.blocking_send(input).is_err()
            {
                break;
            }
        }
    })?;
    Ok(())
}

/// Starts the thread that waits for the terminal to vanish. Reading alone does not notice: with the other end closed and no SIGHUP for
/// us, a read loop spins. `poll` without events wakes for hang-up and error only and costs nothing at rest.
///
/// # Errors
/// No thread can be started.
pub fn watch_hangup(to: Sender<Input>) -> std::io::Result<()> {
    let thread = std::thread::Builder::new().name("hangup".into());
    thread.spawn(move || {
        let stdin = std::io::stdin();
        loop {
            let mut fds = [PollFd::new(&stdin, PollFlags::empty())];
            match poll(&mut fds, None) {
                Ok(_) if fds.iter().any(|fd| !fd.revents().is_empty()) => break,
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(_) => break,
            }
        }
        let _ = to.blocking_send(Input::HungUp);
    })?;
    Ok(())
}

fn translate(event: Event) -> Option<Input> {
    match event {
        Event::Key(key) => key_of(key).map(Input::Key),
        Event::Paste(text) => Some(Input::Paste(text)),
        Event::Resize(..) => Some(Input::Resized),
        Event::FocusGained => Some(Input::Attention(true)),
        Event::FocusLost => Some(Input::Attention(false)),
        Event::Mouse(mouse) => match mouse.kind {
            MouseEventKind::Down(MouseButton::Left) => Some(Input::Click(mouse.column, mouse.row)),
            MouseEventKind::ScrollUp => Some(Input::Wheel(mouse.column, mouse.row, -1)),
            MouseEventKind::ScrollDown => Some(Input::Wheel(mouse.column, mouse.row, 1)),
            _ => None,
        },
    }
}

/// A press (or a repeat) as our own key. Releases are none: the Enter that started us arrives as one.
fn key_of(key: KeyEvent) -> Option<Key> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    let code = match key.code {
        KeyCode::Char(c) => Code::Char(c),
        KeyCode::F(n) => Code::F(n),
        KeyCode::Enter => Code::Enter,
        KeyCode::Esc => Code::Esc,
        KeyCode::Tab | KeyCode::BackTab => Code::Tab,
        KeyCode::Backspace => Code::Backspace,
        KeyCode::Delete => Code::Delete,
        KeyCode::Insert => Code::Insert,
        KeyCode::Home => Code::Home,
        KeyCode::End => Code::End,
        KeyCode::PageUp => Code::PageUp,
        KeyCode::PageDown => Code::PageDown,
        KeyCode::Up => Code::Up,
        KeyCode::Down => Code::Down,
        KeyCode::Left => Code::Left,
        KeyCode::Right => Code::Right,
        _ => return None,
    };
    let held = |modifier| key.modifiers.contains(modifier);
    let shift = held(KeyModifiers::SHIFT) || key.code == KeyCode::BackTab;
    Some(Key::new(
        code,
        held(KeyModifiers::CONTROL),
        held(KeyModifiers::ALT),
        shift,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_no_keys_and_back_tab_is_shift_tab() {
        let mut event = KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE);
        assert_eq!(
            key_of(event),
            Some(Key::new(Code::Enter, false, false, false))
        );
        event.kind = KeyEventKind::Release;
        assert_eq!(key_of(event), None);
        let back_tab = KeyEvent::new(KeyCode::BackTab, KeyModifiers::SHIFT);
        assert_eq!(
            key_of(back_tab),
            Some(Key::new(Code::Tab, false, false, true))
        );
        let capital = KeyEvent::new(KeyCode::Char('J'), KeyModifiers::SHIFT);
        assert_eq!(
            key_of(capital),
            Some(Key::new(Code::Char('J'), false, false, false))
        );
    }
}
