//! Small readers for figures in foreign texts.

/// The whole number right behind the first `needle`, thousands separators and a sign of a fraction ignored: `262,144` is 262144,
/// `524288.0` is 524288. Blanks between are skipped.
pub fn number_after(text: &str, needle: &str) -> Option<u64> {
    let at = text.find(needle)? + needle.len();
    leading_number(text.get(at..)?)
}

/// The whole number right before the first `needle`: `32768 cells`.
pub fn number_before(text: &str, needle: &str) -> Option<u64> {
    let head = text.get(..text.find(needle)?)?.trim_end();
    let from = head
        .char_indices()
        .rev()
        .take_while(|(_, c)| c.is_ascii_digit() || *c == ',')
        .last()?
        .0;
    leading_number(head.get(from..)?)
}

fn leading_number(text: &str) -> Option<u64> {
    let digits: String = text
        .trim_start()
        .chars()
        .take_while(|c| c.is_ascii_digit() || *c == ',')
        .filter(char::is_ascii_digit)
        .collect();
    digits.parse().ok()
}

/// The last percentage that a progress bar shows: `40%|####` and `40% Completed`. A line may hold several states of one bar, drawn over
/// each other with carriage returns.
pub fn last_percent(text: &str) -> Option<u8> {
    let at = text.rfind('%')?;
    let head = text.get(..at)?;
    let from = head
        .char_indices()
        .rev()
        .take_while(|(_, c)| c.is_ascii_digit())
        .last()?
        .0;
    head.get(from..)?.parse::<u8>().ok().filter(|p| *p <= 100)
}

/// The number with its fraction and sign right behind the first `needle`; blanks between are skipped.
pub fn float_after(text: &str, needle: &str) -> Option<f64> {
    let at = text.find(needle)? + needle.len();
    leading_float(text.get(at..)?).map(|(value, _)| value)
}

/// A size right behind the first `needle` in GiB. Engines write GB and mean GiB; without a unit it is GiB.
pub fn gib_after(text: &str, needle: &str) -> Option<f64> {
    let at = text.find(needle)? + needle.len();
    let (value, rest) = leading_float(text.get(at..)?)?;
    let rest = rest.trim_start();
    let scale = match rest.as_bytes().first() {
        Some(b'M') => 1024.0,
        Some(b'K' | b'k') => 1024.0 * 1024.0,
        Some(b'T') => 1.0 / 1024.0,
        _ => 1.0,
    };
    Some(rounded(value / scale))
}

/// Four decimals: sums of printed figures stay as exact as they were printed.
pub fn rounded(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}

fn leading_float(text: &str) -> Option<(f64, &str)> {
    let text = text.trim_start();
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let mut dots = 0;
    let digits = unsigned
        .bytes()
        .take_while(|byte| {
            dots += u32::from(*byte == b'.');
            byte.is_ascii_digit() || (*byte == b'.' && dots == 1)
        })
        .count();
    let length = text.len() - unsigned.len() + digits;
    let (number, rest) = text.split_at_checked(length)?;
    let value: f64 = number.strip_suffix('.').unwrap_or(number).parse().ok()?;
    value.is_finite().then_some((value, rest))
}

/// How many of how many a progress bar shows last: `12/17`.
pub fn last_parts(text: &str) -> Option<(u64, u64)> {
    let (slash, _) = text.rmatch_indices('/').find(|(at, _)| {
        let digit = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_digit);
        let bytes = text.as_bytes();
        digit(at.checked_sub(1).and_then(|before| bytes.get(before))) && digit(bytes.get(at + 1))
    })?;
    let total = leading_number(text.get(slash + 1..)?)?;
    let done = number_before(text.get(..=slash)?, "/")?;
    (total > 0 && done <= total).then_some((done, total))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_fractions_are_read() {
        assert_eq!(gib_after("size = 32768.00 MiB (", "size ="), Some(32.0));
        assert_eq!(gib_after("size: 3.25 GB, V", "size:"), Some(3.25));
        assert_eq!(gib_after("memory: -0.3 GiB", "memory:"), Some(-0.3));
        assert_eq!(float_after("f=0.85, x", "f="), Some(0.85));
        assert_eq!(float_after("f=0.85.", "f="), Some(0.85));
        for none in ["f=", "f=-", "f=.", "f=x", ""] {
            assert_eq!(float_after(none, "f="), None, "{none}");
        }
        assert_eq!(
            last_parts("71% Completed | 12/17 [01:02<00:26, 5.1s/it]"),
            Some((12, 17))
        );
        assert_eq!(last_parts("40%|####      | 2/5"), Some((2, 5)));
        assert_eq!(last_parts("a/b 9/3 x"), None);
        assert_eq!(last_parts("0/0"), None);
    }

    #[test]
    fn figures_are_found_where_the_texts_put_them() {
        assert_eq!(
            number_after("size: 262,144 tokens", "size: "),
            Some(262_144)
        );
        assert_eq!(number_after("(max=524288.0 or", "max="), Some(524_288));
        assert_eq!(
            number_after("n_ctx      =  4096", "n_ctx      ="),
            Some(4096)
        );
        assert_eq!(number_after("size: many", "size: "), None);
        assert_eq!(number_after("nothing", "size: "), None);
        assert_eq!(
            number_before("MiB ( 32768 cells, 16 layers", " cells"),
            Some(32_768)
        );
        assert_eq!(number_before("é 7 cells", " cells"), Some(7));
        assert_eq!(number_before("no cells", " cells"), None);
    }

    #[test]
    fn the_newest_state_of_a_bar_counts() {
        assert_eq!(last_percent("shards:  40% Completed | 2/5"), Some(40));
        assert_eq!(
            last_percent("shards:   0% Completed | 0/1shards: 100% Completed | 1/1"),
            Some(100)
        );
        assert_eq!(last_percent("Capturing:  ▏7%|▋         | 2/28"), Some(7));
        assert_eq!(last_percent("%"), None);
        assert_eq!(last_percent("999% of it"), None);
        assert_eq!(last_percent("nothing"), None);
    }
}
