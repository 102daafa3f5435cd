//! The tokenizer of the simulated model: short words are one token, long ones several. What `/tokenize` counts is what `usage` says.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// Letters of one token, its leading blank not counted.
const WORD: usize = 8;
/// Digits of one token.
const DIGITS: usize = 3;
/// Size of the vocabulary of the model that is simulated.
const VOCAB: u32 = 248_320;
/// Ids for marks of the chat template, at the end of the vocabulary.
const MARKS: u32 = 8;
const BEGIN: u32 = VOCAB - MARKS;
const END: u32 = VOCAB - MARKS + 1;

/// Splits a text into tokens. Joined again they are the text.
pub fn pieces(text: &str) -> Vec<&str> {
    let mut out = Vec::with_capacity(text.len() / 4);
    let mut rest = text;
    while !rest.is_empty() {
        let (piece, tail) = rest.split_at(piece_len(rest));
        out.push(piece);
        rest = tail;
    }
    out
}

/// How many tokens a text has.
pub fn count(text: &str) -> u64 {
    let mut rest = text;
    let mut tokens = 0;
    while !rest.is_empty() {
        rest = rest.get(piece_len(rest)..).unwrap_or_default();
        tokens += 1;
    }
    tokens
}

/// How many tokens the chat template adds to `messages` messages.
pub fn template(messages: usize) -> u64 {
    4 * messages as u64 + 3
}

/// Bytes of the first token: a blank may lead a word, a number or a mark.
fn piece_len(text: &str) -> usize {
    let lead = usize::from(text.starts_with(' '));
    let body = text.get(lead..).unwrap_or_default();
    let run = |limit: usize, wanted: fn(char) -> bool| {
        body.chars()
            .take(limit)
            .take_while(|c| wanted(*c))
            .map(char::len_utf8)
            .sum::<usize>()
    };
    let first = match body.chars().next() {
        None => return lead,
        Some(c) => c,
    };
    if first.is_ascii_alphabetic() {
        lead + run(WORD, |c| c.is_ascii_alphabetic())
    } else if first.is_ascii_digit() {
        lead + run(DIGITS, |c| c.is_ascii_digit())
    } else if first.is_whitespace() && lead == 1 {
        // Of several blanks the last one leads the word behind it.
        lead
    } else {
        lead + first.len_utf8()
    }
}

/// Turns texts into ids and, for ids that it has given out, back.
#[derive(Debug, Default)]
pub struct Tokenizer {
    given: Mutex<HashMap<u32, String>>,
}

impl Tokenizer {
    /// The ids of a text. The same text has the same ids in every process.
    pub fn encode(&self, text: &str) -> Vec<u32> {
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        pieces(text)
            .into_iter()
            .map(|piece| {
                let id = id_of(piece);
                given.entry(id).or_insert_with(|| piece.to_string());
                id
            })
            .collect()
    }

    /// The text of ids; one that this process has never given out is a `?`.
    pub fn decode(&self, ids: &[u32]) -> String {
        let given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        ids.iter()
            .map(|id| given.get(id).map_or("?", String::as_str))
            .collect()
    }

    /// The prompt of a conversation by the chat template, which adds four tokens to each message and three at the end.
    pub fn encode_chat<'a>(
        &self,
        messages: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Vec<u32> {
        let line_end = id_of("\n");
        let mut out = Vec::new();
        for (role, content) in messages {
            out.extend([BEGIN, id_of(role), line_end]);
            out.extend(self.encode(content));
            out.push(END);
        }
        out.extend([BEGIN, id_of("assistant"), line_end]);
        out
    }
}

fn id_of(piece: &str) -> u32 {
    let hash = piece.bytes().fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    hash % (VOCAB - MARKS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_join_to_the_text() {
        for text in [
            "",
            "The quick brown fox.",
            "  two blanks\n\n and lines\t",
            "internationalisation 1234567 é漢字 👍🏽 end ",
        ] {
            assert_eq!(pieces(text).concat(), text);
            assert_eq!(count(text), pieces(text).len() as u64);
        }
        assert_eq!(
            pieces("A river, 12345!"),
            ["A", " river", ",", " 123", "45", "!"]
        );
        assert_eq!(pieces("internationally"), ["internat", "ionally"]);
        assert_eq!(pieces("a  b"), ["a", " ", " b"]);
    }

    #[test]
    fn texts_come_back_from_ids() {
        let tokenizer = Tokenizer::default();
        let ids = tokenizer.encode("The code word is MARIGOLD-42.");
        assert_eq!(tokenizer.decode(&ids), "The code word is MARIGOLD-42.");
        assert_eq!(tokenizer.decode(&[1]), "?");
        assert_eq!(
            Tokenizer::default().encode("The code word is MARIGOLD-42."),
            ids
        );
        let chat = tokenizer.encode_chat([("user", "hi there")]);
        assert_eq!(chat.len() as u64, count("hi there") + template(1));
    }
}
