//! Text that has fallen into a loop.
//!
//! A looping answer is easy to draft, so it is fast: its speed is no result. Ordinary lists, tables and rhymes repeat a little; a loop
//! repeats the same thing over most of the text, or up to its end.

use std::collections::HashMap;

/// Words that may make up one repeated unit.
const LONGEST_UNIT_WORDS: usize = 64;
/// Characters that may make up one repeated unit, where there are no blanks to part words.
const LONGEST_UNIT_CHARS: usize = 64;
/// Only so much of the end of a long text is looked at.
const WORDS_LOOKED_AT: usize = 2000;
const CHARS_LOOKED_AT: usize = 4000;

/// What the text repeats without end, if it does.
pub fn looks_like_a_loop(text: &str) -> Option<String> {
    let words = last(
        &text.split_whitespace().collect::<Vec<_>>(),
        WORDS_LOOKED_AT,
    )
    .to_vec();
    repeated_words(&words)
        .or_else(|| repeated_chars(text))
        .or_else(|| poor_in_words(&words))
        .map(shortened)
}

fn last<T>(all: &[T], most: usize) -> &[T] {
    all.get(all.len().saturating_sub(most)..).unwrap_or(all)
}

fn shortened(unit: String) -> String {
    let unit = crate::units::clean(unit.trim());
    let word = unit.trim_end_matches([',', ';']);
    let unit = if word.is_empty() {
        unit
    } else {
        word.to_string()
    };
    match unit.char_indices().nth(60) {
        None => unit,
        Some((at, _)) => format!("{}…", unit.get(..at).unwrap_or_default()),
    }
}

/// The longest stretch in which everything equals what stood `period` before: where it starts and how long it is, `period` included.
fn longest_stretch<T: PartialEq>(items: &[T], period: usize) -> (usize, usize) {
    let mut best = (0, 0);
    let mut run = 0;
    let later = items.get(period..).unwrap_or_default();
    for (at, (before, now)) in items.iter().zip(later).enumerate() {
        if before == now {
            run += 1;
            if run > best.1 {
                best = (at + 1 - run, run);
            }
        } else {
            run = 0;
        }
    }
    match best {
        (_, 0) => (0, 0),
        (start, run) => (start, run + period),
    }
}

/// The same words over and over.
fn repeated_words(words: &[&str]) -> Option<String> {
    for period in 1..=LONGEST_UNIT_WORDS.min(words.len() / 3) {
        let (start, length) = longest_stretch(words, period);
        let times = length / period;
        let covers = |percent: usize| length * 100 >= words.len() * percent;
        let to_the_end = start + length == words.len();
        let loops = (times >= 3 && covers(80))
            || (times >= 4 && length >= 24 && covers(40))
            || (times >= 6 && length >= 24 && to_the_end)
            || (period <= 2 && times >= 20);
        let unit = words.get(start..start + period)?;
        // Rows of a table or of dots are no words.
        let says_something = unit.iter().any(|w| w.chars().any(char::is_alphabetic));
        if loops && (says_something || covers(80)) {
            return Some(unit.join(" "));
        }
    }
    None
}

/// The same characters over and over, where no blanks part them, and runs of one character.
fn repeated_chars(text: &str) -> Option<String> {
    let all: Vec<char> = text.trim_end().chars().collect();
    let chars = last(&all, CHARS_LOOKED_AT);
    for period in 1..=LONGEST_UNIT_CHARS.min(chars.len() / 3) {
        let (start, length) = longest_stretch(chars, period);
        let unit = chars.get(start..start + period)?;
        let covers = |percent: usize| length * 100 >= chars.len() * percent;
        let times = length / period;
        let is_rule = unit.iter().all(|c| "-=_*.~#+|:─━═ ".contains(*c));
        let loops = if period == 1 {
            (times >= 20 && !is_rule) || (times >= 12 && covers(60))
        } else {
            let to_the_end = start + length == chars.len();
            length >= 48 && times >= 6 && (covers(80) || (!is_rule && (covers(40) || to_the_end)))
        };
        let blank = unit.iter().all(|c| c.is_whitespace());
        if loops && (!blank || covers(60)) {
            return Some(if blank {
                "blanks".to_string()
            } else {
                unit.iter().collect()
            });
        }
    }
    None
}

/// Many words and few different phrases: a loop that varies a little or takes turns.
fn poor_in_words(words: &[&str]) -> Option<String> {
    const PHRASE: usize = 4;
    if words.len() < 60 {
        return None;
    }
    let mut counts: HashMap<&[&str], usize> = HashMap::new();
    for phrase in words.windows(PHRASE) {
        *counts.entry(phrase).or_default() += 1;
    }
    let total = words.len() + 1 - PHRASE;
    let (phrase, most) = counts.iter().max_by_key(|(phrase, n)| (**n, **phrase))?;
    let says_something = phrase.iter().any(|w| w.chars().any(char::is_alphabetic));
    (counts.len() * 4 < total && *most >= 6 && says_something).then(|| phrase.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_are_named_by_what_they_repeat() {
        let lambda = format!("The answer uses a{}", " lambda".repeat(240));
        let phrase = format!("I think that {}", "the cat sat on the mat and ".repeat(12));
        let late = format!("{} {}", PROSE, "and so on and on ".repeat(8));
        let lines = "1. I am sorry.\n".repeat(10);
        let turns: String = (0..60)
            .map(|n| ["we go to the sea ", "we go to the hill "][(n * n + n / 3) % 2])
            .collect();
        let rows: [(&str, &str); 14] = [
            ("lambda lambda lambda", "lambda"),
            (&lambda, "lambda"),
            (
                "eacheacheacheacheacheacheacheacheacheacheacheacheach",
                "each",
            ),
            (&phrase, "the cat sat on the mat and"),
            (&late, "and so on and on"),
            (&lines, "1. I am sorry."),
            ("!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!", "!"),
            ("Hmm aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "a"),
            ("lambda, lambda, lambda, lambda,", "lambda"),
            ("ha ha ha ha ha", "ha"),
            ("\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n.", "blanks"),
            ("0 0 0 0 0 0 0 0 0 0 0 0", "0"),
            (
                "好的好的好的好的好的好的好的好的好的好的好的好的好的好的好的好的好的好的好的好的好的好的好的好的好的",
                "好的",
            ),
            (&turns, "go to the"),
        ];
        for (text, unit) in rows {
            let found = looks_like_a_loop(text);
            assert!(
                found.as_deref().is_some_and(|f| f.contains(unit)),
                "{text:?}: {found:?}"
            );
        }
    }

    const PROSE: &str = "The harbour was quiet when the boats came home, and the men who had been out since dawn spoke little. \
        They carried the nets up to the wall, and they carried the baskets to the cart, and somebody lit a lamp. It had been a good day, \
        and a good day at the end of a bad month is worth more than a good day in June. The youngest of them counted the fish twice.";

    #[test]
    fn ordinary_text_is_no_loop() {
        let list = "Fruit:\n- apples\n- pears\n- plums\n- apples again\n\nTools:\n- a hammer\n- a saw\n- a file\n";
        let table =
            "| name | a | b |\n|------|---|---|\n| x | 0 | 0 |\n| y | 0 | 1 |\n| z | 1 | 0 |\n";
        let capitals: String = [
            "France Paris",
            "Spain Madrid",
            "Italy Rome",
            "Poland Warsaw",
            "Norway Oslo",
            "Greece Athens",
            "Peru Lima",
            "Chile Santiago",
            "Japan Tokyo",
            "Egypt Cairo",
        ]
        .iter()
        .filter_map(|pair| pair.split_once(' '))
        .map(|(land, town)| format!("The capital of {land} is {town}.\n"))
        .collect();
        let sums: String = (1..=10).map(|n| format!("{n} x 7 = {}\n", n * 7)).collect();
        let code = "fn main() {\n    let a = 1;\n    let b = 2;\n    println!(\"{}\", a + b);\n}\n// ------------------------------------------------------------\nfn next() {}\n";
        let song = "Row, row, row your boat, gently down the stream. Merrily, merrily, merrily, merrily, life is but a dream.";
        for text in [
            "",
            "42",
            "Hello",
            "Hi, welcome to my chat!",
            "no, no, no, wait",
            "very very very good",
            PROSE,
            list,
            table,
            &capitals,
            &sums,
            code,
            song,
        ] {
            assert_eq!(looks_like_a_loop(text), None, "{text:?}");
        }
        let numbers: Vec<String> = (0..500).map(|n| n.to_string()).collect();
        assert_eq!(looks_like_a_loop(&numbers.join(" ")), None);
        let words = crate::bench::prompt::words(
            1500,
            crate::bench::prompt::Number {
                seed: 1,
                group: 1,
                request: 1,
            },
        );
        assert_eq!(looks_like_a_loop(&words), None);
    }

    proptest::proptest! {
        #[test]
        fn any_text_can_be_judged(text in "\\PC{0,300}") {
            looks_like_a_loop(&text);
        }
    }
}
