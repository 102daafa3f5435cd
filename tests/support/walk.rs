//! Steps of the operator's walk, by keys alone.

use super::term::{Term, key};
use portable_pty::ExitStatus;
use std::time::{Duration, Instant};

/// A question is deaf for 400 ms after its first frame; nobody reads one faster than this.
const READ: Duration = Duration::from_millis(700);
/// How long the end of the program may take.
const PATIENCE: Duration = Duration::from_secs(20);

impl Term {
    /// Waits for a question that has `words`, reads it, and answers with `keys`.
    pub fn answer(&self, words: &str, keys: &str, patience: Duration) {
        self.wait_for(words, patience);
        std::thread::sleep(READ);
        self.keys(keys);
        // An Esc and a key right after it would be one key with Alt.
        self.settle(Duration::from_millis(150));
    }

    /// Quits, says yes where something still runs, and waits for the end.
    pub fn leave(&mut self) -> ExitStatus {
        self.keys("q");
        let start = Instant::now();
        while self.ended().is_none() && start.elapsed() < PATIENCE {
            if self.screen().contains("Quit?") {
                self.answer("Quit?", "y", PATIENCE);
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        self.wait_exit(PATIENCE)
    }

    /// Says yes to a restart at `context`, as it is written on the screen, once its question is there.
    pub fn restart_at(&self, context: &str, patience: Duration) {
        self.answer(&format!("server at {context} tokens"), "y", patience);
    }

    /// Runs the task whose line has `title`: searches for it and presses Enter.
    pub fn run_task(&self, title: &str) {
        self.select_task(title);
        self.keys(key::ENTER);
    }

    /// Selects the first task whose line has `title`.
    pub fn select_task(&self, title: &str) {
        self.keys("1g");
        self.type_in("/", title);
    }

    /// Sets the context freely and waits for the restart's question.
    pub fn set_context(&self, context: &str) {
        self.type_in("c", context);
    }

    /// Opens a field with `open`, replaces what it holds by `text`, and leaves it with Enter.
    fn type_in(&self, open: &str, text: &str) {
        self.keys(open);
        self.settle(Duration::from_millis(150));
        self.keys(&key::BACKSPACE.repeat(40));
        self.keys(text);
        self.settle(Duration::from_millis(150));
        self.keys(key::ENTER);
        self.settle(Duration::from_millis(150));
    }
}
