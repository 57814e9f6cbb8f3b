//! The socket for administrators: a JSON object a line, and one back for each.
//!
//! `{"command": "stat"}`, `list`, `flush`, `mode`, `set`, `resize`, `create`, `remove`, `log` and
//! `stop`; answers have `"ok": true`, or `"ok": false` with `"kind"` and `"error"`. The whole of it
//! stands in `docs/reference/nbd.md`.

use std::io::{self, ErrorKind};

use bytes::Bytes;
use entresol_host::{LogLevel, set_log_level};
use entresol_net::Stream;
use entresol_volume::{
    Dirty, Error, ErrorKind as VolumeErrorKind, Moment, Qos, Request, Tuning, VolumeId, VolumeInfo,
    VolumeOptions, Volumes,
};
use entresol_wire::json::Json;
use serde_json::{Map, Value, json};
use tracing::info;

use crate::output::Output;
use crate::unanswered;

/// Longest line of an administrator.
const LINE_BYTES_MAX: usize = 64 << 10;

/// An administrator.
pub(crate) struct Administrator {
    pub(crate) stream: Stream,
    pub(crate) generation: u32,
    input: Vec<u8>,
    output: Output,
    /// A request of the last line waits for its answer; lines are taken in order.
    pub(crate) waits: bool,
    gone: bool,
}

/// What a line led to.
#[derive(Debug)]
pub(crate) enum Begun {
    /// The answer.
    Answer(Value),
    /// The volume is asked; the answer comes with its completion.
    Ask(VolumeId, Request),
    /// The answer is success, and the server stops.
    Stop,
}

impl Administrator {
    pub(crate) fn new(stream: Stream, generation: u32) -> Administrator {
        let (input, output) = (Vec::new(), Output::default());
        Administrator { stream, generation, input, output, waits: false, gone: false }
    }

    /// Whether it may be forgotten.
    pub(crate) fn is_over(&self) -> bool {
        self.gone && !self.waits
    }

    /// Reads what has come. Afterwards [`Administrator::next_line`] has the lines.
    pub(crate) fn read(&mut self, scratch: &mut [u8]) {
        while !self.gone && self.input.len() <= LINE_BYTES_MAX {
            match self.stream.read(scratch) {
                Ok(0) => self.gone = true,
                Ok(length) => self.input.extend_from_slice(&scratch[..length]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => self.gone = true,
            }
        }
    }

    /// The next whole line, unless the last one waits for its answer.
    pub(crate) fn next_line(&mut self) -> Option<Vec<u8>> {
        if self.waits {
            return None;
        }
        let Some(end) = self.input.iter().position(|byte| *byte == b'\n') else {
            if self.input.len() > LINE_BYTES_MAX {
                let detail = format!("line: expected at most {LINE_BYTES_MAX} bytes, found more");
                self.input.clear();
                self.answer(&failure(&Error::new(VolumeErrorKind::InvalidInput, detail)));
                self.gone = true;
            }
            return None;
        };
        let mut line: Vec<u8> = self.input.drain(..=end).collect();
        line.pop();
        Some(line)
    }

    /// Appends an answer and writes what the socket takes.
    pub(crate) fn answer(&mut self, answer: &Value) {
        self.output.append(|out| {
            out.extend_from_slice(answer.to_string().as_bytes());
            out.push(b'\n');
        });
        self.write();
    }

    /// Writes what the socket takes.
    pub(crate) fn write(&mut self) {
        let written: io::Result<()> = self.output.write_to(&mut self.stream);
        self.gone |= written.is_err();
    }
}

/// How the server stands as a line comes.
pub(crate) struct Stand<'a> {
    pub(crate) now: Moment,
    /// The volume of each client.
    pub(crate) used: &'a [VolumeId],
    /// The server's own figures.
    pub(crate) server: Value,
}

/// Begins what `line` asks for.
pub(crate) fn begin(line: &[u8], volumes: &mut dyn Volumes, stand: Stand<'_>) -> Begun {
    decide(line, volumes, stand).unwrap_or_else(|error| Begun::Answer(failure(&error)))
}

/// The answer to a request that a volume has answered.
pub(crate) fn outcome(result: &Result<Bytes, Error>) -> Value {
    match result {
        Ok(_) => json!({"ok": true}),
        Err(error) => failure(error),
    }
}

fn decide(
    line: &[u8],
    volumes: &mut dyn Volumes,
    Stand { now, used, server }: Stand<'_>,
) -> Result<Begun, Error> {
    let text = str::from_utf8(line).map_err(|error| invalid(format!("line: {error}")))?;
    // A field that stands twice could be meant in two ways.
    Json::parse(text).map_err(|error| invalid(format!("line: expected a JSON object: {error}")))?;
    let fields = match serde_json::from_str(text) {
        Ok(Value::Object(fields)) => Fields(fields),
        Ok(_) => return Err(invalid("line: expected a JSON object, found another value")),
        Err(error) => return Err(invalid(format!("line: expected a JSON object: {error}"))),
    };
    let command = fields.text("command")?;
    match command {
        "stat" => {
            fields.allow(&["command"])?;
            let mut answer = report(volumes, server);
            answer["ok"] = json!(true);
            Ok(Begun::Answer(answer))
        }
        "list" => {
            fields.allow(&["command"])?;
            let list: Vec<Value> = volumes.list().iter().map(describe).collect();
            Ok(Begun::Answer(json!({"ok": true, "volumes": list})))
        }
        "flush" => {
            fields.allow(&["command", "volume"])?;
            Ok(Begun::Ask(fields.volume(volumes)?, Request::WriteBack))
        }
        "mode" => {
            fields.allow(&["command", "volume", "mode"])?;
            let mode = fields.text("mode")?.parse()?;
            Ok(Begun::Ask(fields.volume(volumes)?, Request::SetMode(mode)))
        }
        "set" => Ok(Begun::Ask(fields.volume(volumes)?, Request::Tune(fields.tuning()?))),
        "resize" => {
            fields.allow(&["command", "volume"])?;
            Ok(Begun::Ask(fields.volume(volumes)?, Request::Resize))
        }
        "remove" => {
            fields.allow(&["command", "volume", "lose_dirty"])?;
            let volume = fields.volume(volumes)?;
            let clients = used.iter().filter(|of| **of == volume).count();
            if clients > 0 {
                let name = fields.text("volume")?;
                let detail = format!(
                    "volume {name}: {clients} clients use it; disconnect them, then remove it"
                );
                return Err(Error::new(VolumeErrorKind::Unavailable, detail));
            }
            let dirty = if fields.flag("lose_dirty")? { Dirty::Lose } else { Dirty::Keep };
            Ok(Begun::Ask(volume, Request::Remove(dirty)))
        }
        "create" => {
            let options = fields.options()?;
            let id = volumes.create(&options, now)?;
            Ok(Begun::Answer(json!({"ok": true, "number": id.0})))
        }
        "log" => {
            fields.allow(&["command", "level"])?;
            let level = fields.text("level")?.parse::<LogLevel>().map_err(invalid)?;
            set_log_level(level);
            info!("an administrator sets the level of the log to {}", fields.text("level")?);
            Ok(Begun::Answer(json!({"ok": true})))
        }
        "stop" => Ok(Begun::Stop),
        other => Err(invalid(format!(
            "command: expected stat, list, flush, mode, set, resize, create, remove, log or stop, \
             found '{other}'"
        ))),
    }
}

/// All figures: the server's own under `server` beside those of cache and volumes.
pub(crate) fn report(volumes: &dyn Volumes, server: Value) -> Value {
    let text = volumes.statistics();
    let mut report = match serde_json::from_str(&text) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    };
    report.insert("server".to_owned(), server);
    let mut report = Value::Object(report);
    unanswered::complete(&mut report, &volumes.devices().unanswered());
    report
}

fn describe(volume: &VolumeInfo) -> Value {
    json!({
        "name": volume.name,
        "description": volume.description,
        "number": volume.id.0,
        "bytes": volume.bytes,
        "mode": volume.mode.name(),
        "read_only": volume.read_only,
    })
}

pub(crate) fn failure(error: &Error) -> Value {
    json!({"ok": false, "kind": format!("{:?}", error.kind()), "error": error.to_string()})
}

fn invalid(detail: impl Into<String>) -> Error {
    Error::new(VolumeErrorKind::InvalidInput, detail)
}

/// Options of a volume that change while it is served.
const TUNED: [&str; 8] = [
    "share_bytes",
    "reservation",
    "limit",
    "weight",
    "sequential_cutoff_bytes",
    "admission_hits",
    "read_ahead_bytes",
    "description",
];

fn hits(found: u64) -> Result<u8, Error> {
    u8::try_from(found)
        .map_err(|_| invalid(format!("admission_hits: expected up to 255, found {found}")))
}

fn ahead(found: u64) -> Result<u32, Error> {
    u32::try_from(found)
        .map_err(|_| invalid(format!("read_ahead_bytes: expected below 4 GiB, found {found}")))
}

/// The fields of a line.
struct Fields(Map<String, Value>);

impl Fields {
    fn allow(&self, allowed: &[&str]) -> Result<(), Error> {
        match self.0.keys().find(|key| !allowed.contains(&key.as_str())) {
            None => Ok(()),
            Some(key) => {
                Err(invalid(format!("line: expected {}, found '{key}'", allowed.join(", "))))
            }
        }
    }

    fn text(&self, key: &str) -> Result<&str, Error> {
        let found = self.0.get(key);
        found.and_then(Value::as_str).ok_or_else(|| {
            let found = found.map_or("none".to_owned(), Value::to_string);
            invalid(format!("{key}: expected a text, found {found}"))
        })
    }

    fn number(&self, key: &str, default: u64) -> Result<u64, Error> {
        self.0.get(key).map_or(Ok(default), |found| {
            let wrong = || invalid(format!("{key}: expected a whole number, found {found}"));
            found.as_u64().ok_or_else(wrong)
        })
    }

    fn rate(&self, key: &str) -> Result<f64, Error> {
        self.0.get(key).map_or(Ok(0.0), |found| {
            let wrong = || invalid(format!("{key}: expected a number from 0 on, found {found}"));
            found.as_f64().filter(|rate| *rate >= 0.0).ok_or_else(wrong)
        })
    }

    fn text_or_none(&self, key: &str) -> Result<Option<String>, Error> {
        self.0.contains_key(key).then(|| self.text(key).map(str::to_owned)).transpose()
    }

    fn flag(&self, key: &str) -> Result<bool, Error> {
        self.0.get(key).map_or(Ok(false), |found| {
            found
                .as_bool()
                .ok_or_else(|| invalid(format!("{key}: expected true or false, found {found}")))
        })
    }

    /// What of a volume's options is to change.
    fn tuning(&self) -> Result<Tuning, Error> {
        let mut allowed = vec!["command", "volume"];
        allowed.extend(TUNED);
        self.allow(&allowed)?;
        if !TUNED.iter().any(|key| self.0.contains_key(*key)) {
            let detail = format!("line: expected one of {}, found none", TUNED.join(", "));
            return Err(invalid(detail));
        }
        let given = |key: &str| self.0.contains_key(key);
        let number = |key: &str| given(key).then(|| self.number(key, 0)).transpose();
        let rate = |key: &str| given(key).then(|| self.rate(key)).transpose();
        Ok(Tuning {
            share_bytes: number("share_bytes")?,
            reservation: rate("reservation")?,
            limit: rate("limit")?,
            weight: rate("weight")?,
            sequential_cutoff_bytes: number("sequential_cutoff_bytes")?,
            admission_hits: number("admission_hits")?.map(hits).transpose()?,
            read_ahead_bytes: number("read_ahead_bytes")?.map(ahead).transpose()?,
            description: self.text_or_none("description")?,
        })
    }

    /// The volume that the field `volume` names.
    fn volume(&self, volumes: &dyn Volumes) -> Result<VolumeId, Error> {
        let name = self.text("volume")?;
        let all = volumes.list();
        let found = all.iter().find(|volume| volume.name == name);
        found.map(|volume| volume.id).ok_or_else(|| {
            let names: Vec<&str> = all.iter().map(|volume| volume.name.as_str()).collect();
            let there = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            let detail = format!("there is no volume {name} that is served; there are: {there}");
            Error::new(VolumeErrorKind::Name, detail)
        })
    }

    /// The options of a new volume.
    fn options(&self) -> Result<VolumeOptions, Error> {
        self.allow(&[
            "command",
            "volume",
            "backing",
            "mode",
            "share_bytes",
            "reservation",
            "limit",
            "weight",
            "sequential_cutoff_bytes",
            "admission_hits",
            "read_ahead_bytes",
            "description",
        ])?;
        let default = VolumeOptions::default();
        let mode = match self.0.get("mode") {
            None => default.mode,
            Some(_) => self.text("mode")?.parse()?,
        };
        let asked_hits = self.number("admission_hits", u64::from(default.admission_hits))?;
        let asked_ahead = self.number("read_ahead_bytes", u64::from(default.read_ahead_bytes))?;
        Ok(VolumeOptions {
            name: self.text("volume")?.to_owned(),
            backing: self.text("backing")?.to_owned(),
            mode,
            share_bytes: self.number("share_bytes", default.share_bytes)?,
            qos: Qos {
                reservation: self.rate("reservation")?,
                limit: self.rate("limit")?,
                weight: self.rate("weight")?,
            },
            sequential_cutoff_bytes: self
                .number("sequential_cutoff_bytes", default.sequential_cutoff_bytes)?,
            admission_hits: hits(asked_hits)?,
            read_ahead_bytes: ahead(asked_ahead)?,
            description: self.text_or_none("description")?.unwrap_or_default(),
        })
    }
}
