//! The prefix cache: which leading blocks of a prompt have been computed before.

use std::collections::{HashSet, VecDeque};

/// Tokens of a block. Chat templates begin alike; a block is longer than what they share.
const BLOCK: usize = 16;

/// Known blocks, oldest first out.
#[derive(Debug, Default)]
pub struct PrefixCache {
    known: HashSet<u64>,
    order: VecDeque<u64>,
    capacity: usize,
}

impl PrefixCache {
    /// A cache over a pool of `tokens`.
    pub fn new(tokens: u64) -> Self {
        PrefixCache {
            capacity: usize::try_from(tokens).unwrap_or(usize::MAX) / BLOCK,
            ..PrefixCache::default()
        }
    }

    /// Tokens at the head of `prompt` that are known, never all of it: the last token is always computed. All of its whole blocks are
    /// known from here on.
    pub fn use_prompt(&mut self, prompt: &[u32]) -> u64 {
        let mut cached = 0;
        let mut unbroken = true;
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for block in prompt.chunks_exact(BLOCK) {
            for token in block {
                hash = (hash ^ u64::from(*token)).wrapping_mul(0x0100_0000_01b3);
            }
            if self.known.contains(&hash) {
                cached += if unbroken { BLOCK } else { 0 };
            } else {
                unbroken = false;
                self.insert(hash);
            }
        }
        cached.min(prompt.len().saturating_sub(1)) as u64
    }

    fn insert(&mut self, hash: u64) {
        while self.order.len() >= self.capacity {
            match self.order.pop_front() {
                Some(oldest) => self.known.remove(&oldest),
                None => return,
            };
        }
        self.known.insert(hash);
        self.order.push_back(hash);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_repeated_head_is_known() {
        let mut cache = PrefixCache::new(1 << 16);
        let first: Vec<u32> = (0..100).collect();
        assert_eq!(cache.use_prompt(&first), 0);
        assert_eq!(cache.use_prompt(&first), 96);
        let mut other = first.clone();
        other[40] = 7;
        assert_eq!(cache.use_prompt(&other), 32);
        let unique: Vec<u32> = std::iter::once(999).chain(1..100).collect();
        assert_eq!(cache.use_prompt(&unique), 0, "the first block differs");
        assert_eq!(
            cache.use_prompt(&first[..16]),
            15,
            "the last token is computed"
        );
    }

    #[test]
    fn it_forgets_and_stays_small() {
        let mut cache = PrefixCache::new(160);
        for start in 0..100_u32 {
            let prompt: Vec<u32> = (start * 1000..start * 1000 + 64).collect();
            cache.use_prompt(&prompt);
        }
        assert_eq!(cache.order.len(), 10);
        assert_eq!(cache.known.len(), 10);
        let first: Vec<u32> = (0..64).collect();
        assert_eq!(cache.use_prompt(&first), 0);
        assert_eq!(PrefixCache::new(0).use_prompt(&first), 0);
    }
}
