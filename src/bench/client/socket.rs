//! A plain TCP connection whose reads carry the kernel's own time of arrival.

use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt, sockopt};
use std::io::{self, IoSliceMut};
use std::os::fd::{AsRawFd as _, RawFd};
use std::task::{Context, Poll, ready};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::io::{AsyncWriteExt as _, Interest};
use tokio::net::TcpStream;

/// Room for one time stamp among the control data, twice over.
const CONTROL: usize = 64;
/// A stamp that is older than this, or that lies ahead, tells that the calendar's clock was set: it is no stamp.
const OLDEST: Duration = Duration::from_secs(60);

/// What one read brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received {
    /// Bytes; 0 at the end of the stream.
    pub bytes: usize,
    /// How long ago the newest of them came to this machine, where the kernel tells.
    pub age: Option<Duration>,
}

/// A connected socket.
#[derive(Debug)]
pub struct Socket {
    stream: TcpStream,
    control: Vec<u8>,
}

impl Socket {
    pub fn new(stream: TcpStream) -> Socket {
        // Without stamps the time of the read counts, and the point says so.
        let _ = setsockopt(&stream, sockopt::ReceiveTimestampns, &true);
        Socket {
            stream,
            control: Vec::with_capacity(CONTROL),
        }
    }

    /// Reads once what is there.
    pub fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<Received>> {
        let fd = self.stream.as_raw_fd();
        loop {
            ready!(self.stream.poll_read_ready(cx))?;
            let mut received = None;
            let tried = self.stream.try_io(Interest::READABLE, || {
                let got = receive(fd, buffer, &mut self.control)?;
                received = Some(got);
                // A read that leaves room has emptied the socket, and the next event will say when there is more. Saying so here
                // saves a second read that would only hear that there is nothing.
                if got.bytes > 0 && got.bytes < buffer.len() {
                    return Err(io::ErrorKind::WouldBlock.into());
                }
                Ok(())
            });
            match (received, tried) {
                (Some(received), _) => return Poll::Ready(Ok(received)),
                (None, Err(error)) if passes(error.kind()) => {}
                (None, tried) => {
                    let nothing = Received {
                        bytes: 0,
                        age: None,
                    };
                    return Poll::Ready(tried.map(|()| nothing));
                }
            }
        }
    }

    /// Writes all of `bytes`.
    pub async fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await
    }
}

fn passes(error: io::ErrorKind) -> bool {
    matches!(
        error,
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}

fn receive(fd: RawFd, buffer: &mut [u8], control: &mut Vec<u8>) -> io::Result<Received> {
    let mut into = [IoSliceMut::new(buffer)];
    let message = recvmsg::<()>(fd, &mut into, Some(control), MsgFlags::MSG_DONTWAIT)?;
    let age = message.cmsgs().find_map(|one| match one {
        ControlMessageOwned::ScmTimestampns(at) => age(at.tv_sec(), at.tv_nsec()),
        _ => None,
    });
    Ok(Received {
        bytes: message.bytes,
        age,
    })
}

/// How old a stamp of the calendar's clock is.
fn age(seconds: i64, nanoseconds: i64) -> Option<Duration> {
    let stamp = Duration::new(
        u64::try_from(seconds).ok()?,
        u32::try_from(nanoseconds).ok()?,
    );
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    now.checked_sub(stamp).filter(|age| *age < OLDEST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;

    #[test]
    fn data_that_lay_in_the_socket_says_how_long() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build()
            .unwrap();
        runtime.block_on(async {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            let stream = tokio::net::TcpStream::connect(address).await.unwrap();
            let (mut server, _) = listener.accept().unwrap();
            use std::io::Write as _;
            let mut socket = Socket::new(stream);
            socket.write_all(b"hello").await.unwrap();
            let mut buffer = [0; 16];
            // The first packet after the stamps are switched on may be stamped late.
            for lies_ms in [1_u64, 40, 40] {
                server.write_all(b"abc").unwrap();
                std::thread::sleep(Duration::from_millis(lies_ms));
                let read = poll_fn(|cx| socket.poll_receive(cx, &mut buffer)).await;
                let read = read.unwrap();
                assert_eq!((read.bytes, buffer.get(..3)), (3, Some(&b"abc"[..])));
                if lies_ms > 1 {
                    let age = read.age.unwrap();
                    assert!(age >= Duration::from_millis(39), "{age:?}");
                    assert!(age < Duration::from_millis(2_000), "{age:?}");
                }
            }
            drop(server);
            let end = poll_fn(|cx| socket.poll_receive(cx, &mut buffer)).await;
            // What was never read by the other side resets the connection.
            assert!(end.map_or(0, |read| read.bytes) == 0);
        });
    }

    #[test]
    fn a_clock_that_was_set_gives_no_age() {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let now = i64::try_from(now.as_secs()).unwrap();
        assert_eq!(age(now + 5, 0), None);
        assert_eq!(age(now - 100, 0), None);
        assert_eq!(age(-1, 0), None);
        assert!(age(now - 2, 0).is_some());
    }
}
