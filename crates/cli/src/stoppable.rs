//! Input whose reads end at a signal to stop, even a read that waits for input that may never come.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// A file, a pipe or a terminal; `stopped` can be read once a signal has come.
pub(crate) struct Stoppable {
    input: File,
    stopped: UnixStream,
}

impl Stoppable {
    /// `input`, until `stopped` can be read.
    pub(crate) fn new(input: File, stopped: UnixStream) -> Stoppable {
        Stoppable { input, stopped }
    }
}

impl Read for Stoppable {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let of = |descriptor| PollFd::new(descriptor, PollFlags::POLLIN);
        let mut descriptors = [of(self.stopped.as_fd()), of(self.input.as_fd())];
        while let Err(error) = poll(&mut descriptors, PollTimeout::NONE) {
            if error != Errno::EINTR {
                return Err(error.into());
            }
        }
        if descriptors[0].any() == Some(true) {
            return Err(io::Error::other("a signal asked to stop"));
        }
        self.input.read(buffer)
    }
}
