//! The table of commands. The parser, `COMMAND`, users' rules and the reference all read it.

use std::rc::Rc;
use std::sync::OnceLock;

use entresol_wire::resp::Reply;

use super::plan::{Plan, Request};
use super::{
    bits, clients, connection, hashes, information, introspection, keys, scans, server, strings,
    transactions,
};
use crate::client::Client;
use crate::core::Core;
use crate::failure::Failure;

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
    /// What carries it out.
    pub(crate) handler: Execution,
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

/// What carries out a command.
#[derive(Clone, Copy)]
pub(crate) enum Execution {
    /// Decides on work for the engine.
    Plan(for<'a> fn(&Request<'a>) -> Result<Plan<'a>, Failure>),
    /// Answers at once.
    Local(fn(&mut Local<'_, '_>) -> Result<(), Failure>),
}

impl std::fmt::Debug for Execution {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Execution::Plan(_) => "Plan",
            Execution::Local(_) => "Local",
        })
    }
}

/// What a command that answers at once works with.
pub(crate) struct Local<'a, 'r> {
    /// The thread's engine session.
    pub(crate) core: &'a Rc<Core>,
    /// Who asked.
    pub(crate) client: &'a Rc<Client>,
    /// The command.
    pub(crate) request: Request<'a>,
    /// Where the answer goes.
    pub(crate) reply: Reply<'r>,
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
    /// Its place in [`SPECS`].
    pub(crate) fn id(&self) -> usize {
        let start = SPECS.as_ptr() as usize;
        (std::ptr::from_ref(self) as usize - start) / size_of::<Spec>()
    }

    /// Whether all of `flags` are set.
    pub(crate) fn has(&self, flags: u32) -> bool {
        self.flags & flags == flags
    }

    /// Whether a call with so many arguments is well-formed.
    pub(crate) fn takes(&self, arguments: usize) -> bool {
        let arguments = arguments as i32;
        if self.arity < 0 { arguments >= -self.arity } else { arguments == self.arity }
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

    const fn keys(mut self, first: i32, last: i32, step: i32) -> Spec {
        self.keys = KeyRange { first, last, step };
        self
    }

    const fn about(mut self, group: Group, since: &'static str, summary: &'static str) -> Spec {
        self.group = group;
        self.since = since;
        self.summary = summary;
        self
    }
}

const fn plan(
    name: &'static str,
    arity: i32,
    flags: u32,
    function: for<'a> fn(&Request<'a>) -> Result<Plan<'a>, Failure>,
) -> Spec {
    spec(name, arity, flags, Execution::Plan(function))
}

const fn local(
    name: &'static str,
    arity: i32,
    flags: u32,
    function: fn(&mut Local<'_, '_>) -> Result<(), Failure>,
) -> Spec {
    spec(name, arity, flags, Execution::Local(function))
}

const fn spec(name: &'static str, arity: i32, flags: u32, handler: Execution) -> Spec {
    let keys = KeyRange { first: 0, last: 0, step: 0 };
    let group = Group::Generic;
    Spec { name, arity, flags, keys, group, since: "1.0.0", summary: "", handler }
}

/// The command that `name` stands for, whatever the case of its letters. Subcommands are found by
/// `container|subcommand`.
pub(crate) fn find(name: &[u8]) -> Option<&'static Spec> {
    let mut lower = [0u8; NAME_BYTES_MAX];
    let lower = lower.get_mut(..name.len())?;
    lower.copy_from_slice(name);
    lower.make_ascii_lowercase();
    let table = TABLE.get_or_init(places);
    let mut place = hash(lower);
    loop {
        let id = table[place % TABLE_SIZE];
        let spec = SPECS.get(usize::from(id))?;
        if spec.name.as_bytes() == lower {
            return Some(spec);
        }
        place += 1;
    }
}

/// The subcommand of `container` called `name`.
pub(crate) fn find_subcommand(container: &str, name: &[u8]) -> Option<&'static Spec> {
    let full = [container.as_bytes(), b"|", name].concat();
    find(&full)
}

const NAME_BYTES_MAX: usize = 32;
const TABLE_SIZE: usize = 1024;
const NO_SPEC: u16 = u16::MAX;
static TABLE: OnceLock<Vec<u16>> = OnceLock::new();

/// An open-addressed table of places in [`SPECS`].
fn places() -> Vec<u16> {
    let mut table = vec![NO_SPEC; TABLE_SIZE];
    for (id, spec) in SPECS.iter().enumerate() {
        let mut place = hash(spec.name.as_bytes());
        while table[place % TABLE_SIZE] != NO_SPEC {
            place += 1;
        }
        table[place % TABLE_SIZE] = id as u16;
    }
    table
}

/// FNV-1a (Fowler, Noll and Vo), which is quick for a few bytes.
fn hash(name: &[u8]) -> usize {
    let step = |hash: u32, byte: &u8| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
    let hash = name.iter().fold(0x811C_9DC5, step);
    (hash ^ (hash >> 15)) as usize
}

use Group::{Bitmap, Connection, Generic, Hash, Server, String, Transactions};

/// All commands, two lines each.
#[rustfmt::skip]
pub(crate) static SPECS: &[Spec] = &[
    plan("get", 2, READONLY | FAST, strings::get).keys(1, 1, 1)
        .about(String, "1.0.0", "The value of a key."),
    plan("set", -3, WRITE | DENYOOM, strings::set).keys(1, 1, 1)
        .about(String, "1.0.0", "Sets a value, on conditions and with an end if asked for."),
    plan("setnx", 3, WRITE | DENYOOM | FAST, strings::setnx).keys(1, 1, 1)
        .about(String, "1.0.0", "Sets a value if the key is absent."),
    plan("setex", 4, WRITE | DENYOOM, strings::setex).keys(1, 1, 1)
        .about(String, "2.0.0", "Sets a value that ends after some seconds."),
    plan("psetex", 4, WRITE | DENYOOM, strings::psetex).keys(1, 1, 1)
        .about(String, "2.6.0", "Sets a value that ends after some milliseconds."),
    plan("getset", 3, WRITE | DENYOOM | FAST, strings::getset).keys(1, 1, 1)
        .about(String, "1.0.0", "Sets a value and answers with the old one."),
    plan("getdel", 2, WRITE | FAST, strings::getdel).keys(1, 1, 1)
        .about(String, "6.2.0", "Answers with a value and removes it."),
    plan("getex", -2, WRITE | FAST, strings::getex).keys(1, 1, 1)
        .about(String, "6.2.0", "Answers with a value and changes when it ends."),
    plan("mget", -2, READONLY | FAST, strings::mget).keys(1, -1, 1)
        .about(String, "1.0.0", "The values of several keys, each read by itself."),
    plan("mset", -3, WRITE | DENYOOM | EXCLUSIVE, strings::mset).keys(1, -1, 2)
        .about(String, "1.0.1", "Sets several values as one."),
    plan("msetnx", -3, WRITE | DENYOOM | EXCLUSIVE, strings::msetnx).keys(1, -1, 2)
        .about(String, "1.0.1", "Sets several values as one if all keys are absent."),
    plan("append", 3, WRITE | DENYOOM | FAST, strings::append).keys(1, 1, 1)
        .about(String, "2.0.0", "Adds to the end of a value."),
    plan("strlen", 2, READONLY | FAST, strings::strlen).keys(1, 1, 1)
        .about(String, "2.2.0", "The length of a value."),
    plan("getrange", 4, READONLY, strings::getrange).keys(1, 1, 1)
        .about(String, "2.4.0", "Part of a value."),
    plan("substr", 4, READONLY, strings::getrange).keys(1, 1, 1)
        .about(String, "1.0.0", "Part of a value, by the old name of GETRANGE."),
    plan("setrange", 4, WRITE | DENYOOM, strings::setrange).keys(1, 1, 1)
        .about(String, "2.2.0", "Overwrites part of a value."),
    plan("incr", 2, WRITE | DENYOOM | FAST, strings::incr).keys(1, 1, 1)
        .about(String, "1.0.0", "Adds one to an integer."),
    plan("decr", 2, WRITE | DENYOOM | FAST, strings::decr).keys(1, 1, 1)
        .about(String, "1.0.0", "Takes one from an integer."),
    plan("incrby", 3, WRITE | DENYOOM | FAST, strings::incrby).keys(1, 1, 1)
        .about(String, "1.0.0", "Adds to an integer."),
    plan("decrby", 3, WRITE | DENYOOM | FAST, strings::decrby).keys(1, 1, 1)
        .about(String, "1.0.0", "Takes from an integer."),
    plan("incrbyfloat", 3, WRITE | DENYOOM | FAST, strings::incrbyfloat).keys(1, 1, 1)
        .about(String, "2.6.0", "Adds to a decimal number."),
    plan("setbit", 4, WRITE | DENYOOM, bits::setbit).keys(1, 1, 1)
        .about(Bitmap, "2.2.0", "Sets or clears a bit of a value; what it was."),
    plan("getbit", 3, READONLY | FAST, bits::getbit).keys(1, 1, 1)
        .about(Bitmap, "2.2.0", "A bit of a value."),
    plan("bitcount", -2, READONLY, bits::bitcount).keys(1, 1, 1)
        .about(Bitmap, "2.6.0", "How many bits of a value are set."),
    plan("bitpos", -3, READONLY, bits::bitpos).keys(1, 1, 1)
        .about(Bitmap, "2.8.7", "The first bit of a value that is set, or clear."),
    plan("hset", -4, WRITE | DENYOOM | FAST, hashes::hset).keys(1, 1, 1)
        .about(Hash, "2.0.0", "Sets fields of a hash."),
    plan("hsetnx", 4, WRITE | DENYOOM | FAST, hashes::hsetnx).keys(1, 1, 1)
        .about(Hash, "2.0.0", "Sets a field of a hash if it is absent."),
    plan("hmset", -4, WRITE | DENYOOM | FAST, hashes::hmset).keys(1, 1, 1)
        .about(Hash, "2.0.0", "Sets fields of a hash, by the old name of HSET."),
    plan("hget", 3, READONLY | FAST, hashes::hget).keys(1, 1, 1)
        .about(Hash, "2.0.0", "A field of a hash."),
    plan("hmget", -3, READONLY | FAST, hashes::hmget).keys(1, 1, 1)
        .about(Hash, "2.0.0", "Several fields of a hash."),
    plan("hgetall", 2, READONLY, hashes::hgetall).keys(1, 1, 1)
        .about(Hash, "2.0.0", "All fields of a hash with their values."),
    plan("hdel", -3, WRITE | FAST, hashes::hdel).keys(1, 1, 1)
        .about(Hash, "2.0.0", "Removes fields of a hash."),
    plan("hlen", 2, READONLY | FAST, hashes::hlen).keys(1, 1, 1)
        .about(Hash, "2.0.0", "How many fields a hash has."),
    plan("hexists", 3, READONLY | FAST, hashes::hexists).keys(1, 1, 1)
        .about(Hash, "2.0.0", "Whether a hash has a field."),
    plan("hkeys", 2, READONLY, hashes::hkeys).keys(1, 1, 1)
        .about(Hash, "2.0.0", "The names of all fields of a hash."),
    plan("hvals", 2, READONLY, hashes::hvals).keys(1, 1, 1)
        .about(Hash, "2.0.0", "The values of all fields of a hash."),
    plan("hincrby", 4, WRITE | DENYOOM | FAST, hashes::hincrby).keys(1, 1, 1)
        .about(Hash, "2.0.0", "Adds to an integer in a field of a hash."),
    plan("hincrbyfloat", 4, WRITE | DENYOOM | FAST, hashes::hincrbyfloat).keys(1, 1, 1)
        .about(Hash, "2.6.0", "Adds to a decimal number in a field of a hash."),
    plan("hstrlen", 3, READONLY | FAST, hashes::hstrlen).keys(1, 1, 1)
        .about(Hash, "3.2.0", "The length of a field of a hash."),
    plan("hscan", -3, READONLY, hashes::hscan).keys(1, 1, 1)
        .about(Hash, "2.8.0", "Walks the fields of a hash."),
    plan("hrandfield", -2, READONLY, hashes::hrandfield).keys(1, 1, 1)
        .about(Hash, "6.2.0", "Fields of a hash, drawn at random."),
    plan("del", -2, WRITE, keys::del).keys(1, -1, 1)
        .about(Generic, "1.0.0", "Removes keys."),
    plan("unlink", -2, WRITE | FAST, keys::del).keys(1, -1, 1)
        .about(Generic, "4.0.0", "Removes keys."),
    plan("exists", -2, READONLY | FAST, keys::exists).keys(1, -1, 1)
        .about(Generic, "1.0.0", "How many of the keys are there."),
    plan("touch", -2, READONLY | FAST, keys::exists).keys(1, -1, 1)
        .about(Generic, "3.2.1", "Reads keys without their values; how many are there."),
    plan("type", 2, READONLY | FAST, keys::type_of).keys(1, 1, 1)
        .about(Generic, "1.0.0", "The type of a key's value."),
    plan("expire", -3, WRITE | FAST, keys::expire).keys(1, 1, 1)
        .about(Generic, "1.0.0", "Ends a key after some seconds."),
    plan("pexpire", -3, WRITE | FAST, keys::expire).keys(1, 1, 1)
        .about(Generic, "2.6.0", "Ends a key after some milliseconds."),
    plan("expireat", -3, WRITE | FAST, keys::expire).keys(1, 1, 1)
        .about(Generic, "1.2.0", "Ends a key at a second since the epoch."),
    plan("pexpireat", -3, WRITE | FAST, keys::expire).keys(1, 1, 1)
        .about(Generic, "2.6.0", "Ends a key at a millisecond since the epoch."),
    plan("ttl", 2, READONLY | FAST, keys::ttl).keys(1, 1, 1)
        .about(Generic, "1.0.0", "Seconds until a key ends."),
    plan("pttl", 2, READONLY | FAST, keys::pttl).keys(1, 1, 1)
        .about(Generic, "2.6.0", "Milliseconds until a key ends."),
    plan("expiretime", 2, READONLY | FAST, keys::expiretime).keys(1, 1, 1)
        .about(Generic, "7.0.0", "The second since the epoch at which a key ends."),
    plan("pexpiretime", 2, READONLY | FAST, keys::pexpiretime).keys(1, 1, 1)
        .about(Generic, "7.0.0", "The millisecond since the epoch at which a key ends."),
    plan("persist", 2, WRITE | FAST, keys::persist).keys(1, 1, 1)
        .about(Generic, "2.2.0", "Lets a key stay."),
    plan("rename", 3, WRITE | EXCLUSIVE, keys::rename).keys(1, 2, 1)
        .about(Generic, "1.0.0", "Gives an entry another key."),
    plan("renamenx", 3, WRITE | FAST | EXCLUSIVE, keys::renamenx).keys(1, 2, 1)
        .about(Generic, "1.0.0", "Gives an entry another key if that one is absent."),
    plan("copy", -3, WRITE | DENYOOM | EXCLUSIVE, keys::copy).keys(1, 2, 1)
        .about(Generic, "6.2.0", "Copies an entry to another key."),
    plan("move", 3, WRITE | FAST | EXCLUSIVE, keys::move_key).keys(1, 1, 1)
        .about(Generic, "1.0.0", "Moves an entry to another space."),
    plan("keys", 2, READONLY | DANGEROUS | BARRIER, scans::keys)
        .about(Generic, "1.0.0", "All keys that match a pattern."),
    plan("scan", -2, READONLY | BARRIER, scans::scan)
        .about(Generic, "2.8.0", "Walks the keys of a space."),
    plan("randomkey", 1, READONLY | BARRIER, scans::randomkey)
        .about(Generic, "1.0.0", "A key, drawn at random."),
    spec("object", -2, READONLY | CONTAINER, Execution::Local(introspection::container))
        .about(Generic, "2.2.3", "How a value is kept."),
    plan("object|encoding", 3, READONLY, keys::object_encoding).keys(2, 2, 1)
        .about(Generic, "2.2.3", "The form redis-server would keep a value in."),
    plan("object|freq", 3, READONLY, keys::object_freq).keys(2, 2, 1)
        .about(Generic, "4.0.0", "Refused: frequencies of use are not kept by key."),
    plan("object|idletime", 3, READONLY, keys::object_idletime).keys(2, 2, 1)
        .about(Generic, "2.2.3", "Always 0: asking for it is a use."),
    plan("object|refcount", 3, READONLY, keys::object_refcount).keys(2, 2, 1)
        .about(Generic, "2.2.3", "Always 1: values are not shared."),
    local("object|help", 2, 0, introspection::help)
        .about(Generic, "6.2.0", "The subcommands of OBJECT."),
    plan("dbsize", 1, READONLY | FAST | BARRIER, keys::dbsize)
        .about(Server, "1.0.0", "How many keys a space has."),
    plan("flushdb", -1, WRITE | DANGEROUS | EXCLUSIVE, keys::flushdb)
        .about(Server, "1.0.0", "Removes all keys of a space."),
    plan("flushall", -1, WRITE | DANGEROUS | EXCLUSIVE, keys::flushall)
        .about(Server, "1.0.0", "Removes all keys of all spaces."),
    local("ping", -1, FAST, connection::ping)
        .about(Connection, "1.0.0", "Answers."),
    local("echo", 2, FAST, connection::echo)
        .about(Connection, "1.0.0", "Answers with its argument."),
    local("select", 2, FAST, connection::select)
        .about(Connection, "1.0.0", "Chooses the space that commands work on."),
    local("quit", -1, FAST | NO_AUTH | NO_QUEUE | BARRIER, connection::quit)
        .about(Connection, "1.0.0", "Closes the connection."),
    local("reset", 1, FAST | NO_AUTH | NO_QUEUE | BARRIER, connection::reset)
        .about(Connection, "6.2.0", "Makes the connection as it was when it was new."),
    plan("auth", -2, FAST | NO_AUTH | BARRIER | NO_ENTRIES, connection::auth)
        .about(Connection, "1.0.0", "Says who the client is."),
    plan("hello", -1, FAST | NO_AUTH | BARRIER | NO_ENTRIES, connection::hello)
        .about(Connection, "6.0.0", "Chooses the version of the protocol."),
    spec("client", -2, CONTAINER, Execution::Local(introspection::container))
        .about(Connection, "2.4.0", "Clients of the server."),
    local("client|id", 2, 0, clients::id)
        .about(Connection, "5.0.0", "The number of the client."),
    local("client|info", 2, 0, clients::info)
        .about(Connection, "6.2.0", "What is known of the client."),
    local("client|list", -2, ADMIN | DANGEROUS, clients::list)
        .about(Connection, "2.4.0", "What is known of all clients."),
    local("client|getname", 2, 0, clients::getname)
        .about(Connection, "2.6.9", "The name the client gave itself."),
    local("client|setname", 3, 0, clients::setname)
        .about(Connection, "2.6.9", "Gives the client a name."),
    local("client|setinfo", 4, 0, clients::setinfo)
        .about(Connection, "7.2.0", "Says which library the client uses."),
    local("client|kill", -3, ADMIN | DANGEROUS, clients::kill)
        .about(Connection, "2.4.0", "Closes the connections of clients."),
    local("client|reply", 3, LOUD, clients::reply)
        .about(Connection, "3.2.0", "Chooses which replies the client wants."),
    local("client|no-evict", 3, ADMIN | DANGEROUS, clients::no_evict)
        .about(Connection, "7.0.0", "Noted only: clients are not evicted one by one."),
    local("client|no-touch", 3, 0, clients::no_touch)
        .about(Connection, "7.2.0", "Accepted without effect."),
    local("client|pause", -3, ADMIN | DANGEROUS, clients::pause)
        .about(Connection, "3.0.0", "Lets commands wait for some milliseconds."),
    local("client|unpause", 2, ADMIN | DANGEROUS, clients::unpause)
        .about(Connection, "6.2.0", "Ends a pause."),
    local("client|help", 2, 0, introspection::help)
        .about(Connection, "5.0.0", "The subcommands of CLIENT."),
    local("multi", 1, FAST | NO_QUEUE, transactions::multi)
        .about(Transactions, "1.2.0", "Begins a transaction."),
    plan("exec", 1, NO_QUEUE | EXCLUSIVE, transactions::exec)
        .about(Transactions, "1.2.0", "Carries out a transaction."),
    local("discard", 1, FAST | NO_QUEUE, transactions::discard)
        .about(Transactions, "2.0.0", "Forgets a transaction."),
    plan("watch", -2, FAST | NO_QUEUE | BARRIER, transactions::watch).keys(1, -1, 1)
        .about(Transactions, "2.2.0", "Lets the next EXEC fail if a key changes before."),
    local("unwatch", 1, FAST | BARRIER, transactions::unwatch)
        .about(Transactions, "2.2.0", "Forgets what is watched."),
    local("info", -1, DANGEROUS, information::info)
        .about(Server, "1.0.0", "Figures of the server."),
    spec("config", -2, ADMIN | DANGEROUS | CONTAINER, Execution::Local(introspection::container))
        .about(Server, "2.0.0", "The configuration."),
    local("config|get", -3, ADMIN | DANGEROUS, server::config_get)
        .about(Server, "2.0.0", "The values of keys that match patterns."),
    local("config|set", -4, ADMIN | DANGEROUS, server::config_set)
        .about(Server, "2.0.0", "Changes keys that may change while the server runs."),
    local("config|resetstat", 2, ADMIN | DANGEROUS, server::config_resetstat)
        .about(Server, "2.0.0", "Forgets what was measured."),
    local("config|rewrite", 2, ADMIN | DANGEROUS, server::config_rewrite)
        .about(Server, "2.8.0", "Writes what CONFIG SET changed to the configuration file."),
    local("config|help", 2, 0, introspection::help)
        .about(Server, "5.0.0", "The subcommands of CONFIG."),
    local("command", -1, CONTAINER, introspection::all)
        .about(Server, "2.8.13", "All commands."),
    local("command|count", 2, 0, introspection::count)
        .about(Server, "2.8.13", "How many commands there are."),
    local("command|info", -2, 0, introspection::info)
        .about(Server, "2.8.13", "How commands behave."),
    local("command|docs", -2, 0, introspection::docs)
        .about(Server, "7.0.0", "What commands do."),
    local("command|list", -2, 0, introspection::list)
        .about(Server, "7.0.0", "The names of all commands."),
    local("command|getkeys", -4, 0, introspection::getkeys)
        .about(Server, "2.8.13", "The keys of a command."),
    local("command|help", 2, 0, introspection::help)
        .about(Server, "5.0.0", "The subcommands of COMMAND."),
    spec("acl", -2, CONTAINER, Execution::Local(introspection::container))
        .about(Server, "6.0.0", "Users and what they may do."),
    local("acl|whoami", 2, 0, server::acl_whoami)
        .about(Server, "6.0.0", "The name of the user."),
    local("acl|list", 2, ADMIN | DANGEROUS, server::acl_list)
        .about(Server, "6.0.0", "All users with what they may do."),
    local("acl|users", 2, ADMIN | DANGEROUS, server::acl_users)
        .about(Server, "6.0.0", "The names of all users."),
    local("acl|cat", -2, 0, server::acl_cat)
        .about(Server, "6.0.0", "Groups of commands, or the commands of one."),
    local("acl|help", 2, 0, introspection::help)
        .about(Server, "6.0.0", "The subcommands of ACL."),
    local("time", 1, FAST, server::time)
        .about(Server, "2.6.0", "The time of the server."),
    local("lastsave", 1, FAST | ADMIN | DANGEROUS, server::lastsave)
        .about(Server, "1.0.0", "When a sync was last asked for."),
    plan("save", 1, ADMIN | DANGEROUS | BARRIER | NO_ENTRIES | NO_MULTI, server::save)
        .about(Server, "1.0.0", "Syncs: what was acknowledged before survives power loss."),
    local("monitor", 1, ADMIN | DANGEROUS | BARRIER, server::monitor)
        .about(Server, "1.0.0", "Shows every command that clients give, until RESET."),
    local("bgsave", -1, ADMIN | DANGEROUS, server::bgsave)
        .about(Server, "1.0.0", "Asks for a sync and does not wait."),
    local("wait", 3, BARRIER, server::wait)
        .about(Generic, "3.0.0", "Answers 0: there are no replicas."),
    spec("memory", -2, CONTAINER, Execution::Local(introspection::container))
        .about(Server, "4.0.0", "What takes memory."),
    plan("memory|usage", -3, READONLY, keys::memory_usage).keys(2, 2, 1)
        .about(Server, "4.0.0", "About how many bytes an entry takes on flash."),
    local("memory|stats", 2, 0, server::memory_stats)
        .about(Server, "4.0.0", "Memory by use."),
    local("memory|doctor", 2, 0, server::memory_doctor)
        .about(Server, "4.0.0", "Whether the memory cap is too small."),
    local("memory|help", 2, 0, introspection::help)
        .about(Server, "4.0.0", "The subcommands of MEMORY."),
    spec("slowlog", -2, ADMIN | DANGEROUS | CONTAINER, Execution::Local(introspection::container))
        .about(Server, "2.2.12", "Commands that took long."),
    local("slowlog|get", -2, ADMIN | DANGEROUS, server::slowlog_get)
        .about(Server, "2.2.12", "The commands, the latest first."),
    local("slowlog|len", 2, ADMIN | DANGEROUS, server::slowlog_len)
        .about(Server, "2.2.12", "How many are kept."),
    local("slowlog|reset", 2, ADMIN | DANGEROUS, server::slowlog_reset)
        .about(Server, "2.2.12", "Forgets them."),
    local("slowlog|help", 2, 0, introspection::help)
        .about(Server, "6.2.0", "The subcommands of SLOWLOG."),
    spec("latency", -2, ADMIN | DANGEROUS | CONTAINER, Execution::Local(introspection::container))
        .about(Server, "2.8.13", "How long commands take."),
    local("latency|histogram", -2, ADMIN | DANGEROUS, server::latency_histogram)
        .about(Server, "7.0.0", "How many commands took how long."),
    local("latency|latest", 2, ADMIN | DANGEROUS, server::latency_empty)
        .about(Server, "2.8.13", "Empty: there are no latency events."),
    local("latency|history", 3, ADMIN | DANGEROUS, server::latency_empty)
        .about(Server, "2.8.13", "Empty: there are no latency events."),
    local("latency|reset", -2, ADMIN | DANGEROUS, server::latency_reset)
        .about(Server, "2.8.13", "Answers 0: there are no latency events."),
    local("latency|help", 2, 0, introspection::help)
        .about(Server, "2.8.13", "The subcommands of LATENCY."),
    plan("debug", -2, ADMIN | DANGEROUS | BARRIER | NO_ENTRIES, server::debug)
        .about(Server, "1.0.0", "DEBUG SLEEP, where the configuration allows it."),
    local("shutdown", -1, ADMIN | DANGEROUS | BARRIER | NO_MULTI, server::shutdown)
        .about(Server, "1.0.0", "Stops the server cleanly."),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_found_by_its_name_in_any_case() {
        for (id, spec) in SPECS.iter().enumerate() {
            let found = find(spec.name.to_ascii_uppercase().as_bytes()).unwrap();
            assert_eq!((found.name, found.id()), (spec.name, id));
            assert!(!spec.summary.is_empty() && spec.name.len() <= NAME_BYTES_MAX, "{}", spec.name);
        }
        assert!(find(b"nothing").is_none() && find(&[b'x'; 200]).is_none());
    }

    #[test]
    fn key_places_follow_the_key_range() {
        let places = |name: &str, arguments| -> Vec<usize> {
            find(name.as_bytes()).unwrap().key_places(arguments).collect()
        };
        assert_eq!(places("get", 2), [1]);
        assert_eq!(places("mset", 5), [1, 3]);
        assert_eq!(places("del", 4), [1, 2, 3]);
        assert_eq!(places("rename", 3), [1, 2]);
        assert!(places("ping", 1).is_empty());
        assert_eq!(places("get", 1), [] as [usize; 0]);
    }
}
