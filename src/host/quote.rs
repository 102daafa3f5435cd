//! An argument vector as text for the login shell of another machine: ssh hands that shell one line, whatever it was given.

/// The vector as one line that sh, bash, zsh, ksh and fish take apart into the very same words.
///
/// A word is put between single quotes; what some shell reads even there (`'`, `\`, `!`) stands outside of them behind a backslash.
///
/// # Errors
/// A word holds a zero byte, which no argument can; in words.
pub fn quote(argv: &[String]) -> Result<String, String> {
    let mut line = String::new();
    for (at, word) in argv.iter().enumerate() {
        if word.contains('\0') {
            return Err(format!("{word:?} contains a zero byte"));
        }
        if at > 0 {
            line.push(' ');
        }
        push(&mut line, word);
    }
    Ok(line)
}

fn push(line: &mut String, word: &str) {
    let plain =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | ',' | ':');
    if !word.is_empty() && word.chars().all(plain) {
        line.push_str(word);
        return;
    }
    let mut open = false;
    for c in word.chars() {
        let outside = matches!(c, '\'' | '\\' | '!');
        if outside == open {
            line.push('\'');
            open = !open;
        }
        if outside {
            line.push('\\');
        }
        line.push(c);
    }
    if open || word.is_empty() {
        line.push_str(if open { "'" } else { "''" });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::process::Command;

    fn quoted(words: &[&str]) -> String {
        quote(
            &words
                .iter()
                .map(|word| word.to_string())
                .collect::<Vec<_>>(),
        )
        .unwrap()
    }

    /// What a shell makes of the line: each word and a zero byte.
    fn read_by(shell: &str, line: &str) -> Option<Vec<u8>> {
        let output = Command::new(shell)
            .args(["-c", &format!("printf '%s\\0' {line}")])
            .output()
            .ok()?;
        assert!(output.status.success(), "{shell}: {line}");
        Some(output.stdout)
    }

    #[test]
    fn plain_words_stay_as_they_are_and_others_are_quoted() {
        assert_eq!(
            quoted(&["systemctl", "--user", "a.service"]),
            "systemctl --user a.service"
        );
        assert_eq!(
            quoted(&["", "a b", "$HOME", "it's"]),
            r"'' 'a b' '$HOME' 'it'\''s'"
        );
        assert_eq!(quoted(&[r"\", "a!", "''"]), r"\\ 'a'\! \'\'");
        assert!(quote(&["a\0b".to_string()]).is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]
        #[test]
        fn shells_read_the_very_same_words(words in prop::collection::vec("(?s)[^\0]{0,12}", 1..5)) {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let line = quoted(&words);
            let mut expected = Vec::new();
            for word in &words {
                expected.extend_from_slice(word.as_bytes());
                expected.push(0);
            }
            for shell in ["sh", "bash", "zsh", "fish"] {
                if let Some(read) = read_by(shell, &line) {
                    prop_assert_eq!(&read, &expected, "{} {}", shell, line);
                }
            }
        }
    }
}
