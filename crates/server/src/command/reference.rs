//! The reference of all commands, in Markdown.

use super::spec::{EXCLUSIVE, Group, Spec};

use super::table::SPECS;

/// The text of `docs/reference/resp-commands.md`.
pub fn reference() -> String {
    let mut out = String::from(
        "# RESP commands\n\n\
         Generated from the table in `crates/server/src/command/table.rs`; \
         a test compares the two.\n\n\
         Commands behave, and errors read, as those of redis-server 7.0. The differences are:\n\n\
         * A key has 1 byte to 64 KiB, a value at most 64 MiB. A hash is one value.\n\
         * `MGET`, `EXISTS` and `DEL` of several keys work on each key by itself. Commands marked \
         *alone*, transactions included, see and change everything as one, whatever the number of \
         threads. A crash in the middle of such a command may leave some keys changed and others \
         not: an answered command is kept whole, an unanswered one may be there in part.\n\
         * `SCAN` answers with at most 1000 entries a call, and may answer with none although \
         more follow. Cursors have at most 53 bits and outlive a restart.\n\
         * A command whose reply would grow over `output-limit` is refused, for example `KEYS`, \
         `MGET`, `HMGET` and `HRANDFIELD`.\n\
         * `INFO keyspace` does not count entries that expire: `expires` and `avg_ttl` are 0. \
         Only the record of an entry says when it expires, and a write does not read the record \
         that it replaces. `expired_keys` of `INFO stats` counts expired entries.\n\
         * A full store refuses writes that would make it grow. It accepts a first end of an \
         entry (`EXPIRE`, `GETEX`), although that makes the record eight bytes larger, until such \
         ends take a third of the room above its full mark, as long as a segment of each shard \
         and sixteen records remain (three segments if records are large). Then it refuses first \
         ends. It always accepts another end, or none, for an entry that has one.\n\
         * For keys of redis-server that `CONFIG GET` shows, `CONFIG SET` accepts only the \
         present value.\n\
         * A user of some keys (`~pattern`) cannot run commands on all keys of a space: `KEYS`, \
         `SCAN`, `RANDOMKEY`, `DBSIZE`, `FLUSHDB`.\n\
         * `OBJECT ENCODING` names the encoding that redis-server would choose for a value that \
         was just set.\n\
         * There is no `SWAPDB`: a space is part of every record's key, so all records of both \
         spaces would have to be written anew. The reply is that of a redis-server on which the \
         command is disabled.\n\
         * `SAVE` and `BGSAVE` sync the store.\n\
         * `CONFIG REWRITE` writes only keys that `CONFIG SET` changed.\n\
         * An acknowledged write has the durability of the configuration key `durability`.\n",
    );
    let groups = [
        (Group::String, "Strings"),
        (Group::Bitmap, "Bits"),
        (Group::Hash, "Hashes"),
        (Group::Generic, "Keys"),
        (Group::Transactions, "Transactions"),
        (Group::Connection, "Connection"),
        (Group::Server, "Server"),
    ];
    for (group, title) in groups {
        out.push_str(&format!("\n## {title}\n\n"));
        out.push_str("| command | arguments | keys | groups of users' rules | meaning |\n");
        out.push_str("| --- | --- | --- | --- | --- |\n");
        SPECS.iter().filter(|spec| spec.group == group).for_each(|spec| out.push_str(&row(spec)));
    }
    out
}

fn row(spec: &Spec) -> String {
    let name = spec.name.to_ascii_uppercase().replace('|', " ");
    let own = spec.name.split('|').count() as i32;
    let arguments = match spec.arity {
        least if least < 0 => format!("{} or more", (-least - own).max(0)),
        exact => (exact - own).to_string(),
    };
    let keys = match (spec.keys.first, spec.keys.last, spec.keys.step) {
        (0, ..) => "none".to_owned(),
        (_, -1, 1) => "several".to_owned(),
        (_, -1, step) => format!("every {step}nd"),
        (first, last, _) if first == last => "one".to_owned(),
        _ => "two".to_owned(),
    };
    let categories: Vec<String> = spec.categories().map(|name| format!("@{name}")).collect();
    let alone = if spec.has(EXCLUSIVE) { " *Alone.*" } else { "" };
    let categories = categories.join(" ");
    format!("| `{name}` | {arguments} | {keys} | {categories} | {}{alone} |\n", spec.summary)
}
