//! Editing: a key changes a text and its cursor. The text lives in the model; the widget of `ratatui-textarea` keeps only what an
//! editor needs beside it (its undo history), and takes the model's text whenever that is another.

use crate::app::config::Edit;
use crate::keymap::{Code, Key};
use ratatui_textarea::{CursorMove, Input, Key as AreaKey, TextArea};

/// Changes texts by keys.
#[derive(Debug, Default)]
pub struct Editor {
    area: TextArea<'static>,
    last: Edit,
}

impl Editor {
    /// `edit` after `key`. In a one-line text nothing makes a second line.
    pub fn key(&mut self, edit: &Edit, key: Key, one_line: bool) -> Edit {
        self.take(edit);
        let makes_line = key.code == Code::Enter || (key.ctrl && key.code == Code::Char('m'));
        if key.ctrl && key.code == Code::Char('u') {
            // As in a shell; the widget would undo.
            self.area.delete_line_by_head();
        } else if !(one_line && makes_line) {
            self.area.input(input(key));
        }
        self.give()
    }

    /// `edit` with pasted text at the cursor; a one-line text takes its line ends as blanks.
    pub fn paste(&mut self, edit: &Edit, text: &str, one_line: bool) -> Edit {
        self.take(edit);
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let text = if one_line {
            text.trim_end_matches('\n').replace('\n', " ")
        } else {
            text
        };
        let clean: Vec<String> = text.split('\n').map(crate::units::clean).collect();
        self.area.insert_str(clean.join("\n"));
        self.give()
    }

    fn take(&mut self, edit: &Edit) {
        if self.last != *edit {
            self.area = TextArea::from(edit.text.split('\n'));
            let at = |n: usize| u16::try_from(n).unwrap_or(u16::MAX);
            self.area
                .move_cursor(CursorMove::Jump(at(edit.cursor.0), at(edit.cursor.1)));
        }
    }

    fn give(&mut self) -> Edit {
        let cursor = self.area.cursor();
        self.last = Edit {
            text: self.area.lines().join("\n"),
            cursor: (cursor.0, cursor.1),
        };
        self.last.clone()
    }
}

fn input(key: Key) -> Input {
    let code = match key.code {
        Code::Char(c) => AreaKey::Char(c),
        Code::F(n) => AreaKey::F(n),
        Code::Enter => AreaKey::Enter,
        Code::Esc => AreaKey::Esc,
        Code::Tab => AreaKey::Tab,
        Code::Backspace => AreaKey::Backspace,
        Code::Delete => AreaKey::Delete,
        Code::Insert => AreaKey::Null,
        Code::Home => AreaKey::Home,
        Code::End => AreaKey::End,
        Code::PageUp => AreaKey::PageUp,
        Code::PageDown => AreaKey::PageDown,
        Code::Up => AreaKey::Up,
        Code::Down => AreaKey::Down,
        Code::Left => AreaKey::Left,
        Code::Right => AreaKey::Right,
    };
    Input {
        key: code,
        ctrl: key.ctrl,
        alt: key.alt,
        shift: key.shift,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(editor: &mut Editor, edit: Edit, keys: &[&str], one_line: bool) -> Edit {
        keys.iter().fold(edit, |edit, key| {
            editor.key(&edit, key.parse().unwrap(), one_line)
        })
    }

    #[test]
    fn keys_change_text_and_cursor() {
        let mut editor = Editor::default();
        let edit = typed(&mut editor, Edit::default(), &["6", "4", "K"], true);
        assert_eq!((edit.text.as_str(), edit.cursor), ("64K", (0, 3)));
        let edit = typed(
            &mut editor,
            edit,
            &["Left", "Backspace", "模", "Enter"],
            true,
        );
        assert_eq!((edit.text.as_str(), edit.cursor), ("6模K", (0, 2)));
        let edit = typed(&mut editor, edit, &["Enter"], false);
        assert_eq!((edit.text.as_str(), edit.cursor), ("6模\nK", (1, 0)));
    }

    #[test]
    fn control_u_clears_to_the_start() {
        let mut editor = Editor::default();
        let keys = ["6", "5", "5", "3", "6", "Left", "Ctrl-u"];
        let edit = typed(&mut editor, Edit::default(), &keys, true);
        assert_eq!((edit.text.as_str(), edit.cursor), ("6", (0, 0)));
    }

    #[test]
    fn a_text_that_the_model_changed_is_taken() {
        let mut editor = Editor::default();
        typed(&mut editor, Edit::default(), &["a"], true);
        let other = Edit {
            text: "one\ntwo".into(),
            cursor: (1, 1),
        };
        let edit = editor.key(&other, "x".parse().unwrap(), false);
        assert_eq!((edit.text.as_str(), edit.cursor), ("one\ntxwo", (1, 2)));
    }

    #[test]
    fn a_paste_is_cleaned_and_stays_on_one_line() {
        let mut editor = Editor::default();
        let edit = editor.paste(&Edit::default(), "a\u{1b}[31mb\r\nc\n", true);
        assert_eq!(edit.text, "ab c");
        let edit = editor.paste(&Edit::default(), "a\nb", false);
        assert_eq!(edit.text, "a\nb");
    }
}
