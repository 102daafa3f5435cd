//! Prompts of a stated length in tokens, real words, unlike any other from their first block on.
//!
//! Two ways lead to an exact length. Where the server tells the token ids of text, a prompt is a list of ids of real words and has
//! exactly as many tokens as it has ids. Elsewhere a prompt is text, made of a fixed multiset of words in an order of its own: words
//! are tokenised one by one, so every order has the same count, which the server's `usage` tells once and for all.

mod ask;

pub use ask::{Aim, Ask};

use std::sync::LazyLock;

/// Common English words, most of them one token in any large vocabulary.
const WORDS: &str = include_str!("../../../assets/words.txt");

/// What every text prompt ends with, so that the answer has something to say and goes on.
const TAIL: &str =
    "\n\nWrite a long and varied story in which these words appear.\n\nOnce upon a time";

/// The fewest different ids that make a prompt.
const FEWEST_IDS: usize = 64;

/// The input of one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Prompt {
    /// For `/v1/completions`.
    Ids(Vec<u32>),
    /// One user message for `/v1/chat/completions`.
    Message(String),
    /// The same as plain text for `/v1/completions`, where the server takes no ids.
    Text(String),
}

/// Which of a run's prompts one is: no two with different numbers begin alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Number {
    /// Printed with the run.
    pub seed: u64,
    /// Cell of the run, or whatever else tells groups of requests apart.
    pub group: u64,
    pub request: u64,
}

impl Number {
    fn rng(self) -> fastrand::Rng {
        let mixed = mix(mix(mix(self.seed) ^ self.group) ^ self.request);
        fastrand::Rng::with_seed(mixed)
    }
}

/// One round of SplitMix64: neighbouring numbers give unrelated ones.
fn mix(n: u64) -> u64 {
    let n = n.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ (n >> 31)
}

/// Token ids of real words, as this server numbers them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ids {
    words: Vec<u32>,
    tail: Vec<u32>,
}

impl Ids {
    /// The two texts of which the server must tell the ids: all words, and the tail.
    pub fn texts() -> [String; 2] {
        let words: Vec<&str> = WORDS.lines().collect();
        [format!(" {}", words.join(" ")), TAIL.to_string()]
    }

    /// From the ids of [`Ids::texts`]. `None` if they cannot be what they should.
    pub fn new(words: &[u32], tail: &[u32]) -> Option<Ids> {
        // A mark of beginning that the server puts before every text would be the only thing that both have in front.
        let marked = words.first() == tail.first();
        let skip = usize::from(marked);
        let mut words = words.get(skip..)?.to_vec();
        words.sort_unstable();
        words.dedup();
        let tail = tail.get(skip..)?.to_vec();
        (words.len() >= FEWEST_IDS).then_some(Ids { words, tail })
    }

    /// A prompt of exactly `tokens` ids.
    pub fn prompt(&self, tokens: u64, number: Number) -> Prompt {
        let mut rng = number.rng();
        let tokens = usize::try_from(tokens).unwrap_or(usize::MAX);
        // A short prompt is all words: the tail must not be what it mostly is.
        let tail = if tokens >= 4 * self.tail.len() {
            self.tail.as_slice()
        } else {
            &[]
        };
        let mut ids = Vec::with_capacity(tokens);
        while ids.len() + tail.len() < tokens {
            let at = rng.usize(..self.words.len());
            ids.extend(self.words.get(at));
        }
        ids.extend_from_slice(tail);
        Prompt::Ids(ids)
    }
}

/// Words of the deck that texts are dealt from, over and over. Its tokens are counted once; what a long text has over whole decks
/// is too little to put its count off.
pub const DECK_WORDS: usize = 512;

/// The deck, in one fixed order: picked from the whole list, which is alphabetical.
static DECK: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let mut deck: Vec<&str> = WORDS.lines().collect();
    fastrand::Rng::with_seed(0).shuffle(&mut deck);
    deck.truncate(DECK_WORDS);
    deck
});

/// A text of `count` words in an order of its own: any order of the same count has as many tokens.
pub fn words(count: usize, number: Number) -> String {
    let mut order: Vec<&str> = DECK.iter().copied().cycle().take(count).collect();
    number.rng().shuffle(&mut order);
    order.join(" ")
}

/// One long word of the deck.
pub fn word(number: Number) -> &'static str {
    let long: Vec<&str> = DECK.iter().copied().filter(|w| w.len() >= 6).collect();
    number.rng().choice(long).unwrap_or("harbor")
}

/// A message of `count` words and the tail.
pub fn message(count: usize, number: Number) -> Prompt {
    Prompt::Message(story(count, number))
}

/// The same as plain text.
pub fn text(count: usize, number: Number) -> Prompt {
    Prompt::Text(story(count, number))
}

fn story(count: usize, number: Number) -> String {
    format!("{}{TAIL}", words(count, number))
}

/// How many tokens a message of so many words has, by the server's own count.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    /// Tokens of a word, on average.
    pub per_word: f64,
    /// Tokens of the chat template and the tail, whatever the words.
    pub overhead: f64,
}

impl Scale {
    /// Before the server has said anything.
    pub const GUESS: Scale = Scale {
        per_word: 1.1,
        overhead: 30.0,
    };

    /// From two counts: words and tokens.
    pub fn from_counts(few: (usize, u64), many: (usize, u64)) -> Option<Scale> {
        let words = many.0.checked_sub(few.0).filter(|n| *n > 0)? as f64;
        let tokens = many.1.checked_sub(few.1).filter(|n| *n > 0)? as f64;
        let per_word = tokens / words;
        Some(Scale {
            per_word,
            overhead: (few.1 as f64 - few.0 as f64 * per_word).max(0.0),
        })
    }

    /// Words for a message of `tokens` tokens.
    pub fn words_for(&self, tokens: u64) -> usize {
        let words = (tokens as f64 - self.overhead) / self.per_word;
        words.round().max(1.0) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(request: u64) -> Number {
        Number {
            seed: 7,
            group: 2,
            request,
        }
    }

    fn ids() -> Ids {
        let words: Vec<u32> = (100..2100).collect();
        let tail: Vec<u32> = (5000..5020).collect();
        Ids::new(&words, &tail).unwrap()
    }

    fn list(prompt: Prompt) -> Vec<u32> {
        match prompt {
            Prompt::Ids(ids) => ids,
            Prompt::Message(_) | Prompt::Text(_) => panic!("no ids"),
        }
    }

    #[test]
    fn id_prompts_are_exact_repeatable_and_differ_from_the_first_block() {
        let ids = ids();
        for tokens in [1, 16, 79, 80, 1000, 120_000] {
            assert_eq!(list(ids.prompt(tokens, number(1))).len() as u64, tokens);
        }
        assert_eq!(ids.prompt(50, number(1)), ids.prompt(50, number(1)));
        let mut blocks: Vec<Vec<u32>> = (0..2000)
            .flat_map(|n| {
                let other = Number {
                    group: 3,
                    ..number(n)
                };
                let run = Number {
                    seed: 8,
                    ..number(n)
                };
                [number(n), other, run]
            })
            .map(|n| list(ids.prompt(64, n))[..16].to_vec())
            .collect();
        blocks.sort();
        blocks.dedup();
        assert_eq!(blocks.len(), 6000);
        assert_eq!(
            list(ids.prompt(200, number(1)))[180..],
            (5000..5020).collect::<Vec<u32>>()
        );
    }

    #[test]
    fn a_mark_of_beginning_is_left_out_and_nonsense_is_refused() {
        let words: Vec<u32> = std::iter::once(1).chain(100..300).collect();
        let tail = [1, 500, 501];
        let ids = Ids::new(&words, &tail).unwrap();
        assert!(!list(ids.prompt(400, number(0))).contains(&1));
        assert_eq!(Ids::new(&[5; 3000], &[6]), None);
        assert_eq!(Ids::new(&[], &[]), None);
    }

    #[test]
    fn every_order_of_a_text_has_the_same_words() {
        let sorted = |n| {
            let text = words(3000, number(n));
            let mut words: Vec<String> = text.split(' ').map(str::to_string).collect();
            words.sort();
            words
        };
        assert_eq!(sorted(1), sorted(2));
        assert_ne!(words(20, number(1)), words(20, number(2)));
        let mut list: Vec<&str> = WORDS.lines().collect();
        assert!(list.len() > 1500);
        list.sort_unstable();
        list.dedup();
        assert_eq!(list.len(), WORDS.lines().count());
        assert!(
            list.iter()
                .all(|w| w.bytes().all(|b| b.is_ascii_lowercase()))
        );
    }

    #[test]
    fn two_counts_give_the_scale() {
        let scale = Scale::from_counts((256, 340), (1024, 1300)).unwrap();
        assert_eq!(
            scale,
            Scale {
                per_word: 1.25,
                overhead: 20.0
            }
        );
        assert_eq!(scale.words_for(1020), 800);
        assert_eq!(scale.words_for(3), 1);
        assert_eq!(Scale::from_counts((5, 10), (5, 10)), None);
    }

    #[test]
    fn long_prompts_are_whole_and_all_different() {
        let ids = ids();
        let ask = Ask {
            model: "m",
            output: 200,
            kind: crate::engine::Kind::Vllm,
            aim: Aim::Speed,
        };
        let bodies: std::collections::HashSet<Vec<u8>> = (0..4)
            .map(|n| ask.body(&ids.prompt(120_000, number(n))).1)
            .collect();
        assert_eq!(bodies.len(), 4);
        assert!(bodies.iter().all(|body| body.len() > 120_000 * 4));
    }
}
