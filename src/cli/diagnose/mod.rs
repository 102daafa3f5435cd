//! `vramp diagnose`: what became of a start, from its log.

mod table;

use super::{Failure, print};
use crate::engine::Kind;
use crate::engine::start::{Diagnosis, Feed, Known, Load, Reader};
use crate::gpu::smi;
use crate::units::parse_context;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Bytes of the log that are held at once.
const PIECE: usize = 256 * 1024;

/// Say from a server's log how its start went: phase, cause, the decisive line, what to do, what to try.
///
/// The log may be plain lines (also with the prefixes of the journal, of Docker, compose and Kubernetes), or the timed form, a
/// JSON document of lines with seconds. If it holds several starts, the last one counts. Exit code 0 once it was read, whatever it
/// says.
#[derive(Debug, Clone, clap::Args)]
pub struct DiagnoseArgs {
    /// The log; - reads standard input
    #[arg(value_name = "LOGFILE")]
    pub log: PathBuf,
    /// sglang, vllm or llamacpp; found out from the lines without it
    #[arg(long, value_name = "ENGINE")]
    pub engine: Option<Kind>,
    /// What the cards did then: a file with the CSV of nvidia-smi --query-gpu=index,memory.total,memory.used,utilization.gpu
    #[arg(long, value_name = "CSV")]
    pub gpus: Option<PathBuf>,
    /// The context per request that was asked for (64K is 65,536): a start that serves less has failed
    #[arg(long, value_name = "N", value_parser = parse_context)]
    pub asked: Option<u64>,
    /// As JSON; to FILE, or to standard output without one
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub json: Option<PathBuf>,
}

/// Reads the log and says what became of the start.
pub fn diagnose(args: &DiagnoseArgs) -> Result<i32, Failure> {
    let mut reader = read(&args.log, args.engine)?;
    let mut known = Known {
        asked: args.asked,
        ..Known::default()
    };
    if let Some(path) = &args.gpus {
        let bytes = std::fs::read(path).map_err(|error| {
            Failure::wrong_use(format!("cannot read {}: {error}", path.display()))
        })?;
        let text = String::from_utf8_lossy(&bytes);
        match smi::cards(&text, None, None) {
            Ok(cards) => known.cards = cards.iter().map(Load::from).collect(),
            // The tool's own words are evidence like any other line.
            Err(_) if text.contains("NVML") || text.contains("NVIDIA driver") => {
                text.lines().for_each(|line| {
                    reader.read(line);
                });
            }
            Err(_) => {
                return Err(Failure::wrong_use(format!(
                    "{} holds no table of nvidia-smi; make one with nvidia-smi --query-gpu=index,memory.total,memory.used,utilization.gpu --format=csv",
                    path.display()
                )));
            }
        }
    }
    answer(&reader.diagnose(&known), args.json.as_deref())
}

fn answer(found: &Diagnosis, json: Option<&Path>) -> Result<i32, Failure> {
    match json {
        Some(path) => print::json(found, path),
        None => print::text(&table::table(found)),
    }
}

fn read(path: &Path, engine: Option<Kind>) -> Result<Reader, Failure> {
    let failed = |error: std::io::Error| {
        Failure::wrong_use(format!(
            "cannot read the log {}: {error}; give a file, or - for standard input",
            path.display()
        ))
    };
    let mut source: Box<dyn Read> = if path == Path::new("-") {
        Box::new(std::io::stdin().lock())
    } else {
        Box::new(File::open(path).map_err(failed)?)
    };
    let mut feed = Feed::new(Reader::new(engine));
    let mut piece = vec![0; PIECE];
    let broken = |error| Failure::wrong_use(format!("{}: {error}", path.display()));
    loop {
        match source.read(&mut piece) {
            Ok(0) => return feed.finish().map_err(broken),
            Ok(length) => feed
                .push(piece.get(..length).unwrap_or_default())
                .map_err(broken)?,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(failed(error)),
        }
    }
}
