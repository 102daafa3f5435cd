//! What the simulated model says: sense where a question is simple, prose otherwise.

use super::prose::Prose;
use super::tokens::pieces;
use std::collections::VecDeque;

/// Tokens after which prose ends by itself when a long text is wanted.
const LONG: u32 = 4096;
/// Tokens after which it ends in answer to a short question.
const SHORT: u32 = 120;
/// A prompt of more bytes than this wants a long text.
const LONG_PROMPT: usize = 1000;

/// An answer that is given out token by token.
#[derive(Debug)]
pub struct Reply {
    /// Tokens after which the model ends by itself.
    pub natural: u32,
    ready: VecDeque<String>,
    prose: Prose,
}

impl Reply {
    /// Plans the answer to the last message, of which all that came before is `prompt`'s beginning.
    pub fn plan(prompt: &str, question: &str, seed: u64, loops: bool) -> Self {
        let seed = question.bytes().fold(seed, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let said = if loops {
            None
        } else {
            needle(prompt)
                .map(|word| format!("The code word is {word}."))
                .or_else(|| simple(question))
        };
        let ready: VecDeque<String> = said
            .iter()
            .flat_map(|text| pieces(text))
            .map(str::to_string)
            .collect();
        let natural = match said {
            Some(_) => u32::try_from(ready.len()).unwrap_or(u32::MAX),
            None if question.len() > LONG_PROMPT || wants_much(question) => LONG,
            None => SHORT,
        };
        Reply {
            natural,
            ready,
            prose: Prose::new(seed, loops),
        }
    }

    /// The text of the next `tokens` tokens. Behind the natural end prose follows.
    pub fn take(&mut self, tokens: u32) -> String {
        (0..tokens)
            .map(|_| {
                self.ready
                    .pop_front()
                    .unwrap_or_else(|| self.prose.next_piece())
            })
            .collect()
    }
}

fn wants_much(question: &str) -> bool {
    let lower = question.to_ascii_lowercase();
    ["long", "story", "essay", "detail", "write", "as much as"]
        .iter()
        .any(|word| lower.contains(word))
}

/// The word that a text hides: what follows the first `code word is` and its kind.
fn needle(prompt: &str) -> Option<String> {
    // Byte for byte as long as the text itself, so that places found in one hold in the other.
    let lower = prompt.to_ascii_lowercase();
    let marks = [
        "code word is",
        "codeword is",
        "secret word is",
        "secret code is",
        "secret number is",
        "magic word is",
        "magic number is",
        "password is",
        "passphrase is",
        "passcode is",
        "access code is",
    ];
    marks.iter().find_map(|mark| {
        lower.match_indices(mark).find_map(|(at, _)| {
            let tail = prompt.get(at + mark.len()..)?;
            let tail = tail.trim_start_matches([':', ' ', '"', '\'', '`', '*']);
            let word: String = tail
                .chars()
                .take_while(|c| c.is_alphanumeric() || matches!(c, '-' | '_'))
                .take(64)
                .collect();
            (!word.is_empty()).then_some(word)
        })
    })
}

/// Short questions as smoke tests ask them.
fn simple(question: &str) -> Option<String> {
    if question.len() > 400 {
        return None;
    }
    let lower = question.to_ascii_lowercase();
    if let Some(result) = arithmetic(&lower) {
        return Some(format!("The answer is {result}."));
    }
    if let Some(numbers) = count(&lower) {
        return Some(numbers);
    }
    let facts = [
        ("capital of france", "The capital of France is Paris."),
        ("capital of germany", "The capital of Germany is Berlin."),
        ("capital of italy", "The capital of Italy is Rome."),
        ("capital of spain", "The capital of Spain is Madrid."),
        ("capital of japan", "The capital of Japan is Tokyo."),
        (
            "primary colo",
            "The primary colours are red, yellow and blue.",
        ),
        ("colours", "Red, green and blue."),
        ("colors", "Red, green and blue."),
        (
            "days of the week",
            "Monday, Tuesday, Wednesday, Thursday, Friday, Saturday and Sunday.",
        ),
        (
            "sky",
            "The sky is blue because air scatters blue light more than red.",
        ),
        (
            "who are you",
            "I am a simulated language model, here to test vramp.",
        ),
        ("greet", "Hello! How can I help you today?"),
        ("hello", "Hello! How can I help you today?"),
        ("say hi", "Hi! How can I help you today?"),
        ("ready", "Ready."),
    ];
    facts
        .iter()
        .find(|(words, _)| lower.contains(words))
        .map(|(_, answer)| (*answer).to_string())
}

/// The result of the first `number operator number` in a text.
fn arithmetic(text: &str) -> Option<i64> {
    let words: Vec<String> = split_operators(text);
    words.windows(3).find_map(|three| {
        let [left, operator, right] = three else {
            return None;
        };
        let left: i64 = left.parse().ok()?;
        let right: i64 = right.parse().ok()?;
        match operator.as_str() {
            "+" | "plus" => left.checked_add(right),
            "and" if text.contains("sum") => left.checked_add(right),
            "-" | "minus" => left.checked_sub(right),
            "*" | "x" | "×" | "times" => left.checked_mul(right),
            "/" | "by" if right != 0 && left % right == 0 => Some(left / right),
            _ => None,
        }
    })
}

/// The numbers of `count from 1 to 5`.
fn count(text: &str) -> Option<String> {
    let words = split_operators(text.get(text.find("count")?..)?);
    let mut numbers = words.iter().filter_map(|word| word.parse::<u64>().ok());
    let (from, to) = (numbers.next()?, numbers.next()?);
    let counted: Vec<String> = (from..=to).take(50).map(|n| n.to_string()).collect();
    (!counted.is_empty()).then(|| format!("{}.", counted.join(", ")))
}

/// Words, numbers and operators apart, whether blanks stand between them or not.
fn split_operators(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut kind = 0;
    for c in text.chars() {
        let next = match c {
            '0'..='9' => 1,
            _ if c.is_alphabetic() => 2,
            '+' | '-' | '*' | '/' | '×' => 3,
            _ => 0,
        };
        match words.last_mut() {
            Some(word) if next == kind && next != 0 => word.push(c),
            _ if next != 0 => words.push(c.to_string()),
            _ => {}
        }
        kind = next;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(question: &str) -> String {
        let mut reply = Reply::plan(question, question, 1, false);
        reply.take(reply.natural)
    }

    #[test]
    fn smoke_tests_get_sense() {
        assert_eq!(answer("What is 2 + 3?"), "The answer is 5.");
        assert_eq!(
            answer("What is 17*3? Answer with the number."),
            "The answer is 51."
        );
        assert_eq!(answer("How much is 12 times 12?"), "The answer is 144.");
        assert_eq!(
            answer("What is the capital of France?"),
            "The capital of France is Paris."
        );
        assert_eq!(answer("Count from 1 to 5."), "1, 2, 3, 4, 5.");
        assert_eq!(answer("What is the sum of 20 and 22?"), "The answer is 42.");
        assert!(answer("Hello, who is there?").starts_with("Hello!"));
        let other = answer("Why do boats float?");
        assert!(other.split_whitespace().count() > 30, "{other}");
    }

    #[test]
    fn a_hidden_word_is_found() {
        let filler = "Nothing of note happened on that day. ".repeat(2000);
        for (hidden, word) in [
            ("The code word is MARIGOLD-42.", "MARIGOLD-42"),
            ("Remember: the secret code is \"48213\".", "48213"),
            ("the password is: heron, keep it", "heron"),
        ] {
            let prompt =
                format!("{hidden} {filler} Tell me what the code word is. What is the code word?");
            let said = answer(&prompt);
            assert!(said.contains(word), "{said}");
        }
        assert_eq!(needle("What is the code word? The code word is"), None);
        assert_eq!(needle("é the code word is é1"), Some("é1".to_string()));
    }

    #[test]
    fn a_long_text_goes_on_and_an_answer_ends() {
        assert_eq!(
            Reply::plan("", "Write a long story.", 1, false).natural,
            LONG
        );
        assert_eq!(
            Reply::plan("", &"word ".repeat(400), 1, false).natural,
            LONG
        );
        assert_eq!(Reply::plan("", "What is 2 + 3?", 1, false).natural, 5);
        let mut reply = Reply::plan("", "What is 2 + 3?", 1, false);
        let text = reply.take(40);
        assert!(text.starts_with("The answer is 5. "), "{text}");
        assert!(
            Reply::plan("", "What is 2 + 3?", 1, true)
                .take(5)
                .contains("lambda lambda")
        );
    }
}
