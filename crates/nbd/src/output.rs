//! Bytes that a client is owed, in order.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, IoSlice};

use bytes::Bytes;
use entresol_net::Stream;

/// Bytes that a client is owed. Small pieces are gathered, large ones are kept as they came.
#[derive(Debug, Default)]
pub(crate) struct Output {
    segments: VecDeque<Bytes>,
    tail: Vec<u8>,
    length: usize,
}

/// From this size on a piece is not copied.
const LARGE_BYTES: usize = 8 << 10;
/// Pieces written with one call.
const SLICES_MAX: usize = 32;

impl Output {
    /// Bytes that are owed.
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    /// Lets `write` append.
    pub(crate) fn append(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let before = self.tail.len();
        write(&mut self.tail);
        self.length += self.tail.len() - before;
    }

    /// Appends `bytes`.
    pub(crate) fn push(&mut self, bytes: Bytes) {
        if bytes.len() < LARGE_BYTES {
            return self.append(|tail| tail.extend_from_slice(&bytes));
        }
        self.seal();
        self.length += bytes.len();
        self.segments.push_back(bytes);
    }

    /// Writes as much as `stream` takes.
    ///
    /// # Errors
    /// The stream is broken; `WouldBlock` is none.
    pub(crate) fn write_to(&mut self, stream: &mut Stream) -> io::Result<()> {
        self.seal();
        while !self.segments.is_empty() {
            let mut slices = [IoSlice::new(&[]); SLICES_MAX];
            for (slice, segment) in slices.iter_mut().zip(&self.segments) {
                *slice = IoSlice::new(segment);
            }
            match stream.write_vectored(&slices) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(taken) => self.advance(taken),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        match stream.flush() {
            Err(error) if error.kind() != ErrorKind::WouldBlock => Err(error),
            _ => Ok(()),
        }
    }

    fn seal(&mut self) {
        if !self.tail.is_empty() {
            self.segments.push_back(Bytes::from(std::mem::take(&mut self.tail)));
        }
    }

    fn advance(&mut self, mut taken: usize) {
        self.length -= taken;
        while let Some(front) = self.segments.front_mut() {
            if taken < front.len() {
                let _written = front.split_to(taken);
                return;
            }
            taken -= front.len();
            self.segments.pop_front();
        }
    }
}
