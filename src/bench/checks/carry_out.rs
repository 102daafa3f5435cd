//! How each check is carried out.

use super::{Bench, CheckKind, Verdict};
use crate::bench::client::Exchange;
use crate::bench::point::FailureKind;
use crate::bench::prompt::{self, Aim, Number, Prompt, Scale};
use crate::bench::stream::tidy;
use crate::bench::validity::looks_like_a_loop;
use crate::units::{GIB, duration, thousands};
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// Output tokens of requests whose answer is not looked at.
const SHORT_OUTPUT: u64 = 32;
/// Output tokens that an answer to the hidden fact may take, thinking included.
const FACT_OUTPUT: u64 = 512;
/// Free memory that may be lost over the rounds of one check: 64 MiB, the least step of the usual allocators twice over.
const CREEP_LIMIT: u64 = 64 << 20;

impl Bench {
    pub(super) async fn carry_out(&mut self, kind: CheckKind) -> Verdict {
        let scale = match &self.scale {
            Ok(scale) => *scale,
            Err(why) => return Verdict::Failed(format!("the server does not answer: {why}")),
        };
        let Some(context) = self.job.context else {
            return match kind {
                CheckKind::LongAnswer => self.long_answer(scale, None).await,
                _ => Verdict::NotRun("the served context is not known".to_string()),
            };
        };
        match kind {
            CheckKind::SeveralLong => self.several_long(scale, context).await,
            CheckKind::LongAnswer => self.long_answer(scale, Some(context)).await,
            CheckKind::OverLimit => self.over_limit(scale, context).await,
            CheckKind::ShortBesideLong => self.short_beside_long(scale, context).await,
            CheckKind::HiddenFact => self.hidden_fact(scale, context).await,
            CheckKind::Creep => self.creep(scale, context).await,
        }
    }

    fn number(&self, kind: CheckKind, request: u64) -> Number {
        Number {
            seed: self.job.seed,
            // Far from the cells of a run with the same seed.
            group: (1 << 32) + kind as u64,
            request,
        }
    }

    /// A message of about `tokens` tokens.
    fn message(&self, scale: Scale, tokens: u64, number: Number) -> Prompt {
        prompt::message(scale.words_for(tokens), number)
    }

    async fn several_long(&self, scale: Scale, context: u64) -> Verdict {
        let kind = CheckKind::SeveralLong;
        let (count, share) = if self.job.quick { (2, 0.25) } else { (4, 0.9) };
        let input = part(context, share, SHORT_OUTPUT);
        let limits = self.limits(input, SHORT_OUTPUT);
        let asks = (0..count).map(|n| async move {
            let prompt = self.message(scale, input, self.number(kind, n));
            self.asker
                .ask(&prompt, SHORT_OUTPUT, Aim::Speed, limits)
                .await
        });
        let answers = futures_util::future::join_all(asks).await;
        let what = format!("{count} requests of {} tokens at once", thousands(input));
        match answers.iter().find_map(failure) {
            Some(why) => Verdict::Failed(format!("{what}: {why}")),
            None => Verdict::Passed(format!(
                "{what}, first tokens after {} at most",
                longest_wait(&answers)
            )),
        }
    }

    async fn long_answer(&self, scale: Scale, context: Option<u64>) -> Verdict {
        let wanted = if self.job.quick { 256 } else { 4096 };
        let output = context.map_or(wanted, |context| wanted.min(context / 2).max(1));
        let prompt = self.message(scale, 64, self.number(CheckKind::LongAnswer, 0));
        let limits = self.limits(64, output);
        let exchange = self.asker.ask(&prompt, output, Aim::Speed, limits).await;
        if let Some(why) = failure(&exchange) {
            return Verdict::Failed(why);
        }
        let answer = &exchange.answer;
        let tokens = answer.counted_tokens().unwrap_or(answer.chunks);
        // A small model repeats phrases when it must go on beyond its end. One word without end is a broken engine.
        match looks_like_a_loop(&answer.text).filter(|unit| !unit.contains(' ')) {
            Some(unit) => Verdict::Failed(format!("the answer is a loop: {unit:?} over and over")),
            None if tokens < output && answer.finish_reason.as_deref() == Some("length") => {
                Verdict::Failed(format!(
                    "the answer was cut after {} of {} tokens",
                    thousands(tokens),
                    thousands(output)
                ))
            }
            None => Verdict::Passed(format!("{} tokens", thousands(tokens))),
        }
    }

    async fn over_limit(&self, scale: Scale, context: u64) -> Verdict {
        // Well over, whatever the words come to: the scale is good to half a percent.
        let input = context + context / 50 + 64;
        let number = self.number(CheckKind::OverLimit, 0);
        let prompt = self.message(scale, input, number);
        let limits = self.limits(input, 16);
        let exchange = self.asker.ask(&prompt, 16, Aim::Speed, limits).await;
        let what = format!("{} tokens", thousands(input));
        let refused = match (&exchange.result, exchange.status) {
            (Ok(()), _) => {
                let taken = exchange.answer.prompt_tokens();
                return Verdict::Failed(format!(
                    "{what} were accepted, {} of them counted, and not refused",
                    taken.map_or("an unknown number".to_string(), thousands)
                ));
            }
            (Err(failure), Some(status)) if (400..500).contains(&status) => {
                format!("{what} were refused with {status}: {}", failure.message)
            }
            (Err(failure), Some(status)) => {
                return Verdict::Failed(format!(
                    "{what} were not refused cleanly: {status}, {}",
                    failure.message
                ));
            }
            (Err(failure), None) => {
                return Verdict::Failed(format!("{what} got no answer: {}", failure.message));
            }
        };
        let after = self.message(scale, 64, self.number(CheckKind::OverLimit, 1));
        let after = self
            .asker
            .ask(&after, 4, Aim::Words, self.limits(64, 4))
            .await;
        match failure(&after) {
            Some(why) => {
                Verdict::Failed(format!("{refused}; a short request after it fails: {why}"))
            }
            None => Verdict::Passed(refused),
        }
    }

    async fn short_beside_long(&self, scale: Scale, context: u64) -> Verdict {
        let kind = CheckKind::ShortBesideLong;
        let (shorts, share) = if self.job.quick { (2, 0.2) } else { (5, 0.8) };
        let input = part(context, share, SHORT_OUTPUT);
        let long = self.message(scale, input, self.number(kind, 0));
        let limits = self.limits(input, SHORT_OUTPUT);
        let long = self.asker.ask(&long, SHORT_OUTPUT, Aim::Speed, limits);
        let beside = async {
            // Let the long one arrive first.
            sleep(Duration::from_millis(200)).await;
            let mut answers = Vec::new();
            for n in 0..shorts {
                let prompt = self.message(scale, 64, self.number(kind, n + 1));
                // Behind a long prefill a short request may have to wait as long as that takes.
                answers.push(self.asker.ask(&prompt, 8, Aim::Speed, limits).await);
            }
            answers
        };
        let (long, short) = tokio::join!(long, beside);
        if let Some(why) = failure(&long) {
            return Verdict::Failed(format!(
                "the long request of {} tokens: {why}",
                thousands(input)
            ));
        }
        if let Some(why) = short.iter().find_map(failure) {
            return Verdict::Failed(format!("a short request beside it: {why}"));
        }
        Verdict::Passed(format!(
            "beside {} tokens (first token after {}), short requests waited {} at most",
            thousands(input),
            longest_wait(std::slice::from_ref(&long)),
            longest_wait(&short)
        ))
    }

    async fn hidden_fact(&self, scale: Scale, context: u64) -> Verdict {
        let output = FACT_OUTPUT.min(context / 8);
        let number = self.number(CheckKind::HiddenFact, 0);
        let code = format!("{}{}", prompt::word(number), 100 + self.job.seed % 900);
        let tokens = part(context, 0.95, output + 128);
        let filler = prompt::words(scale.words_for(tokens), number);
        let question = Prompt::Message(format!(
            "Remember this: the code word is {code}.\n\nHere is a list of words that do not matter:\n{filler}\n\n\
             What is the code word? Answer with the code word alone."
        ));
        let limits = self.limits(tokens, output);
        let exchange = self.asker.ask(&question, output, Aim::Words, limits).await;
        if let Some(why) = failure(&exchange) {
            return Verdict::Failed(why);
        }
        let answer = &exchange.answer;
        let counted = answer.prompt_tokens().unwrap_or(tokens);
        let said = format!("{} {}", answer.text, answer.reasoning).to_lowercase();
        if said.contains(&code) {
            Verdict::Passed(format!("found in {} tokens", thousands(counted)))
        } else {
            Verdict::Failed(format!(
                "the code word {code} at the start of {} tokens was not found; the answer was {:?}",
                thousands(counted),
                shortened(&answer.text)
            ))
        }
    }

    async fn creep(&mut self, scale: Scale, context: u64) -> Verdict {
        if self.tightest_free().is_none() {
            let why = self.job.gpus.borrow().fault.clone();
            return Verdict::NotRun(match why {
                Some(why) => format!("no cards to watch: {}", tidy(&why)),
                None => "no cards to watch".to_string(),
            });
        }
        let (rounds, share) = if self.job.quick { (3, 0.1) } else { (8, 0.5) };
        let input = part(context, share, SHORT_OUTPUT);
        let limits = self.limits(input, SHORT_OUTPUT);
        let mut free = Vec::new();
        for round in 0..rounds {
            let prompt = self.message(scale, input, self.number(CheckKind::Creep, round));
            let exchange = self
                .asker
                .ask(&prompt, SHORT_OUTPUT, Aim::Speed, limits)
                .await;
            if let Some(why) = failure(&exchange) {
                return Verdict::Failed(format!("round {}: {why}", round + 1));
            }
            self.next_reading().await;
            match self.tightest_free() {
                Some(bytes) => free.push(bytes),
                None => return Verdict::Failed("the cards could not be read any more".to_string()),
            }
        }
        // The first round may allocate what then stays.
        let (Some(first), Some(last)) = (free.first(), free.last()) else {
            return Verdict::NotRun("no rounds".to_string());
        };
        let lost = first.saturating_sub(*last);
        let what = format!(
            "{rounds} requests of {} tokens, tightest card {:.2} GiB free before and {:.2} GiB after",
            thousands(input),
            *first as f64 / GIB,
            *last as f64 / GIB
        );
        if lost > CREEP_LIMIT {
            Verdict::Failed(format!("{what}: {} MiB lost", lost >> 20))
        } else {
            Verdict::Passed(what)
        }
    }

    fn tightest_free(&self) -> Option<u64> {
        let snapshot = self.job.gpus.borrow();
        snapshot.tightest(&self.job.cards).map(|(_, free)| free)
    }

    /// Waits for a reading of the cards that began after now: the second new one.
    async fn next_reading(&mut self) {
        for _ in 0..2 {
            let changed = timeout(Duration::from_secs(5), self.job.gpus.changed()).await;
            if !matches!(changed, Ok(Ok(()))) {
                return;
            }
        }
    }
}

/// `share` of the context, with room for `output` and the template.
fn part(context: u64, share: f64, output: u64) -> u64 {
    let room = context.saturating_sub(output + context / 100 + 16);
    ((context as f64 * share) as u64).min(room).max(16)
}

fn failure(exchange: &Exchange) -> Option<String> {
    let failure = exchange.result.as_ref().err()?;
    Some(match failure.kind {
        FailureKind::Status(status) => format!("{status}: {}", failure.message),
        _ => failure.message.clone(),
    })
}

fn longest_wait(answers: &[Exchange]) -> String {
    let ms = answers
        .iter()
        .filter_map(|e| Some(e.ms_to(e.answer.first_token_ns?)))
        .fold(0.0, f64::max);
    duration(ms)
}

fn shortened(text: &str) -> String {
    tidy(text).chars().take(80).collect()
}
