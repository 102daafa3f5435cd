//! Judging answers beside the measurement, on a thread of its own: looking for loops costs more than reading the stream did.

use crate::bench::stream::Answer;
use crate::bench::validity::Judged;
use std::io;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

/// Most bytes of an answer that are judged: its end.
const TEXT_KEPT: usize = 16 * 1024;
/// Answers that wait to be judged. One that finds no room is not judged, rather than waited for.
const WAITING: usize = 256;
/// So many answers are all judged, of those after them one in [`ONE_IN`].
const ALL_OF: u64 = 200;
const ONE_IN: u64 = 10;

#[derive(Debug)]
pub struct Judge {
    texts: SyncSender<String>,
    thread: JoinHandle<Judged>,
    seen: u64,
}

impl Judge {
    pub fn start() -> io::Result<Judge> {
        let (texts, received) = sync_channel::<String>(WAITING);
        let thread = std::thread::Builder::new()
            .name("vramp-judge".to_string())
            .spawn(move || {
                let mut judged = Judged::default();
                received.iter().for_each(|text| judged.add(&text));
                judged
            })?;
        Ok(Judge {
            texts,
            thread,
            seen: 0,
        })
    }

    /// Takes a good answer.
    pub fn look(&mut self, answer: &mut Answer) {
        self.seen += 1;
        if self.seen <= ALL_OF || self.seen.is_multiple_of(ONE_IN) {
            let _ = self.texts.try_send(end_of(answer));
        }
    }

    /// The verdict on all of them.
    pub fn finish(self) -> Judged {
        drop(self.texts);
        // A panic of the thread was reported by the hook; then nothing was judged.
        self.thread.join().unwrap_or_default()
    }
}

fn end_of(answer: &mut Answer) -> String {
    let mut text = std::mem::take(if answer.text.is_empty() {
        &mut answer.reasoning
    } else {
        &mut answer.text
    });
    let from = text.len().saturating_sub(TEXT_KEPT);
    if let Some(from) = (from..=text.len()).find(|at| text.is_char_boundary(*at)) {
        text.drain(..from);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_and_empty_answers_are_counted() {
        let mut judge = Judge::start().unwrap();
        for text in ["fine words", " ", &"\u{fc}lambda ".repeat(9000)] {
            let mut answer = Answer {
                text: text.to_string(),
                ..Answer::default()
            };
            judge.look(&mut answer);
        }
        let mut thinks = Answer {
            reasoning: "only thoughts".into(),
            ..Answer::default()
        };
        judge.look(&mut thinks);
        let judged = judge.finish();
        assert_eq!((judged.judged, judged.loops, judged.empty), (4, 1, 1));
        assert_eq!(judged.unit.as_deref(), Some("\u{fc}lambda"));
    }
}
