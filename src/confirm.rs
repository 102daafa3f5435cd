//! What touches a production server needs its own confirmation. The types make it so:
//! the code that acts takes a [`Confirmed`], only [`Pending::answer`], [`Pending::by_number`] and [`Pending::by_word`] make one, and it
//! cannot be read from a file.

use crate::clock::Now;

/// A dialog ignores keys for this long after its first frame: they were typed for what was there before.
pub const DEAF_MS: u64 = 400;

/// An action that waits for the operator's answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Pending<T> {
    action: T,
    shown: Option<Now>,
}

/// An action that the operator confirmed. It can be used once.
#[derive(Debug, PartialEq)]
pub struct Confirmed<T>(T);

/// What an answer came to.
#[derive(Debug, PartialEq)]
pub enum Answer<T> {
    /// The dialog was not on screen long enough: the key does not count.
    TooEarly(Pending<T>),
    /// Yes.
    Confirmed(Confirmed<T>),
}

impl<T> Pending<T> {
    /// Asks for `action`; nobody has seen the question yet.
    pub fn new(action: T) -> Self {
        Pending {
            action,
            shown: None,
        }
    }

    /// What is asked for.
    pub fn action(&self) -> &T {
        &self.action
    }

    /// The action with a change of the operator's. The question is another one by that, and nobody has seen it yet.
    pub fn amend(&mut self, change: impl FnOnce(&mut T)) {
        change(&mut self.action);
        self.shown = None;
    }

    /// The first frame that shows the question was drawn. Later calls change nothing.
    pub fn shown(&mut self, at: Now) {
        self.shown.get_or_insert(at);
    }

    /// Whether a key pressed now counts.
    pub fn listens(&self, at: Now) -> bool {
        self.shown.is_some_and(|shown| at.since(shown) >= DEAF_MS)
    }

    /// The operator's yes.
    pub fn answer(self, at: Now) -> Answer<T> {
        if self.listens(at) {
            Answer::Confirmed(Confirmed(self.action))
        } else {
            Answer::TooEarly(self)
        }
    }

    /// Without a screen, the operator's yes is the very number of the action, typed on the command line.
    pub fn by_number(self, typed: u64, wanted: u64) -> Result<Confirmed<T>, Pending<T>> {
        if typed == wanted {
            Ok(Confirmed(self.action))
        } else {
            Err(self)
        }
    }

    /// The same for an action without a number: its very word, typed on the command line.
    pub fn by_word(self, typed: &str, wanted: &str) -> Result<Confirmed<T>, Pending<T>> {
        if typed == wanted {
            Ok(Confirmed(self.action))
        } else {
            Err(self)
        }
    }
}

impl<T> Confirmed<T> {
    /// The action, to be carried out.
    pub fn into_inner(self) -> T {
        self.0
    }

    /// The action, to be looked at.
    pub fn action(&self) -> &T {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(mono_ms: u64) -> Now {
        Now {
            mono_ms,
            unix_ms: 0,
        }
    }

    #[test]
    fn keys_queued_before_the_question_never_answer_it() {
        let pending = Pending::new(7);
        let Answer::TooEarly(mut pending) = pending.answer(at(10_000)) else {
            panic!("never drawn, yet answered")
        };
        pending.shown(at(10_000));
        pending.shown(at(20_000));
        let Answer::TooEarly(pending) = pending.answer(at(10_399)) else {
            panic!("too early, yet answered")
        };
        assert!(matches!(
            pending.answer(at(10_400)),
            Answer::Confirmed(Confirmed(7))
        ));
    }

    #[test]
    fn what_was_changed_is_read_anew() {
        let mut pending = Pending::new(7);
        pending.shown(at(0));
        assert!(pending.listens(at(500)));
        pending.amend(|action| *action = 8);
        assert!(!pending.listens(at(500)));
        pending.shown(at(600));
        assert!(matches!(
            pending.answer(at(1000)),
            Answer::Confirmed(Confirmed(8))
        ));
    }

    #[test]
    fn only_the_very_number_confirms() {
        assert!(Pending::new(()).by_number(65_535, 65_536).is_err());
        assert!(Pending::new(()).by_number(65_536, 65_536).is_ok());
        assert!(Pending::new(()).by_word("go", "go-on").is_err());
        assert!(Pending::new(()).by_word("go-on", "go-on").is_ok());
    }
}
