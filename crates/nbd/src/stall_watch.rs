//! What watches the devices of volumes, and speaks for the event loop while that waits for one.
//!
//! The event loop waits for no backing, but for the cache device it may: where all write buffers
//! are on their way, for example. Its figures are then those of before, and administrators that
//! come are heard here: they are told of the figures, and which device it is.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use entresol_device::PendingIo;
use entresol_host::{LOOK_INTERVAL, STOP_INTERVAL, Stalls};
use entresol_volume::{Devices, Error, ErrorKind};
use serde_json::{Value, json};
use tracing::warn;

use crate::control;
use crate::published::Published;
use crate::unanswered;

/// How long an administrator has for a line, and to take the answer.
const LINE_WAIT: Duration = Duration::from_millis(500);
/// Longest line of an administrator.
const LINE_BYTES_MAX: u64 = 64 << 10;

/// Watches the devices of volumes.
pub(crate) struct StallWatch {
    devices: Arc<Devices>,
    /// The socket of administrators, which the event loop takes them from as long as it can.
    control: Option<UnixListener>,
}

impl StallWatch {
    pub(crate) fn new(devices: Arc<Devices>, control: Option<UnixListener>) -> StallWatch {
        StallWatch { devices, control }
    }

    /// Watches until the event loop has ended.
    pub(crate) fn watch(&self, published: &Published) {
        let mut stalls = Stalls::default();
        let mut looked: Option<Instant> = None;
        while !published.is_closed() {
            if looked.is_none_or(|at| at.elapsed() >= LOOK_INTERVAL) {
                looked = Some(Instant::now());
                let found = self.devices.unanswered();
                let named: Vec<PendingIo> = found.iter().map(unanswered::named).collect();
                stalls.look(&named).iter().for_each(|said| warn!("{said}"));
                published.note(found);
            }
            if published.is_stale() {
                self.hear(published);
            }
            std::thread::park_timeout(STOP_INTERVAL);
        }
    }

    /// Answers one line of an administrator who waits.
    fn hear(&self, published: &Published) {
        let Some(Ok((stream, _))) = self.control.as_ref().map(UnixListener::accept) else { return };
        // One who breaks off gets no answer; there is nothing else to do about it.
        let _ = converse(stream, published);
    }
}

/// Watches the devices of volumes that nobody serves, as while they are brought to rest, until it
/// is dropped.
#[derive(Debug)]
pub struct DeviceWatch {
    published: Arc<Published>,
    thread: Option<JoinHandle<()>>,
}

impl DeviceWatch {
    /// Begins. Where no thread can be had, nobody is told of anything.
    pub fn begin(devices: Arc<Devices>) -> DeviceWatch {
        let published = Arc::new(Published::new(None));
        let watched = Arc::clone(&published);
        let watch = move || StallWatch::new(devices, None).watch(&watched);
        let thread = std::thread::Builder::new().name("watch".to_owned()).spawn(watch).ok();
        DeviceWatch { published, thread }
    }
}

impl Drop for DeviceWatch {
    fn drop(&mut self) {
        self.published.close();
        if let Some(thread) = self.thread.take() {
            // It can only have panicked, which was told where it did.
            let _panicked = thread.join();
        }
    }
}

fn converse(stream: UnixStream, published: &Published) -> std::io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(LINE_WAIT))?;
    stream.set_write_timeout(Some(LINE_WAIT))?;
    let mut line = String::new();
    BufReader::new((&stream).take(LINE_BYTES_MAX)).read_line(&mut line)?;
    let asked: Value = serde_json::from_str(&line).unwrap_or_default();
    let answer = if asked["command"] == "stat" {
        let mut report = published.report();
        report["ok"] = json!(true);
        report
    } else {
        let found = published.unanswered();
        let waits = found.iter().max_by_key(|one| one.pending.age).map(unanswered::named);
        let which = waits.map_or("a device".to_owned(), |pending| {
            format!("{}, {} s by now", pending.device, pending.age.as_secs())
        });
        let detail = format!("the server waits for {which}; check it, or try again");
        control::failure(&Error::new(ErrorKind::Unavailable, detail))
    };
    (&stream).write_all(format!("{answer}\n").as_bytes())
}
