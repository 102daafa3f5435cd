//! The shape of a line: what it says without its numbers. A log has millions of lines and few shapes.

use std::collections::HashSet;

/// Shapes that are remembered.
const MOST: usize = 4096;

/// FNV-1a over the bytes of a line, 64 bits.
const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0100_0000_01b3;

/// Two sums over a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Over all that is no digit.
    pub bare: u64,
    /// The same, with one mark where a number stands.
    pub with_numbers: u64,
}

impl Shape {
    pub fn of(text: &str) -> Shape {
        let take = |sum: u64, byte: u8| (sum ^ u64::from(byte)).wrapping_mul(PRIME);
        let (mut bare, mut with_numbers) = (BASIS, BASIS);
        let mut in_number = false;
        for byte in text.bytes() {
            let digit = byte.is_ascii_digit();
            if !digit {
                bare = take(bare, byte);
                with_numbers = take(with_numbers, byte);
            } else if !in_number {
                with_numbers = take(with_numbers, b'0');
            }
            in_number = digit;
        }
        Shape { bare, with_numbers }
    }
}

/// Sums that were met.
#[derive(Debug, Default)]
pub struct Shapes(HashSet<u64>);

impl Shapes {
    pub fn has(&self, shape: u64) -> bool {
        self.0.contains(&shape)
    }

    /// Remembers it; true if it was not there. With too many it begins anew.
    pub fn add(&mut self, shape: u64) -> bool {
        if self.0.len() >= MOST {
            self.0.clear();
        }
        self.0.insert(shape)
    }

    pub fn forget(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_may_differ_and_nothing_else() {
        let a = Shape::of("card 0 has 17 MiB");
        assert_eq!(a, Shape::of("card 11 has 9 MiB"));
        assert_ne!(a, Shape::of("card 0 had 17 MiB"));
        let without = Shape::of("card  has 17 MiB");
        assert_eq!(a.bare, without.bare);
        assert_ne!(a.with_numbers, without.with_numbers);
    }

    #[test]
    fn few_are_remembered() {
        let mut shapes = Shapes::default();
        for shape in 0..MOST as u64 {
            assert!(shapes.add(shape));
        }
        assert!(shapes.has(7));
        assert!(shapes.add(MOST as u64));
        assert!(!shapes.has(7) && shapes.0.len() == 1);
    }
}
