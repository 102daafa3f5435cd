//! Lengths, sizes and times as people type and read them.

/// Bytes in a GiB, as `nvidia-smi` counts.
pub const GIB: f64 = 1_073_741_824.0;

/// Why a length could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot read {input:?} as {unit}: {why}; {example}")]
pub struct LengthError {
    /// What was given.
    pub input: String,
    /// What it should have been.
    pub unit: &'static str,
    /// What is wrong with it.
    pub why: String,
    /// How it is written.
    pub example: &'static str,
}

/// Reads a **context length**: `k` and `K` mean 1024, `m` and `M` 1024 x 1024. `65536`, `65,536`, `65_536`, `64K`, `128k`.
pub fn parse_context(text: &str) -> Result<u64, LengthError> {
    parse_scaled(text, 1024)
}

/// Reads an **input or output length** or a count: `K` means 1000, `M` 1,000,000. `30K` is 30,000.
pub fn parse_count(text: &str) -> Result<u64, LengthError> {
    parse_scaled(text, 1000)
}

/// Reads a **time**: `90`, `90s`, `30m`, `2h`; seconds without a letter.
pub fn parse_seconds(text: &str) -> Result<u64, LengthError> {
    let trimmed = text.trim();
    let (digits, factor) = match trimmed.char_indices().next_back() {
        Some((at, 's')) => (&trimmed[..at], 1),
        Some((at, 'm')) => (&trimmed[..at], 60),
        Some((at, 'h')) => (&trimmed[..at], 3600),
        _ => (trimmed, 1),
    };
    let seconds = digits.trim().parse::<u64>().ok();
    seconds
        .and_then(|seconds| seconds.checked_mul(factor))
        .filter(|seconds| (1..=7 * 24 * 3600).contains(seconds))
        .ok_or_else(|| LengthError {
            input: text.to_string(),
            unit: "a time",
            why: "it is no number of seconds, minutes or hours up to a week".to_string(),
            example: "write 90s, 30m or 2h",
        })
}

fn parse_scaled(text: &str, kilo: u64) -> Result<u64, LengthError> {
    let fail = |why: &str| LengthError {
        input: text.to_string(),
        unit: "a length in tokens",
        why: why.to_string(),
        example: "write digits, or digits with K or M, for example 65536, 64K or 1M",
    };
    let trimmed = text.trim();
    let (digits, factor) = match trimmed.char_indices().next_back() {
        None => return Err(fail("it is empty")),
        Some((at, 'k' | 'K')) => (&trimmed[..at], kilo),
        Some((at, 'm' | 'M')) => (&trimmed[..at], kilo * kilo),
        Some(_) => (trimmed, 1),
    };
    let plain: String = digits
        .trim()
        .chars()
        .filter(|c| !matches!(c, ',' | '_' | ' '))
        .collect();
    if plain.is_empty() || !plain.chars().all(|c| c.is_ascii_digit()) {
        return Err(fail("it is not a whole number"));
    }
    let value: u64 = plain.parse().map_err(|_| fail("it is too large"))?;
    let value = value
        .checked_mul(factor)
        .ok_or_else(|| fail("it is too large"))?;
    if value == 0 {
        return Err(fail("it is zero"));
    }
    Ok(value)
}

/// `131072` as `131,072`.
pub fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// An input or output length for an axis or a title: `30K`, `1.5K`, `256`.
pub fn short_count(n: u64) -> String {
    if n >= 1_000_000 && n.is_multiple_of(100_000) {
        trim_zero(n as f64 / 1e6, "M")
    } else if n >= 1000 && n.is_multiple_of(100) {
        trim_zero(n as f64 / 1e3, "K")
    } else {
        thousands(n)
    }
}

fn trim_zero(value: f64, unit: &str) -> String {
    if (value - value.round()).abs() < 1e-9 {
        format!("{}{unit}", value.round())
    } else {
        format!("{value:.1}{unit}")
    }
}

/// Bytes as GiB with one decimal, without the unit: `41.6`.
pub fn gib(bytes: u64) -> String {
    format!("{:.1}", bytes as f64 / GIB)
}

/// A duration on a task line: `00:02`, `06:41`, `1:02:03`.
pub fn mm_ss(ms: u64) -> String {
    let s = ms / 1000;
    if s >= 3600 {
        format!("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60)
    } else {
        format!("{:02}:{:02}", s / 60, s % 60)
    }
}

/// A measured time: `162 ms`, `3.91 s`, `17.9 s`, `134 s`.
pub fn duration(ms: f64) -> String {
    if !ms.is_finite() {
        return "?".to_string();
    }
    if ms < 1000.0 {
        format!("{ms:.0} ms")
    } else if ms < 10_000.0 {
        format!("{:.2} s", ms / 1000.0)
    } else if ms < 100_000.0 {
        format!("{:.1} s", ms / 1000.0)
    } else {
        format!("{:.0} s", ms / 1000.0)
    }
}

/// The name of a model for a narrow place: a server that names it by a file is shown with the file's own name.
pub fn model_name(name: &str) -> &str {
    match name.starts_with('/') {
        true => name
            .rsplit('/')
            .find(|part| !part.is_empty())
            .unwrap_or(name),
        false => name,
    }
}

/// Removes what a terminal would obey: escape sequences, control characters, and marks that turn or hide text.
/// Tabs become one blank. Text from outside goes through here before it is drawn or printed.
pub fn clean(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => skip_escape(&mut chars),
            // The one-character forms of CSI, OSC, DCS, SOS, PM and APC.
            '\u{9b}' => skip_csi(&mut chars),
            '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => skip_string(&mut chars),
            '\t' => out.push(' '),
            c if c.is_control() => {}
            '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{2069}'
            | '\u{feff}'
            | '\u{fe00}'..='\u{fe0f}' => {}
            c => out.push(c),
        }
    }
    out
}

type Chars<'a> = std::iter::Peekable<std::str::Chars<'a>>;

fn skip_escape(chars: &mut Chars<'_>) {
    match chars.peek() {
        Some('[') => {
            chars.next();
            skip_csi(chars);
        }
        Some(']' | 'P' | 'X' | '^' | '_') => {
            chars.next();
            skip_string(chars);
        }
        Some('\u{20}'..='\u{2f}') => {
            while matches!(chars.peek(), Some('\u{20}'..='\u{2f}')) {
                chars.next();
            }
            chars.next();
        }
        Some('\u{30}'..='\u{7e}') => {
            chars.next();
        }
        _ => {}
    }
}

fn skip_csi(chars: &mut Chars<'_>) {
    while let Some(&c) = chars.peek() {
        if ('\u{20}'..='\u{3f}').contains(&c) {
            chars.next();
        } else {
            if ('\u{40}'..='\u{7e}').contains(&c) {
                chars.next();
            }
            return;
        }
    }
}

/// A control string ends at BEL or ST; one that never ends takes the rest of its line, not of the text.
fn skip_string(chars: &mut Chars<'_>) {
    while let Some(&c) = chars.peek() {
        match c {
            '\n' => return,
            '\u{7}' | '\u{9c}' => {
                chars.next();
                return;
            }
            '\u{1b}' => {
                chars.next();
                if chars.peek() == Some(&'\\') {
                    chars.next();
                }
                return;
            }
            _ => {
                chars.next();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_named_by_its_file_is_shown_without_the_way_there() {
        assert_eq!(model_name("/models/a b/qwen.gguf"), "qwen.gguf");
        assert_eq!(model_name("/models/qwen/"), "qwen");
        assert_eq!(model_name("Qwen/Qwen3.6-27B"), "Qwen/Qwen3.6-27B");
        assert_eq!(model_name("/"), "/");
    }

    #[test]
    fn context_counts_in_1024_and_lengths_in_1000() {
        assert_eq!(parse_context("128k"), Ok(131_072));
        assert_eq!(parse_context("32K"), Ok(32_768));
        assert_eq!(parse_context(" 65,536 "), Ok(65_536));
        assert_eq!(parse_context("1M"), Ok(1_048_576));
        assert_eq!(parse_count("30K"), Ok(30_000));
        assert_eq!(parse_count("1M"), Ok(1_000_000));
        for bad in [
            "",
            "k",
            "12x",
            "-5",
            "0",
            "1.5K",
            "99999999999999999999",
            "99999999999999999K",
            "６４K",
        ] {
            assert!(parse_context(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn figures_read_well() {
        assert_eq!(thousands(131_072), "131,072");
        assert_eq!(thousands(7), "7");
        assert_eq!(thousands(1_000_000), "1,000,000");
        assert_eq!(short_count(30_000), "30K");
        assert_eq!(short_count(1_500), "1.5K");
        assert_eq!(short_count(256), "256");
        assert_eq!(mm_ss(401_000), "06:41");
        assert_eq!(duration(3_914.0), "3.91 s");
        assert_eq!(duration(17_900.0), "17.9 s");
        assert_eq!(duration(162.4), "162 ms");
        assert_eq!(gib(44_667_659_878), "41.6");
    }

    #[test]
    fn nothing_that_a_terminal_obeys_comes_through() {
        assert_eq!(clean("a\u{1b}[31mred\u{1b}[0m b"), "ared b");
        assert_eq!(
            clean("\u{1b}]0;title\u{7}x\u{1b}]8;;http://a\u{1b}\\y"),
            "xy"
        );
        assert_eq!(clean("\u{9b}2Jx\u{1b}(Bz\u{1b}"), "xz");
        assert_eq!(clean("a\tb\rc\u{202e}d\u{200b}"), "a bcd");
        assert_eq!(clean("\u{1b}]52;c;never ends\nnext"), "next");
    }
}
