//! What a slot of the ring holds.
#![expect(unsafe_code, reason = "the kernel gets raw pointers to the memory of requests")]

use std::io;

use io_uring::types::{Fixed, FsyncFlags};
use io_uring::{opcode, squeue};

use crate::buffer::{IoBuffer, WriteHold};
use crate::device::WriteMode;
use crate::error::Result;
use crate::file::OpenFile;
use crate::pending::Group;

/// How often one request is resubmitted without having made progress.
const RETRIES_MAX: u32 = 1000;

/// Most bytes of one entry; the rest follows in another.
const TRANSFER_BYTES_MAX: usize = 1 << 30;

/// A transfer or sync on its way, with the memory that the kernel was given.
pub(super) struct Request {
    pub(super) token: u64,
    offset: u64,
    length: usize,
    done: usize,
    retries: u32,
    pub(super) group: Group,
    pub(super) action: Action,
}

pub(super) enum Action {
    Read(IoBuffer),
    /// With the number of the registered buffer that the memory is in.
    Write(WriteHold, WriteMode, Option<u16>),
    Sync,
}

impl Request {
    pub(super) fn new(
        token: u64,
        offset: u64,
        length: usize,
        group: Group,
        action: Action,
    ) -> Self {
        Request { token, offset, length, done: 0, retries: 0, group, action }
    }

    /// What the submission ring is given for the part that is left.
    pub(super) fn entry(&mut self, pool_registered: bool) -> squeue::Entry {
        let (file, offset) = (Fixed(0), self.offset + self.done as u64);
        let rest = (self.length - self.done).min(TRANSFER_BYTES_MAX) as u32;
        match &mut self.action {
            Action::Read(buffer) => {
                // SAFETY: `done` is less than the buffer's length.
                let to = unsafe { buffer.as_raw().add(self.done) };
                match buffer.registered().filter(|_| pool_registered) {
                    Some(index) => {
                        opcode::ReadFixed::new(file, to, rest, index).offset(offset).build()
                    }
                    None => opcode::Read::new(file, to, rest).offset(offset).build(),
                }
            }
            Action::Write(hold, mode, registered) => {
                // SAFETY: `done` is less than the length held.
                let from = unsafe { hold.raw().0.add(self.done) };
                let flags = match mode {
                    WriteMode::Flushed => 0,
                    WriteMode::Durable => libc::RWF_DSYNC,
                };
                match registered {
                    Some(index) => opcode::WriteFixed::new(file, from, rest, *index)
                        .offset(offset)
                        .rw_flags(flags)
                        .build(),
                    None => {
                        opcode::Write::new(file, from, rest).offset(offset).rw_flags(flags).build()
                    }
                }
            }
            Action::Sync => opcode::Fsync::new(file).flags(FsyncFlags::DATASYNC).build(),
        }
    }

    /// Takes the kernel's answer: the final result, or `None` if the rest is to be submitted again.
    pub(super) fn advance(&mut self, answer: i32, file: &OpenFile) -> Option<Result<()>> {
        let (doing, source) = match answer {
            // Requests are cancelled when the thread that submitted them ends; the queue lives on.
            _ if [libc::EINTR, libc::EAGAIN, libc::ECANCELED].contains(&-answer) => {
                self.retries += 1;
                if self.retries < RETRIES_MAX {
                    return None;
                }
                (self.doing(), io::Error::from_raw_os_error(-answer))
            }
            ..0 => (self.doing(), io::Error::from_raw_os_error(-answer)),
            0 if self.length > 0 => (self.doing(), io::ErrorKind::UnexpectedEof.into()),
            _ => {
                self.done += answer as usize;
                return (self.done >= self.length).then_some(Ok(()));
            }
        };
        Some(Err(file.transfer_error(doing, self.offset, self.length, source)))
    }

    fn doing(&self) -> &'static str {
        match self.action {
            Action::Read(_) => "read",
            Action::Write(..) => "write",
            Action::Sync => "sync",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::file::{FileDevice, FileOptions};
    use crate::pending::Pending;
    use crate::testing::TempDir;

    fn request() -> Request {
        let action = Action::Read(IoBuffer::aligned(8192));
        let group = Pending::default().begin();
        Request::new(1, 4096, 8192, group, action)
    }

    #[test]
    fn transfers_cut_short_go_on_where_they_ended() {
        let dir = TempDir::new("answers");
        let capacity_bytes = Some(1 << 20);
        let options = FileOptions { capacity_bytes, ..FileOptions::default() };
        let device = FileDevice::open(dir.path().join("device"), &options).unwrap();
        let file = device.open_file();
        let mut cut = request();
        for (answer, done) in [(-libc::EINTR, 0), (512, 512), (-libc::EAGAIN, 512), (4096, 4608)] {
            assert!(cut.advance(answer, file).is_none(), "answer {answer}");
            assert_eq!(cut.done, done);
        }
        assert!(cut.advance(8192 - 4608, file).is_some_and(|result| result.is_ok()));
        for (answer, what) in [(0, "end of file"), (-libc::EIO, "Input/output")] {
            let error = request().advance(answer, file).unwrap().unwrap_err();
            let text = error.to_string();
            assert_eq!(error.kind(), ErrorKind::Io);
            let expected = [&device.describe()[..10], "8192 bytes", "offset 4096", what];
            assert!(expected.iter().all(|part| text.contains(part)), "{text}");
        }
        let mut stuck = request();
        let tries =
            (0..2 * RETRIES_MAX).take_while(|_| stuck.advance(-libc::EAGAIN, file).is_none());
        assert_eq!(tries.count() as u32, RETRIES_MAX - 1, "it does not try for ever");
    }
}
