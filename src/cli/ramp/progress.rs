//! How far a walk is, on standard error, a line for each thing that happens.

use super::outlook::Outlook;
use crate::engine::{Phase, start};
use crate::ramp::{Event, Leg, RestartPlan, Step};
use crate::units::{clean, gib, thousands};
use std::io::Write;

/// Percent between two lines of one phase.
const EVERY: u8 = 10;

#[derive(Default)]
pub struct Progress {
    leg: Option<Leg>,
    phase: Option<(Phase, Option<u8>)>,
}

impl Progress {
    pub fn line(&self, text: &str) {
        // Where standard error is gone, there is nobody to tell.
        let _ = writeln!(std::io::stderr(), "{}", clean(text));
    }

    /// What is about to be done, and what comes back if it fails.
    pub fn plan(&mut self, plan: &RestartPlan, outlook: &Outlook) {
        self.leg = None;
        self.phase = None;
        self.line(&headline(plan));
        for line in outlook.lines() {
            self.line(&line);
        }
    }

    pub fn event(&mut self, event: &Event) {
        match event {
            Event::Step { leg, step, context } => self.step(*leg, *step, *context),
            Event::CardsHeld(held) => {
                let cards: Vec<String> = held
                    .iter()
                    .map(|(card, bytes)| format!("card {card} {} GiB", gib(*bytes)))
                    .collect();
                if !cards.is_empty() {
                    self.line(&format!("    still held: {}", cards.join(", ")));
                }
            }
            Event::Phase { phase, progress } => self.phase(*phase, *progress),
            Event::Still(Some(words)) => self.line(&format!("    {words}")),
            Event::Still(None) => self.line("    it gets on again"),
            // Lines of the server itself are in its log.
            Event::Log(text) => {
                if let Some(note) = text.strip_prefix("vramp: ") {
                    self.line(&format!("    {note}"));
                }
            }
            // Without a screen nobody is asked.
            Event::CardsOccupied(_) | Event::Measured(_) | Event::Ended(_) => {}
        }
    }

    fn step(&mut self, leg: Leg, step: Step, context: u64) {
        if leg == Leg::Back && self.leg != Some(Leg::Back) {
            self.line(&format!("going back to {}", thousands(context)));
        }
        self.leg = Some(leg);
        self.phase = None;
        self.line(&format!("  {}", step.words()));
    }

    fn phase(&mut self, phase: Phase, progress: start::Progress) {
        let percent = progress.percent;
        let news = match (self.phase, percent) {
            (Some((last, Some(before))), Some(now)) if last == phase => {
                now >= before.saturating_add(EVERY) || (now == 100 && before < 100)
            }
            (Some((last, None)), None) => last != phase,
            _ => true,
        };
        if !news {
            return;
        }
        self.phase = Some((phase, percent));
        self.line(&format!("    {}", progress.words(phase)));
    }
}

/// A restart in one line, with what comes back if it fails.
pub fn headline(plan: &RestartPlan) -> String {
    let from = plan.from.as_ref();
    let what = match from.map(|config| config.context) {
        None => format!("start at {}", thousands(plan.to.context)),
        Some(from) => format!(
            "restart {} -> {}",
            thousands(from),
            thousands(plan.to.context)
        ),
    };
    let back = match &plan.on_failure {
        Some(target) => format!(
            "; if that fails, {} ({}) comes back",
            thousands(target.config.context),
            target.kind.words()
        ),
        None => String::new(),
    };
    format!("{what}{back}")
}
