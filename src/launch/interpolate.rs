//! `${NAME:-default}` in compose files and `$(NAME)` in Kubernetes manifests.

use super::command::Env;
use super::traced::{Byte, Text, is_name, merged, opened, plain, shown};

/// Puts the variables of a compose file in; those that nobody sets stay open, the caller may have them.
pub(super) fn interpolate(text: &[Byte], variables: &Env) -> Text {
    let (mut out, mut at) = (Text::new(), 0);
    while let Some(&byte) = text.get(at) {
        let rest = text.get(at..).unwrap_or_default();
        let next = rest.get(1).map_or(0, |b| b.value);
        if !byte.is(b'$') {
            out.push(byte);
            at += 1;
        } else if next == b'$' {
            out.push(merged(b'$', rest.get(..2).unwrap_or_default()));
            at += 2;
        } else if next == b'{'
            && let Some(close) = closing(rest)
        {
            out.extend(braces(rest.get(..=close).unwrap_or_default(), variables));
            at += close + 1;
        } else {
            let tail = rest.get(1..).unwrap_or_default();
            let length = name_length(tail);
            let name = shown(tail.get(..length).unwrap_or_default());
            let whole = rest.get(..=length).unwrap_or_default();
            match variables.get(&name) {
                _ if !is_name(name.as_bytes()) => out.push(byte),
                Some(value) => out.extend_from_slice(value),
                None => out.extend(opened(whole)),
            }
            at += if is_name(name.as_bytes()) {
                length + 1
            } else {
                1
            };
        }
    }
    out
}

fn name_length(text: &[Byte]) -> usize {
    text.iter()
        .take_while(|b| b.value.is_ascii_alphanumeric() || b.value == b'_')
        .count()
}

/// The brace that closes the one at 1; braces inside have their own.
fn closing(text: &[Byte]) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, byte) in text.iter().enumerate().skip(1) {
        match byte.value {
            b'{' => depth += 1,
            b'}' => {
                depth -= 1;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

fn braces(whole: &[Byte], variables: &Env) -> Text {
    let inner = whole
        .get(2..whole.len().saturating_sub(1))
        .unwrap_or_default();
    let length = name_length(inner);
    let name = shown(inner.get(..length).unwrap_or_default());
    let rule = inner.get(length..).unwrap_or_default();
    let value = variables.get(&name);
    let filled = value.is_some_and(|value| !value.is_empty());
    let behind = |at: usize| interpolate(rule.get(at..).unwrap_or_default(), variables);
    let signs: Vec<u8> = plain(rule.get(..rule.len().min(2)).unwrap_or_default());
    match (signs.as_slice(), value) {
        ([b':', b'-'], Some(value)) if filled => value.clone(),
        ([b':', b'-'], _) => behind(2),
        ([b'-', ..], Some(value)) => value.clone(),
        ([b'-', ..], None) => behind(1),
        ([b':', b'+'], _) if filled => behind(2),
        ([b'+', ..], Some(_)) => behind(1),
        ([b':', b'+'] | [b'+', ..], _) => Text::new(),
        ([] | [b':', b'?'] | [b'?', ..], Some(value)) => value.clone(),
        _ => opened(whole),
    }
}

/// Puts a container's variables into its arguments; `$(NAME)` that nobody sets stays as it is, as Kubernetes leaves it.
pub(super) fn references(text: &[Byte], env: &Env) -> Text {
    let (mut out, mut at) = (Text::new(), 0);
    while let Some(&byte) = text.get(at) {
        let rest = text.get(at..).unwrap_or_default();
        let is = |ahead: usize, value: u8| rest.get(ahead).is_some_and(|b| b.is(value));
        if is(0, b'$') && is(1, b'$') {
            out.push(merged(b'$', rest.get(..2).unwrap_or_default()));
            at += 2;
            continue;
        }
        let close = rest.iter().position(|b| b.is(b')'));
        if is(0, b'$')
            && is(1, b'(')
            && let Some(close) = close
        {
            let name = shown(rest.get(2..close).unwrap_or_default());
            if let Some(value) = env.get(&name) {
                out.extend_from_slice(value);
                at += close + 1;
                continue;
            }
        }
        out.push(byte);
        at += 1;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::traced::{made, of_file};
    use super::*;

    #[test]
    fn each_rule_of_compose() {
        let mut env = Env::default();
        env.set("A", made(b"1"));
        env.set("E", made(b""));
        let text = "$A ${A} ${A:-x} ${B:-x} ${B:-${A}} ${E:-x}|${E-x}|${A:+y}${B:+y} $$A ${B} $B ${B:?no} $ 5$";
        assert_eq!(
            shown(&interpolate(&of_file(0, text.as_bytes()), &env)),
            "1 1 1 x 1 x||y $A ${B} $B ${B:?no} $ 5$"
        );
    }

    #[test]
    fn references_of_kubernetes() {
        let mut env = Env::default();
        env.set("A", made(b"1"));
        let text = "$(A) $$(A) $(B) $A $(";
        assert_eq!(
            shown(&references(&of_file(0, text.as_bytes()), &env)),
            "1 $(A) $(B) $A $("
        );
    }
}
