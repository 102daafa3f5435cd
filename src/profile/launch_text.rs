//! A launch as text that people edit: `NAME=value` lines, then the command, one flag with its value a line.
//!
//! The words are quoted as a POSIX shell would want them, so the text can be tried in one. But no shell reads it here:
//! what a shell would expand is refused unless quoted, never passed on by surprise.

use super::Launch;
use std::iter::Peekable;
use std::str::Chars;

/// What is wrong with an edited launch text. Lines and columns count from 1, columns in characters.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct TextError {
    pub line: usize,
    pub column: usize,
    pub message: String,
}

/// Arguments, and environment variables in order.
pub type ParsedLaunch = (Vec<String>, Vec<(String, String)>);

/// The editable text of `launch`. [`parse_launch_text`] reads it back to the same arguments and environment.
pub fn launch_text(launch: &Launch) -> String {
    let mut out = String::new();
    for (name, value) in &launch.env {
        out.push_str(name);
        out.push('=');
        if !value.is_empty() {
            out.push_str(&quoted(value));
        }
        out.push('\n');
    }
    for (at, argument) in launch.argv.iter().enumerate() {
        if at > 0 {
            out.push_str(if argument.starts_with('-') {
                " \\\n  "
            } else {
                " "
            });
        }
        out.push_str(&quoted(argument));
    }
    out.push('\n');
    out
}

/// `text` as one shell word, bare where it needs no quotes.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,@%+{}".contains(c);
    // A bare = after a name would make the word an assignment; inside a flag it is plain.
    let flag = text.starts_with('-');
    let bare = !text.is_empty() && text.chars().all(|c| plain(c) || (flag && c == '='));
    // {a,b} and {1..3} are lists to some shells.
    let list = text.contains('{') && (text.contains(',') || text.contains(".."));
    if bare && !list {
        text.to_string()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

/// Reads an edited launch text.
///
/// # Errors
/// The place and the reason: an open quote, something a shell would expand, text after the command's end, no command.
pub fn parse_launch_text(text: &str) -> Result<ParsedLaunch, TextError> {
    let mut reader = Reader {
        chars: text.chars().peekable(),
        line: 1,
        column: 1,
    };
    let (mut argv, mut env) = (Vec::new(), Vec::new());
    loop {
        let new_line = reader.skip_blank()?;
        if reader.chars.peek().is_none() {
            break;
        }
        if new_line && !argv.is_empty() {
            return Err(
                reader.fail("the command ended on the line before; end that line with \\ to go on")
            );
        }
        let Word { text, assigns } = reader.word()?;
        match assigns.filter(|_| argv.is_empty()) {
            Some(at) => env.push((
                text.chars().take(at).collect(),
                text.chars().skip(at + 1).collect(),
            )),
            None => argv.push(text),
        }
    }
    if argv.is_empty() {
        return Err(reader.fail("there is no command"));
    }
    Ok((argv, env))
}

/// Whether a shell would take `name` as the name of a variable.
pub(super) fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

struct Word {
    text: String,
    /// Where the = of `NAME=value` stands, in characters; only if nothing before it was quoted.
    assigns: Option<usize>,
}

struct Reader<'a> {
    chars: Peekable<Chars<'a>>,
    line: usize,
    column: usize,
}

impl Reader<'_> {
    fn fail(&self, message: impl Into<String>) -> TextError {
        TextError {
            line: self.line,
            column: self.column,
            message: message.into(),
        }
    }

    fn next(&mut self) -> Option<char> {
        let c = self.chars.next()?;
        if c == '\n' {
            self.line += 1;
            self.column = 1;
        } else {
            self.column += 1;
        }
        Some(c)
    }

    /// Skips blanks, line ends and continued lines; whether a line ended on the way that was not continued.
    fn skip_blank(&mut self) -> Result<bool, TextError> {
        let mut new_line = false;
        while let Some(&c) = self.chars.peek() {
            match c {
                ' ' | '\t' | '\r' => {}
                '\n' => new_line = true,
                '\\' if self.continues() => {
                    self.next();
                    self.take_line_end();
                    continue;
                }
                '#' => {
                    return Err(
                        self.fail("comments are not kept here; quote # if it is meant as text")
                    );
                }
                _ => break,
            }
            self.next();
        }
        Ok(new_line)
    }

    /// Whether the backslash that comes next stands at the end of a line.
    fn continues(&self) -> bool {
        let mut ahead = self.chars.clone().skip(1).skip_while(|c| *c == '\r');
        matches!(ahead.next(), Some('\n'))
    }

    fn take_line_end(&mut self) {
        while self.next().is_some_and(|c| c != '\n') {}
    }

    fn word(&mut self) -> Result<Word, TextError> {
        let mut text = String::new();
        let (mut assigns, mut quotes) = (None, false);
        while let Some(&c) = self.chars.peek() {
            match c {
                ' ' | '\t' | '\r' | '\n' => break,
                '\'' | '"' => {
                    quotes = true;
                    self.quote(c, &mut text)?;
                    continue;
                }
                '\\' if self.continues() => {
                    self.next();
                    self.take_line_end();
                    continue;
                }
                '\\' => {
                    quotes = true;
                    let place = self.fail("\\ at the very end stands for nothing; remove it");
                    self.next();
                    text.push(self.next().ok_or(place)?);
                    continue;
                }
                '\0' => return Err(self.fail("a NUL character cannot be part of a command")),
                '$' | '`' | ';' | '|' | '&' | '<' | '>' | '(' | ')' => {
                    return Err(self.fail(format!(
                        "no shell reads this, so {c} would not do what it does there; put it in '…' if it is meant as text"
                    )));
                }
                '~' if text.is_empty() && !quotes => {
                    return Err(self.fail(
                        "no shell reads this, so ~ stays as it is; write the directory in full",
                    ));
                }
                '=' if !quotes && assigns.is_none() && is_name(&text) => {
                    assigns = Some(text.chars().count());
                }
                _ => {}
            }
            text.push(c);
            self.next();
        }
        Ok(Word { text, assigns })
    }

    /// The inside of a quote that `mark` opens.
    fn quote(&mut self, mark: char, text: &mut String) -> Result<(), TextError> {
        let open = self.fail(format!("this {mark} is never closed"));
        self.next();
        loop {
            let place = self.fail("");
            match self.next() {
                None => return Err(open),
                Some(c) if c == mark => return Ok(()),
                Some('\0') => {
                    return Err(TextError {
                        message: "a NUL character cannot be part of a command".into(),
                        ..place
                    });
                }
                Some('\\') if mark == '"' => match self.next() {
                    Some(c @ ('"' | '\\' | '$' | '`')) => text.push(c),
                    Some('\n') => {}
                    Some(c) => text.extend(['\\', c]),
                    None => return Err(open),
                },
                Some(c @ ('$' | '`')) if mark == '"' => {
                    return Err(TextError {
                        message: format!(
                            "no shell reads this, so {c} is not expanded; use '…' if it is meant as text"
                        ),
                        ..place
                    });
                }
                Some(c) => text.push(c),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn launch(argv: &[&str], env: &[(&str, &str)]) -> Launch {
        Launch {
            argv: argv.iter().map(|word| word.to_string()).collect(),
            env: env
                .iter()
                .map(|(n, v)| (n.to_string(), v.to_string()))
                .collect(),
            cwd: None,
            slots: 1,
        }
    }

    #[test]
    fn one_flag_with_its_value_a_line() {
        let launch = launch(
            &[
                "/opt/sglang serve",
                "--model",
                "a/b",
                "--tp=2",
                "--json",
                "{\"a\": 1}",
                "-x",
            ],
            &[("CUDA_VISIBLE_DEVICES", "0,1"), ("EMPTY", "")],
        );
        assert_eq!(
            launch_text(&launch),
            "CUDA_VISIBLE_DEVICES=0,1\nEMPTY=\n'/opt/sglang serve' \\\n  --model a/b \\\n  --tp=2 \\\n  --json '{\"a\": 1}' \\\n  -x\n"
        );
    }

    #[test]
    fn people_write_it_in_other_ways_too() {
        let read = parse_launch_text(
            "A='x y' B=\"1 \\\"2\\\"\"\r\n\n  serve  --a\\ b \\\r\n\t\"\"  C=1 'it'\"'\"'s'\\\n",
        )
        .unwrap();
        assert_eq!(
            read.1,
            [("A".into(), "x y".into()), ("B".into(), "1 \"2\"".into())]
        );
        assert_eq!(read.0, ["serve", "--a b", "", "C=1", "it's"]);
    }

    #[test]
    fn a_mistake_has_its_place() {
        for (text, line, column, words) in [
            ("", 1, 1, "no command"),
            ("A=1\n", 2, 1, "no command"),
            ("serve 'abc\n", 1, 7, "never closed"),
            ("serve \"a\\", 1, 7, "never closed"),
            ("serve \\", 1, 7, "stands for nothing"),
            ("serve\n--a", 2, 1, "end that line with \\"),
            ("serve \\\n  $HOME/x", 2, 3, "no shell"),
            ("serve \"a$B\"", 1, 9, "not expanded"),
            ("serve | tee", 1, 7, "no shell"),
            ("~/serve", 1, 1, "in full"),
            ("serve # fast", 1, 7, "comments"),
            ("sérve a\0b", 1, 8, "NUL"),
        ] {
            let error = parse_launch_text(text).unwrap_err();
            assert_eq!(
                (error.line, error.column),
                (line, column),
                "{text:?}: {error}"
            );
            assert!(error.message.contains(words), "{text:?}: {error}");
        }
    }

    proptest! {
        #[test]
        fn what_is_shown_reads_back_the_same(
            argv in prop::collection::vec("[^\\x00]{0,12}|-{1,2}[a-z=]{0,5}|[A-Z]{1,3}=[^\\x00]?", 1..8),
            env in prop::collection::vec(("[A-Za-z_][A-Za-z0-9_]{0,6}", "[^\\x00]{0,12}"), 0..4),
        ) {
            let launch = Launch { argv, env, cwd: None, slots: 1 };
            let (argv, env) = parse_launch_text(&launch_text(&launch)).unwrap();
            prop_assert_eq!(argv, launch.argv);
            prop_assert_eq!(env, launch.env);
        }

        #[test]
        fn no_text_makes_it_panic(text in "[\\\\'\"\\$A=\\x00\\n\\r #é-]{0,40}") {
            let _ = parse_launch_text(&text);
        }
    }
}
