//! The table of commands. The parser, `COMMAND`, users' rules and the reference all read it.

use std::sync::OnceLock;

use super::spec::Group::{Bitmap, Connection, Generic, Hash, Server, String, Transactions};
use super::spec::{
    ADMIN, BARRIER, CONTAINER, DANGEROUS, DENYOOM, EXCLUSIVE, FAST, LOUD, NO_AUTH, NO_ENTRIES,
    NO_MULTI, NO_QUEUE, READONLY, Spec, WRITE, spec,
};

impl Spec {
    /// Its place in [`SPECS`].
    pub(crate) fn id(&self) -> usize {
        let start = SPECS.as_ptr() as usize;
        (std::ptr::from_ref(self) as usize - start) / size_of::<Spec>()
    }
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

/// All commands, two lines each.
#[rustfmt::skip]
pub(crate) static SPECS: &[Spec] = &[
    spec("get", 2, READONLY | FAST).keys(1, 1, 1)
        .about(String, "1.0.0", "The value of a key."),
    spec("set", -3, WRITE | DENYOOM).keys(1, 1, 1)
        .about(String, "1.0.0", "Sets a value, on conditions and with an end if asked for."),
    spec("setnx", 3, WRITE | DENYOOM | FAST).keys(1, 1, 1)
        .about(String, "1.0.0", "Sets a value if the key is absent."),
    spec("setex", 4, WRITE | DENYOOM).keys(1, 1, 1)
        .about(String, "2.0.0", "Sets a value that ends after some seconds."),
    spec("psetex", 4, WRITE | DENYOOM).keys(1, 1, 1)
        .about(String, "2.6.0", "Sets a value that ends after some milliseconds."),
    spec("getset", 3, WRITE | DENYOOM | FAST).keys(1, 1, 1)
        .about(String, "1.0.0", "Sets a value and answers with the old one."),
    spec("getdel", 2, WRITE | FAST).keys(1, 1, 1)
        .about(String, "6.2.0", "Answers with a value and removes it."),
    spec("getex", -2, WRITE | FAST).keys(1, 1, 1)
        .about(String, "6.2.0", "Answers with a value and changes when it ends."),
    spec("mget", -2, READONLY | FAST).keys(1, -1, 1)
        .about(String, "1.0.0", "The values of several keys, each read by itself."),
    spec("mset", -3, WRITE | DENYOOM | EXCLUSIVE).keys(1, -1, 2)
        .about(String, "1.0.1", "Sets several values as one."),
    spec("msetnx", -3, WRITE | DENYOOM | EXCLUSIVE).keys(1, -1, 2)
        .about(String, "1.0.1", "Sets several values as one if all keys are absent."),
    spec("append", 3, WRITE | DENYOOM | FAST).keys(1, 1, 1)
        .about(String, "2.0.0", "Adds to the end of a value."),
    spec("strlen", 2, READONLY | FAST).keys(1, 1, 1)
        .about(String, "2.2.0", "The length of a value."),
    spec("getrange", 4, READONLY).keys(1, 1, 1)
        .about(String, "2.4.0", "Part of a value."),
    spec("substr", 4, READONLY).keys(1, 1, 1)
        .about(String, "1.0.0", "Part of a value, by the old name of GETRANGE."),
    spec("setrange", 4, WRITE | DENYOOM).keys(1, 1, 1)
        .about(String, "2.2.0", "Overwrites part of a value."),
    spec("incr", 2, WRITE | DENYOOM | FAST).keys(1, 1, 1)
        .about(String, "1.0.0", "Adds one to an integer."),
    spec("decr", 2, WRITE | DENYOOM | FAST).keys(1, 1, 1)
        .about(String, "1.0.0", "Takes one from an integer."),
    spec("incrby", 3, WRITE | DENYOOM | FAST).keys(1, 1, 1)
        .about(String, "1.0.0", "Adds to an integer."),
    spec("decrby", 3, WRITE | DENYOOM | FAST).keys(1, 1, 1)
        .about(String, "1.0.0", "Takes from an integer."),
    spec("incrbyfloat", 3, WRITE | DENYOOM | FAST).keys(1, 1, 1)
        .about(String, "2.6.0", "Adds to a decimal number."),
    spec("setbit", 4, WRITE | DENYOOM).keys(1, 1, 1)
        .about(Bitmap, "2.2.0", "Sets or clears a bit of a value; what it was."),
    spec("getbit", 3, READONLY | FAST).keys(1, 1, 1)
        .about(Bitmap, "2.2.0", "A bit of a value."),
    spec("bitcount", -2, READONLY).keys(1, 1, 1)
        .about(Bitmap, "2.6.0", "How many bits of a value are set."),
    spec("bitpos", -3, READONLY).keys(1, 1, 1)
        .about(Bitmap, "2.8.7", "The first bit of a value that is set, or clear."),
    spec("hset", -4, WRITE | DENYOOM | FAST).keys(1, 1, 1)
        .about(Hash, "2.0.0", "Sets fields of a hash."),
    spec("hsetnx", 4, WRITE | DENYOOM | FAST).keys(1, 1, 1)
        .about(Hash, "2.0.0", "Sets a field of a hash if it is absent."),
    spec("hmset", -4, WRITE | DENYOOM | FAST).keys(1, 1, 1)
        .about(Hash, "2.0.0", "Sets fields of a hash, by the old name of HSET."),
    spec("hget", 3, READONLY | FAST).keys(1, 1, 1)
        .about(Hash, "2.0.0", "A field of a hash."),
    spec("hmget", -3, READONLY | FAST).keys(1, 1, 1)
        .about(Hash, "2.0.0", "Several fields of a hash."),
    spec("hgetall", 2, READONLY).keys(1, 1, 1)
        .about(Hash, "2.0.0", "All fields of a hash with their values."),
    spec("hdel", -3, WRITE | FAST).keys(1, 1, 1)
        .about(Hash, "2.0.0", "Removes fields of a hash."),
    spec("hlen", 2, READONLY | FAST).keys(1, 1, 1)
        .about(Hash, "2.0.0", "How many fields a hash has."),
    spec("hexists", 3, READONLY | FAST).keys(1, 1, 1)
        .about(Hash, "2.0.0", "Whether a hash has a field."),
    spec("hkeys", 2, READONLY).keys(1, 1, 1)
        .about(Hash, "2.0.0", "The names of all fields of a hash."),
    spec("hvals", 2, READONLY).keys(1, 1, 1)
        .about(Hash, "2.0.0", "The values of all fields of a hash."),
    spec("hincrby", 4, WRITE | DENYOOM | FAST).keys(1, 1, 1)
        .about(Hash, "2.0.0", "Adds to an integer in a field of a hash."),
    spec("hincrbyfloat", 4, WRITE | DENYOOM | FAST).keys(1, 1, 1)
        .about(Hash, "2.6.0", "Adds to a decimal number in a field of a hash."),
    spec("hstrlen", 3, READONLY | FAST).keys(1, 1, 1)
        .about(Hash, "3.2.0", "The length of a field of a hash."),
    spec("hscan", -3, READONLY).keys(1, 1, 1)
        .about(Hash, "2.8.0", "Walks the fields of a hash."),
    spec("hrandfield", -2, READONLY).keys(1, 1, 1)
        .about(Hash, "6.2.0", "Fields of a hash, drawn at random."),
    spec("del", -2, WRITE).keys(1, -1, 1)
        .about(Generic, "1.0.0", "Removes keys."),
    spec("unlink", -2, WRITE | FAST).keys(1, -1, 1)
        .about(Generic, "4.0.0", "Removes keys."),
    spec("exists", -2, READONLY | FAST).keys(1, -1, 1)
        .about(Generic, "1.0.0", "How many of the keys are there."),
    spec("touch", -2, READONLY | FAST).keys(1, -1, 1)
        .about(Generic, "3.2.1", "Reads keys without their values; how many are there."),
    spec("type", 2, READONLY | FAST).keys(1, 1, 1)
        .about(Generic, "1.0.0", "The type of a key's value."),
    spec("expire", -3, WRITE | FAST).keys(1, 1, 1)
        .about(Generic, "1.0.0", "Ends a key after some seconds."),
    spec("pexpire", -3, WRITE | FAST).keys(1, 1, 1)
        .about(Generic, "2.6.0", "Ends a key after some milliseconds."),
    spec("expireat", -3, WRITE | FAST).keys(1, 1, 1)
        .about(Generic, "1.2.0", "Ends a key at a second since the epoch."),
    spec("pexpireat", -3, WRITE | FAST).keys(1, 1, 1)
        .about(Generic, "2.6.0", "Ends a key at a millisecond since the epoch."),
    spec("ttl", 2, READONLY | FAST).keys(1, 1, 1)
        .about(Generic, "1.0.0", "Seconds until a key ends."),
    spec("pttl", 2, READONLY | FAST).keys(1, 1, 1)
        .about(Generic, "2.6.0", "Milliseconds until a key ends."),
    spec("expiretime", 2, READONLY | FAST).keys(1, 1, 1)
        .about(Generic, "7.0.0", "The second since the epoch at which a key ends."),
    spec("pexpiretime", 2, READONLY | FAST).keys(1, 1, 1)
        .about(Generic, "7.0.0", "The millisecond since the epoch at which a key ends."),
    spec("persist", 2, WRITE | FAST).keys(1, 1, 1)
        .about(Generic, "2.2.0", "Lets a key stay."),
    spec("rename", 3, WRITE | EXCLUSIVE).keys(1, 2, 1)
        .about(Generic, "1.0.0", "Gives an entry another key."),
    spec("renamenx", 3, WRITE | FAST | EXCLUSIVE).keys(1, 2, 1)
        .about(Generic, "1.0.0", "Gives an entry another key if that one is absent."),
    spec("copy", -3, WRITE | DENYOOM | EXCLUSIVE).keys(1, 2, 1)
        .about(Generic, "6.2.0", "Copies an entry to another key."),
    spec("move", 3, WRITE | FAST | EXCLUSIVE).keys(1, 1, 1)
        .about(Generic, "1.0.0", "Moves an entry to another space."),
    spec("keys", 2, READONLY | DANGEROUS | BARRIER)
        .about(Generic, "1.0.0", "All keys that match a pattern."),
    spec("scan", -2, READONLY | BARRIER)
        .about(Generic, "2.8.0", "Walks the keys of a space."),
    spec("randomkey", 1, READONLY | BARRIER)
        .about(Generic, "1.0.0", "A key, drawn at random."),
    spec("object", -2, READONLY | CONTAINER)
        .about(Generic, "2.2.3", "How a value is kept."),
    spec("object|encoding", 3, READONLY).keys(2, 2, 1)
        .about(Generic, "2.2.3", "The form redis-server would keep a value in."),
    spec("object|freq", 3, READONLY).keys(2, 2, 1)
        .about(Generic, "4.0.0", "Refused: frequencies of use are not kept by key."),
    spec("object|idletime", 3, READONLY).keys(2, 2, 1)
        .about(Generic, "2.2.3", "Always 0: asking for it is a use."),
    spec("object|refcount", 3, READONLY).keys(2, 2, 1)
        .about(Generic, "2.2.3", "Always 1: values are not shared."),
    spec("object|help", 2, 0)
        .about(Generic, "6.2.0", "The subcommands of OBJECT."),
    spec("dbsize", 1, READONLY | FAST | BARRIER)
        .about(Server, "1.0.0", "How many keys a space has."),
    spec("flushdb", -1, WRITE | DANGEROUS | EXCLUSIVE)
        .about(Server, "1.0.0", "Removes all keys of a space."),
    spec("flushall", -1, WRITE | DANGEROUS | EXCLUSIVE)
        .about(Server, "1.0.0", "Removes all keys of all spaces."),
    spec("ping", -1, FAST)
        .about(Connection, "1.0.0", "Answers."),
    spec("echo", 2, FAST)
        .about(Connection, "1.0.0", "Answers with its argument."),
    spec("select", 2, FAST)
        .about(Connection, "1.0.0", "Chooses the space that commands work on."),
    spec("quit", -1, FAST | NO_AUTH | NO_QUEUE | BARRIER)
        .about(Connection, "1.0.0", "Closes the connection."),
    spec("reset", 1, FAST | NO_AUTH | NO_QUEUE | BARRIER)
        .about(Connection, "6.2.0", "Makes the connection as it was when it was new."),
    spec("auth", -2, FAST | NO_AUTH | BARRIER | NO_ENTRIES)
        .about(Connection, "1.0.0", "Says who the client is."),
    spec("hello", -1, FAST | NO_AUTH | BARRIER | NO_ENTRIES)
        .about(Connection, "6.0.0", "Chooses the version of the protocol."),
    spec("client", -2, CONTAINER)
        .about(Connection, "2.4.0", "Clients of the server."),
    spec("client|id", 2, 0)
        .about(Connection, "5.0.0", "The number of the client."),
    spec("client|info", 2, 0)
        .about(Connection, "6.2.0", "What is known of the client."),
    spec("client|list", -2, ADMIN | DANGEROUS)
        .about(Connection, "2.4.0", "What is known of all clients."),
    spec("client|getname", 2, 0)
        .about(Connection, "2.6.9", "The name the client gave itself."),
    spec("client|setname", 3, 0)
        .about(Connection, "2.6.9", "Gives the client a name."),
    spec("client|setinfo", 4, 0)
        .about(Connection, "7.2.0", "Says which library the client uses."),
    spec("client|kill", -3, ADMIN | DANGEROUS)
        .about(Connection, "2.4.0", "Closes the connections of clients."),
    spec("client|reply", 3, LOUD)
        .about(Connection, "3.2.0", "Chooses which replies the client wants."),
    spec("client|no-evict", 3, ADMIN | DANGEROUS)
        .about(Connection, "7.0.0", "Noted only: clients are not evicted one by one."),
    spec("client|no-touch", 3, 0)
        .about(Connection, "7.2.0", "Accepted without effect."),
    spec("client|pause", -3, ADMIN | DANGEROUS)
        .about(Connection, "3.0.0", "Lets commands wait for some milliseconds."),
    spec("client|unpause", 2, ADMIN | DANGEROUS)
        .about(Connection, "6.2.0", "Ends a pause."),
    spec("client|help", 2, 0)
        .about(Connection, "5.0.0", "The subcommands of CLIENT."),
    spec("multi", 1, FAST | NO_QUEUE)
        .about(Transactions, "1.2.0", "Begins a transaction."),
    spec("exec", 1, NO_QUEUE | EXCLUSIVE)
        .about(Transactions, "1.2.0", "Carries out a transaction."),
    spec("discard", 1, FAST | NO_QUEUE)
        .about(Transactions, "2.0.0", "Forgets a transaction."),
    spec("watch", -2, FAST | NO_QUEUE | BARRIER).keys(1, -1, 1)
        .about(Transactions, "2.2.0", "Lets the next EXEC fail if a key changes before."),
    spec("unwatch", 1, FAST | BARRIER)
        .about(Transactions, "2.2.0", "Forgets what is watched."),
    spec("info", -1, DANGEROUS)
        .about(Server, "1.0.0", "Figures of the server."),
    spec("config", -2, ADMIN | DANGEROUS | CONTAINER)
        .about(Server, "2.0.0", "The configuration."),
    spec("config|get", -3, ADMIN | DANGEROUS)
        .about(Server, "2.0.0", "The values of keys that match patterns."),
    spec("config|set", -4, ADMIN | DANGEROUS)
        .about(Server, "2.0.0", "Changes keys that may change while the server runs."),
    spec("config|resetstat", 2, ADMIN | DANGEROUS)
        .about(Server, "2.0.0", "Forgets what was measured."),
    spec("config|rewrite", 2, ADMIN | DANGEROUS)
        .about(Server, "2.8.0", "Writes what CONFIG SET changed to the configuration file."),
    spec("config|help", 2, 0)
        .about(Server, "5.0.0", "The subcommands of CONFIG."),
    spec("command", -1, CONTAINER)
        .about(Server, "2.8.13", "All commands."),
    spec("command|count", 2, 0)
        .about(Server, "2.8.13", "How many commands there are."),
    spec("command|info", -2, 0)
        .about(Server, "2.8.13", "How commands behave."),
    spec("command|docs", -2, 0)
        .about(Server, "7.0.0", "What commands do."),
    spec("command|list", -2, 0)
        .about(Server, "7.0.0", "The names of all commands."),
    spec("command|getkeys", -4, 0)
        .about(Server, "2.8.13", "The keys of a command."),
    spec("command|help", 2, 0)
        .about(Server, "5.0.0", "The subcommands of COMMAND."),
    spec("acl", -2, CONTAINER)
        .about(Server, "6.0.0", "Users and what they may do."),
    spec("acl|whoami", 2, 0)
        .about(Server, "6.0.0", "The name of the user."),
    spec("acl|list", 2, ADMIN | DANGEROUS)
        .about(Server, "6.0.0", "All users with what they may do."),
    spec("acl|users", 2, ADMIN | DANGEROUS)
        .about(Server, "6.0.0", "The names of all users."),
    spec("acl|load", 2, ADMIN | DANGEROUS)
        .about(Server, "6.0.0", "Reads the file of users again; clients stay who they are."),
    spec("acl|cat", -2, 0)
        .about(Server, "6.0.0", "Groups of commands, or the commands of one."),
    spec("acl|help", 2, 0)
        .about(Server, "6.0.0", "The subcommands of ACL."),
    spec("time", 1, FAST)
        .about(Server, "2.6.0", "The time of the server."),
    spec("lastsave", 1, FAST | ADMIN | DANGEROUS)
        .about(Server, "1.0.0", "When a sync was last asked for."),
    spec("save", 1, ADMIN | DANGEROUS | BARRIER | NO_ENTRIES | NO_MULTI)
        .about(Server, "1.0.0", "Syncs: what was acknowledged before survives power loss."),
    spec("backup", -2, ADMIN | DANGEROUS | CONTAINER)
        .about(Server, "0.1.0", "Copies the store as it was at one moment, while it is in use."),
    spec("backup|begin", -2, ADMIN | DANGEROUS | BARRIER | NO_ENTRIES | NO_MULTI)
        .about(Server, "0.1.0", "Takes a snapshot; its superblock and segments, as JSON."),
    spec("backup|read", 6, ADMIN | DANGEROUS | NO_ENTRIES | NO_MULTI)
        .about(Server, "0.1.0", "Bytes of a segment of the snapshot."),
    spec("backup|done", -4, ADMIN | DANGEROUS | BARRIER | NO_ENTRIES | NO_MULTI)
        .about(Server, "0.1.0", "Lets segments go that are copied, or need not be."),
    spec("backup|end", 3, ADMIN | DANGEROUS | BARRIER | NO_ENTRIES | NO_MULTI)
        .about(Server, "0.1.0", "Ends the snapshot."),
    spec("backup|help", 2, 0)
        .about(Server, "0.1.0", "The subcommands of BACKUP."),
    spec("monitor", 1, ADMIN | DANGEROUS | BARRIER)
        .about(Server, "1.0.0", "Shows every command that clients give, until RESET."),
    spec("bgsave", -1, ADMIN | DANGEROUS)
        .about(Server, "1.0.0", "Asks for a sync and does not wait."),
    spec("wait", 3, BARRIER)
        .about(Generic, "3.0.0", "Answers 0: there are no replicas."),
    spec("memory", -2, CONTAINER)
        .about(Server, "4.0.0", "What takes memory."),
    spec("memory|usage", -3, READONLY).keys(2, 2, 1)
        .about(Server, "4.0.0", "About how many bytes an entry takes on flash."),
    spec("memory|stats", 2, 0)
        .about(Server, "4.0.0", "Memory by use."),
    spec("memory|doctor", 2, 0)
        .about(Server, "4.0.0", "Whether the memory cap is too small."),
    spec("memory|help", 2, 0)
        .about(Server, "4.0.0", "The subcommands of MEMORY."),
    spec("slowlog", -2, ADMIN | DANGEROUS | CONTAINER)
        .about(Server, "2.2.12", "Commands that took long."),
    spec("slowlog|get", -2, ADMIN | DANGEROUS)
        .about(Server, "2.2.12", "The commands, the latest first."),
    spec("slowlog|len", 2, ADMIN | DANGEROUS)
        .about(Server, "2.2.12", "How many are kept."),
    spec("slowlog|reset", 2, ADMIN | DANGEROUS)
        .about(Server, "2.2.12", "Forgets them."),
    spec("slowlog|help", 2, 0)
        .about(Server, "6.2.0", "The subcommands of SLOWLOG."),
    spec("latency", -2, ADMIN | DANGEROUS | CONTAINER)
        .about(Server, "2.8.13", "How long commands take."),
    spec("latency|histogram", -2, ADMIN | DANGEROUS)
        .about(Server, "7.0.0", "How many commands took how long."),
    spec("latency|latest", 2, ADMIN | DANGEROUS)
        .about(Server, "2.8.13", "Empty: there are no latency events."),
    spec("latency|history", 3, ADMIN | DANGEROUS)
        .about(Server, "2.8.13", "Empty: there are no latency events."),
    spec("latency|reset", -2, ADMIN | DANGEROUS)
        .about(Server, "2.8.13", "Answers 0: there are no latency events."),
    spec("latency|help", 2, 0)
        .about(Server, "2.8.13", "The subcommands of LATENCY."),
    spec("debug", -2, ADMIN | DANGEROUS | BARRIER | NO_ENTRIES)
        .about(Server, "1.0.0", "DEBUG SLEEP, where the configuration allows it."),
    spec("shutdown", -1, ADMIN | DANGEROUS | BARRIER | NO_MULTI)
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
