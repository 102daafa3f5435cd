//! Configurations tried, and what speaks for and against each.

use super::value::{Count, Json, Word};
use super::{Store, StoreError, secrets};
use crate::profile::Launch;
use rusqlite::params;
use serde::{Deserialize, Serialize};

/// What became of a configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It was found running.
    Found,
    /// It is being started.
    Starting,
    /// It answered a token and serves what was asked: a trial.
    Trial,
    /// It failed to start; another one was brought back.
    Failed,
    /// The operator made it the production value.
    Kept,
    /// The operator went back from it.
    RolledBack,
}

impl Verdict {
    /// In words, as tables show it.
    pub fn words(self) -> &'static str {
        match self {
            Verdict::Found => "found running",
            Verdict::Starting => "starting",
            Verdict::Trial => "trial",
            Verdict::Failed => "failed",
            Verdict::Kept => "production value",
            Verdict::RolledBack => "rolled back",
        }
    }
}

/// One check at a context.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    pub name: String,
    /// `None`: not run.
    pub passed: Option<bool>,
    /// The result in words.
    pub note: Option<String>,
}

/// One configuration that was tried, with its evidence. What is not measured yet is `None`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tried {
    /// Context length per request.
    pub context: u64,
    /// When the attempt began. With the context it names the attempt.
    pub since_unix_ms: i64,
    pub verdict: Verdict,
    /// Why it failed, in words.
    pub why: Option<String>,
    /// Context that the server reported.
    pub served: Option<u64>,
    /// From the stop of the old server to the first real token.
    pub start_ms: Option<u64>,
    /// KV pool tokens / effective context.
    pub capacity: Option<f64>,
    pub pool_tokens: Option<u64>,
    /// The card with the least free memory, and its lowest free bytes.
    pub tightest_card: Option<u32>,
    pub tightest_free: Option<u64>,
    /// The longest input measured here, and its median time to first token.
    pub longest_input: Option<u64>,
    pub longest_ttft_ms: Option<f64>,
    /// Decode rate at the longest input, tokens a second.
    pub decode_tok_s: Option<f64>,
    /// Its change against the shortest input, as a share: -0.12 is 12 % slower.
    pub decode_change: Option<f64>,
    /// Failed requests, over all points measured here.
    pub failed_requests: Option<u64>,
    pub checks: Vec<Check>,
    /// How it was started. Secrets are not written.
    pub launch: Option<Launch>,
}

impl Tried {
    /// An attempt of which nothing is known yet.
    pub fn new(context: u64, since_unix_ms: i64, verdict: Verdict) -> Self {
        Tried {
            context,
            since_unix_ms,
            verdict,
            why: None,
            served: None,
            start_ms: None,
            capacity: None,
            pool_tokens: None,
            tightest_card: None,
            tightest_free: None,
            longest_input: None,
            longest_ttft_ms: None,
            decode_tok_s: None,
            decode_change: None,
            failed_requests: None,
            checks: Vec::new(),
            launch: None,
        }
    }
}

impl Store {
    /// Keeps the evidence of one attempt, in place of what was known of the same attempt before.
    pub fn record_config(&mut self, session: i64, tried: &Tried) -> Result<(), StoreError> {
        let mut kept = tried.clone();
        kept.launch = tried.launch.as_ref().map(secrets::launch);
        self.write("record a configuration", |tx| {
            tx.execute(
                "INSERT INTO configurations (session_id, context, since_unix_ms, verdict, evidence) VALUES (?1, ?2, ?3, ?4, ?5)
                 ON CONFLICT (session_id, context, since_unix_ms) DO UPDATE SET verdict = excluded.verdict, evidence = excluded.evidence",
                params![
                    session,
                    Count(kept.context),
                    kept.since_unix_ms,
                    Word(kept.verdict),
                    Json(&kept)
                ],
            )
            .map(drop)
        })
    }

    /// All attempts of a session in the order in which they began.
    pub fn configs(&self, session: i64) -> Result<Vec<Tried>, StoreError> {
        self.read("read the configurations tried", |conn| {
            conn.prepare_cached(
                "SELECT evidence FROM configurations WHERE session_id = ?1 ORDER BY since_unix_ms, id",
            )?
            .query_map([session], |row| Ok(row.get::<_, Json<Tried>>(0)?.0))?
            .collect()
        })
    }
}
