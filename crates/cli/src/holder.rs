//! Where `load` puts entries and `export` takes them from: a stopped store, opened in this
//! process, or a running server.

use std::collections::BTreeSet;
use std::num::NonZeroU32;

use clap::Args;
use entresol_tier::{
    Entry, Expiry, Key, OpenMode, Operation, Pinning, PutOptions, Session, SessionOptions, SpaceId,
    Timestamp,
};

use crate::address::{AccessArgs, Address, Unshown};
use crate::client::Client;
use crate::data::DataArgs;
use crate::engine::{Engine, now};
use crate::failure::{Failure, Outcome};
use crate::tables::{self, Bytes, More, OpenTable, RangeArgs, TableRow};

mod served;

pub(crate) use served::Served;

/// Names a holder of entries on the command line.
#[derive(Debug, Args)]
pub(crate) struct HolderArgs {
    #[command(flatten)]
    data: DataArgs,
    /// A running server: redis://HOST:PORT or redis://USER@HOST:PORT/DATABASE, rediss:// for
    /// TLS, or unix:PATH
    #[arg(
        long,
        conflicts_with_all = [
            "dir", "devices", "selection", "instance", "encryption_key", "buffer_directory",
        ],
        value_parser = Unshown(str::parse::<Address>)
    )]
    target: Option<Address>,
    #[command(flatten)]
    access: AccessArgs,
    /// Space of the entries, a server's database number; 0 otherwise
    #[arg(short = 'n', long, visible_alias = "db")]
    space: Option<u16>,
    /// Ordered table whose rows the entries are: its name as text, or as hex:DIGITS
    #[arg(long, value_name = "NAME", value_parser = str::parse::<Bytes>)]
    table: Option<Bytes>,
}

/// Fields and values of a hash.
pub(crate) type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

/// One entry on its way in or out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Item {
    /// Its key.
    pub(crate) key: Vec<u8>,
    /// Its value; of a hash of a server, empty.
    pub(crate) value: Vec<u8>,
    /// Fields and values, where a server holds a hash.
    pub(crate) fields: Pairs,
    /// The caller's byte of the engine's entry.
    pub(crate) label: u8,
    /// When it expires, milliseconds since the epoch.
    pub(crate) expires_at_ms: Option<u64>,
    /// After how many seconds without use it expires, in an engine.
    pub(crate) idle_seconds: Option<NonZeroU32>,
    /// Whether an engine's cache may not evict it.
    pub(crate) is_pinned: bool,
    /// Parts that nobody has folded, of a row of an ordered table.
    pub(crate) parts: Option<Parts>,
}

/// What was added to a row, oldest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Parts {
    /// Whether the row has a value below them.
    pub(crate) has_value: bool,
    pub(crate) list: Vec<Vec<u8>>,
}

impl Item {
    /// Bytes of its key and its value or hash.
    pub(crate) fn bytes(&self) -> u64 {
        let fields = self.fields.iter().map(|(name, value)| name.len() + value.len());
        let parts = self.parts.iter().flat_map(|parts| parts.list.iter().map(Vec::len));
        let more = fields.sum::<usize>() + parts.sum::<usize>();
        (self.key.len() + self.value.len() + more) as u64
    }
}

/// A store or a server that is open, and holds entries.
pub(crate) enum Holder {
    /// The engine in this process, and one session.
    Embedded(Box<Embedded>),
    /// The same, with one of its ordered tables.
    Ordered(Box<Ordered>),
    /// A server.
    Served(Box<Served>),
}

/// The records that could not be read, each said on standard error where it is, once.
#[derive(Debug, Default)]
pub(crate) struct Damage {
    sentences: BTreeSet<String>,
}

impl Damage {
    /// Says one.
    pub(crate) fn note(&mut self, sentence: String) {
        if !self.sentences.contains(&sentence) {
            say!("damaged: {sentence}");
            self.sentences.insert(sentence);
        }
    }

    /// Says what a server said of a key.
    fn note_key(&mut self, key: &[u8], text: &str) {
        self.note(format!("key '{}': {text}", key.escape_ascii()));
    }

    /// What was said.
    pub(crate) fn sentences(&self) -> impl ExactSizeIterator<Item = &str> {
        self.sentences.iter().map(String::as_str)
    }

    /// `Failed` if there were any; `rest` says what became of the others.
    pub(crate) fn judge(&self, rest: &str) -> Outcome<()> {
        match self.sentences.len() {
            0 => Ok(()),
            count => Err(Failure::Failed(format!(
                "{count} damaged records, named above; {rest}; bring them back from a copy, or \
                 write or remove their keys"
            ))),
        }
    }
}

/// An engine with an ordered table that is open.
pub(crate) struct Ordered {
    engine: Engine,
    table: OpenTable,
    range: RangeArgs,
}

/// An engine with one session.
pub(crate) struct Embedded {
    engine: Engine,
    session: Session,
    space: SpaceId,
}

impl HolderArgs {
    /// Refuses a command line that names no holder.
    pub(crate) fn demand(&self) -> Outcome<()> {
        if self.target.is_some() || self.data.is_given() {
            return Ok(());
        }
        Err(Failure::CannotRun(
            "nothing names a store or a server; give --dir DIR, --devices A,B or --target \
             redis://HOST:PORT"
                .into(),
        ))
    }

    /// Opens the holder; `capacity` makes a store where there is none.
    pub(crate) fn open(&self, mode: OpenMode, capacity: Option<u64>) -> Outcome<Holder> {
        if let Some(address) = &self.target {
            if self.table.is_some() {
                return Err(Failure::CannotRun(
                    "a server has no ordered tables; --table goes with --dir or --devices".into(),
                ));
            }
            let address = address.clone().with_access(&self.access)?;
            let mut client = Client::connect(&address)?;
            match (self.space, address.database) {
                (Some(space), Some(named)) if space != named => {
                    return Err(Failure::CannotRun(format!(
                        "{address} names database {named}, and --space names {space}; give one"
                    )));
                }
                (_, Some(_)) => {}
                (space, None) => client.select(space.unwrap_or(0))?,
            }
            return Ok(Holder::Served(Box::new(Served::new(client))));
        }
        self.access.demand_none()?;
        self.demand()?;
        if let Some(Bytes(name)) = &self.table {
            return self.open_table(name, mode, capacity);
        }
        if self.space == Some(tables::options().space.0) {
            return Err(Failure::CannotRun(format!(
                "space {} holds the pages of ordered tables; name one with --table",
                tables::options().space.0
            )));
        }
        let engine = self.data.open(mode, capacity)?;
        let session = engine.tiered.session(SessionOptions::default())?;
        let space = SpaceId(self.space.unwrap_or(0));
        Ok(Holder::Embedded(Box::new(Embedded { engine, session, space })))
    }
}

impl HolderArgs {
    fn open_table(&self, name: &[u8], mode: OpenMode, capacity: Option<u64>) -> Outcome<Holder> {
        if self.space.is_some() {
            return Err(Failure::CannotRun("--table and --space name two things; give one".into()));
        }
        let (engine, table) = match mode {
            OpenMode::ReadOnly => {
                let engine = self.data.open(mode, capacity)?;
                let table = OpenTable::open_existing(&engine.tiered, name)?;
                (engine, table)
            }
            _ => {
                let engine = self.data.open_with(mode, capacity, tables::journal_bytes)?;
                let table = OpenTable::open(&engine.tiered, name)?;
                (engine, table)
            }
        };
        Ok(Holder::Ordered(Box::new(Ordered { engine, table, range: RangeArgs::default() })))
    }
}

impl Holder {
    /// The same, which gives no other rows than those of `range`.
    pub(crate) fn within(mut self, range: &RangeArgs) -> Holder {
        if let Holder::Ordered(ordered) = &mut self {
            ordered.range = range.clone();
        }
        self
    }

    /// Puts `item`; errors of a server may come with a later one.
    pub(crate) fn put(&mut self, item: &Item) -> Outcome<()> {
        if item.parts.is_some() && !matches!(self, Holder::Ordered(_)) {
            return Err(Failure::CannotRun(
                "parts can only be loaded into an ordered table; use --table".into(),
            ));
        }
        match self {
            Holder::Embedded(embedded) => embedded.put(item),
            Holder::Ordered(ordered) => ordered.put(item),
            Holder::Served(served) => served.put(item),
        }
    }

    /// Ends the puts: all are acknowledged, an embedded store is closed cleanly.
    pub(crate) fn finish(self) -> Outcome<()> {
        match self {
            Holder::Embedded(embedded) => {
                drop(embedded.session);
                embedded.engine.close()
            }
            Holder::Ordered(ordered) => {
                let Ordered { engine, table, .. } = *ordered;
                table.finish()?;
                engine.close()
            }
            Holder::Served(served) => served.finish(),
        }
    }

    /// Whether an error may be of an item that was put before.
    pub(crate) fn may_answer_late(&self) -> bool {
        matches!(self, Holder::Served(_))
    }

    /// The spaces besides its own that hold entries, and how many, where that is known.
    pub(crate) fn other_spaces(&self) -> Vec<(u16, u64)> {
        let Holder::Embedded(embedded) = self else { return Vec::new() };
        let tiered = &embedded.engine.tiered;
        let others = [embedded.space, tables::options().space];
        let spaces = tiered.spaces().into_iter().filter(|space| !others.contains(space));
        spaces.map(|space| (space.0, tiered.count(space))).collect()
    }

    /// How many ordered tables there are besides its own entries.
    pub(crate) fn other_tables(&self) -> Outcome<usize> {
        match self {
            Holder::Embedded(embedded) if tables::has_some(&embedded.engine.tiered)? => {
                Ok(tables::all(&embedded.engine.tiered)?.len())
            }
            _ => Ok(0),
        }
    }

    /// Visits every entry; one that is written meanwhile may come twice. Those that cannot be read
    /// are noted in `damage`. Returns how many a server has of types that an [`Item`] has not.
    pub(crate) fn visit(
        &mut self,
        damage: &mut Damage,
        visit: &mut dyn FnMut(Item) -> Outcome<()>,
    ) -> Outcome<u64> {
        match self {
            Holder::Embedded(embedded) => embedded.visit(damage, visit).map(|()| 0),
            Holder::Ordered(ordered) => ordered.visit(visit).map(|()| 0),
            Holder::Served(served) => served.visit(damage, visit),
        }
    }
}

impl Ordered {
    fn put(&mut self, item: &Item) -> Outcome<()> {
        let has_more = !item.fields.is_empty()
            || item.label != 0
            || item.is_pinned
            || item.expires_at_ms.is_some()
            || item.idle_seconds.is_some();
        if has_more {
            return Err(Failure::CannotRun(
                "rows of ordered tables have a key and a value; the record has a hash, a label, \
                 an end or a pin as well"
                    .into(),
            ));
        }
        let (value, parts) = match &item.parts {
            Some(Parts { has_value: false, list }) => (None, list.clone()),
            Some(Parts { list, .. }) => (Some(item.value.clone()), list.clone()),
            None => (Some(item.value.clone()), Vec::new()),
        };
        self.table.put(TableRow { key: item.key.clone(), value, parts })
    }

    fn visit(&mut self, visit: &mut dyn FnMut(Item) -> Outcome<()>) -> Outcome<()> {
        let Ordered { table, range, .. } = self;
        table.scan(range, &mut |row| {
            let has_value = row.value.is_some();
            let parts = Some(Parts { has_value, list: row.parts });
            let parts = parts.filter(|parts| !parts.list.is_empty());
            let value = row.value.unwrap_or_default();
            visit(Item { key: row.key, value, parts, ..Item::default() }).map(|()| More::Wanted)
        })
    }
}

impl Embedded {
    fn put(&mut self, item: &Item) -> Outcome<()> {
        if !item.fields.is_empty() {
            return Err(Failure::CannotRun(
                "hashes can only be loaded into a running server; use --target".into(),
            ));
        }
        let at = item.expires_at_ms.map(Timestamp);
        let options = PutOptions {
            expiry: Expiry { at, idle_seconds: item.idle_seconds },
            label: item.label,
            pinning: if item.is_pinned { Pinning::Pinned } else { Pinning::Evictable },
            ..PutOptions::default()
        };
        let key = Key::new(self.space, &item.key);
        let operation = Operation::Put { key, value: &item.value, options };
        Ok(self.session.run(now(), operation, &mut |_| {})?)
    }

    fn visit(
        &mut self,
        damage: &mut Damage,
        visit: &mut dyn FnMut(Item) -> Outcome<()>,
    ) -> Outcome<()> {
        let space = self.space;
        scan(&mut self.session, (space, now()), damage, &mut |entry| {
            visit(Item {
                key: entry.key.to_vec(),
                value: entry.value.to_vec(),
                fields: Vec::new(),
                label: entry.label,
                expires_at_ms: entry.expiry.at.map(|at| at.0),
                idle_seconds: entry.expiry.idle_seconds,
                is_pinned: entry.pinning == Pinning::Pinned,
                parts: None,
            })
        })
    }
}

/// Visits every entry of `space` that has not ended at `now` in hash order, until `visit` fails;
/// those that cannot be read are noted in `damage`.
pub(crate) fn scan(
    session: &mut Session,
    (space, now): (SpaceId, Timestamp),
    damage: &mut Damage,
    visit: &mut dyn FnMut(Entry<'_>) -> Outcome<()>,
) -> Outcome<()> {
    const AT_ONCE: usize = 512;
    let mut cursor = 0;
    loop {
        let mut ended = Ok(());
        cursor = session.scan(space, (cursor, AT_ONCE), now, &mut |entry| match entry {
            Err(error) => damage.note(error.to_string()),
            Ok(entry) if ended.is_ok() => ended = visit(entry),
            Ok(_) => {}
        })?;
        ended?;
        if cursor == 0 {
            return Ok(());
        }
    }
}
