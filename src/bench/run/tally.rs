//! Everything that a cell's requests add up to.

use super::window::Window;
use crate::bench::client::Exchange;
use crate::bench::options::{Options, Records, Slo};
use crate::bench::plan::{Arrivals, Cell};
use crate::bench::point::{Failure, RequestRecord, TokensSource};
use crate::bench::stats::Samples;
use crate::bench::stream::{Answer, Mark};

/// A gap must be longer than this, in milliseconds, and over ten times the median, to count as a stall.
pub const STALL_MS: f64 = 250.0;

/// The sums and samples of one cell. Only good requests are in the samples; all are in the counts.
#[derive(Debug)]
pub struct Tally {
    pub cell: Cell,
    /// Start of the cell on the client's clock.
    pub began_ns: u64,
    pub window: Window,
    pub ok: u32,
    pub failed: u32,
    /// Failures since the last good request.
    pub failed_in_a_row: u32,
    pub failures: Vec<(Failure, u32)>,
    /// Of all requests, or of those since the last time they were taken, as `keep` says.
    pub records: Vec<RequestRecord>,
    keep: Records,
    /// TTFT and TPOT of the newest good request.
    pub newest: (Option<f64>, Option<f64>),
    pub slo: Slo,
    /// Requests that met the targets.
    pub met: u32,
    pub ttft: Samples,
    /// From when a request should have been sent to when it was.
    pub client_queue: Samples,
    /// Prefill as the server measured it.
    pub prefill_ms: Samples,
    pub first_answer: Samples,
    pub itl: Samples,
    pub gap: Samples,
    pub tpot: Samples,
    pub e2e: Samples,
    /// Input tokens a second until the first token.
    pub prefill: Samples,
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// Output tokens after the first, over all good requests.
    pub decode_tokens: u64,
    pub chunks: u64,
    /// Good requests that told their prompt's length, and the sum of the lengths.
    pub prompts_told: (u32, u64),
    /// Good requests that told how much came from the cache: prompt tokens, cached tokens beyond the template.
    pub cache_told: Option<(u64, u64)>,
    pub source: TokensSource,
    /// Tokens were shared out over events that were fewer.
    pub itl_estimated: bool,
    /// Good requests that ended before the length asked for, and the shortest of them.
    pub early: u32,
    pub shortest: Option<u64>,
    /// First start and last end of good requests.
    pub span_ns: Option<(u64, u64)>,
}

impl Tally {
    pub fn new(cell: Cell, began_ns: u64, options: &Options) -> Self {
        Tally {
            cell,
            began_ns,
            window: match cell.arrivals {
                Arrivals::Closed => Window::closed(cell.concurrency),
                Arrivals::Constant { .. } | Arrivals::Poisson { .. } => Window::open(),
            },
            ok: 0,
            failed: 0,
            failed_in_a_row: 0,
            failures: Vec::new(),
            records: Vec::new(),
            keep: options.records,
            newest: (None, None),
            slo: options.slo,
            met: 0,
            ttft: Samples::default(),
            client_queue: Samples::default(),
            prefill_ms: Samples::default(),
            first_answer: Samples::default(),
            itl: Samples::default(),
            gap: Samples::default(),
            tpot: Samples::default(),
            e2e: Samples::default(),
            prefill: Samples::default(),
            input_tokens: 0,
            output_tokens: 0,
            decode_tokens: 0,
            chunks: 0,
            prompts_told: (0, 0),
            cache_told: None,
            source: TokensSource::Usage,
            itl_estimated: false,
            early: 0,
            shortest: None,
            span_ns: None,
        }
    }

    /// Requests that have ended.
    pub fn done(&self) -> u32 {
        self.ok + self.failed
    }

    /// Output tokens for each event with tokens, so far.
    pub fn tokens_per_chunk(&self) -> Option<f64> {
        (self.chunks > 0).then(|| self.output_tokens as f64 / self.chunks as f64)
    }

    /// Share of the prompt tokens that came from a cache, as the requests told.
    pub fn cached_share(&self) -> Option<f64> {
        let (prompt, cached) = self.cache_told.filter(|(prompt, _)| *prompt > 0)?;
        Some(cached as f64 / prompt as f64)
    }

    /// The records that are to be told, which are kept no longer.
    pub fn take_streamed(&mut self) -> Vec<RequestRecord> {
        match self.keep {
            Records::Keep => Vec::new(),
            Records::Stream => std::mem::take(&mut self.records),
        }
    }

    /// Adds one request that should have been sent at `due_ns`. `template` tokens of every prompt are the same and may come from a cache.
    pub fn add(&mut self, exchange: &Exchange, due_ns: u64, template: u64) {
        let queue_ms = exchange.start_ns.saturating_sub(due_ns) as f64 / 1e6;
        let mut record = RequestRecord {
            start_ms: exchange.start_ns.saturating_sub(self.began_ns) as f64 / 1e6,
            client_queue_ms: Some(queue_ms),
            chunks: exchange.answer.chunks,
            input_tokens: exchange.answer.prompt_tokens(),
            output_tokens: exchange.answer.counted_tokens(),
            cached_tokens: exchange.answer.cached_tokens(),
            ..RequestRecord::default()
        };
        match &exchange.result {
            Err(failure) => {
                self.failed += 1;
                self.failed_in_a_row += 1;
                self.count_failure(failure);
                record.failure = Some(failure.clone());
            }
            Ok(()) => {
                self.ok += 1;
                self.failed_in_a_row = 0;
                self.client_queue.add(queue_ms);
                self.good(exchange, queue_ms, template, &mut record);
            }
        }
        self.records.push(record);
    }

    fn count_failure(&mut self, failure: &Failure) {
        match self
            .failures
            .iter_mut()
            .find(|(f, _)| f.kind == failure.kind)
        {
            Some((_, n)) => *n += 1,
            None => self.failures.push((failure.clone(), 1)),
        }
    }

    fn good(
        &mut self,
        exchange: &Exchange,
        queue_ms: f64,
        template: u64,
        record: &mut RequestRecord,
    ) {
        let answer = &exchange.answer;
        // An answer without any token is a failure and not here.
        let (Some(first), Some(last)) = (answer.first_token_ns, answer.last_token_ns) else {
            return;
        };
        let tokens = match (answer.counted_tokens(), answer.tokenized) {
            (Some(told), _) => told,
            (None, Some(tokens)) => {
                self.source = self.source.max(TokensSource::Tokenizer);
                tokens
            }
            (None, None) => {
                self.source = TokensSource::Chunks;
                answer.chunks
            }
        };
        record.output_tokens = Some(tokens);
        self.output_tokens += tokens;
        self.chunks += answer.chunks;
        if tokens < self.cell.output {
            self.early += 1;
            self.shortest = Some(self.shortest.map_or(tokens, |n| n.min(tokens)));
        }
        let ttft = exchange.ms_to(first);
        let e2e = exchange.ms_to(exchange.end_ns);
        self.ttft.add(ttft);
        self.e2e.add(e2e);
        record.ttft_ms = Some(ttft);
        record.e2e_ms = Some(e2e);
        if let Some(at) = answer
            .first_answer_ns
            .filter(|_| !answer.reasoning.is_empty())
        {
            let ms = exchange.ms_to(at);
            self.first_answer.add(ms);
            record.first_answer_ms = Some(ms);
        }
        if tokens >= 2 {
            let tpot = last.saturating_sub(first) as f64 / 1e6 / (tokens - 1) as f64;
            self.decode_tokens += tokens - 1;
            self.tpot.add(tpot);
            record.tpot_ms = Some(tpot);
        }
        self.newest = (Some(ttft), record.tpot_ms);
        if self.slo.is_some() && self.slo.met(queue_ms + ttft, record.tpot_ms) {
            self.met += 1;
        }
        if let Some(ms) = answer.timings.and_then(|timings| timings.prompt_ms) {
            self.prefill_ms.add(ms);
        }
        self.gaps(answer, tokens);
        if let Some(input) = answer.prompt_tokens() {
            self.input_tokens += input;
            self.prompts_told.0 += 1;
            self.prompts_told.1 += input;
            if ttft > 0.0 {
                self.prefill.add(input as f64 / ttft * 1e3);
            }
            if let Some(cached) = answer.cached_tokens() {
                let (prompts, hits) = self.cache_told.unwrap_or_default();
                let beyond = cached.saturating_sub(template);
                self.cache_told = Some((prompts + input, hits + beyond));
            }
        }
        let (from, to) = self.span_ns.unwrap_or((exchange.start_ns, exchange.end_ns));
        self.span_ns = Some((from.min(exchange.start_ns), to.max(exchange.end_ns)));
    }

    /// Gaps between reads, and what they are for each token: by the server's running count where it gives one, else the answer's
    /// tokens are shared out evenly over its events.
    fn gaps(&mut self, answer: &Answer, tokens: u64) {
        let even = tokens as f64 / answer.chunks.max(1) as f64;
        for pair in answer.marks.windows(2) {
            let [before, now] = pair else { continue };
            let ms = now.at_ns.saturating_sub(before.at_ns) as f64 / 1e6;
            self.gap.add(ms);
            let here = tokens_between(before, now).unwrap_or_else(|| {
                // With as many events as tokens each is one, and nothing is shared out.
                self.itl_estimated |= tokens != answer.chunks;
                f64::from(now.chunks) * even
            });
            if here > 0.0 {
                self.itl.add_many(ms / here, (here.round() as u64).max(1));
            }
        }
    }

    /// Gaps over [`STALL_MS`] and over ten times the median.
    pub fn stalls(&self) -> u64 {
        self.gap
            .quantile(0.5)
            .map_or(0, |median| self.gap.count_over(STALL_MS.max(10.0 * median)))
    }

    /// Failures with one message each, most frequent first.
    pub fn failures_by_count(&self) -> Vec<(Failure, u32)> {
        let mut failures = self.failures.clone();
        failures.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.kind.cmp(&b.0.kind)));
        failures
    }

    /// So many failed one after another that the rest would fail alike: every place, and three at least.
    pub fn is_hopeless(&self) -> bool {
        self.failed_in_a_row >= self.cell.concurrency.max(3)
    }
}

fn tokens_between(before: &Mark, now: &Mark) -> Option<f64> {
    (before.counted > 0)
        .then(|| now.counted.checked_sub(before.counted))
        .flatten()
        .filter(|n| *n > 0)
        .map(|n| n as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::plan::PlanKind;
    use crate::bench::point::FailureKind;
    use crate::bench::stream::Usage;

    const MS: u64 = 1_000_000;

    fn cell(output: u64) -> Cell {
        Cell {
            kind: PlanKind::Throughput,
            input: 100,
            output,
            concurrency: 1,
            requests: 4,
            arrivals: Default::default(),
        }
    }

    fn tally(output: u64) -> Tally {
        Tally::new(cell(output), 0, &Options::default())
    }

    /// Reads at these times, each with this many events; `usage` output tokens.
    fn exchange(reads: &[(u64, u32)], usage: Option<u64>) -> Exchange {
        let marks: Vec<Mark> = reads
            .iter()
            .map(|(ms, chunks)| Mark {
                at_ns: ms * MS,
                chunks: *chunks,
                counted: 0,
            })
            .collect();
        let answer = Answer {
            first_token_ns: marks.first().map(|m| m.at_ns),
            first_answer_ns: marks.first().map(|m| m.at_ns),
            last_token_ns: marks.last().map(|m| m.at_ns),
            chunks: marks.iter().map(|m| u64::from(m.chunks)).sum(),
            usage: usage.map(|n| Usage {
                prompt_tokens: Some(100),
                completion_tokens: Some(n),
                prompt_tokens_details: None,
            }),
            text: "some words".into(),
            marks,
            ..Answer::default()
        };
        Exchange {
            start_ns: 0,
            sent_ns: 0,
            end_ns: answer.last_token_ns.unwrap_or(0) + MS,
            answer,
            result: Ok(()),
            status: Some(200),
            body: Vec::new(),
        }
    }

    #[test]
    fn four_tokens_an_event_and_four_events_a_read_give_the_same_itl() {
        let reads: Vec<(u64, u32)> = (0..25).map(|n| (50 + 40 * n, 1)).collect();
        let mut by_event = tally(100);
        by_event.add(&exchange(&reads, Some(100)), 0, 0);
        let reads: Vec<(u64, u32)> = (0..25).map(|n| (50 + 40 * n, 4)).collect();
        let mut by_read = tally(100);
        by_read.add(&exchange(&reads, Some(100)), 0, 0);
        for tally in [by_event, by_read] {
            let itl = tally.itl.summary();
            assert!((itl.p50.unwrap() - 10.0).abs() < 0.02, "{itl:?}");
            assert_eq!(itl.n, 96);
            let gap = tally.gap.summary();
            assert_eq!((gap.n, gap.min), (24, Some(40.0)));
            assert!((tally.tpot.quantile(0.5).unwrap() - 960.0 / 99.0).abs() < 0.02);
            assert_eq!(
                (tally.output_tokens, tally.early, tally.stalls()),
                (100, 0, 0)
            );
        }
    }

    #[test]
    fn running_counts_beat_sharing_out() {
        let mut one = exchange(&[(10, 1), (20, 1), (50, 1)], Some(5));
        for (mark, counted) in one.answer.marks.iter_mut().zip([1, 2, 5]) {
            mark.counted = counted;
        }
        let mut tally = tally(5);
        tally.add(&one, 0, 0);
        let itl = tally.itl.summary();
        assert_eq!((itl.n, itl.min, itl.max), (4, Some(10.0), Some(10.0)));
    }

    #[test]
    fn a_stall_shows_where_no_percentile_can_see_it() {
        let mut reads: Vec<(u64, u32)> = (0..99).map(|n| (50 + 10 * n, 1)).collect();
        reads.push((4030, 1));
        let mut tally = tally(100);
        tally.add(&exchange(&reads, Some(100)), 0, 0);
        assert_eq!((tally.stalls(), tally.gap.summary().max), (1, Some(3000.0)));
        assert!(tally.gap.quantile(0.5).unwrap() < 10.1);
    }

    #[test]
    fn failures_and_early_ends_are_counted_and_never_timed() {
        let mut tally = tally(100);
        tally.add(&exchange(&[(50, 1), (60, 1)], None), 0, 0);
        assert_eq!(tally.source, TokensSource::Chunks);
        assert_eq!(
            (tally.output_tokens, tally.early, tally.shortest),
            (2, 1, Some(2))
        );
        let mut failed = exchange(&[(9000, 1), (9900, 1)], None);
        failed.result = Err(Failure {
            kind: FailureKind::CutOff,
            message: "x".into(),
        });
        tally.add(&failed, 0, 0);
        tally.add(&failed, 0, 0);
        assert_eq!((tally.ok, tally.failed, tally.done()), (1, 2, 3));
        assert_eq!(
            (
                tally.ttft.summary().n,
                tally.e2e.summary().n,
                tally.gap.summary().n
            ),
            (1, 1, 1)
        );
        assert_eq!(tally.failures_by_count()[0].1, 2);
        assert!(tally.records[1].failure.is_some() && tally.records[1].ttft_ms.is_none());
        assert!(!tally.is_hopeless());
        tally.add(&failed, 0, 0);
        assert!(tally.is_hopeless());
    }

    #[test]
    fn thinking_first_gives_a_second_figure() {
        let mut one = exchange(&[(50, 1), (550, 1)], Some(100));
        one.answer.reasoning = "hm".into();
        one.answer.first_answer_ns = Some(550 * MS);
        let mut tally = tally(100);
        tally.add(&one, 0, 0);
        assert_eq!(tally.ttft.summary().max, Some(50.0));
        assert_eq!(tally.first_answer.summary().max, Some(550.0));
    }

    #[test]
    fn cached_tokens_of_the_template_are_not_held_against_a_prompt() {
        let mut one = exchange(&[(50, 1), (60, 1)], Some(2));
        one.answer.usage = Some(serde_json::from_str(r#"{"prompt_tokens":1000,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":40}}"#).unwrap());
        let mut tally = tally(2);
        tally.add(&one, 0, 30);
        assert_eq!(tally.cache_told, Some((1000, 10)));
        assert_eq!(tally.cached_share(), Some(0.01));
    }

    #[test]
    fn what_waits_in_the_client_is_its_own_figure_and_counts_against_targets() {
        let options = Options {
            slo: Slo {
                ttft_ms: Some(60.0),
                tpot_ms: Some(20.0),
            },
            records: Records::Stream,
            ..Options::default()
        };
        let mut tally = Tally::new(cell(2), 0, &options);
        let mut one = exchange(&[(150, 1), (160, 1)], Some(2));
        one.start_ns = 100 * MS;
        tally.add(&one, 95 * MS, 0);
        tally.add(&one, 80 * MS, 0);
        let slow = exchange(&[(50, 1), (80, 1)], Some(2));
        tally.add(&slow, 0, 0);
        assert_eq!((tally.ok, tally.met), (3, 1));
        assert_eq!(tally.ttft.summary().max, Some(50.0));
        let queue = tally.client_queue.summary();
        assert_eq!((queue.min, queue.max), (Some(0.0), Some(20.0)));
        let records = tally.take_streamed();
        assert_eq!(records.len(), 3);
        assert_eq!(records[1].client_queue_ms, Some(20.0));
        assert!(tally.records.is_empty());
    }

    #[test]
    fn only_tokens_that_are_shared_out_are_estimates() {
        let reads = [(10, 1), (20, 1), (30, 1)];
        let mut exact = tally(3);
        exact.add(&exchange(&reads, Some(3)), 0, 0);
        assert!(!exact.itl_estimated);
        let mut shared = tally(6);
        shared.add(&exchange(&reads, Some(6)), 0, 0);
        assert!(shared.itl_estimated);
    }
}
