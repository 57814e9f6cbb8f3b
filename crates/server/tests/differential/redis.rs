//! redis-server as the judge: one of the tests' own, and how replies are held against its.

use std::process::{Child, Command, Stdio};

use super::support::TempDir;

/// A redis-server of our own. Dropping it ends it.
pub(crate) struct Redis {
    child: Child,
    pub(crate) directory: TempDir,
}

impl Redis {
    pub(crate) fn start() -> Option<Redis> {
        Redis::start_with(&[])
    }

    pub(crate) fn start_with(settings: &[&str]) -> Option<Redis> {
        let directory = TempDir::new();
        let socket = directory.path("redis");
        let child = Command::new("redis-server")
            .args(["--port", "0", "--save", "", "--appendonly", "no", "--unixsocket"])
            .arg(&socket)
            .arg("--dir")
            .arg(directory.path(""))
            .args(settings)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let redis = Redis { child, directory };
        let mut tries = 0u64;
        while std::os::unix::net::UnixStream::connect(&socket).is_err() {
            tries += 1;
            assert!(tries < 50_000_000, "redis-server does not start");
            std::thread::yield_now();
        }
        Some(redis)
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// How two replies are compared.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Compare {
    Bytes,
    Sorted,
    Near,
}

/// Whether two replies are the same as far as `compare` looks.
pub(crate) fn same(compare: Compare, ours: &[u8], theirs: &[u8]) -> bool {
    match compare {
        Compare::Bytes => ours == theirs,
        Compare::Sorted => {
            let sorted = |reply: &[u8]| {
                let mut lines: Vec<Vec<u8>> =
                    reply.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
                lines.sort();
                lines
            };
            sorted(ours) == sorted(theirs)
        }
        Compare::Near => {
            let (ours, theirs) = (by_number(ours), by_number(theirs));
            let mut lines = ours.iter().zip(&theirs);
            ours.len() == theirs.len() && lines.all(|(ours, theirs)| is_near(ours, theirs))
        }
    }
}

/// The lines of a reply: integers by size, then all others by bytes.
fn by_number(reply: &[u8]) -> Vec<(Option<i64>, &[u8])> {
    let number = |line: &[u8]| -> Option<i64> {
        std::str::from_utf8(line).ok()?.trim_end().strip_prefix(':')?.parse().ok()
    };
    let mut lines: Vec<_> = reply.split(|byte| *byte == b'\n').map(|l| (number(l), l)).collect();
    lines.sort();
    lines
}

/// Whether two lines are equal, or both a time that is left.
fn is_near(ours: &(Option<i64>, &[u8]), theirs: &(Option<i64>, &[u8])) -> bool {
    match (ours.0, theirs.0) {
        (Some(ours), Some(theirs)) if ours > LEFT_MIN && theirs > LEFT_MIN => {
            (ours - theirs).abs() <= LEFT_SLACK
        }
        _ => ours == theirs,
    }
}

/// No time that is left is less, and other integers hardly reach it.
const LEFT_MIN: i64 = 40_000;
/// Milliseconds or seconds that one server may be behind the other on a busy machine.
const LEFT_SLACK: i64 = 9_000;
