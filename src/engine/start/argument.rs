//! Arguments as the engines print them at their start: `'max_model_len': 8192` and `context_length=8192`.

/// The value of `name` in a printed dictionary or call; `None` for `None`.
pub fn value<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let bytes = text.as_bytes();
    text.match_indices(name).find_map(|(at, _)| {
        let before = at.checked_sub(1).and_then(|before| bytes.get(before));
        let rest = text.get(at + name.len()..)?;
        let value = match before {
            Some(b'\'' | b'"') => rest.get(1..)?.strip_prefix(':')?,
            Some(b' ' | b'(' | b',' | b'{') | None => rest.strip_prefix('=')?,
            _ => return None,
        };
        let value = value.trim_start();
        let end = value.find([',', ')', '}', ' ']).unwrap_or(value.len());
        let value = value.get(..end)?.trim_matches(['\'', '"']);
        (value != "None" && !value.is_empty()).then_some(value)
    })
}

/// The same as a number.
pub fn number<T: std::str::FromStr>(text: &str, name: &str) -> Option<T> {
    value(text, name)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_read() {
        let dict = "non-default args: {'model_tag': '/m', 'port': 18092, 'max_model_len': 1000000, 'x': None}";
        assert_eq!(number(dict, "max_model_len"), Some(1_000_000));
        assert_eq!(number(dict, "port"), Some(18_092));
        assert_eq!(value(dict, "model_tag"), Some("/m"));
        assert_eq!(value(dict, "x"), None);
        let call = "server_args=ServerArgs(model_path='Q', context_length=32768, mem_fraction_static=0.85, tp_size=2)";
        assert_eq!(number(call, "context_length"), Some(32_768));
        assert_eq!(number(call, "mem_fraction_static"), Some(0.85));
        assert_eq!(number::<u64>(call, "size"), None);
        assert_eq!(value("", "x"), None);
    }
}
