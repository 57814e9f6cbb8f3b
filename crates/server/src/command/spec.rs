//! The description of a command: its form, how it behaves, and what people read of it. What carries
//! it out stands in [`super::dispatch`].

use entresol_page::Kind;

/// One command, or one subcommand (`client|list`).
#[derive(Debug)]
pub(crate) struct Spec {
    /// Its name, in small letters.
    pub(crate) name: &'static str,
    /// Arguments with the name: exactly so many, or at least so many if negative.
    pub(crate) arity: i32,
    /// How it behaves.
    pub(crate) flags: u32,
    /// Where its keys are.
    pub(crate) keys: KeyRange,
    /// What it belongs to.
    pub(crate) group: Group,
    /// The version of redis-server that has it.
    pub(crate) since: &'static str,
    /// What it does.
    pub(crate) summary: &'static str,
}

/// Where a command's keys are among its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeyRange {
    /// The first; 0 if there is none.
    pub(crate) first: i32,
    /// The last; negative counts from the end.
    pub(crate) last: i32,
    /// From one to the next.
    pub(crate) step: i32,
}

/// Groups of commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Group {
    String,
    Bitmap,
    Hash,
    Generic,
    Connection,
    Server,
    Transactions,
}

impl Group {
    /// The group's name as `COMMAND DOCS` has it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Group::String => "string",
            Group::Bitmap => "bitmap",
            Group::Hash => "hash",
            Group::Generic => "generic",
            Group::Connection => "connection",
            Group::Server => "server",
            Group::Transactions => "transactions",
        }
    }
}

/// Changes entries.
pub(crate) const WRITE: u32 = 1;
/// Reads entries and changes none.
pub(crate) const READONLY: u32 = 2;
/// Takes room.
pub(crate) const DENYOOM: u32 = 4;
/// For those who run the server.
pub(crate) const ADMIN: u32 = 8;
/// Takes a short and constant time.
pub(crate) const FAST: u32 = 16;
/// Allowed before authentication.
pub(crate) const NO_AUTH: u32 = 32;
/// Not kept in a transaction: carried out at once.
pub(crate) const NO_QUEUE: u32 = 64;
/// No other command runs at the same time.
pub(crate) const EXCLUSIVE: u32 = 128;
/// The client's commands before it end first, and those behind it wait.
pub(crate) const BARRIER: u32 = 256;
/// Can cost much or lose data.
pub(crate) const DANGEROUS: u32 = 512;
/// Has subcommands.
pub(crate) const CONTAINER: u32 = 1024;
/// Its reply is never left out.
pub(crate) const LOUD: u32 = 2048;
/// Touches no entry: those who must be alone do not wait for its end.
pub(crate) const NO_ENTRIES: u32 = 4096;
/// Refused in a transaction.
pub(crate) const NO_MULTI: u32 = 8192;

impl Spec {
    /// Whether all of `flags` are set.
    pub(crate) fn has(&self, flags: u32) -> bool {
        self.flags & flags == flags
    }

    /// Whether a call with so many arguments is well-formed.
    pub(crate) fn takes(&self, arguments: usize) -> bool {
        let arguments = arguments as i32;
        if self.arity < 0 { arguments >= -self.arity } else { arguments == self.arity }
    }

    /// The kind that its latencies count as.
    pub(crate) fn kind(&self) -> Kind {
        match self {
            spec if spec.has(READONLY) => Kind::Read,
            spec if spec.has(WRITE) => Kind::Write,
            _ => Kind::Other,
        }
    }

    /// Whether it has subcommands.
    pub(crate) fn is_container(&self) -> bool {
        self.has(CONTAINER)
    }

    /// The command it is a subcommand of.
    pub(crate) fn container(&self) -> Option<&'static str> {
        self.name.split_once('|').map(|(container, _)| container)
    }

    /// The places of its keys in a call with so many arguments.
    pub(crate) fn key_places(&self, arguments: usize) -> impl Iterator<Item = usize> + use<> {
        let KeyRange { first, last, step } = self.keys;
        let last = if last < 0 { arguments as i32 + last } else { last };
        let end = if first == 0 { -1 } else { last.min(arguments as i32 - 1) };
        (first.max(1)..=end).step_by(step.max(1) as usize).map(|place| place as usize)
    }

    /// The groups that users' rules may name it by.
    pub(crate) fn categories(&self) -> impl Iterator<Item = &'static str> + use<> {
        let group = match self.group {
            Group::Generic => "keyspace",
            Group::Transactions => "transaction",
            Group::Server => "server",
            other => other.name(),
        };
        let speed = if self.has(FAST) { "fast" } else { "slow" };
        [(WRITE, "write"), (READONLY, "read"), (ADMIN, "admin"), (DANGEROUS, "dangerous")]
            .into_iter()
            .filter(|(flag, _)| self.flags & flag != 0)
            .map(|(_, name)| name)
            .chain([group, speed])
            .collect::<Vec<_>>()
            .into_iter()
    }

    /// Whether users' rules mean it by `group`.
    pub(crate) fn is_in(&self, group: &str) -> bool {
        self.categories().any(|category| category == group)
    }

    /// The same with keys.
    pub(crate) const fn keys(mut self, first: i32, last: i32, step: i32) -> Spec {
        self.keys = KeyRange { first, last, step };
        self
    }

    /// The same with what people read of it.
    pub(crate) const fn about(
        mut self,
        group: Group,
        since: &'static str,
        summary: &'static str,
    ) -> Spec {
        self.group = group;
        self.since = since;
        self.summary = summary;
        self
    }
}

/// A command that takes no keys and is not described so far.
pub(crate) const fn spec(name: &'static str, arity: i32, flags: u32) -> Spec {
    let keys = KeyRange { first: 0, last: 0, step: 0 };
    let group = Group::Generic;
    Spec { name, arity, flags, keys, group, since: "1.0.0", summary: "" }
}
