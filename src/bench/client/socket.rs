//! A plain TCP connection whose reads carry the kernel's own time of arrival.

use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt, sockopt};
use rustls::ClientConnection;
use std::io::{self, IoSliceMut, Write as _};
use std::net::TcpStream;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd};

/// Room for one time stamp among the control data, twice over.
const CONTROL: usize = 64;

/// What one read brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received {
    /// Bytes; 0 at the end of the stream.
    pub bytes: usize,
    /// When the newest of them came to this machine, where the kernel tells: nanoseconds of the calendar's clock.
    pub stamp_ns: Option<i64>,
}

/// A connected socket that never waits.
#[derive(Debug)]
pub struct Socket(TcpStream);

impl Socket {
    /// Of a stream that does not block.
    pub fn new(stream: TcpStream) -> Socket {
        // Without stamps the time of the read counts, and the point says so.
        let _ = setsockopt(&stream, sockopt::ReceiveTimestampns, &true);
        Socket(stream)
    }

    /// Writes what there is room for.
    pub fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        (&self.0).write(bytes)
    }

    /// Writes what TLS has to say; true once all of it is gone.
    pub fn see_off(&self, tls: &mut ClientConnection) -> io::Result<bool> {
        while tls.wants_write() {
            match tls.write_tls(&mut &self.0) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Reads sockets, with room for what comes beside the bytes.
#[derive(Debug)]
pub struct Receiver {
    control: Vec<u8>,
}

impl Default for Receiver {
    fn default() -> Self {
        Receiver {
            control: Vec::with_capacity(CONTROL),
        }
    }
}

impl Receiver {
    /// Reads once what is there.
    pub fn receive(&mut self, socket: &Socket, buffer: &mut [u8]) -> io::Result<Received> {
        let mut into = [IoSliceMut::new(buffer)];
        let control = Some(&mut self.control);
        let fd = socket.0.as_raw_fd();
        let message = recvmsg::<()>(fd, &mut into, control, MsgFlags::MSG_DONTWAIT)?;
        let stamp_ns = message.cmsgs().find_map(|one| match one {
            ControlMessageOwned::ScmTimestampns(at) => at
                .tv_sec()
                .checked_mul(1_000_000_000)?
                .checked_add(at.tv_nsec()),
            _ => None,
        });
        Ok(Received {
            bytes: message.bytes,
            stamp_ns,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::unix_ms;
    use std::io::Read as _;
    use std::time::Duration;

    #[test]
    fn data_that_lay_in_the_socket_says_when_it_came() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        stream.set_nonblocking(true).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        let socket = Socket::new(stream);
        assert_eq!(socket.write(b"hello").unwrap(), 5);
        let mut receiver = Receiver::default();
        let mut buffer = [0; 16];
        // The first packet after the stamps are switched on may be stamped late.
        for lies_ms in [1_u64, 40, 40] {
            server.write_all(b"abc").unwrap();
            std::thread::sleep(Duration::from_millis(lies_ms));
            let read = receiver.receive(&socket, &mut buffer).unwrap();
            assert_eq!((read.bytes, buffer.get(..3)), (3, Some(&b"abc"[..])));
            if lies_ms > 1 {
                let age_ms = unix_ms() - read.stamp_ns.unwrap() / 1_000_000;
                assert!((39..2_000).contains(&age_ms), "{age_ms}");
            }
        }
        let nothing = receiver.receive(&socket, &mut buffer).unwrap_err();
        assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock);
        server.read_exact(&mut [0; 5]).unwrap();
        drop(server);
        std::thread::sleep(Duration::from_millis(10));
        assert_eq!(receiver.receive(&socket, &mut buffer).unwrap().bytes, 0);
    }
}
