//! Sizes of memory as people type them.

/// Reads `48GiB`, `49140MiB`, `27.5 GiB` or bytes as plain digits. GB means GiB, as the engines print it.
pub fn parse(text: &str) -> Result<u64, String> {
    let fail = |why: &str| {
        Err(format!(
            "cannot read {text:?} as a size: {why}; write for example 48GiB or 49140MiB"
        ))
    };
    let trimmed = text.trim();
    let at = trimmed
        .find(|c: char| c.is_ascii_alphabetic())
        .unwrap_or(trimmed.len());
    let (digits, unit) = trimmed.split_at(at);
    let power: u32 = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => return fail("its unit is none of MiB, GiB and TiB"),
    };
    let digits: String = digits
        .chars()
        .filter(|c| !matches!(c, ' ' | ',' | '_'))
        .collect();
    let plain = digits.chars().all(|c| c.is_ascii_digit() || c == '.');
    let Some(number) = digits.parse::<f64>().ok().filter(|_| plain) else {
        return fail("it is not a number");
    };
    let bytes = number * (1u64 << power) as f64;
    if bytes < 1.0 || bytes > (1u64 << 50) as f64 {
        return fail("no card has so much or so little");
    }
    if power == 0 && bytes < (1u64 << 20) as f64 {
        return fail("without a unit it is in bytes, and that is less than 1 MiB");
    }
    Ok(bytes as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_with_their_units() {
        assert_eq!(parse("48GiB"), Ok(48 << 30));
        assert_eq!(parse("48 GB"), Ok(48 << 30));
        assert_eq!(parse("49,140MiB"), Ok(49_140 << 20));
        assert_eq!(parse("27.5g"), Ok((27 << 30) + (1 << 29)));
        assert_eq!(parse("51539607552"), Ok(48 << 30));
        for bad in [
            "",
            "GiB",
            "48",
            "-3GiB",
            "1e3GiB",
            "48 apples",
            "9999999TiB",
            "1.2.3GiB",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
