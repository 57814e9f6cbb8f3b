//! What watches the devices of volumes, and speaks for the event loop while that waits for one.
//!
//! The event loop waits for no backing, but for the cache device it may: where all write buffers
//! are on their way, for example. Its figures are then those of before, and administrators that
//! come are heard here: they are told of the figures, and which device it is. Whoever watches over
//! the process is told that it lives: a new process would wait for the same device. An event loop
//! that stands still for no device is not spoken for.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use entresol_device::PendingIo;
use entresol_host::{LOOK_INTERVAL, STOP_INTERVAL, Stalls};
use entresol_volume::{Devices, Error, ErrorKind, Unanswered};
use serde_json::{Value, json};
use tracing::warn;

use crate::control;
use crate::published::Published;
use crate::unanswered;

/// How long an administrator has for a line, and to take the answer.
const LINE_WAIT: Duration = Duration::from_millis(500);
/// Longest line of an administrator.
const LINE_BYTES_MAX: u64 = 64 << 10;

/// For how long the event loop may wait for the cache device and is still spoken for. One that got
/// stuck while requests were in flight looks the same, and this ends it.
pub const DEVICE_WAIT_MAX: Duration = Duration::from_secs(600);
/// From when on a request in flight explains that the event loop does not go on.
const LONG_REQUEST: Duration = Duration::from_secs(2);

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

    /// Watches until the event loop has ended; `look` is called some times a second.
    pub(crate) fn watch(&self, published: &Published, look: &dyn Fn(&Published)) {
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
            look(published);
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

/// Whether the event loop is late because it waits for the cache device.
pub(crate) fn is_spoken_for(published: &Published) -> bool {
    published.is_stale() && waits_for_cache(published.age(), &published.unanswered())
}

/// Whether an event loop that is late by `late` waits for the cache device, and not for too long.
fn waits_for_cache(late: Duration, found: &[Unanswered]) -> bool {
    let of_cache = found.iter().filter(|one| one.volume.is_none());
    late <= DEVICE_WAIT_MAX && of_cache.map(|one| one.pending.age).max() >= Some(LONG_REQUEST)
}

/// Watches the devices of volumes that nobody serves, as while they are brought to rest, until it
/// is dropped.
#[derive(Debug)]
pub struct DeviceWatch {
    published: Arc<Published>,
    thread: Option<JoinHandle<()>>,
}

impl DeviceWatch {
    /// Begins; `alive` is called some times a second. Where no thread can be had, nobody is told of
    /// anything.
    pub fn begin(devices: Arc<Devices>, alive: impl Fn() + Send + 'static) -> DeviceWatch {
        let published = Arc::new(Published::new());
        let watched = Arc::clone(&published);
        let watch = move || StallWatch::new(devices, None).watch(&watched, &|_| alive());
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

#[cfg(test)]
mod tests {
    use super::*;

    fn unanswered(volume: Option<&str>, seconds: u64) -> Unanswered {
        let age = Duration::from_secs(seconds);
        let pending = PendingIo { device: "/dev/x".to_owned(), age };
        Unanswered { volume: volume.map(str::to_owned), pending }
    }

    #[test]
    fn an_event_loop_is_spoken_for_while_it_waits_for_the_cache_device_and_not_without_end() {
        let late = Duration::from_secs(40);
        assert!(waits_for_cache(late, &[unanswered(None, 39)]));
        assert!(waits_for_cache(late, &[unanswered(Some("vm1"), 1), unanswered(None, 39)]));
        assert!(!waits_for_cache(late, &[]), "it got stuck");
        assert!(!waits_for_cache(late, &[unanswered(None, 0)]), "the device answers");
        assert!(!waits_for_cache(late, &[unanswered(Some("vm1"), 39)]), "it waits for no backing");
        assert!(waits_for_cache(DEVICE_WAIT_MAX, &[unanswered(None, 600)]));
        let later = DEVICE_WAIT_MAX + Duration::from_secs(1);
        assert!(!waits_for_cache(later, &[unanswered(None, 601)]));
    }
}
