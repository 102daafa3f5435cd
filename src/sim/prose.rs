//! Plain English without end: sentences of real words that do not repeat themselves.

use super::tokens::pieces;
use std::collections::VecDeque;

const ADJECTIVES: [&str; 40] = [
    "quiet", "early", "broad", "patient", "narrow", "bright", "old", "careful", "distant", "small",
    "warm", "heavy", "plain", "gentle", "sharp", "steady", "hollow", "green", "silver", "ragged",
    "modest", "curious", "northern", "hidden", "long", "smooth", "wooden", "clever", "cold",
    "lively", "deep", "rough", "simple", "grey", "young", "open", "final", "western", "rare",
    "useful",
];
const NOUNS: [&str; 60] = [
    "river",
    "engineer",
    "harbour",
    "letter",
    "garden",
    "machine",
    "teacher",
    "window",
    "mountain",
    "market",
    "painter",
    "bridge",
    "village",
    "captain",
    "lantern",
    "forest",
    "answer",
    "station",
    "farmer",
    "map",
    "kitchen",
    "story",
    "tower",
    "doctor",
    "valley",
    "sailor",
    "library",
    "road",
    "weaver",
    "island",
    "meadow",
    "printer",
    "orchard",
    "clock",
    "pilot",
    "museum",
    "neighbour",
    "canal",
    "signal",
    "baker",
    "archive",
    "mirror",
    "stream",
    "builder",
    "theatre",
    "ladder",
    "cellar",
    "gardener",
    "horizon",
    "workshop",
    "singer",
    "compass",
    "barn",
    "chapel",
    "ferry",
    "notebook",
    "quarry",
    "scholar",
    "windmill",
    "chimney",
];
const VERBS: [&str; 40] = [
    "follows",
    "remembers",
    "carries",
    "crosses",
    "describes",
    "repairs",
    "watches",
    "finds",
    "measures",
    "paints",
    "leaves",
    "explains",
    "visits",
    "holds",
    "studies",
    "avoids",
    "opens",
    "answers",
    "gathers",
    "surprises",
    "shapes",
    "guards",
    "reaches",
    "counts",
    "invites",
    "teaches",
    "admires",
    "borrows",
    "outlasts",
    "improves",
    "lights",
    "questions",
    "praises",
    "reveals",
    "shelters",
    "supports",
    "touches",
    "warns",
    "welcomes",
    "needs",
];
const PLACES: [&str; 16] = [
    "before", "after", "near", "behind", "beside", "without", "against", "beyond", "under",
    "above", "along", "around", "despite", "inside", "outside", "towards",
];

/// A talker that never ends. The same seed says the same.
#[derive(Debug)]
pub struct Prose {
    rng: fastrand::Rng,
    ready: VecDeque<String>,
    /// Says one word for ever, as a broken engine does.
    loops: bool,
}

impl Prose {
    pub fn new(seed: u64, loops: bool) -> Self {
        Prose {
            rng: fastrand::Rng::with_seed(seed),
            ready: VecDeque::new(),
            loops,
        }
    }

    /// The next token's text.
    pub fn next_piece(&mut self) -> String {
        loop {
            if let Some(piece) = self.ready.pop_front() {
                return piece;
            }
            let sentence = if self.loops {
                " lambda".to_string()
            } else {
                self.sentence()
            };
            self.ready
                .extend(pieces(&sentence).into_iter().map(str::to_string));
        }
    }

    fn sentence(&mut self) -> String {
        let first = self.thing();
        let second = self.thing();
        let verb = self.pick(&VERBS);
        let tail = format!("{} the {}", self.pick(&PLACES), self.thing());
        match self.rng.u8(..6) {
            0 => format!(" The {first} {verb} a {second} {tail}."),
            1 => format!(" One {first} {verb} the {second}, {tail}."),
            2 => {
                let third = self.thing();
                format!(" Every {first} {verb} some {second} {tail}, and the {third} stays.")
            }
            3 => format!(" Another {first} {tail} {verb} this {second}."),
            4 => {
                let other = self.pick(&VERBS);
                format!(" The {first} {verb} and {other} the {second} {tail}.")
            }
            _ => format!(" Where a {first} {verb} the {second}, people meet {tail}."),
        }
    }

    fn thing(&mut self) -> String {
        let adjective = self.pick(&ADJECTIVES);
        let noun = self.pick(&NOUNS);
        format!("{adjective} {noun}")
    }

    fn pick(&mut self, words: &[&'static str]) -> &'static str {
        words
            .get(self.rng.usize(..words.len()))
            .copied()
            .unwrap_or("so")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn it_does_not_repeat_itself() {
        let mut prose = Prose::new(5, false);
        let text: String = (0..4000).map(|_| prose.next_piece()).collect();
        let words: Vec<&str> = text.split_whitespace().collect();
        let mut seen: HashMap<&[&str], usize> = HashMap::new();
        for window in words.windows(5) {
            *seen.entry(window).or_default() += 1;
        }
        let most = seen.values().max().copied().unwrap_or(0);
        assert!(most <= 3, "{most} times the same five words");
        assert_ne!(
            Prose::new(6, false).sentence(),
            Prose::new(5, false).sentence()
        );
    }

    #[test]
    fn a_broken_engine_says_one_word() {
        let mut prose = Prose::new(5, true);
        let text: String = (0..3).map(|_| prose.next_piece()).collect();
        assert_eq!(text, " lambda lambda lambda");
    }
}
