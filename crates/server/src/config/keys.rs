//! The table of configuration keys.

use entresol_host::LogLevel;

use super::value::Kind;

/// One key of the configuration.
#[derive(Debug, Clone, Copy)]
pub struct KeySpec {
    /// Its name, in files and as an option.
    pub(crate) name: &'static str,
    /// What it takes.
    pub(crate) kind: Kind,
    /// Its value where nobody says otherwise.
    pub(crate) default: &'static str,
    /// Whether `CONFIG SET` may change it.
    pub(crate) change: Change,
    /// What it does.
    pub(crate) summary: &'static str,
}

/// Whether a key may change while the server runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// At any time.
    Live,
    /// With a restart only.
    Restart,
}

impl KeySpec {
    /// Its name, in files and as an option.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// What it does, in sentences.
    pub fn summary(&self) -> &'static str {
        self.summary
    }

    /// Its value where nobody says otherwise; empty for none.
    pub fn default_value(&self) -> &'static str {
        self.default
    }

    /// One word for what it takes, such as `SIZE`.
    pub fn value_name(&self) -> &'static str {
        self.kind.value_name()
    }

    /// What it takes, for people.
    pub fn expected(&self) -> String {
        self.kind.expected()
    }

    /// All values that it takes, if these are a few words.
    pub fn choices(&self) -> &'static [&'static str] {
        self.kind.choices()
    }

    /// Whether the option may stand without a value.
    pub fn is_switch(&self) -> bool {
        self.kind.is_switch()
    }

    /// `value` as the configuration keeps it; what was expected and found if the key takes none
    /// such.
    pub fn check(&self, value: &str) -> Result<String, String> {
        let unexpected = |expected| format!("expected {expected}, found `{value}`");
        self.kind.check(value).map_err(unexpected)
    }
}

const fn key(
    name: &'static str,
    kind: Kind,
    default: &'static str,
    summary: &'static str,
) -> KeySpec {
    KeySpec { name, kind, default, change: Change::Restart, summary }
}

const fn live(
    name: &'static str,
    kind: Kind,
    default: &'static str,
    summary: &'static str,
) -> KeySpec {
    KeySpec { name, kind, default, change: Change::Live, summary }
}

const MIB: u64 = 1 << 20;
const ANY: u64 = u64::MAX;

/// All keys, in the order of the reference.
pub(crate) const KEYS: &[KeySpec] = &[
    key(
        "dir",
        Kind::Path,
        "",
        "Directory of the data: the file `entresol.data` in it is the device. A missing file is \
         made with `capacity` bytes. Give either `dir` or `devices`.",
    ),
    key(
        "devices",
        Kind::List,
        "",
        "Files or block devices, separated by commas; `{n}` in a path is the instance number.",
    ),
    key(
        "selection",
        Kind::Choice(&["search", "stripe"]),
        "search",
        "How a list of devices is used: `search` takes the first that exists, `stripe` spreads \
         the data over all.",
    ),
    key(
        "instance",
        Kind::Number(0, 65_535),
        "1",
        "The instance number that `{n}` in a path stands for.",
    ),
    key(
        "force",
        Kind::Choice(&["no", "yes"]),
        "no",
        "Use a device although it carries a file system, a partition table, data of another \
         program (in a file: anything but zeros) or the remains of a store that has lost its \
         superblocks. All these are destroyed.",
    ),
    key(
        "io",
        Kind::Choice(&["auto", "uring", "inline", "blocking"]),
        "auto",
        "How devices are read and written. `uring`: through io_uring. `inline`: small transfers \
         in the thread that asks, the others through io_uring. `blocking`: one call at a time. \
         `auto`: `inline` for media in memory (persistent memory, block devices in RAM, tmpfs), \
         else `uring`.",
    ),
    key("io-depth", Kind::Number(1, 4_096), "256", "Device reads that one thread keeps in flight."),
    key(
        "capacity",
        Kind::Size(0, ANY),
        "0",
        "Bytes of the device to use. 0 uses all of a block device or an existing file, and makes \
         a new file with half of the free space, at most 8GiB. An existing store grows to a \
         larger capacity, and its file with it.",
    ),
    key(
        "memory",
        Kind::Size(32 * MIB, ANY),
        "512MiB",
        "One cap for everything in memory: index, write buffers, cache and connections. The \
         default is at most three quarters of the memory of the machine, or of the process's \
         control group.",
    ),
    key(
        "durability",
        Kind::Durability,
        "process",
        "What an acknowledged write survives: `memory` nothing, `process` the end of the process, \
         `flushed` whatever the device's cache survives, `periodic:MS` power loss after so many \
         milliseconds, `synced` power loss.",
    ),
    key(
        "write-mode",
        Kind::Choice(&["through", "behind"]),
        "through",
        "When a writer is answered: `through` once the durability is reached, `behind` at once.",
    ),
    key(
        "reclaim",
        Kind::Choice(&["store", "cache"]),
        "store",
        "When space runs out: a `store` refuses writes and loses nothing, a `cache` evicts.",
    ),
    key(
        "compression",
        Kind::Choice(&["none", "lz4", "zstd"]),
        "none",
        "Compression of values that are written from now on.",
    ),
    key(
        "encryption-key",
        Kind::Path,
        "",
        "File with the key for encryption at rest: 32 bytes, or 64 hexadecimal digits. Fixed \
         when the store is made.",
    ),
    key(
        "write-budget",
        Kind::Size(0, ANY),
        "0",
        "For a `cache`: most bytes a second that are written to flash; 0 for no limit. A `store` \
         takes all entries and refuses to start with one.",
    ),
    key(
        "shards",
        Kind::Number(0, 64),
        "0",
        "Shards of the store; 0 takes the number of threads, at least 2. Fixed when the store \
         is made.",
    ),
    key(
        "segment",
        Kind::PowerOfTwo(64 << 10, 8 * MIB),
        "1MiB",
        "Bytes of a segment. Fixed when the store is made.",
    ),
    key(
        "buffer-directory",
        Kind::Path,
        "/dev/shm",
        "Directory of the write buffers that outlive the process; needed for `process` and \
         `periodic`.",
    ),
    key(
        "threads",
        Kind::Number(0, 64),
        "0",
        "Threads that serve clients; 0 takes the number of cores, at most 8.",
    ),
    key(
        "bind",
        Kind::List,
        "127.0.0.1",
        "Addresses to listen on, separated by commas. One that is not loopback needs users with \
         passwords.",
    ),
    key(
        "port",
        Kind::Port,
        "6379",
        "TCP port; 0 takes any free one; empty listens on no TCP port.",
    ),
    key("unix", Kind::Path, "", "Path of a Unix socket to listen on."),
    key("unix-mode", Kind::Mode, "600", "Permission bits of the Unix socket."),
    key(
        "admin-port",
        Kind::Port,
        "",
        "TCP port of the HTTP interface (the console at `/`, `/health`, `/metrics`, `/stats`); 0 \
         takes any free one; empty for none.",
    ),
    key(
        "admin-bind",
        Kind::Text,
        "127.0.0.1",
        "Address of the HTTP interface: whoever reaches it, and shows the token if there is one, \
         sees all figures, and no entries.",
    ),
    key(
        "admin-token",
        Kind::Path,
        "",
        "File with a token in its first line. Requests for figures show it as `Authorization: \
         Bearer TOKEN`; those for health need none.",
    ),
    key(
        "admin-tls-cert",
        Kind::Path,
        "",
        "File with the certificate chain (PEM) of the HTTP interface. With it and `admin-tls-key`, \
         the interface speaks TLS alone.",
    ),
    key("admin-tls-key", Kind::Path, "", "File with its private key (PEM)."),
    key(
        "admin-tls-client-ca",
        Kind::Path,
        "",
        "File with the authorities (PEM) of certificates that requests for figures must show, \
         beside the token if there is one; those for health need none.",
    ),
    key(
        "drive-certificates",
        Kind::Path,
        "",
        "Folder with reports of `entresol act certify --json` (files that end in `.json`), which \
         the console shows; read at the start.",
    ),
    key(
        "users",
        Kind::Path,
        "",
        "File of users; without one the default user may do everything without a password.",
    ),
    key(
        "tls-cert",
        Kind::Path,
        "",
        "File with the certificate chain (PEM). With it and `tls-key`, TCP connections speak TLS.",
    ),
    key("tls-key", Kind::Path, "", "File with the private key (PEM)."),
    key(
        "tls-client-ca",
        Kind::Path,
        "",
        "File with the authorities (PEM) that clients' certificates must come from; without it \
         clients need none.",
    ),
    key("databases", Kind::Number(1, 65_535), "16", "How many spaces `SELECT` reaches."),
    live("maxclients", Kind::Number(1, 1_000_000), "10000", "Most clients at a time."),
    live(
        "timeout",
        Kind::Duration,
        "0",
        "Clients that are silent for this time are closed; 0 for never.",
    ),
    live(
        "stall-timeout",
        Kind::Duration,
        "60s",
        "A client is closed if for this time it neither sends a byte nor takes a byte of a \
         waiting reply, or if it keeps memory that others wait for and does not go on with its \
         request; 0 for never. Time in which the server does not run does not count.",
    ),
    live(
        "tcp-keepalive",
        Kind::Duration,
        "300",
        "Silence after which a TCP client is asked whether it is still there. A client that \
         vanished is closed after 1.1 times this time, and so is a client that does not confirm \
         replies for that time and for `stall-timeout`. A change applies to clients that connect \
         later; 0 for never.",
    ),
    key(
        "request-limit",
        Kind::Size(MIB, 2_048 * MIB),
        "128MiB",
        "Longest command with all its arguments; each argument counts eight bytes more.",
    ),
    key(
        "output-limit",
        Kind::Size(MIB, ANY),
        "256MiB",
        "Clients with more bytes of replies waiting are closed.",
    ),
    key(
        "pipeline-limit",
        Kind::Number(1, 100_000),
        "1024",
        "Commands of one client in flight; further ones wait in its socket.",
    ),
    live(
        "slowlog-log-slower-than",
        Kind::Integer,
        "10000",
        "`SLOWLOG` keeps commands that took this many microseconds or more; a negative number \
         keeps none.",
    ),
    live("slowlog-max-len", Kind::Number(0, 100_000), "128", "Most commands kept for `SLOWLOG`."),
    key(
        "enable-debug-command",
        Kind::Choice(&["no", "yes"]),
        "no",
        "Whether `DEBUG SLEEP` is carried out.",
    ),
    key(
        "shutdown-timeout",
        Kind::Duration,
        "10s",
        "How long a clean stop waits for clients to take their replies.",
    ),
    live(
        "log-level",
        Kind::Choice(&LogLevel::NAMES),
        "info",
        "The log, on the standard error stream, has lines of this level and those before it.",
    ),
    key(
        "log-format",
        Kind::Choice(&["text", "json"]),
        "text",
        "How a line of the log looks: text for people, or an object of JSON for programs that \
         collect logs.",
    ),
];

/// The key called `name`; `_` may stand for `-`.
pub(crate) fn find(name: &str) -> Option<&'static KeySpec> {
    KEYS.iter().find(|key| key.name.eq_ignore_ascii_case(&name.replace('_', "-")))
}

/// The name of a key that someone who wrote `name` may have meant.
pub(crate) fn nearest(name: &str) -> Option<&'static str> {
    let all = KEYS.iter().map(|key| (distance(name, key.name), key.name));
    let (distance, nearest) = all.chain([(distance(name, "config"), "config")]).min()?;
    (distance <= 1 + nearest.len() / 3).then_some(nearest)
}

/// What serves here for an option of redis-server that there is not.
pub(crate) fn instead_of(name: &str) -> Option<&'static str> {
    let name = name.to_ascii_lowercase();
    let instead = match name.replace('_', "-").as_str() {
        "requirepass" | "masterauth" | "user" | "aclfile" => {
            "`users` names a file of users; `entresol user add NAME` prints a line of it"
        }
        "maxmemory" => "`memory` is the cap of all memory",
        "maxmemory-policy" => "`reclaim` = `cache` evicts where the flash is full",
        "appendonly" | "appendfsync" | "save" => {
            "every write is kept; `durability` says what an acknowledged one survives"
        }
        "io-threads" => "`threads` is the number of threads that serve clients",
        "protected-mode" => "`bind` says who reaches the server",
        "daemonize" | "pidfile" | "supervised" => "a service manager keeps the server running",
        "loglevel" => "`log-level` is the level of the log",
        "logfile" => "the log goes to the standard error stream",
        _ => return None,
    };
    Some(instead)
}

/// Edits between two words (Levenshtein 1966).
fn distance(left: &str, right: &str) -> usize {
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left.bytes().take(64).enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in right.bytes().enumerate() {
            let replaced = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row.last().copied().unwrap_or_default()
}

/// The reference of all keys, in Markdown.
pub(crate) fn reference() -> String {
    let mut out = String::from(
        "# Configuration\n\n\
         Generated from the table in `crates/server/src/config/keys.rs`; \
         a test compares the two.\n\n\
         Every key can stand in the file (`--config FILE`), in the environment and on the command \
         line; the command line wins over the environment, and both over the file.\n\
         The file is TOML: `memory = \"1GiB\"`, `port = 6379`, `force = true`, lists also as \
         `bind = [\"127.0.0.1\", \"::1\"]`. Tables such as `[network]` only structure the text. \
         Files without quotes (`memory = 1GiB`) still read.\n\
         On the command line a key is `--key value`, in the environment `ENTRESOL_KEY`, with `_` \
         for `-`: `ENTRESOL_ADMIN_PORT=8080`.\n\
         `CONFIG GET` shows all keys; `CONFIG SET` changes those marked *live*.\n\
         Sizes are written `512MB` (powers of ten) or `1GiB` (powers of two), \
         times `100ms`, `30s`, \
         `5m`, `2h`.\n\n\
         | key | takes | default | changes | meaning |\n\
         | --- | --- | --- | --- | --- |\n",
    );
    for key in KEYS {
        let default = match key.default {
            "" => "none".to_owned(),
            default => format!("`{default}`"),
        };
        let change = if key.change == Change::Live { "live" } else { "restart" };
        let kind = key.kind.expected();
        let row = format!("| `{}` | {kind} | {default} | {change} | {} |\n", key.name, key.summary);
        out.push_str(&row);
    }
    out
}
