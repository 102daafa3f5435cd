//! `$((32 * 1024))`: numbers that a shell would work out.

/// The value of a whole `$((…))` in which every number is written out.
pub(super) fn value(text: &str) -> Option<u64> {
    let inner = text.strip_prefix("$((")?.strip_suffix("))")?;
    let mut rest = inner.trim();
    let value = sum(&mut rest)?;
    rest.is_empty().then_some(value)
}

type Operation = fn(u64, u64) -> Option<u64>;

const SUMS: [(&str, Operation); 2] = [("+", u64::checked_add), ("-", u64::checked_sub)];
const SHIFTS: [(&str, Operation); 1] = [("<<", shift)];
const PRODUCTS: [(&str, Operation); 2] = [("*", u64::checked_mul), ("/", u64::checked_div)];

fn shift(value: u64, by: u64) -> Option<u64> {
    value.checked_mul(2_u64.checked_pow(u32::try_from(by).ok()?)?)
}

/// The loosest of the operators: `<<`.
fn sum(rest: &mut &str) -> Option<u64> {
    chain(rest, &SHIFTS, |rest| {
        chain(rest, &SUMS, |rest| chain(rest, &PRODUCTS, number))
    })
}

fn chain(
    rest: &mut &str,
    operators: &[(&str, Operation)],
    operand: impl Fn(&mut &str) -> Option<u64>,
) -> Option<u64> {
    let mut value = operand(rest)?;
    'next: loop {
        for (sign, operation) in operators {
            if let Some(behind) = rest.strip_prefix(sign) {
                *rest = behind.trim_start();
                value = operation(value, operand(rest)?)?;
                continue 'next;
            }
        }
        return Some(value);
    }
}

fn number(rest: &mut &str) -> Option<u64> {
    let length = rest.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, behind) = rest.split_at_checked(length)?;
    *rest = behind.trim_start();
    // A leading zero means octal to a shell.
    let octal = digits.len() > 1 && digits.starts_with('0');
    digits.parse().ok().filter(|_| !octal)
}

#[cfg(test)]
mod tests {
    use super::value;

    #[test]
    fn only_what_is_written_out_has_a_value() {
        assert_eq!(value("$((32*1024))"), Some(32_768));
        assert_eq!(value("$(( 2 + 3 * 4 << 1 ))"), Some(28));
        assert_eq!(value("$((65536/4-1))"), Some(16_383));
        for text in [
            "$((A*2))",
            "$((2**3))",
            "$((010))",
            "$(())",
            "$((1/0))",
            "$((1-2))",
            "$((2+))",
            "5",
        ] {
            assert_eq!(value(text), None, "{text}");
        }
    }
}
