//! The scheduler of the simulated server: requests queue, prefill, decode in steps and end. Pure: time is given in, in seconds.

use super::cache::PrefixCache;
use super::timing::{STEP_TOKENS, Timing};
use std::collections::VecDeque;

/// What a request wants.
#[derive(Debug, Clone, PartialEq)]
pub struct Work {
    pub prompt: Vec<u32>,
    /// Tokens it will put out, at least 1.
    pub output: u32,
    /// Tokens of the pool that are set aside for it.
    pub reserve: u64,
}

/// Some tokens of one request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Emission {
    pub id: u64,
    /// When, in seconds.
    pub at: f64,
    pub tokens: u32,
    /// Prompt tokens that came from the prefix cache.
    pub cached: u64,
    /// No more follow.
    pub last: bool,
}

#[derive(Debug)]
struct Waiting {
    id: u64,
    since: f64,
    work: Work,
}

#[derive(Debug)]
struct Prefilling {
    id: u64,
    since: f64,
    /// Seconds of work at full speed.
    left_s: f64,
    tokens: u64,
    cached: u64,
    output: u32,
    reserve: u64,
}

#[derive(Debug)]
struct Decoding {
    id: u64,
    next_at: f64,
    next_tokens: u32,
    context: u64,
    cached: u64,
    left: u32,
    reserve: u64,
    /// Step lengths to come.
    hand: Vec<u32>,
}

/// What it has done since its start.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Counters {
    pub requests: u64,
    pub prompt_tokens: u64,
    pub cached_tokens: u64,
    pub output_tokens: u64,
    pub first_tokens: u64,
    /// Sum of the times to the first token, in seconds.
    pub ttft_s: f64,
}

/// What it is doing now.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct State {
    pub prefilling: usize,
    pub decoding: usize,
    pub waiting: usize,
    /// Tokens of running requests in the pool.
    pub used_tokens: u64,
    pub counters: Counters,
}

/// The scheduler.
#[derive(Debug)]
pub struct Core {
    timing: Timing,
    pool: u64,
    reserved: u64,
    now: f64,
    next_id: u64,
    rng: fastrand::Rng,
    cache: PrefixCache,
    waiting: VecDeque<Waiting>,
    prefilling: VecDeque<Prefilling>,
    decoding: Vec<Decoding>,
    counters: Counters,
}

impl Core {
    /// A rig with a KV pool of `pool` tokens.
    pub fn new(timing: Timing, pool: u64, seed: u64) -> Self {
        Core {
            timing,
            pool,
            reserved: 0,
            now: 0.0,
            next_id: 0,
            rng: fastrand::Rng::with_seed(seed),
            cache: PrefixCache::new(pool),
            waiting: VecDeque::new(),
            prefilling: VecDeque::new(),
            decoding: Vec::new(),
            counters: Counters::default(),
        }
    }

    /// Takes a request at `now`; the time must have been advanced to it. Requests that the pool can never hold must be refused
    /// before.
    pub fn submit(&mut self, work: Work) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.counters.requests += 1;
        self.waiting.push_back(Waiting {
            id,
            since: self.now,
            work,
        });
        self.admit();
        id
    }

    /// Drops a request; its place is free at once. Unknown ones are ignored: it may just have ended.
    pub fn cancel(&mut self, id: u64) {
        self.waiting.retain(|w| w.id != id);
        if let Some(at) = self.prefilling.iter().position(|p| p.id == id)
            && let Some(gone) = self.prefilling.remove(at)
        {
            self.reserved -= gone.reserve;
        }
        if let Some(at) = self.decoding.iter().position(|d| d.id == id) {
            self.reserved -= self.decoding.swap_remove(at).reserve;
        }
        self.admit();
    }

    /// Lets time go on to `to` and appends what was put out until then, in order.
    pub fn advance(&mut self, to: f64, out: &mut Vec<Emission>) {
        while let Some(at) = self.next_event().filter(|at| *at <= to) {
            self.pass(at);
            self.finish_prefills(out);
            self.step_decodes(out);
            self.admit();
        }
        if to > self.now {
            self.pass(to);
        }
    }

    /// When something happens next.
    pub fn next_event(&self) -> Option<f64> {
        let (lanes, speed) = self.timing.prefill_lanes(self.prefilling.len());
        let prefill = self
            .prefilling
            .iter()
            .take(lanes)
            .map(|p| self.now + p.left_s / speed);
        let decode = self.decoding.iter().map(|d| d.next_at);
        prefill.chain(decode).reduce(f64::min)
    }

    pub fn state(&self) -> State {
        let prefill: u64 = self.prefilling.iter().map(|p| p.tokens).sum();
        let decode: u64 = self.decoding.iter().map(|d| d.context).sum();
        State {
            prefilling: self.prefilling.len(),
            decoding: self.decoding.len(),
            waiting: self.waiting.len(),
            used_tokens: prefill + decode,
            counters: self.counters,
        }
    }

    /// Moves requests from the queue to work, in order, while there is a place and room in the pool.
    fn admit(&mut self) {
        while self.prefilling.len() + self.decoding.len() < self.timing.max_running()
            && let Some(first) = self.waiting.front()
            && self.reserved + first.work.reserve <= self.pool
            && let Some(next) = self.waiting.pop_front()
        {
            let tokens = next.work.prompt.len() as u64;
            let cached = self.cache.use_prompt(&next.work.prompt);
            self.counters.prompt_tokens += tokens;
            self.counters.cached_tokens += cached;
            self.reserved += next.work.reserve;
            let left_s = self.timing.prefill_s(tokens, cached) * self.jitter(0.01);
            self.prefilling.push_back(Prefilling {
                id: next.id,
                since: next.since,
                left_s,
                tokens,
                cached,
                output: next.work.output.max(1),
                reserve: next.work.reserve,
            });
        }
    }

    fn pass(&mut self, to: f64) {
        let (lanes, speed) = self.timing.prefill_lanes(self.prefilling.len());
        let work = (to - self.now) * speed;
        for prefill in self.prefilling.iter_mut().take(lanes) {
            prefill.left_s -= work;
        }
        self.now = to;
    }

    /// The end of a prefill gives the first token.
    fn finish_prefills(&mut self, out: &mut Vec<Emission>) {
        let (lanes, _) = self.timing.prefill_lanes(self.prefilling.len());
        let mut at = 0;
        for _ in 0..lanes {
            // Whatever is left below a microsecond is rounding.
            if self.prefilling.get(at).is_none_or(|p| p.left_s > 1e-6) {
                at += 1;
                continue;
            }
            let Some(done) = self.prefilling.remove(at) else {
                break;
            };
            self.counters.output_tokens += 1;
            self.counters.first_tokens += 1;
            self.counters.ttft_s += self.now - done.since;
            out.push(Emission {
                id: done.id,
                at: self.now,
                tokens: 1,
                cached: done.cached,
                last: done.output == 1,
            });
            if done.output == 1 {
                self.reserved -= done.reserve;
                continue;
            }
            let mut job = Decoding {
                id: done.id,
                next_at: self.now,
                next_tokens: 0,
                context: done.tokens + 1,
                cached: done.cached,
                left: done.output - 1,
                reserve: done.reserve,
                hand: Vec::new(),
            };
            let context = self.decoding_context() + job.context;
            self.plan_step(&mut job, self.decoding.len() + 1, context);
            self.decoding.push(job);
        }
    }

    fn step_decodes(&mut self, out: &mut Vec<Emission>) {
        let mut at = 0;
        while let Some(job) = self.decoding.get(at) {
            if job.next_at > self.now {
                at += 1;
                continue;
            }
            let mut job = self.decoding.swap_remove(at);
            job.left -= job.next_tokens;
            job.context += u64::from(job.next_tokens);
            self.counters.output_tokens += u64::from(job.next_tokens);
            out.push(Emission {
                id: job.id,
                at: self.now,
                tokens: job.next_tokens,
                cached: job.cached,
                last: job.left == 0,
            });
            if job.left == 0 {
                self.reserved -= job.reserve;
                continue;
            }
            let context = self.decoding_context() + job.context;
            self.plan_step(&mut job, self.decoding.len() + 1, context);
            self.decoding.push(job);
        }
    }

    fn decoding_context(&self) -> u64 {
        self.decoding.iter().map(|d| d.context).sum()
    }

    fn plan_step(&mut self, job: &mut Decoding, decoding: usize, context: u64) {
        let wanted = match self.timing {
            Timing::Model => {
                if job.hand.is_empty() {
                    job.hand = STEP_TOKENS.to_vec();
                    self.rng.shuffle(&mut job.hand);
                }
                job.hand.pop().unwrap_or(1)
            }
            Timing::Raw {
                tokens_per_chunk, ..
            } => tokens_per_chunk.max(1),
        };
        job.next_tokens = wanted.min(job.left);
        job.next_at += self.timing.step_s(decoding, context, job.next_tokens) * self.jitter(0.02);
    }

    /// A factor around 1, within `share`.
    fn jitter(&mut self, share: f64) -> f64 {
        match self.timing {
            Timing::Model => 1.0 + share * (2.0 * self.rng.f64() - 1.0),
            Timing::Raw { .. } => 1.0,
        }
    }
}

#[cfg(test)]
#[path = "core_tests.rs"]
mod tests;
