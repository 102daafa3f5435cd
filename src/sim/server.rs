//! The life of the simulated server: start, serve, end.

use super::api::{self, Rig};
use super::args::SimArgs;
use super::boot::{self, Line, Step};
use super::cards::Keeper;
use super::log::Log;
use super::memory::{self, Stage};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

/// Why the simulated server ended on its own account.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    #[error("the simulated server did not start: {0}")]
    StartFailed(String),
    #[error("the simulated server crashed, as it was told to")]
    Crashed,
    #[error("cannot listen on {address}: {source}; choose another --port or end what runs there")]
    Bind {
        address: String,
        source: std::io::Error,
    },
    #[error("cannot keep the cards in {dir}: {source}")]
    Rig { dir: String, source: std::io::Error },
    #[error("cannot run the simulated server: {0}")]
    Io(#[from] std::io::Error),
}

/// Runs the simulated server until a signal ends it or a fault that was asked for. An error means exit code 1.
pub fn run(args: SimArgs) -> Result<(), SimError> {
    many_files();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let stop = stop_signal(args.ignore_sigterm)?;
        serve(args, Log::new(std::io::stdout()), stop).await
    })
}

/// Thousands of streams are as many open files: takes what the system grants without asking.
fn many_files() {
    let limit = getrlimit(Resource::Nofile);
    // With the limit as it is, fewer streams are served and nothing else changes.
    let _ = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: limit.maximum,
            maximum: limit.maximum,
        },
    );
}

/// Ends on Ctrl-C and, unless it is to be ignored, on SIGTERM.
fn stop_signal(ignore_sigterm: bool) -> std::io::Result<impl Future<Output = ()>> {
    let mut term = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        loop {
            tokio::select! {
                _ = interrupt.recv() => return,
                _ = term.recv() => {
                    if !ignore_sigterm {
                        return;
                    }
                }
            }
        }
    })
}

/// The same with a given end and a given place for the log. Needs a tokio runtime with time and I/O.
pub async fn serve(
    args: SimArgs,
    log: Log,
    stop: impl Future<Output = ()>,
) -> Result<(), SimError> {
    let log = Arc::new(log);
    let rig = Arc::new(Rig::new(args));
    let (keeper, free) = Keeper::open(&rig)?;
    tokio::select! {
        end = live(&rig, &keeper, &log, free) => end,
        () = stop => {
            log.line("SIGTERM received. signum=None frame=None. Draining requests and shutting down...");
            Ok(())
        }
    }
}

async fn live(rig: &Arc<Rig>, keeper: &Keeper, log: &Log, free: u64) -> Result<(), SimError> {
    let args = &rig.args;
    let begin = Instant::now();
    let script = boot::script(args, free, std::process::id(), args.port);
    let start = Duration::from_millis(args.start_ms);
    play(&script.load, begin, start, keeper, log).await;
    if let Some(cause) = script.failure {
        return Err(SimError::StartFailed(cause));
    }
    let address = format!("{}:{}", args.host, args.port);
    let listener = match TcpListener::bind(&address).await {
        Ok(listener) => listener,
        Err(source) => {
            log.line(&format!(
                "ERROR:    [Errno {}] error while attempting to bind on address ('{}', {}): {}",
                source.raw_os_error().unwrap_or(0),
                args.host,
                args.port,
                source.kind()
            ));
            return Err(SimError::Bind { address, source });
        }
    };
    let warm_up_and_serve = async {
        play(&script.warm_up, begin, start, keeper, log).await;
        if args.never_ready {
            std::future::pending::<()>().await;
        }
        wait_until(begin, start, 1.0).await;
        keeper.set_stage(Stage::Serving);
        rig.ready.store(true, Ordering::Release);
        log.line("The server is fired up and ready to roll!");
        match args.fail_after_ready_ms {
            Some(ms) => tokio::time::sleep(Duration::from_millis(ms)).await,
            None => std::future::pending().await,
        }
        log.rank("Scheduler hit an exception: Traceback (most recent call last):");
        log.raw("RuntimeError: CUDA error: an illegal memory access was encountered");
        log.line("Received sigquit from a child process. It usually means the child failed.");
        Err(SimError::Crashed)
    };
    tokio::select! {
        end = warm_up_and_serve => end,
        end = api::serve(listener, Arc::clone(rig)) => end.map_err(SimError::from),
        () = rig.engine.run() => Ok(()),
        () = report(rig, log) => Ok(()),
    }
}

async fn wait_until(begin: Instant, whole: Duration, share: f64) {
    tokio::time::sleep_until((begin + whole.mul_f64(share)).into()).await;
}

async fn play(steps: &[Step], begin: Instant, whole: Duration, keeper: &Keeper, log: &Log) {
    for step in steps {
        wait_until(begin, whole, step.at).await;
        keeper.set_stage(step.stage);
        for line in &step.lines {
            match line {
                Line::Raw(text) => log.raw(text),
                Line::Front(text) => log.line(text),
                Line::Rank(text) => log.rank(text),
            }
        }
    }
}

/// A line a second while it works, as the real server writes.
async fn report(rig: &Rig, log: &Log) {
    let mut before = rig.state().counters.output_tokens;
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let state = rig.state();
        let tokens = state.counters.output_tokens - before;
        before = state.counters.output_tokens;
        rig.set_rate(tokens);
        if state.decoding > 0 {
            log.rank(&format!(
                "Decode batch, #running-req: {}, #token: {}, token usage: {:.2}, accept len: 2.90, cuda graph: True, gen throughput (token/s): {tokens}.00, #queue-req: {}, ",
                state.decoding,
                state.used_tokens,
                state.used_tokens as f64 / memory::POOL_TOKENS as f64,
                state.waiting,
            ));
        }
    }
}
