//! The list of runs, `vramp decisions`, `vramp report`: what is on record.

use super::{Common, Failure, Listing, places, print};
use crate::bench::point::Validity;
use crate::clock::{date_time, unix_ms};
use crate::places::Places;
use crate::profile;
use crate::report;
use crate::runtime::keeper;
use crate::store::{Decision, RunRow, Store};
use crate::units::thousands;
use serde::Serialize;

pub fn here(demo: bool) -> Result<Places, Failure> {
    let places = places()?;
    Ok(if demo { places.demo() } else { places })
}

/// The database, if there is one: a list of nothing makes no file.
pub fn open(places: &Places) -> Result<Option<Store>, Failure> {
    let path = places.database();
    let there = path.try_exists().map_err(|error| {
        Failure::new(format!(
            "cannot look for the record at {}: {error}; is XDG_DATA_HOME a folder that you may read?",
            path.display()
        ))
    })?;
    if !there {
        return Ok(None);
    }
    Store::open(&path).map(Some).map_err(Failure::new)
}

/// Benchmark runs, the newest first.
pub fn runs(listing: &Listing) -> Result<i32, Failure> {
    let store = open(&here(listing.demo)?)?;
    let rows = match &store {
        Some(store) => store.runs(listing.limit).map_err(Failure::new)?,
        None => Vec::new(),
    };
    if let Some(path) = &listing.json {
        let listed = |row| ListedRun::new(row, store.as_ref());
        let runs: Result<Vec<ListedRun>, Failure> = rows.into_iter().map(listed).collect();
        return print::json(&runs?, path);
    }
    if rows.is_empty() {
        return print::text("no runs are on record\n");
    }
    print::text(&rows.iter().map(run_line).collect::<String>())
}

/// A run of the list with the figures of its points.
#[derive(Serialize)]
struct ListedRun {
    #[serde(flatten)]
    row: RunRow,
    figures: Vec<Figures>,
}

/// The figures of one point. What is not known is null.
#[derive(Serialize)]
struct Figures {
    concurrency: u32,
    rate: Option<f64>,
    isl: u64,
    osl: u64,
    ok: u32,
    failed: u32,
    output_tok_s: Option<f64>,
    decode_tok_s: Option<f64>,
    ttft_p50_ms: Option<f64>,
    tpot_p50_ms: Option<f64>,
    validity: Validity,
}

impl ListedRun {
    fn new(row: RunRow, store: Option<&Store>) -> Result<ListedRun, Failure> {
        let points = match store {
            Some(store) => store.run_points(row.id).map_err(Failure::new)?,
            None => Vec::new(),
        };
        let figures = points.into_iter().map(|stored| stored.point);
        let figures = figures.map(|point| Figures {
            concurrency: point.cell.concurrency,
            rate: point.cell.arrivals.rate().map(|rate| rate.per_second()),
            isl: point.cell.input,
            osl: point.cell.output,
            ok: point.ok,
            failed: point.failed,
            output_tok_s: point.output_tok_s,
            decode_tok_s: point.decode_tok_s,
            ttft_p50_ms: point.ttft_ms.p50,
            tpot_p50_ms: point.tpot_ms.p50,
            validity: point.validity,
        });
        Ok(ListedRun {
            figures: figures.collect(),
            row,
        })
    }
}

fn run_line(row: &RunRow) -> String {
    let ending = match row.ending {
        Some(crate::store::Ending::Finished) => "finished",
        Some(crate::store::Ending::Stopped) => "stopped",
        Some(crate::store::Ending::Failed) => "failed",
        None => "not ended",
    };
    format!(
        "{:>5}  {}  {:<14} {:<10} {:<20} context {:>9}  {} points, {} void  {ending}{}{}\n",
        row.id,
        date_time(row.started_unix_ms),
        row.plan,
        row.engine.name(),
        row.model,
        row.context.map_or("?".to_string(), thousands),
        row.points,
        row.void,
        row.name
            .as_deref()
            .map_or(String::new(), |name| format!("  {name}")),
        simulated(row.simulated)
    )
}

fn simulated(yes: bool) -> &'static str {
    if yes { "  SIMULATED" } else { "" }
}

/// Decisions, the newest first.
pub fn decisions(listing: &Listing) -> Result<i32, Failure> {
    let rows = match open(&here(listing.demo)?)? {
        Some(store) => store.decisions(listing.limit).map_err(Failure::new)?,
        None => Vec::new(),
    };
    if let Some(path) = &listing.json {
        return print::json(&rows, path);
    }
    if rows.is_empty() {
        return print::text("no decisions are on record\n");
    }
    print::text(&rows.iter().map(decision_line).collect::<String>())
}

fn decision_line(row: &Decision) -> String {
    format!(
        "{}  {:<16} {} -> {} tokens  by {}@{}  {} {}{}\n",
        date_time(row.at_unix_ms),
        row.profile,
        row.previous.map_or("none".to_string(), thousands),
        thousands(row.value),
        row.user,
        row.host,
        row.engine.map_or("?", crate::engine::Kind::name),
        row.engine_version.as_deref().unwrap_or("?"),
        simulated(row.simulated)
    )
}

/// The report of the newest session of a profile.
pub fn report(common: &Common, demo: bool, stdout: bool) -> Result<i32, Failure> {
    let places = here(demo)?;
    let (name, production) = if demo {
        let file = places.config.join("vramp.toml");
        let loaded = profile::load(Some(&file), Some("demo")).ok().flatten();
        (
            "demo".to_string(),
            loaded.and_then(|l| l.profile.production),
        )
    } else {
        match profile::load(common.config.as_deref(), common.profile.as_deref())
            .map_err(Failure::wrong_use)?
        {
            Some(loaded) => (loaded.profile.name, loaded.profile.production),
            None => {
                return Err(Failure::wrong_use(
                    "there is no profile to report on; name one with --profile, or use --demo",
                ));
            }
        }
    };
    let nothing = || Failure::new(format!("no session of the profile {name:?} is on record"));
    let store = open(&places)?.ok_or_else(nothing)?;
    let session = store
        .latest_session(&name)
        .map_err(Failure::new)?
        .ok_or_else(nothing)?
        .id;
    if stdout {
        let input = report::gather(&store, session, production, unix_ms())
            .map_err(Failure::new)?
            .ok_or_else(nothing)?;
        return print::text(&report::markdown(&input));
    }
    let path = keeper::write_report(&store, session, production, &places.reports())
        .map_err(Failure::new)?;
    print::text(&format!("{}\n", path.display()))
}
