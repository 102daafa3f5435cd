//! Bodies that somebody on the way compressed, although it was asked not to. Each read is decoded as far as it goes, so that its events
//! have its stamp.

use super::http::Encoding;
use flate2::write::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use std::io::{self, Write};

/// Bytes that are decoded at a time: deflate makes at most about a thousand of each.
const PIECE: usize = 4096;

/// An incremental decoder of one body.
#[derive(Debug)]
pub struct Inflate(State);

#[derive(Debug)]
enum State {
    Gzip(MultiGzDecoder<Vec<u8>>),
    /// `deflate` means the zlib format (RFC 9110 section 8.4.1.2), yet some send the bare one: the first two bytes tell.
    Unsure(Vec<u8>),
    Zlib(ZlibDecoder<Vec<u8>>),
    Bare(DeflateDecoder<Vec<u8>>),
}

impl Inflate {
    pub fn new(encoding: Encoding) -> Self {
        Inflate(match encoding {
            Encoding::Gzip => State::Gzip(MultiGzDecoder::new(Vec::new())),
            Encoding::Deflate => State::Unsure(Vec::new()),
        })
    }

    /// Decodes `bytes` and gives what they stand for to `on`, in pieces.
    pub fn feed(&mut self, bytes: &[u8], on: &mut impl FnMut(&[u8])) -> io::Result<()> {
        bytes
            .chunks(PIECE)
            .try_for_each(|piece| self.piece(piece, on))
    }

    fn piece(&mut self, piece: &[u8], on: &mut impl FnMut(&[u8])) -> io::Result<()> {
        match &mut self.0 {
            State::Gzip(decoder) => {
                decode(decoder, piece)?;
                hand_out(decoder.get_mut(), on);
            }
            State::Zlib(decoder) => {
                decode(decoder, piece)?;
                hand_out(decoder.get_mut(), on);
            }
            State::Bare(decoder) => {
                decode(decoder, piece)?;
                hand_out(decoder.get_mut(), on);
            }
            State::Unsure(start) => {
                start.extend_from_slice(piece);
                let Some(&[first, second]) = start.first_chunk() else {
                    return Ok(());
                };
                // RFC 1950: method 8, and a check over both bytes.
                let check = u16::from_be_bytes([first, second]) % 31;
                let start = std::mem::take(start);
                self.0 = if first & 0x0f == 8 && check == 0 {
                    State::Zlib(ZlibDecoder::new(Vec::new()))
                } else {
                    State::Bare(DeflateDecoder::new(Vec::new()))
                };
                return self.piece(&start, on);
            }
        }
        Ok(())
    }
}

fn decode(decoder: &mut impl Write, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match decoder.write(bytes)? {
            // The compressed data has ended; what follows it is nothing.
            0 => break,
            n => bytes = bytes.get(n..).unwrap_or_default(),
        }
    }
    decoder.flush()
}

fn hand_out(plain: &mut Vec<u8>, on: &mut impl FnMut(&[u8])) {
    if !plain.is_empty() {
        on(plain);
        plain.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

    const EVENTS: [&[u8]; 3] = [b"data: one\n\n", b"data: two\n\n", b"data: three\n\n"];

    /// Feeds each of `wires` in pieces of `cut` bytes; what came out after each.
    fn fed(encoding: Encoding, wires: &[Vec<u8>], cut: usize) -> Vec<Vec<u8>> {
        let mut inflate = Inflate::new(encoding);
        let after = |wire: &Vec<u8>| {
            let mut plain = Vec::new();
            for piece in wire.chunks(cut) {
                let mut on = |bytes: &[u8]| plain.extend_from_slice(bytes);
                inflate.feed(piece, &mut on).unwrap();
            }
            plain
        };
        wires.iter().map(after).collect()
    }

    /// What a server sends that flushes after each event.
    macro_rules! flushed {
        ($encoder:expr) => {{
            let mut encoder = $encoder;
            let mut wires: Vec<Vec<u8>> = Vec::new();
            for event in EVENTS {
                encoder.write_all(event).unwrap();
                encoder.flush().unwrap();
                wires.push(std::mem::take(encoder.get_mut()));
            }
            wires.push(encoder.finish().unwrap());
            wires
        }};
    }

    #[test]
    fn every_event_comes_out_with_the_bytes_that_complete_it() {
        let best = Compression::best();
        let gzip = flushed!(GzEncoder::new(Vec::new(), best));
        let zlib = flushed!(ZlibEncoder::new(Vec::new(), best));
        let bare = flushed!(DeflateEncoder::new(Vec::new(), best));
        let want = [EVENTS[0], EVENTS[1], EVENTS[2], b""];
        for (encoding, wires) in [
            (Encoding::Gzip, gzip),
            (Encoding::Deflate, zlib),
            (Encoding::Deflate, bare),
        ] {
            for cut in [1, 2, 7, 1000] {
                assert_eq!(fed(encoding, &wires, cut), want, "{encoding:?} {cut}");
            }
        }
    }

    #[test]
    fn what_is_not_compressed_is_an_error() {
        let mut inflate = Inflate::new(Encoding::Gzip);
        let plain = b"data: one\n\n and more";
        assert!(inflate.feed(plain, &mut |_| {}).is_err());
    }
}
