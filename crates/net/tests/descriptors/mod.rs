//! The last descriptors of a process. The limit is the process's, so that a file which draws on
//! this has one test.

use std::fs::File;
use std::time::Duration;

use nix::sys::resource::{Resource, getrlimit, rlim_t, setrlimit};

/// How many descriptors there are under a limit.
const DESCRIPTORS: rlim_t = 256;

/// How long a client waits for what it is owed.
pub(crate) const PATIENCE: Option<Duration> = Some(Duration::from_secs(20));

/// A limit on the descriptors of this process, until it is dropped.
pub(crate) struct Limit {
    soft: rlim_t,
    hard: rlim_t,
}

impl Limit {
    /// Begins.
    pub(crate) fn begin() -> Limit {
        let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
        setrlimit(Resource::RLIMIT_NOFILE, DESCRIPTORS.min(soft), hard).unwrap();
        Limit { soft, hard }
    }
}

impl Drop for Limit {
    fn drop(&mut self) {
        setrlimit(Resource::RLIMIT_NOFILE, self.soft, self.hard).unwrap();
    }
}

/// Takes all descriptors that are left but the one that `connect` needs, and connects.
pub(crate) fn connect_last<S>(connect: impl FnOnce() -> S) -> (S, Vec<File>) {
    let mut fillers: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    assert!(fillers.pop().is_some(), "there were descriptors left");
    let stream = connect();
    assert!(File::open("/dev/null").is_err(), "the client has the last one");
    (stream, fillers)
}
