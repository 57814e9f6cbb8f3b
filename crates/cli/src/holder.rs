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
    #[arg(long)]
    space: Option<u16>,
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
}

impl Item {
    /// Bytes of its key and its value or hash.
    pub(crate) fn bytes(&self) -> u64 {
        let fields = self.fields.iter().map(|(name, value)| name.len() + value.len());
        (self.key.len() + self.value.len() + fields.sum::<usize>()) as u64
    }
}

/// A store or a server that is open, and holds entries.
pub(crate) enum Holder {
    /// The engine in this process, and one session.
    Embedded(Box<Embedded>),
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
        let engine = self.data.open(mode, capacity)?;
        let session = engine.tiered.session(SessionOptions::default())?;
        let space = SpaceId(self.space.unwrap_or(0));
        Ok(Holder::Embedded(Box::new(Embedded { engine, session, space })))
    }
}

impl Holder {
    /// Puts `item`; errors of a server may come with a later one.
    pub(crate) fn put(&mut self, item: &Item) -> Outcome<()> {
        match self {
            Holder::Embedded(embedded) => embedded.put(item),
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
        let spaces = tiered.spaces().into_iter().filter(|space| *space != embedded.space);
        spaces.map(|space| (space.0, tiered.count(space))).collect()
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
            Holder::Served(served) => served.visit(damage, visit),
        }
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
