//! Command lines as systemd splits and expands them; no shell is involved.

use super::command::{Env, Word};
use super::specifier;
use super::traced::{
    Byte, Text, is_name, merged, opened, plain, shown, split_assignment, split_blank,
};

/// Words with quotes and C escapes resolved, as `extract_first_word` does; a quote that is never closed ends with the text.
pub(super) fn words(text: &[Byte]) -> Vec<Word> {
    let (mut out, mut at) = (Vec::new(), 0);
    loop {
        while text.get(at).is_some_and(|b| b.blank()) {
            at += 1;
        }
        if at >= text.len() {
            return out;
        }
        let mut word = Vec::new();
        let mut quote = None;
        while let Some(&byte) = text.get(at) {
            match (byte.value, quote) {
                (b'\\', _) if !byte.open => {
                    at += escape(text.get(at..).unwrap_or_default(), &mut word);
                    continue;
                }
                (b'\'' | b'"', None) if !byte.open => quote = Some(byte.value),
                (mark, Some(open)) if mark == open && !byte.open => quote = None,
                (_, None) if byte.blank() => break,
                _ => word.push(byte),
            }
            at += 1;
        }
        out.push(Word::ending(
            word,
            at.checked_sub(1).and_then(|last| text.get(last)),
        ));
    }
}

/// Reads the escape at the start of `text`; how many bytes it took. An escape that systemd does not know stays as it is.
fn escape(text: &[Byte], out: &mut Text) -> usize {
    let Some(letter) = text.get(1) else {
        out.extend(text.iter().copied());
        return 1;
    };
    let (value, length) = match letter.value {
        b'a' => (7, 2),
        b'b' => (8, 2),
        b'f' => (12, 2),
        b'n' => (b'\n', 2),
        b'r' => (b'\r', 2),
        b't' => (b'\t', 2),
        b'v' => (11, 2),
        b's' => (b' ', 2),
        c @ (b'\\' | b'"' | b'\'') => (c, 2),
        b'x' => match number(text.get(2..4), 16) {
            Some(value) => (value, 4),
            None => return keep(text, out),
        },
        b'0'..=b'7' => match number(text.get(1..4), 8) {
            Some(value) => (value, 4),
            None => return keep(text, out),
        },
        _ => return keep(text, out),
    };
    out.push(merged(value, text.get(..length).unwrap_or_default()));
    length
}

fn keep(text: &[Byte], out: &mut Text) -> usize {
    out.extend(text.iter().take(2).copied());
    2
}

fn number(digits: Option<&[Byte]>, radix: u32) -> Option<u8> {
    u8::from_str_radix(&shown(digits?), radix).ok()
}

/// The variables of one `Environment=` line.
pub(super) fn assignments(line: &[Byte]) -> Vec<(String, Text)> {
    words(line)
        .iter()
        .filter_map(|word| {
            let (name, value) = split_assignment(&word.text)?;
            let name = plain(name);
            is_name(&name).then(|| (String::from_utf8_lossy(&name).into_owned(), value.to_vec()))
        })
        .collect()
}

/// The commands of one `ExecStart=` line: prefixes taken off, specifiers and variables expanded.
pub(super) fn commands(line: &[Byte], env: &Env, unit: Option<&str>) -> Vec<Vec<Word>> {
    let all = words(line);
    all.split(|word| word.is(";"))
        .filter(|words| !words.is_empty())
        .map(|words| command(words, env, unit))
        .collect()
}

fn command(words: &[Word], env: &Env, unit: Option<&str>) -> Vec<Word> {
    let Some((first, rest)) = words.split_first() else {
        return Vec::new();
    };
    let prefixes = first
        .text
        .iter()
        .take_while(|b| b"@-:+!|".contains(&b.value))
        .count();
    let has = |prefix: u8| first.text.iter().take(prefixes).any(|b| b.value == prefix);
    let program = Word {
        text: specifier::expand(first.text.get(prefixes..).unwrap_or_default(), unit),
        after: first.after.clone(),
    };
    // After @ the next word is the name that the process gets.
    let skipped = usize::from(has(b'@'));
    let mut out = vec![program];
    for word in rest.iter().skip(skipped) {
        let text = specifier::expand(&word.text, unit);
        if has(b':') {
            out.push(Word {
                text,
                after: word.after.clone(),
            });
        } else {
            out.extend(variables(&text, env).into_iter().map(|text| Word {
                text,
                after: word.after.clone(),
            }));
        }
    }
    out
}

/// Expands the variables of one word: `$NAME` alone becomes any number of words, `${NAME}` stays within one, `$$` is a dollar sign.
fn variables(text: &[Byte], env: &Env) -> Vec<Text> {
    if let [dollar, second, ..] = text
        && dollar.is(b'$')
        && !matches!(second.value, b'{' | b'$')
    {
        let name = shown(text.get(1..).unwrap_or_default());
        // A variable of which nothing is known may be set elsewhere, by the manager itself.
        let Some(value) = env.get(&name) else {
            return vec![opened(text)];
        };
        return match value.iter().any(|b| matches!(b.value, b'\'' | b'"')) {
            true => words(value).into_iter().map(|word| word.text).collect(),
            false => split_blank(value),
        };
    }
    let (mut out, mut at) = (Vec::new(), 0);
    while let Some(&byte) = text.get(at) {
        let rest = text.get(at..).unwrap_or_default();
        if byte.is(b'$') && rest.get(1).is_some_and(|b| b.is(b'$')) {
            out.push(merged(b'$', rest.get(..2).unwrap_or_default()));
            at += 2;
        } else if byte.is(b'$')
            && rest.get(1).is_some_and(|b| b.is(b'{'))
            && let Some(close) = rest.iter().position(|b| b.is(b'}'))
        {
            let name = shown(rest.get(2..close).unwrap_or_default());
            let unknown = || opened(rest.get(..=close).unwrap_or_default());
            out.extend(env.get(&name).cloned().unwrap_or_else(unknown));
            at += close + 1;
        } else {
            out.push(byte);
            at += 1;
        }
    }
    vec![out]
}

#[cfg(test)]
mod tests {
    use super::super::traced::{made, of_file};
    use super::*;

    fn split(line: &str, vars: &[(&str, &str)]) -> Vec<String> {
        let mut env = Env::default();
        for (name, value) in vars {
            env.set(name, made(value.as_bytes()));
        }
        commands(&of_file(0, line.as_bytes()), &env, Some("a@7.service"))
            .concat()
            .iter()
            .map(Word::shown)
            .collect()
    }

    #[test]
    fn quotes_and_escapes_as_the_manager_has_them() {
        assert_eq!(
            split(r#"-/bin/x "a b" c'd e' \x41\x2f 'it\'s' a\sb "" \q"#, &[]),
            ["/bin/x", "a b", "cd e", "A/", "it's", "a b", "", "\\q"]
        );
        assert_eq!(split("@/bin/x name -c 1", &[]), ["/bin/x", "-c", "1"]);
        assert_eq!(split("/a 1 ; /b 2", &[]), ["/a", "1", "/b", "2"]);
        assert_eq!(split("/a 'open", &[]), ["/a", "open"]);
    }

    #[test]
    fn variables_alone_are_split_and_braced_ones_are_not() {
        let vars = [("OPTS", "-c 5 'x y'"), ("N", "7")];
        assert_eq!(
            split("/a $OPTS ${OPTS} -n${N} $N/x $$N %i $GONE", &vars),
            [
                "/a",
                "-c",
                "5",
                "x y",
                "-c 5 'x y'",
                "-n7",
                "$N/x",
                "$N",
                "7",
                "$GONE"
            ]
        );
        assert_eq!(split(":/a $N ${N}", &vars), ["/a", "$N", "${N}"]);
    }
}
