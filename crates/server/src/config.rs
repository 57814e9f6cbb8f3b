//! The server's configuration: one table of keys that feeds the file, the options of the command
//! line, `CONFIG GET` and `CONFIG SET`, and the reference.
//!
//! Invariants:
//! 1. Every value held here was checked by its key's kind when it came in; getters do not fail.
//! 2. What the command line or the environment gives wins over the file, the file over the
//!    defaults, whatever their order.

mod file;
mod keys;
mod rewrite;
mod value;

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use entresol_device::{KeepAlive, machine_memory_bytes, memory_share};
use entresol_host::{LogFormat, LogLevel};
use entresol_net::{SettingError, TlsFiles, TlsPort};
use entresol_tier::Durability;

use crate::error::ServeError;

pub use keys::KeySpec;
pub(crate) use keys::{Change, KEYS};
pub(crate) use value::parse_durability;
pub use value::{format_size, parse_duration, parse_size};

/// The configuration of a server. `Config::default()` serves nothing yet: it names no data.
#[derive(Debug, Clone)]
pub struct Config {
    values: BTreeMap<&'static str, String>,
    given: BTreeMap<&'static str, ()>,
    changed: BTreeMap<&'static str, ()>,
    /// Where each key that is no default was given.
    places: BTreeMap<&'static str, String>,
    /// The files that were read, in this order.
    files: Vec<PathBuf>,
}

/// A configuration that cannot be: says where, which key, what was expected and what was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    place: String,
    key: String,
    detail: String,
}

/// The place of a value that is found wrong when it is used; a users file is a place of its own.
const UNPLACED: &str = "configuration";
const BYTE_ORDER_MARK: char = '\u{FEFF}';

impl ConfigError {
    pub(crate) fn new(
        place: impl Into<String>,
        key: impl Into<String>,
        detail: String,
    ) -> ConfigError {
        ConfigError { place: place.into(), key: key.into(), detail }
    }

    /// The key that is wrong.
    pub fn key(&self) -> &str {
        &self.key
    }

    pub(crate) fn detail(&self) -> &str {
        &self.detail
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.key.is_empty() {
            write!(f, "{}: {}", self.place, self.detail)
        } else {
            write!(f, "{}: key `{}`: {}", self.place, self.key, self.detail)
        }
    }
}

impl std::error::Error for ConfigError {}

impl From<SettingError> for ConfigError {
    fn from(error: SettingError) -> ConfigError {
        let place = error.place().unwrap_or(UNPLACED);
        ConfigError::new(place, error.key(), error.detail().to_owned())
    }
}

impl Default for Config {
    fn default() -> Config {
        Config::on_machine_with(machine_memory_bytes())
    }
}

impl Config {
    /// The defaults where a process may use so much memory, of which the cap is three quarters at
    /// most.
    pub(crate) fn on_machine_with(memory_bytes: Option<u64>) -> Config {
        let values = KEYS.iter().map(|key| (key.name, key.default.to_owned())).collect();
        let (given, changed) = (BTreeMap::new(), BTreeMap::new());
        let mut config =
            Config { values, given, changed, places: BTreeMap::new(), files: Vec::new() };
        let most = memory_bytes.map(|total| memory_share(total) >> 20 << 20);
        if let Some(most) = most.filter(|most| *most < config.memory_bytes()) {
            config.values.insert("memory", format_size(most));
        }
        config
    }

    /// All keys, in the order of the reference.
    pub fn keys() -> &'static [KeySpec] {
        KEYS
    }

    /// What serves here for an option of redis-server that there is not.
    pub fn instead_of(name: &str) -> Option<&'static str> {
        keys::instead_of(name)
    }

    /// Sets one key as `place` gives it, such as the command line; a file does not change it.
    pub fn give(&mut self, place: &str, key: &str, value: &str) -> Result<(), ConfigError> {
        let key = self.assign(place, key, value)?;
        self.given.insert(key, ());
        Ok(())
    }

    /// Reads a configuration file; keys that were given stay as they are.
    pub fn read_file(&mut self, path: PathBuf) -> Result<(), ConfigError> {
        let text = std::fs::read_to_string(&path).map_err(|error| {
            ConfigError::new(path.display().to_string(), "", format!("cannot be read: {error}"))
        })?;
        self.read_text(&path.display().to_string(), &text)?;
        self.files.push(path);
        Ok(())
    }

    /// Reads the text of a configuration file called `name`: TOML whose tables only structure the
    /// text, or lines of `key = value` without quotes.
    pub fn read_text(&mut self, name: &str, text: &str) -> Result<(), ConfigError> {
        // The mark that some programs begin a text with is no part of it.
        let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
        let place = |line| format!("{name} line {line}");
        let settings = file::settings(text)
            .map_err(|fault| ConfigError::new(place(fault.line), fault.key, fault.detail))?;
        for setting in settings {
            let mut trial = self.clone();
            let key = trial.assign(&place(setting.line), &setting.key, &setting.value)?;
            if !self.given.contains_key(key) {
                *self = trial;
            }
        }
        Ok(())
    }

    /// Sets one key, as an option or a line of a file would.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), ConfigError> {
        self.assign("configuration", key, value).map(|_| ())
    }

    /// The value of one key as text; `None` if there is no such key.
    pub fn get(&self, key: &str) -> Option<&str> {
        let key = keys::find(key)?;
        self.values.get(key.name).map(String::as_str)
    }

    /// `error` of a value that cannot be used, with the place where the value was given.
    pub(crate) fn located(&self, error: ServeError) -> ServeError {
        match error {
            ServeError::Config(ConfigError { place, key, detail }) => {
                let given = self.places.get(key.as_str()).filter(|_| place == UNPLACED).cloned();
                ServeError::Config(ConfigError { place: given.unwrap_or(place), key, detail })
            }
            other => other,
        }
    }

    /// What to say where `shards` was given and the store was made with `found` of them.
    pub(crate) fn vain_shards(&self, found: u16) -> Option<String> {
        let place = self.places.get("shards").filter(|_| self.shards() != found)?;
        Some(format!(
            "{place}: `shards` = {} has no effect: the store was made with {found}; export it and \
             load it into a new store to change them",
            self.shards()
        ))
    }

    /// The text of `docs/reference/configuration.md`.
    pub fn reference() -> String {
        keys::reference()
    }

    /// The file that was read, if one was.
    pub(crate) fn file(&self) -> Option<&PathBuf> {
        self.files.last()
    }

    /// Sets one key of a running server.
    pub(crate) fn set_live(&mut self, key: &str, value: &str) -> Result<(), ConfigError> {
        let key = self.assign("configuration", key, value)?;
        self.changed.insert(key, ());
        Ok(())
    }

    /// The configuration as a start with its files would make it now, but for keys that only a
    /// restart changes; and those of these that the file has otherwise.
    pub(crate) fn read_again(&self) -> Result<(Config, Vec<&'static str>), ConfigError> {
        if self.files.is_empty() {
            return Ok((self.clone(), Vec::new()));
        }
        let mut fresh = Config { given: self.given.clone(), ..Config::default() };
        for name in self.given.keys() {
            fresh.values.insert(name, self.text(name).to_owned());
        }
        self.files.iter().try_for_each(|file| fresh.read_file(file.clone()))?;
        let mut now = self.clone();
        let mut waits = Vec::new();
        for key in KEYS {
            let value = fresh.text(key.name);
            if key.change == Change::Live {
                now.values.insert(key.name, value.to_owned());
            } else if value != self.text(key.name) {
                waits.push(key.name);
            }
        }
        now.changed.clear();
        Ok((now, waits))
    }

    /// Writes what was set while the server ran to the file that was read, whose other lines and
    /// comments stay. The file is replaced as a whole.
    pub(crate) fn rewrite(&self, file: &Path) -> io::Result<()> {
        let file = file.canonicalize()?;
        let text = fs::read_to_string(&file)?;
        let changes: Vec<(&str, &str)> =
            self.changed.keys().map(|key| (*key, self.text(key))).collect();
        let written = rewrite::rewritten(&text, &changes);
        let beside = file.with_extension(format!("{}.new", std::process::id()));
        let replace = || {
            let mut new = fs::File::create(&beside)?;
            new.set_permissions(fs::metadata(&file)?.permissions())?;
            new.write_all(written.as_bytes())?;
            new.sync_all()?;
            fs::rename(&beside, &file)
        };
        replace().inspect_err(|_| {
            // It may not have come into being.
            let _ = fs::remove_file(&beside);
        })
    }

    fn assign(
        &mut self,
        place: &str,
        name: &str,
        value: &str,
    ) -> Result<&'static str, ConfigError> {
        let Some(key) = keys::find(name) else {
            return Err(ConfigError::new(place, name, no_such_key(name)));
        };
        let value = key.kind.check(value).map_err(|expected| {
            let detail = format!("expected {expected}, found `{value}`");
            ConfigError::new(place, key.name, detail)
        })?;
        self.values.insert(key.name, value);
        self.places.insert(key.name, place.to_owned());
        Ok(key.name)
    }

    fn text(&self, key: &str) -> &str {
        self.values.get(key).map(String::as_str).unwrap_or_default()
    }

    fn path(&self, key: &str) -> Option<PathBuf> {
        let text = self.text(key);
        (!text.is_empty()).then(|| PathBuf::from(text))
    }

    fn size(&self, key: &str) -> u64 {
        parse_size(self.text(key)).unwrap_or_default()
    }

    fn duration(&self, key: &str) -> Duration {
        parse_duration(self.text(key)).unwrap_or_default()
    }

    fn number(&self, key: &str) -> u64 {
        self.text(key).parse().unwrap_or_default()
    }

    fn is_yes(&self, key: &str) -> bool {
        self.text(key) == "yes"
    }
}

/// What the server asks its configuration.
impl Config {
    pub(crate) fn dir(&self) -> Option<PathBuf> {
        self.path("dir")
    }

    pub(crate) fn devices(&self) -> &str {
        self.text("devices")
    }

    pub(crate) fn choice(&self, key: &str) -> &str {
        self.text(key)
    }

    /// What becomes of entries when space runs out, in redis-server's words.
    pub(crate) fn eviction_policy(&self) -> &'static str {
        match self.choice("reclaim") {
            "cache" => "allkeys-lru",
            _ => "noeviction",
        }
    }

    pub(crate) fn instance(&self) -> u32 {
        self.number("instance") as u32
    }

    pub(crate) fn forces(&self) -> bool {
        self.is_yes("force")
    }

    pub(crate) fn capacity(&self) -> Option<u64> {
        Some(self.size("capacity")).filter(|size| *size > 0)
    }

    /// One cap for everything in memory, bytes.
    pub fn memory_bytes(&self) -> u64 {
        self.size("memory")
    }

    pub(crate) fn log_level(&self) -> LogLevel {
        self.text("log-level").parse().expect("a level that the table of keys has")
    }

    pub(crate) fn log_format(&self) -> LogFormat {
        match self.text("log-format") {
            "json" => LogFormat::Json,
            _ => LogFormat::Text,
        }
    }

    pub(crate) fn threads(&self) -> usize {
        match self.number("threads") {
            0 => std::thread::available_parallelism().map_or(1, |cores| cores.get().min(8)),
            threads => threads as usize,
        }
    }

    pub(crate) fn shards(&self) -> u16 {
        match self.number("shards") {
            0 => (self.threads() as u16).next_power_of_two().max(2),
            shards => shards as u16,
        }
    }

    pub(crate) fn segment_bytes(&self) -> u32 {
        self.size("segment") as u32
    }

    pub(crate) fn durability(&self) -> Durability {
        parse_durability(self.text("durability")).unwrap_or(Durability::Process)
    }

    pub(crate) fn write_budget(&self) -> u64 {
        self.size("write-budget")
    }

    pub(crate) fn encryption_key(&self) -> Option<PathBuf> {
        self.path("encryption-key")
    }

    pub(crate) fn buffer_directory(&self) -> Option<PathBuf> {
        self.path("buffer-directory")
    }

    pub(crate) fn port(&self) -> Option<u16> {
        self.text("port").parse().ok()
    }

    pub(crate) fn bind(&self) -> Vec<String> {
        self.text("bind").split([',', ' ']).filter(|a| !a.is_empty()).map(str::to_owned).collect()
    }

    pub(crate) fn unix(&self) -> Option<PathBuf> {
        self.path("unix")
    }

    pub(crate) fn unix_mode(&self) -> u32 {
        u32::from_str_radix(self.text("unix-mode"), 8).unwrap_or(0o600)
    }

    pub(crate) fn admin_port(&self) -> Option<u16> {
        self.text("admin-port").parse().ok()
    }

    pub(crate) fn admin_bind(&self) -> &str {
        self.text("admin-bind")
    }

    pub(crate) fn admin_token(&self) -> Option<PathBuf> {
        self.path("admin-token")
    }

    pub(crate) fn drive_certificates(&self) -> Option<PathBuf> {
        self.path("drive-certificates")
    }

    pub(crate) fn users(&self) -> Option<PathBuf> {
        self.path("users")
    }

    /// The files that clients' TLS is made of.
    pub(crate) fn tls(&self) -> Result<Option<TlsFiles>, SettingError> {
        let file = |key: &str| self.path(key);
        let (certificate, key) = (file("tls-cert"), file("tls-key"));
        TlsFiles::from_options(TlsPort::Clients, certificate, key, file("tls-client-ca"))
    }

    /// The files that the TLS of the HTTP interface is made of.
    pub(crate) fn admin_tls(&self) -> Result<Option<TlsFiles>, SettingError> {
        let file = |key: &str| self.path(key);
        let (certificate, key) = (file("admin-tls-cert"), file("admin-tls-key"));
        TlsFiles::from_options(TlsPort::Admin, certificate, key, file("admin-tls-client-ca"))
    }

    pub(crate) fn databases(&self) -> u16 {
        self.number("databases") as u16
    }

    pub(crate) fn clients_max(&self) -> usize {
        self.number("maxclients") as usize
    }

    pub(crate) fn idle_timeout(&self) -> Duration {
        self.duration("timeout")
    }

    pub(crate) fn stall_timeout(&self) -> Duration {
        self.duration("stall-timeout")
    }

    /// How vanished clients are found out, if they are.
    pub(crate) fn keep_alive(&self) -> Option<KeepAlive> {
        let (idle, stall) = (self.duration("tcp-keepalive"), self.stall_timeout());
        let mut keep_alive = KeepAlive::after(idle);
        // One that takes nothing for long may be meant to, and confirms nothing then.
        keep_alive.unanswered =
            Some(keep_alive.until_known().max(stall)).filter(|_| !stall.is_zero());
        Some(keep_alive).filter(|_| !idle.is_zero())
    }

    pub(crate) fn request_bytes_max(&self) -> usize {
        self.size("request-limit") as usize
    }

    pub(crate) fn output_bytes_max(&self) -> usize {
        self.size("output-limit") as usize
    }

    pub(crate) fn pipeline_max(&self) -> usize {
        self.number("pipeline-limit") as usize
    }

    pub(crate) fn slow_threshold_us(&self) -> Option<u64> {
        self.text("slowlog-log-slower-than").parse().ok()
    }

    pub(crate) fn slow_entries_max(&self) -> usize {
        self.number("slowlog-max-len") as usize
    }

    pub(crate) fn allows_debug(&self) -> bool {
        self.text("enable-debug-command") != "no"
    }

    pub(crate) fn io_depth(&self) -> usize {
        self.number("io-depth") as usize
    }

    pub(crate) fn shutdown_timeout(&self) -> Duration {
        self.duration("shutdown-timeout")
    }
}

/// What to do about a key that there is not.
fn no_such_key(name: &str) -> String {
    if let Some(instead) = keys::instead_of(name) {
        return format!("there is no such key; {instead}");
    }
    match keys::nearest(name) {
        Some(near) if near == name => {
            "a file cannot name another; `--config FILE` on the command line does".to_owned()
        }
        Some(near) => format!("there is no such key; did you mean `{near}`?"),
        None => "there is no such key; `--help` lists all".to_owned(),
    }
}
