//! NVIDIA cards through `nvidia-smi` on any host: for machines whose driver's library is out of reach.
//!
//! One `nvidia-smi --loop=1` runs for as long as it is read; the list of processes is asked for every second time. Nothing is left on
//! the host when the reader ends or the connection is lost.

mod card;
mod csv;
mod words;

use self::csv::Header;
use super::{Card, CardState, Snapshot, Source};
use crate::clock::Now;
use crate::host::{Ended, Host, HostError, Lines, Streamed};
use crate::reading::{Absent, Reading};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::time::{Instant, timeout, timeout_at};

/// What is asked for. One that an old version does not know is left out.
const FIELDS: [&str; 20] = [
    "index",
    "uuid",
    "pci.bus_id",
    "driver_version",
    "memory.total",
    "memory.used",
    "memory.free",
    "memory.reserved",
    "utilization.gpu",
    "temperature.gpu",
    "power.draw",
    "enforced.power.limit",
    "utilization.memory",
    "clocks.sm",
    "clocks.mem",
    "clocks_throttle_reasons.active",
    "fan.speed",
    "ecc.errors.corrected.volatile.total",
    "ecc.errors.uncorrected.volatile.total",
    // Last: it may hold commas.
    "name",
];

/// How long one round of rows may take: a second between two, and slow drivers.
const ROUND: Duration = Duration::from_millis(2_500);
/// The first may take longer: a connection, and a driver without persistence mode wakes up slowly.
const FIRST: Duration = Duration::from_secs(20);
/// The rows of a round come together.
const TOGETHER: Duration = Duration::from_millis(60);
/// How long the list of processes may take.
const APPS: Duration = Duration::from_secs(10);
/// Between two attempts to start it: first and longest, milliseconds.
const RETRY_MS: (u64, u64) = (2_000, 60_000);

/// The cards of a host by its `nvidia-smi`.
pub struct Smi {
    host: Arc<dyn Host>,
    /// Made on the thread that reads.
    runtime: Option<Runtime>,
    query: Option<Query>,
    /// The fields that this version knows.
    fields: Vec<&'static str>,
    cards: Vec<Known>,
    driver: String,
    fault: Option<String>,
    processes: Reading<Vec<card::App>>,
    readings: u64,
    retry_at_ms: u64,
    retry_after_ms: u64,
}

/// A card, and where it sits.
struct Known {
    bus: String,
    card: Card,
}

/// The running query.
struct Query {
    lines: Lines,
    header: Option<Header>,
    /// Lines that are neither header nor row: what it complains of.
    other: String,
}

/// Why a round gave nothing.
enum Gone {
    Silent,
    Ended(Ended),
    Failed(HostError),
}

impl Smi {
    /// Nothing is run before the first reading.
    pub fn new(host: Arc<dyn Host>) -> Smi {
        Smi {
            host,
            runtime: None,
            query: None,
            fields: FIELDS.to_vec(),
            cards: Vec::new(),
            driver: String::new(),
            fault: None,
            processes: Reading::default(),
            readings: 0,
            retry_at_ms: 0,
            retry_after_ms: RETRY_MS.0,
        }
    }

    async fn round(&mut self, at: Now) {
        let first = self.query.is_none();
        if first {
            if at.mono_ms < self.retry_at_ms {
                // The reader comes back soon enough.
                return;
            }
            if let Err(error) = self.open().await {
                self.close(at, host_words(&error), &Absent::Failed(host_words(&error)));
                return;
            }
        }
        let patience = if first { FIRST } else { ROUND };
        match self.rows(at, patience).await {
            Ok(rows) => self.take(rows),
            // The last figures grow old by themselves.
            Err(Gone::Silent) if !first => {}
            Err(Gone::Silent) => {
                let fault = format!("nvidia-smi says nothing for {} s", FIRST.as_secs());
                self.close(at, fault.clone(), &Absent::Failed(fault));
            }
            Err(Gone::Failed(error)) => {
                self.close(at, host_words(&error), &Absent::Failed(host_words(&error)));
            }
            Err(Gone::Ended(ended)) => self.ended(at, &ended),
        }
        if self.query.is_some() && (first || self.readings.is_multiple_of(2)) {
            self.processes = self.apps().await;
        }
        self.readings += 1;
    }

    /// Starts the query, without the cards that are lost: one of them is enough for `nvidia-smi` to refuse all.
    async fn open(&mut self) -> Result<(), HostError> {
        let mut argv = vec![
            "nvidia-smi".to_string(),
            format!("--query-gpu={}", self.fields.join(",")),
            "--format=csv".to_string(),
            "--loop=1".to_string(),
        ];
        let lost = |known: &Known| matches!(known.card.state, CardState::Lost { .. });
        if self.cards.iter().any(lost) {
            let left = self.cards.iter().filter(|known| !lost(known));
            let left: Vec<&str> = left.map(|known| known.card.uuid.as_str()).collect();
            if !left.is_empty() {
                argv.push(format!("--id={}", left.join(",")));
            }
        }
        self.query = Some(Query {
            lines: self.host.stream(&argv).await?,
            header: None,
            other: String::new(),
        });
        Ok(())
    }

    /// The next round of rows. What was written before this moment is only taken note of: it may be seconds old.
    async fn rows(&mut self, at: Now, patience: Duration) -> Result<Vec<(Known, String)>, Gone> {
        let Some(query) = &mut self.query else {
            return Err(Gone::Silent);
        };
        let deadline = Instant::now() + patience;
        let mut rows = Vec::new();
        if query.header.is_some() {
            while let Some(next) = query.lines.try_next() {
                query.line(next, at, &mut Vec::new())?;
            }
        }
        loop {
            let next = if rows.is_empty() {
                timeout_at(deadline, query.lines.next()).await
            } else {
                timeout(TOGETHER, query.lines.next()).await
            };
            match next {
                Ok(Some(next)) => query.line(next, at, &mut rows)?,
                Ok(None) => return Err(Gone::Silent),
                Err(_) if rows.is_empty() => return Err(Gone::Silent),
                Err(_) => return Ok(rows),
            }
        }
    }

    fn take(&mut self, rows: Vec<(Known, String)>) {
        self.retry_after_ms = RETRY_MS.0;
        self.fault = None;
        for (new, driver) in rows {
            self.driver = driver;
            match self
                .cards
                .iter_mut()
                .find(|known| known.card.index == new.card.index)
            {
                Some(known) => {
                    let since = match (&known.card.state, &new.card.state) {
                        (CardState::Lost { since_unix_ms }, CardState::Lost { .. }) => {
                            Some(*since_unix_ms)
                        }
                        _ => None,
                    };
                    *known = new;
                    if let Some(since_unix_ms) = since {
                        known.card.state = CardState::Lost { since_unix_ms };
                    }
                }
                None => self.cards.push(new),
            }
        }
        self.cards.sort_by_key(|known| known.card.index);
    }

    /// It ended by itself, and said why.
    fn ended(&mut self, at: Now, ended: &Ended) {
        let other = self
            .query
            .take()
            .map(|query| query.other)
            .unwrap_or_default();
        let text = format!("{other}\n{}", ended.stderr);
        if let Some(field) = words::unknown_field(&text)
            && let Some(known) = self.fields.iter().position(|known| *known == field)
        {
            // An old version; it is asked again without it.
            self.fields.remove(known);
            self.retry_at_ms = at.mono_ms;
            return;
        }
        let lost = words::lost_bus(&text);
        let fallen = lost.and_then(|bus| {
            let is_it = |known: &&mut Known| !bus.is_empty() && known.bus == bus;
            self.cards.iter_mut().find(is_it)
        });
        if let Some(known) = fallen {
            known.card = known.card.without_figures(
                CardState::Lost {
                    since_unix_ms: at.unix_ms,
                },
                &Absent::Lost,
            );
            self.retry_at_ms = at.mono_ms;
            return;
        }
        let fault = words::fault(ended.code, &text);
        self.close(at, fault.clone(), &Absent::Failed(fault));
    }

    /// Lets it go; it is started again after a while.
    fn close(&mut self, at: Now, fault: String, why: &Absent) {
        self.query = None;
        self.retry_at_ms = at.mono_ms.saturating_add(self.retry_after_ms);
        self.retry_after_ms = (self.retry_after_ms * 2).min(RETRY_MS.1);
        for known in &mut self.cards {
            if !matches!(known.card.state, CardState::Lost { .. }) {
                known.card = known
                    .card
                    .without_figures(CardState::Unknown(fault.clone()), why);
            }
        }
        self.fault = Some(fault);
    }

    async fn apps(&self) -> Reading<Vec<card::App>> {
        let argv = [
            "nvidia-smi",
            "--query-compute-apps=gpu_uuid,pid,used_memory,process_name",
            "--format=csv",
        ]
        .map(str::to_string);
        match timeout(APPS, self.host.run(&argv)).await {
            Err(_) => Reading::failed(format!("not listed within {} s", APPS.as_secs())),
            Ok(Err(error)) => Reading::failed(error.to_string()),
            Ok(Ok(output)) => {
                let text = String::from_utf8_lossy(&output.stdout);
                match card::apps(&text) {
                    Some(apps) if output.code == Some(0) => Reading::Value(apps),
                    _ => Reading::failed(words::fault(output.code, &text)),
                }
            }
        }
    }

    fn snapshot(&self, at: Now) -> Snapshot {
        let mut cards: Vec<Card> = self.cards.iter().map(|known| known.card.clone()).collect();
        match &self.processes {
            Reading::Value(apps) => card::place(&mut cards, apps),
            Reading::Absent(why) => {
                for card in cards.iter_mut().filter(|card| card.state == CardState::Ok) {
                    card.processes = Reading::Absent(why.clone());
                }
            }
            Reading::Stale { .. } => {}
        }
        Snapshot {
            at,
            cards,
            source: format!("nvidia-smi {} on {}", self.driver, self.host.name())
                .replace("  ", " "),
            fault: self.fault.clone(),
            simulated: false,
        }
    }
}

impl Query {
    fn line(
        &mut self,
        next: Streamed,
        at: Now,
        rows: &mut Vec<(Known, String)>,
    ) -> Result<(), Gone> {
        let line = match next {
            Streamed::Line(line) => line,
            Streamed::Ended(ended) => return Err(Gone::Ended(ended)),
            Streamed::Failed(error) => return Err(Gone::Failed(error)),
        };
        let Some(header) = &self.header else {
            match Header::parse(&line) {
                Some(header) => self.header = Some(header),
                None => self.complaint(&line),
            }
            return Ok(());
        };
        let nth = u32::try_from(rows.len()).unwrap_or(u32::MAX);
        let found = header.row(&line).and_then(|row| {
            let bus = row.text(&["pci.bus_id", "gpu_bus_id"]).unwrap_or_default();
            let known = Known {
                bus: words::short_bus(&bus),
                card: card::card(&row, nth, at)?,
            };
            Some((known, row.text(&["driver_version"]).unwrap_or_default()))
        });
        match found {
            Some(found) => rows.push(found),
            None => self.complaint(&line),
        }
        Ok(())
    }

    fn complaint(&mut self, line: &str) {
        if self.other.len() < 4096 {
            self.other.push_str(line);
            self.other.push('\n');
        }
    }
}

impl Source for Smi {
    fn read(&mut self, at: Now) -> Snapshot {
        let runtime = match self.runtime.take() {
            Some(runtime) => Ok(runtime),
            None => tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build(),
        };
        match runtime {
            Ok(runtime) => {
                runtime.block_on(self.round(at));
                self.runtime = Some(runtime);
            }
            Err(error) => self.fault = Some(format!("nvidia-smi cannot be run: {error}")),
        }
        self.snapshot(at)
    }
}

impl Drop for Smi {
    fn drop(&mut self) {
        self.query = None;
        if let Some(runtime) = self.runtime.take() {
            // What was started is killed with its task; nobody waits for a connection.
            runtime.shutdown_background();
        }
    }
}

fn host_words(error: &HostError) -> String {
    match error {
        HostError::Failed { what, .. }
            if what.contains("no program") || what.contains("No such file") =>
        {
            "no NVIDIA driver: nvidia-smi is not installed".to_string()
        }
        error => error.to_string(),
    }
}

/// The cards of two tables that somebody saved: of `--query-gpu`, and of `--query-compute-apps` where there is one.
///
/// # Errors
/// The first text is no table: why `nvidia-smi` failed, from what it printed and its exit code.
pub fn cards(query: &str, apps: Option<&str>, code: Option<i32>) -> Result<Vec<Card>, String> {
    let mut lines = query.lines().filter(|line| !line.trim().is_empty());
    let header = lines.next().and_then(Header::parse);
    let Some(header) = header else {
        return Err(words::fault(code, query));
    };
    let mut cards: Vec<Card> = Vec::new();
    for line in lines {
        let nth = u32::try_from(cards.len()).unwrap_or(u32::MAX);
        // Of a log that went on, the last round counts.
        if let Some(card) = header
            .row(line)
            .and_then(|row| card::card(&row, nth, Now::default()))
        {
            cards.retain(|known| known.index != card.index);
            cards.push(card);
        }
    }
    if cards.is_empty() {
        return Err(words::fault(code, ""));
    }
    if let Some(apps) = apps.and_then(card::apps) {
        card::place(&mut cards, &apps);
    }
    Ok(cards)
}

#[cfg(test)]
mod tests;
