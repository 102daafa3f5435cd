//! A child process of this machine: run to its end, or followed line by line.

use super::{Ended, HostError, Lines, Output, Streamed};
use std::process::{ExitStatus, Stdio};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;

/// Lines that wait for their reader; then the command waits.
const QUEUE: usize = 256;
/// Bytes of one line that are kept: entries of a journal are long.
const LINE: usize = 1 << 20;
/// Bytes of standard error that are kept, from its end.
const STDERR: usize = 8 << 10;

/// How the end of the child is understood: its status and all of its standard error that was kept.
pub type Meaning = Box<dyn FnOnce(ExitStatus, Vec<u8>) -> Result<Ended, HostError> + Send>;

/// Runs a command to its end; `input` is what it reads.
pub async fn run(mut command: Command, input: &[u8]) -> std::io::Result<Output> {
    command
        .stdin(if input.is_empty() {
            Stdio::null()
        } else {
            Stdio::piped()
        })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let mut child = command.spawn()?;
    let stdin = child.stdin.take();
    let feed = async move {
        if let Some(mut stdin) = stdin {
            // A command that does not read to the end says by its exit code what it thinks of that.
            let _ = stdin.write_all(input).await;
            let _ = stdin.shutdown().await;
        }
    };
    let ((), output) = tokio::join!(feed, child.wait_with_output());
    let output = output?;
    Ok(Output {
        code: output.status.code(),
        stdout: output.stdout,
        stderr: output.stderr,
    })
}

/// Follows a command. `hold`: its standard input stays open until it is dropped. Lines up to and with `skip_to` are left out.
pub fn follow(
    mut command: Command,
    hold: bool,
    skip_to: Option<String>,
    meaning: Meaning,
) -> std::io::Result<Lines> {
    command
        .stdin(if hold { Stdio::piped() } else { Stdio::null() })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let child = command.spawn()?;
    let (sender, receiver) = mpsc::channel(QUEUE);
    let task = tokio::spawn(go(child, skip_to, meaning, sender));
    Ok(Lines::new(receiver, task))
}

async fn go(
    mut child: Child,
    mut skip_to: Option<String>,
    meaning: Meaning,
    sender: mpsc::Sender<Streamed>,
) {
    let stdin = child.stdin.take();
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let lines = async {
        let Some(stdout) = stdout else { return };
        let mut reader = BufReader::new(stdout);
        while let Some(line) = line(&mut reader).await {
            match &skip_to {
                Some(mark) if line == *mark => skip_to = None,
                Some(_) => {}
                None => {
                    if sender.send(Streamed::Line(line)).await.is_err() {
                        return;
                    }
                }
            }
        }
    };
    let ((), kept) = tokio::join!(lines, last_of(stderr));
    let last = match child.wait().await {
        Ok(status) => meaning(status, kept),
        Err(error) => Err(super::failed("wait for a command".to_string(), error)),
    };
    drop(stdin);
    let last = match last {
        Ok(ended) => Streamed::Ended(ended),
        Err(error) => Streamed::Failed(error),
    };
    let _ = sender.send(last).await;
}

/// One line without its end; `None` at the end of everything. A line that is too long loses its rest.
async fn line(reader: &mut (impl AsyncBufReadExt + Unpin)) -> Option<String> {
    let mut line = Vec::new();
    let mut any = false;
    while let Ok(buffer) = reader.fill_buf().await {
        if buffer.is_empty() {
            break;
        }
        any = true;
        let end = memchr::memchr(b'\n', buffer);
        let piece = buffer.get(..end.unwrap_or(buffer.len())).unwrap_or(buffer);
        let room = LINE.saturating_sub(line.len()).min(piece.len());
        line.extend_from_slice(piece.get(..room).unwrap_or(piece));
        let used = end.map_or(buffer.len(), |at| at + 1);
        reader.consume(used);
        if end.is_some() {
            break;
        }
    }
    if line.last() == Some(&b'\r') {
        line.pop();
    }
    any.then(|| String::from_utf8_lossy(&line).into_owned())
}

/// The last bytes of a stream that is read to its end.
async fn last_of(stream: Option<impl AsyncRead + Unpin>) -> Vec<u8> {
    let mut kept = Vec::new();
    let Some(mut stream) = stream else {
        return kept;
    };
    let mut buffer = [0; 4096];
    while let Ok(n) = stream.read(&mut buffer).await {
        if n == 0 {
            break;
        }
        kept.extend_from_slice(buffer.get(..n).unwrap_or_default());
        if kept.len() > STDERR {
            kept.drain(..kept.len() - STDERR);
        }
    }
    kept
}
