//! `%i` and its kin in units.

use super::traced::{Byte, Text, made, opened};

/// Expands what the unit's name tells; the rest only the manager knows.
pub(super) fn expand(text: &[Byte], unit: Option<&str>) -> Text {
    let (mut out, mut at) = (Vec::new(), 0);
    while let Some(&byte) = text.get(at) {
        let Some(&letter) = text.get(at + 1).filter(|_| byte.is(b'%')) else {
            out.push(byte);
            at += 1;
            continue;
        };
        let pair = text.get(at..at + 2).unwrap_or_default();
        match (letter.value, known(letter.value, unit)) {
            (b'%', _) => out.push(super::traced::merged(b'%', pair)),
            (_, Some(value)) => out.extend(made(value.as_bytes())),
            (letter, None) if letter.is_ascii_alphabetic() => out.extend(opened(pair)),
            _ => out.extend_from_slice(pair),
        }
        at += 2;
    }
    out
}

fn known(letter: u8, unit: Option<&str>) -> Option<String> {
    let name = unit?;
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let (prefix, instance) = match stem.split_once('@') {
        Some((prefix, instance)) => (prefix, instance),
        None => (stem, ""),
    };
    // A template by itself (name@.service) has an instance that is not known yet.
    let template = stem.ends_with('@');
    match letter {
        b'i' | b'I' if !template => Some(instance.to_string()),
        b'n' if !template => Some(name.to_string()),
        b'N' if !template => Some(stem.to_string()),
        b'p' | b'P' => Some(prefix.to_string()),
        b'j' | b'J' => Some(prefix.rsplit('-').next().unwrap_or(prefix).to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::traced::{of_file, shown};
    use super::*;

    #[test]
    fn the_name_tells_what_it_can() {
        let text = of_file(0, b"%i %p %j %n %N 50%% %h 5% %");
        assert_eq!(
            shown(&expand(&text, Some("llm-big@32768.service"))),
            "32768 llm-big big llm-big@32768.service llm-big@32768 50% %h 5% %"
        );
        let template = expand(&text, Some("llm@.service"));
        assert!(template[0].open && template[1].open);
        assert!(shown(&template).starts_with("%i llm llm %n"));
    }
}
