//! Environment files, by the rules of whoever reads them.

use super::command::Env;
use super::traced::{Byte, Text, is_name, lines, merged, plain, split_assignment, trim};

/// Who reads the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rules {
    /// `EnvironmentFile=` of a unit: quotes and escapes, comments on lines of their own.
    Systemd,
    /// `docker run --env-file`: the line as it stands, quotes are part of the value.
    Docker,
    /// `.env` and `env_file` of compose: quotes, comments behind the value, `export`.
    Dotenv,
}

/// The variables in their order; lines that are none are left out, as the readers do.
pub(super) fn read(text: &[Byte], rules: Rules) -> Vec<(String, Text)> {
    match rules {
        Rules::Systemd => systemd(text),
        Rules::Docker => lines(text)
            .into_iter()
            .filter(|line| !starts(line, b"#"))
            .filter_map(|line| assignment(line, <[Byte]>::to_vec))
            .collect(),
        Rules::Dotenv => dotenv(text),
    }
}

/// A file by itself, whoever reads it: as systemd does, but with `export` and with comments behind values.
pub(super) fn read_alone(files: &[Text]) -> Env {
    let mut env = Env::default();
    for text in files {
        for (name, value) in read(text, Rules::Systemd) {
            env.set(&name, value);
        }
        for (name, value) in read(text, Rules::Dotenv) {
            let commented = |old: &Text| old.iter().any(|b| b.is(b'#'));
            if env.get(&name).is_none_or(commented) {
                env.set(&name, value);
            }
        }
    }
    env
}

fn starts(line: &[Byte], with: &[u8]) -> bool {
    trim(line)
        .first()
        .is_some_and(|first| with.contains(&first.value))
}

fn assignment(line: &[Byte], value: impl Fn(&[Byte]) -> Text) -> Option<(String, Text)> {
    let (name, rest) = split_assignment(line)?;
    Some((name_of(name)?, value(rest)))
}

fn name_of(text: &[Byte]) -> Option<String> {
    let mut name = trim(text);
    // `export NAME=value` is for those who also source the file in a shell.
    if plain(name).starts_with(b"export ") {
        name = trim(name.get(7..)?);
    }
    let name = plain(name);
    is_name(&name)
        .then(|| String::from_utf8(name).ok())
        .flatten()
}

enum State {
    Key,
    /// Before the value, and after a closed quote.
    Before,
    Value,
    Quote(u8),
    Comment,
}

/// The state machine of systemd's `env-file.c`.
fn systemd(text: &[Byte]) -> Vec<(String, Text)> {
    let all: Vec<Byte> = lines(text)
        .first()
        .map(|_| without_mark(text).to_vec())
        .unwrap_or_default();
    let (mut out, mut state) = (Vec::new(), State::Key);
    let (mut key, mut value): (Text, Text) = (Vec::new(), Vec::new());
    // How much of the value counts when blanks follow until the end of the line.
    let mut kept = 0;
    let mut at = 0;
    let mut push = |key: &mut Text, value: &mut Text, kept: usize| {
        value.truncate(kept);
        // systemd leaves out `export NAME`, whose name has a blank.
        if let Some(name) = Some(plain(trim(key))).filter(|name| is_name(name)) {
            out.push((String::from_utf8_lossy(&name).into_owned(), value.clone()));
        }
        key.clear();
        value.clear();
    };
    while let Some(&byte) = all.get(at) {
        at += 1;
        let end = matches!(byte.value, b'\n' | b'\r');
        match state {
            State::Comment => {
                if end {
                    state = State::Key;
                }
            }
            State::Key => match byte.value {
                b'\n' | b'\r' => key.clear(),
                b'#' | b';' if trim(&key).is_empty() => {
                    key.clear();
                    state = State::Comment;
                }
                b'=' => {
                    kept = 0;
                    state = State::Before;
                }
                _ => key.push(byte),
            },
            State::Before | State::Value if end => {
                push(&mut key, &mut value, kept);
                state = State::Key;
            }
            State::Before if byte.blank() => {}
            State::Before if matches!(byte.value, b'\'' | b'"') => state = State::Quote(byte.value),
            State::Before | State::Value => {
                if byte.value == b'\\' {
                    if let Some(&next) = all.get(at) {
                        at += 1;
                        if next.value == b'\r' && all.get(at).is_some_and(|b| b.value == b'\n') {
                            at += 1;
                        } else if next.value != b'\n' {
                            value.push(merged(next.value, &[byte, next]));
                        }
                    }
                    kept = value.len();
                } else {
                    value.push(byte);
                    if !byte.blank() {
                        kept = value.len();
                    }
                }
                state = State::Value;
            }
            State::Quote(mark) => {
                if byte.value == mark {
                    state = State::Before;
                } else if byte.value == b'\\' && mark == b'"' {
                    if let Some(&next) = all.get(at) {
                        at += 1;
                        if b"\"\\`$".contains(&next.value) {
                            value.push(merged(next.value, &[byte, next]));
                        } else if next.value != b'\n' {
                            value.extend([byte, next]);
                        }
                    }
                } else {
                    value.push(byte);
                }
                kept = value.len();
            }
        }
    }
    if matches!(state, State::Before | State::Value | State::Quote(_)) {
        push(&mut key, &mut value, kept);
    }
    out
}

fn without_mark(text: &[Byte]) -> &[Byte] {
    let mark: Vec<u8> = plain(text.get(..3).unwrap_or_default());
    text.get(if mark == [0xef, 0xbb, 0xbf] { 3 } else { 0 }..)
        .unwrap_or_default()
}

fn dotenv(text: &[Byte]) -> Vec<(String, Text)> {
    lines(text)
        .into_iter()
        .filter(|line| !starts(line, b"#"))
        .filter_map(|line| assignment(line, dotenv_value))
        .collect()
}

fn dotenv_value(rest: &[Byte]) -> Text {
    let rest = trim(rest);
    let Some((first, inner)) = rest.split_first() else {
        return Vec::new();
    };
    let mark = first.value;
    if matches!(mark, b'\'' | b'"')
        && let Some(close) = inner.iter().position(|b| b.value == mark)
    {
        return inner.get(..close).unwrap_or_default().to_vec();
    }
    // A comment begins with # after a blank.
    let end = rest
        .windows(2)
        .position(|pair| matches!(pair, [a, b] if a.blank() && b.value == b'#'));
    trim(rest.get(..end.unwrap_or(rest.len())).unwrap_or_default()).to_vec()
}

#[cfg(test)]
mod tests {
    use super::super::traced::{of_file, shown, stretch};
    use super::*;

    fn values(text: &str, rules: Rules) -> Vec<(String, String)> {
        read(&of_file(0, text.as_bytes()), rules)
            .into_iter()
            .map(|(name, value)| (name, shown(&value)))
            .collect()
    }

    fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
        expected
            .iter()
            .map(|(n, v)| (n.to_string(), v.to_string()))
            .collect()
    }

    #[test]
    fn systemd_reads_quotes_escapes_and_blanks() {
        let text = "# C=1\n; D=2\n\u{20} A = 5 \nB=\"32768\"   \nC='a\\b' \nD=x y  \nE=\"a\\\"b\\n\"\nF=a\\\nb\nexport G=1\nH=1 # no comment\nI=\nJ='it'\"s\"x\nno line\nK=last";
        assert_eq!(
            values(text, Rules::Systemd),
            pairs(&[
                ("A", "5"),
                ("B", "32768"),
                ("C", "a\\b"),
                ("D", "x y"),
                ("E", "a\"b\\n"),
                ("F", "ab"),
                ("H", "1 # no comment"),
                ("I", ""),
                ("J", "itsx"),
                ("K", "last"),
            ])
        );
    }

    #[test]
    fn each_reader_has_rules_of_its_own() {
        let text = "\u{feff}A=\"1\"\r\nB=2 # two\r\nexport C='3' # three\r\n#D=4\r\n";
        assert_eq!(
            values(text, Rules::Systemd),
            pairs(&[("A", "1"), ("B", "2 # two")])
        );
        assert_eq!(
            values(text, Rules::Docker),
            pairs(&[("A", "\"1\""), ("B", "2 # two"), ("C", "'3' # three")])
        );
        assert_eq!(
            values(text, Rules::Dotenv),
            pairs(&[("A", "1"), ("B", "2"), ("C", "3")])
        );
    }

    #[test]
    fn a_value_knows_its_place() {
        let text = "A=1\nCTX=\"32768\"  \n";
        let vars = read(&of_file(7, text.as_bytes()), Rules::Systemd);
        assert_eq!(stretch(&vars[1].1), Some((7, 9..14)));
    }
}
