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
use entresol_host::{LOOK_INTERVAL, STALLED, STOP_INTERVAL, Stalls, report};
use entresol_volume::{Devices, Error, ErrorKind, Unanswered};
use serde_json::{Value, json};

use super::board::Board;
use super::control;

/// How long an administrator has for a line, and to take the answer.
const LINE_WAIT: Duration = Duration::from_millis(500);
/// Longest line of an administrator.
const LINE_BYTES_MAX: u64 = 64 << 10;

/// Watches the devices of volumes.
pub(super) struct Deputy {
    devices: Arc<Devices>,
    /// The socket of administrators, which the event loop takes them from as long as it can.
    control: Option<UnixListener>,
}

impl Deputy {
    pub(super) fn new(devices: Arc<Devices>, control: Option<UnixListener>) -> Deputy {
        Deputy { devices, control }
    }

    /// Watches until the event loop has ended.
    pub(super) fn watch(&self, board: &Board) {
        let mut stalls = Stalls::default();
        let mut looked: Option<Instant> = None;
        while !board.is_closed() {
            if looked.is_none_or(|at| at.elapsed() >= LOOK_INTERVAL) {
                looked = Some(Instant::now());
                let found = self.devices.unanswered();
                let named: Vec<PendingIo> = found.iter().map(named).collect();
                stalls.look(&named).iter().for_each(|said| report(said));
                board.note(found);
            }
            if board.is_stale() {
                self.hear(board);
            }
            std::thread::park_timeout(STOP_INTERVAL);
        }
    }

    /// Answers one line of an administrator who waits.
    fn hear(&self, board: &Board) {
        let Some(Ok((stream, _))) = self.control.as_ref().map(UnixListener::accept) else { return };
        // One who breaks off gets no answer; there is nothing else to do about it.
        let _ = converse(stream, board);
    }
}

/// Watches the devices of volumes that nobody serves, as while they are brought to rest, until it
/// is dropped.
#[derive(Debug)]
pub struct DeviceWatch {
    board: Arc<Board>,
    thread: Option<JoinHandle<()>>,
}

impl DeviceWatch {
    /// Begins. Where no thread can be had, nobody is told of anything.
    pub fn begin(devices: Arc<Devices>) -> DeviceWatch {
        let board = Arc::new(Board::default());
        let watched = Arc::clone(&board);
        let watch = move || Deputy::new(devices, None).watch(&watched);
        let thread = std::thread::Builder::new().name("watch".to_owned()).spawn(watch).ok();
        DeviceWatch { board, thread }
    }
}

impl Drop for DeviceWatch {
    fn drop(&mut self) {
        self.board.close();
        if let Some(thread) = self.thread.take() {
            // It can only have panicked, which was told where it did.
            let _panicked = thread.join();
        }
    }
}

fn converse(stream: UnixStream, board: &Board) -> std::io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(LINE_WAIT))?;
    stream.set_write_timeout(Some(LINE_WAIT))?;
    let mut line = String::new();
    BufReader::new((&stream).take(LINE_BYTES_MAX)).read_line(&mut line)?;
    let asked: Value = serde_json::from_str(&line).unwrap_or_default();
    let answer = if asked["command"] == "stat" {
        let mut report = board.report();
        report["ok"] = json!(true);
        report
    } else {
        let found = board.unanswered();
        let waits = found.iter().max_by_key(|one| one.pending.age).map(named);
        let which = waits.map_or("a device".to_owned(), |pending| {
            format!("{}, {} s by now", pending.device, pending.age.as_secs())
        });
        let detail = format!("the server waits for {which}; check it, or try again");
        control::failure(&Error::new(ErrorKind::Unavailable, detail))
    };
    (&stream).write_all(format!("{answer}\n").as_bytes())
}

/// A device under the name that people know it by.
fn named(one: &Unanswered) -> PendingIo {
    let PendingIo { device, age } = &one.pending;
    let role = match &one.volume {
        Some(volume) => format!("backing of volume {volume}"),
        None => "the cache".to_owned(),
    };
    PendingIo { device: format!("{device} ({role})"), age: *age }
}

/// Writes into figures for how long each device has not answered.
pub(super) fn complete(report: &mut Value, found: &[Unanswered]) {
    let seconds = |volume: Option<&str>| {
        let ages = found.iter().filter(|one| one.volume.as_deref() == volume);
        ages.map(|one| one.pending.age.as_secs()).max().unwrap_or(0)
    };
    if let Some(cache) = report.get_mut("cache").and_then(Value::as_object_mut) {
        cache.insert("oldest_pending_io_seconds".to_owned(), json!(seconds(None)));
    }
    for volume in report.get_mut("volumes").and_then(Value::as_array_mut).into_iter().flatten() {
        let age = volume["name"].as_str().map_or(0, |name| seconds(Some(name)));
        volume["oldest_pending_io_seconds"] = json!(age);
    }
}

/// The oldest of those that count as stalled.
pub(super) fn stalled(found: &[Unanswered]) -> Option<PendingIo> {
    let stalled = found.iter().filter(|one| one.pending.age >= STALLED);
    stalled.max_by_key(|one| one.pending.age).map(named)
}
