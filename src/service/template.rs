//! The launch as a template: where the context length goes.

use super::Config;

/// A launch with its numbers filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    pub argv: Vec<String>,
    pub env: Vec<(String, String)>,
}

/// Fills `{context}` (tokens per request) and `{context_total}` (that times the slots) into arguments and environment values.
///
/// A placeholder is a lower-case name in single braces; JSON (`{"method":"ngram"}`) and doubled braces (`{{ name }}`) are left
/// as they are. The error says in words which placeholder is unknown, or that the total is too large.
pub fn render(config: &Config) -> Result<Rendered, String> {
    if config.context == 0 {
        return Err("the context length is zero".to_string());
    }
    let total = config
        .context
        .checked_mul(config.launch.slots.max(1))
        .ok_or_else(|| {
            format!(
                "{} tokens times {} slots is too large a number",
                config.context, config.launch.slots
            )
        })?;
    let fill = |text: &String| fill(text, config.context, total);
    Ok(Rendered {
        argv: config
            .launch
            .argv
            .iter()
            .map(fill)
            .collect::<Result<_, _>>()?,
        env: config
            .launch
            .env
            .iter()
            .map(|(name, value)| Ok((name.clone(), fill(value)?)))
            .collect::<Result<_, String>>()?,
    })
}

fn fill(text: &String, context: u64, total: u64) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some((before, after)) = rest.split_once('{') {
        out.push_str(before);
        let doubled = after.starts_with('{');
        let name = after
            .split_once('}')
            .filter(|(name, _)| !doubled && is_name(name));
        match name {
            Some(("context", tail)) => {
                out.push_str(&context.to_string());
                rest = tail;
            }
            Some(("context_total", tail)) => {
                out.push_str(&total.to_string());
                rest = tail;
            }
            Some((name, _)) => {
                return Err(format!(
                    "unknown placeholder {{{name}}} in {text:?}; known are {{context}} and {{context_total}}"
                ));
            }
            None => {
                // The whole run of braces at once, so that the second of two is not taken for a single one.
                let run = after.len() - after.trim_start_matches('{').len();
                out.push_str(&"{".repeat(run + 1));
                rest = after.trim_start_matches('{');
            }
        }
    }
    out.push_str(rest);
    Ok(out)
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_lowercase() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Launch;

    fn config(argv: &[&str], context: u64, slots: u64) -> Config {
        Config {
            context,
            launch: Launch {
                argv: argv.iter().map(|text| text.to_string()).collect(),
                env: vec![("CTX".to_string(), "{context}".to_string())],
                cwd: None,
                slots,
            },
        }
    }

    #[test]
    fn the_numbers_go_where_the_template_says() {
        let rendered = render(&config(
            &["run", "--ctx-size={context_total}", "-c", "{context}"],
            4096,
            4,
        ));
        let rendered = rendered.unwrap();
        assert_eq!(rendered.argv, ["run", "--ctx-size=16384", "-c", "4096"]);
        assert_eq!(rendered.env, [("CTX".to_string(), "4096".to_string())]);
    }

    #[test]
    fn braces_that_are_no_placeholder_stay() {
        for text in [
            r#"{"method":"ngram","n":{"a":1}}"#,
            "{{ messages }}",
            "{{name}}",
            "{}",
            "{",
            "a{b",
            "{{{context",
            "${HOME}",
        ] {
            let rendered = render(&config(&[text], 1, 1)).unwrap();
            assert_eq!(rendered.argv, [text]);
        }
    }

    #[test]
    fn an_unknown_placeholder_is_refused_by_its_name() {
        let error = render(&config(&["-c", "{contxt}"], 1, 1)).unwrap_err();
        assert!(error.contains("{contxt}"), "{error}");
        assert!(render(&config(&["x"], 0, 1)).is_err());
        assert!(render(&config(&["x"], u64::MAX, 2)).is_err());
    }
}
