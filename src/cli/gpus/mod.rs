//! `vramp gpus`: what every card holds and does, once or as it changes.

mod json;
mod table;

use super::{Failure, places, print};
use crate::clock::{self, Clock};
use crate::gpu::watch::watch;
use crate::gpu::{self, Choice, Snapshot, Source};
use crate::host::{Host, Local, Ssh};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch::Receiver;

/// Between two readings.
const PERIOD: Duration = Duration::from_secs(1);
/// A first reading that takes longer never comes: a connection and a driver that sleeps are counted in.
const FIRST: Duration = Duration::from_secs(45);

/// The cards: memory, load, heat, power, what slows them down, and who holds their memory
///
/// Without a source, the driver's own library is read (NVML), on another host nvidia-smi, and where neither has a card, what the
/// kernel says of AMD cards. What is broken is said on standard error; what is not known is null.
#[derive(Debug, Clone, clap::Args)]
pub struct GpusArgs {
    /// nvml, nvidia-smi, sysfs (AMD), dcgm:URL, prometheus:URL or sim (the demo's)
    #[arg(long, value_name = "SOURCE")]
    source: Option<Choice>,
    /// Another machine, by ssh: USER@HOST[:PORT]; of an exporter, the machine whose cards are wanted
    #[arg(long, value_name = "HOST")]
    host: Option<String>,
    /// Go on reading, once a second
    #[arg(long)]
    watch: bool,
    /// As JSON, an array of cards; to FILE, or to standard output without one. With --watch one array a line
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    json: Option<PathBuf>,
}

/// Reads and prints.
pub fn gpus(args: &GpusArgs) -> Result<i32, Failure> {
    let source = source(args)?;
    let clock = Clock::default();
    let (readings, control) = watch(source, clock, PERIOD);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .map_err(|error| Failure::new(format!("cannot start: {error}")))?;
    let done = runtime.block_on(follow(args, readings, clock));
    control.stop();
    done
}

fn source(args: &GpusArgs) -> Result<Box<dyn Source>, Failure> {
    let exporter = matches!(args.source, Some(Choice::Dcgm(_) | Choice::Prometheus(_)));
    let host: Arc<dyn Host> = match args.host.as_deref().filter(|_| !exporter) {
        None => Arc::new(Local),
        Some(name) => {
            let address = match name.starts_with("ssh:") {
                true => name.parse(),
                false => format!("ssh:{name}").parse(),
            };
            Arc::new(Ssh::new(address.map_err(Failure::wrong_use)?, None))
        }
    };
    let Some(choice) = &args.source else {
        return Ok(gpu::source_on(&host));
    };
    let rig = match choice {
        Choice::Sim => places()?.demo().data.join("rig"),
        _ => PathBuf::new(),
    };
    gpu::open(choice, &host, args.host.as_deref(), &rig).map_err(Failure::wrong_use)
}

async fn follow(
    args: &GpusArgs,
    mut readings: Receiver<Snapshot>,
    clock: Clock,
) -> Result<i32, Failure> {
    let has_some = |seen: &Snapshot| !seen.cards.is_empty() || seen.fault.is_some();
    // A source that needs a second try gives an empty reading first.
    let first = tokio::time::timeout(FIRST, readings.wait_for(has_some));
    // One slow card makes a reading long; it is new all the same when it comes.
    let mut is_new = first.await.is_ok();
    let mut said = Vec::new();
    loop {
        let mut seen = readings.borrow_and_update().clone();
        if !is_new {
            seen = seen.aged(clock.now(), PERIOD);
        }
        let faults = json::broken(&seen);
        for fault in faults.iter().filter(|fault| !said.contains(*fault)) {
            eprintln!("vramp: {fault}");
        }
        said = faults;
        show(args, &seen)?;
        if !args.watch {
            return Ok(0);
        }
        // A driver that hangs brings nothing new; what is known grows old.
        let next = tokio::time::timeout(PERIOD * 2, readings.changed()).await;
        if matches!(next, Ok(Err(_))) {
            return Err(Failure::new("the GPU reader has ended"));
        }
        is_new = next.is_ok();
    }
}

fn show(args: &GpusArgs, seen: &Snapshot) -> Result<(), Failure> {
    let Some(path) = &args.json else {
        let time = match args.watch {
            true => format!("{}\n", clock::hms(clock::unix_ms())),
            false => String::new(),
        };
        return print::text(&format!("{time}{}", table::table(seen))).map(|_| ());
    };
    let cards = json::cards(seen);
    let text = match args.watch {
        true => serde_json::to_string(&cards),
        false => serde_json::to_string_pretty(&cards),
    };
    let text = format!("{}\n", text.map_err(Failure::new)?);
    if path == Path::new("-") {
        return print::text(&text).map(|_| ());
    }
    crate::host::write_atomic(path, text.as_bytes()).map_err(Failure::new)
}
