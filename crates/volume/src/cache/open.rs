//! Opening a cache: finding its volumes, the entries of their logs that are still to be written
//! back, and the blocks that must not be trusted after the way the cache ended.

use std::rc::Rc;

use entresol_flash::{
    Condition, Durability, Key, Operation, Outcome, Pinning, PutOptions, Session, SpaceId, Store,
    Timestamp, Version,
};
use entresol_planted::planted;

use crate::backing::{Backing, Description};
use crate::cache::care::Dirty;
use crate::cache::core::Core;
use crate::cache::overwrite::OVERWRITES_MAX;
use crate::cache::places::refusal;
use crate::cache::volume::{Parts, Volume, clean_space, log_space};
use crate::cache::write::partition_of;
use crate::cache::{CacheOptions, META_SPACE, OpenBacking, VOLUMES_MAX};
use crate::dirty::{DirtyLog, LogEntry};
use crate::error::{Error, ErrorKind, Result};
use crate::held::Held;
use crate::meta::{
    BLOCK_BYTES, HeldRecord, LogHeader, OverwriteRecord, RegionsRecord, SESSION_KEY, SessionRecord,
    StateRecord, VolumeRecord, key_of, overwrite_key,
};
use crate::regions::Regions;
use crate::types::{Mode, VolumeId};

/// Entries of a log that are read at once.
const REPLAY_WINDOW: u64 = 256;

/// Whether what was acknowledged last may be missing from the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Left {
    /// Closed in order.
    Clean,
    /// The process ended, the machine did not: nothing is missing.
    Killed,
    /// What was not synced may be missing.
    PowerLost,
}

impl Left {
    /// How a volume was left, where `self` is how its cache was: the volume may have been absent
    /// when the cache was used last, or have been brought to rest before the cache's end.
    /// `incarnation` is the one that opens the cache now.
    fn of(self, state: &StateRecord, incarnation: u32) -> Left {
        match state.incarnations.last() {
            _ if state.next != 0 => Left::Clean,
            Some((last, _)) if last.checked_add(1) == Some(incarnation) => self,
            // What became of the cache since is not known any more.
            _ => Left::PowerLost,
        }
    }
}

/// The flash store, while nothing is in flight.
pub(crate) struct Quiet<'a> {
    pub store: &'a Store,
    pub session: &'a mut Session,
    pub now: Timestamp,
}

impl Quiet<'_> {
    pub(crate) fn get(&mut self, key: Key<'_>) -> Result<Option<Vec<u8>>> {
        let mut found = None;
        self.session.run(self.now, Operation::Get { key }, &mut |outcome| {
            if let Outcome::Found(entry) = outcome {
                found = Some(entry.value.to_vec());
            }
        })?;
        Ok(found)
    }

    /// Puts a pinned entry that survives power loss on return.
    pub(crate) fn put(&mut self, key: Key<'_>, value: &[u8]) -> Result<()> {
        let options = PutOptions {
            pinning: Pinning::Pinned,
            durability: Some(Durability::Synced),
            ..PutOptions::default()
        };
        Ok(self.session.run(self.now, Operation::Put { key, value, options }, &mut |_| {})?)
    }

    pub(crate) fn meta(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.get(Key::new(META_SPACE, key))
    }

    /// The session record of a cache; `None`: the store is new.
    pub(crate) fn session_record(&mut self) -> Result<Option<SessionRecord>> {
        self.meta(SESSION_KEY)?.map(|bytes| SessionRecord::decode(&bytes)).transpose()
    }

    /// All volumes the cache remembers.
    pub(crate) fn volumes(&mut self) -> Result<Vec<(VolumeId, VolumeRecord)>> {
        let mut found = Vec::new();
        for number in 0..VOLUMES_MAX {
            let id = VolumeId(number);
            if let Some(bytes) = self.meta(&key_of("volume/", id))? {
                found.push((id, VolumeRecord::decode(&bytes)?));
            }
        }
        Ok(found)
    }

    /// How far the log of a volume was written back.
    pub(crate) fn state(&mut self, id: VolumeId) -> Result<StateRecord> {
        let state = self.meta(&key_of("state/", id))?;
        state.map_or(Ok(StateRecord::default()), |bytes| StateRecord::decode(&bytes))
    }

    /// Which parts of a volume may be cached: any, unless it was closed in order by who used it
    /// last.
    fn held(
        &mut self,
        id: VolumeId,
        record: &VolumeRecord,
        (state, left): (&StateRecord, Left),
    ) -> Result<Held> {
        let blocks = record.bytes.div_ceil(BLOCK_BYTES);
        let last = state.incarnations.last().map(|(incarnation, _)| *incarnation);
        let noted = match left {
            Left::Clean => self.meta(&key_of("held/", id))?,
            Left::Killed | Left::PowerLost => None,
        };
        let noted = noted.and_then(|bytes| HeldRecord::decode(&bytes).ok());
        let noted = noted.filter(|noted| Some(noted.incarnation) == last);
        let held = noted.and_then(|noted| Held::from_record(blocks, &noted));
        Ok(held.unwrap_or_else(|| Held::any(blocks)))
    }

    /// The log of a volume as far as it is whole, and what is damaged behind that: only power loss
    /// may leave a gap.
    pub(crate) fn replay(
        &mut self,
        id: VolumeId,
        partition_entries: u64,
        (state, left): (&StateRecord, Left),
    ) -> Result<(DirtyLog, Option<String>)> {
        let mut log = DirtyLog::new(state.written_back + 1, 1);
        loop {
            let from = log.next();
            let mut found: Vec<Option<LogEntry>> = vec![None; REPLAY_WINDOW as usize];
            let mut failed = None;
            let mut visit = |token: u64, outcome: entresol_flash::Result<Outcome<'_>>| match outcome
            {
                Ok(Outcome::Found(entry)) => {
                    let number = from + token;
                    let valid = LogHeader::decode(entry.value).filter(|(header, _)| {
                        header.volume == id.0
                            && (state.incarnation_of(number) == Some(header.incarnation)
                                || planted!("log-of-other-incarnation"))
                    });
                    found[token as usize] = valid.map(|(header, _)| LogEntry {
                        number,
                        epoch: header.epoch,
                        blocks: header.first..header.first + header.blocks,
                        kind: header.kind,
                    });
                }
                Ok(_) => {}
                Err(error) => failed = Some((from + token, error)),
            };
            for token in 0..REPLAY_WINDOW {
                let number = from + token;
                let bytes = &number.to_be_bytes();
                let partition = partition_of(number, partition_entries);
                let key = Key { space: log_space(id), partition, bytes };
                self.session.submit(token, self.now, Operation::Get { key }, &mut visit);
            }
            while self.session.in_flight() > 0 {
                self.session.poll(1, self.now, &mut visit)?;
            }
            if let Some((number, error)) = failed {
                let detail = format!("entry {number} of its log cannot be read: {error}");
                return Ok((log, Some(detail)));
            }
            let whole = found.iter().take_while(|entry| entry.is_some()).count();
            let beyond = found[whole..].iter().flatten().count();
            found.into_iter().take(whole).flatten().for_each(|entry| log.append(entry));
            if whole == REPLAY_WINDOW as usize {
                continue;
            }
            let is_damaged = (beyond > 0 && left != Left::PowerLost) || log.next() < state.next;
            let damage = is_damaged.then(|| {
                format!("entry {} of its log is damaged, and is not the last", log.next())
            });
            return Ok((log, damage));
        }
    }

    /// Lets go of the blocks, of `all` that the volume has, that were being written over when the
    /// process was killed, and are older in the cache than the note of that.
    fn let_go_of_overwritten(&mut self, id: VolumeId, all: u64, left: Left) -> Result<()> {
        let places = if left == Left::Killed { OVERWRITES_MAX } else { 0 };
        for place in 0..places {
            let key = overwrite_key(id, place);
            let Some((note, since)) = self.get_version(Key::new(META_SPACE, &key))? else {
                continue;
            };
            let OverwriteRecord { first, blocks } = OverwriteRecord::decode(&note)?;
            for block in first..first.saturating_add(blocks).min(all) {
                let key = block.to_be_bytes();
                // What cannot be read is not read later either: it goes, too.
                let found = self.get_version(Key::new(clean_space(id), &key));
                let newer = found.is_ok_and(|found| found.is_none_or(|(_, of)| of > since));
                if !newer {
                    self.remove(clean_space(id), block)?;
                }
            }
        }
        Ok(())
    }

    /// An entry, and the version that it is.
    fn get_version(&mut self, key: Key<'_>) -> Result<Option<(Vec<u8>, Version)>> {
        let mut found = None;
        self.session.run(self.now, Operation::Get { key }, &mut |outcome| {
            if let Outcome::Found(entry) = outcome {
                found = Some((entry.value.to_vec(), entry.version));
            }
        })?;
        Ok(found)
    }

    /// Lets go of the clean blocks, of `all` that the volume has, of regions that were open when
    /// power was lost.
    pub(crate) fn close_regions(&mut self, id: VolumeId, all: u64, left: Left) -> Result<()> {
        let key = key_of("regions/", id);
        let Some(bytes) = self.meta(&key)? else { return Ok(()) };
        let record = RegionsRecord::decode(&bytes)?;
        if left == Left::PowerLost {
            for blocks in Regions::blocks_of(&record) {
                for block in blocks.start..blocks.end.min(all) {
                    self.remove(clean_space(id), block)?;
                }
            }
            // In other shards they could be lost after the record that follows was kept.
            self.store.sync()?;
        }
        let closed = RegionsRecord { region_bytes: record.region_bytes, bits: Vec::new() };
        self.put(Key::new(META_SPACE, &key), &closed.encode())
    }

    fn remove(&mut self, space: SpaceId, block: u64) -> Result<()> {
        let bytes = &block.to_be_bytes();
        let key = Key::new(space, bytes);
        let operation = Operation::Remove { key, condition: Condition::Always };
        let removed = self.session.run(self.now, operation, &mut |_| {});
        if removed.is_ok() {
            return Ok(());
        }
        // It cannot be read, so not be removed; what takes its place needs no reading.
        let options =
            PutOptions { label: crate::cache::core::ABSENT_LABEL, ..PutOptions::default() };
        let operation = Operation::Put { key, value: &[], options };
        Ok(self.session.run(self.now, operation, &mut |_| {})?)
    }
}

/// As what a volume takes the backing that is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Taken {
    /// The one it was made for, as it was left.
    Known,
    /// The same, of another size.
    Resized,
    /// Another one, or changed by somebody else.
    Adopted(Dirty),
}

impl Taken {
    /// What `options` say of a volume, whose `record` takes another place where they name one.
    fn of(record: &mut VolumeRecord, options: &CacheOptions) -> Taken {
        let name = &record.options.name;
        match &options.adopt {
            Some(adoption) if adoption.name == *name => {
                if let Some(place) = &adoption.backing {
                    record.options.backing.clone_from(place);
                }
                Taken::Adopted(adoption.dirty)
            }
            _ if options.resize.contains(name) => Taken::Resized,
            _ => Taken::Known,
        }
    }
}

/// What happened to a backing since its volume was closed, by its version then and now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Since {
    /// Nobody wrote to it.
    Nothing,
    /// Its time of modification is another one.
    Written,
    /// That is as it was, and something of the file was changed all the same: its name, its owner
    /// or that time, which whoever puts an older file in its place may set.
    Touched,
    /// It does not tell, or did not.
    Unknown,
}

impl Since {
    /// Versions are a time of modification and, from the second word on, what else changed last.
    fn of(then: &str, now: &str) -> Since {
        if then.is_empty() || now.is_empty() {
            return Since::Unknown;
        }
        let halves = |version: &str| {
            let (modified, changed) = version.split_once(' ').unwrap_or((version, ""));
            (modified.to_owned(), changed.to_owned())
        };
        let ((then, then_changed), (now, now_changed)) = (halves(then), halves(now));
        match then == now {
            false => Since::Written,
            // One that was noted by a version that did not know of it tells nothing.
            true if then_changed.is_empty() || then_changed == now_changed => Since::Nothing,
            true => Since::Touched,
        }
    }
}

/// A volume that was bound to its backing.
struct Attached {
    volume: Volume,
    /// Its backing tells when it was written to, and how it was left was not noted.
    is_unverified: bool,
}

/// The volumes of a cache, as they were found.
#[derive(Default)]
pub(crate) struct FoundVolumes {
    pub volumes: Vec<Volume>,
    pub absent: Vec<(String, Error)>,
    /// Their numbers and the places of their backings, in the same order.
    pub absent_at: Vec<(VolumeId, String)>,
    pub unverified: Vec<String>,
}

/// Binds all volumes that the cache remembers to their backings; the cache was `left` so.
pub(crate) fn attach_all(
    quiet: &mut Quiet<'_>,
    options: &CacheOptions,
    (left, session_record): (Left, &SessionRecord),
) -> Result<FoundVolumes> {
    let mut all = FoundVolumes::default();
    let distrusted = (options.distrusted)(session_record.cache);
    let records = quiet.volumes()?;
    let of = |record: &VolumeRecord| (record.options.name.clone(), record.options.backing.clone());
    let places: Vec<(String, String)> = records.iter().map(|(_, record)| of(record)).collect();
    for (number, (id, mut record)) in records.into_iter().enumerate() {
        if distrusted {
            quiet.store.drop_space(clean_space(id))?;
        }
        let taken = Taken::of(&mut record, options);
        let (name, place) = of(&record);
        // Of volumes that have one backing already the first one keeps it.
        let others = match taken {
            Taken::Adopted(_) => &places[..],
            Taken::Known | Taken::Resized => &places[..number],
        };
        let opened = open_own(&options.open_backing, &name, &place, others);
        let attached = opened.and_then(|backing| {
            attach(quiet, (id, record, taken), backing, (left, session_record.incarnation))
        });
        match attached {
            Ok(Attached { volume, is_unverified }) => {
                all.volumes.push(volume);
                all.unverified.extend(is_unverified.then_some(name));
            }
            Err(error) => {
                all.absent.push((name, error));
                // A place that it was to move to is not noted.
                all.absent_at.push((id, places[number].1.clone()));
            }
        }
    }
    Ok(all)
}

/// Binds a volume that the cache remembers to its backing; the cache was `left` so.
fn attach(
    quiet: &mut Quiet<'_>,
    (id, mut record, taken): (VolumeId, VolumeRecord, Taken),
    backing: Box<dyn Backing>,
    (left, incarnation): (Left, u32),
) -> Result<Attached> {
    let mut state = quiet.state(id)?;
    let left = left.of(&state, incarnation);
    let mut held = quiet.held(id, &record, (&state, left))?;
    let (mut log, damage) = quiet.replay(id, record.partition_entries, (&state, left))?;
    if let Some(damage) = damage
        && taken != Taken::Adopted(Dirty::Lose)
    {
        return Err(broken(&record.options.name, &damage));
    }
    let found = backing.description();
    demand_blocks(&record.options.backing, found)?;
    if let Taken::Adopted(dirty) = taken {
        adopt(quiet, (id, &mut record), (&mut state, &mut log), (found, dirty))?;
        held = Held::none(record.bytes.div_ceil(BLOCK_BYTES));
    }
    let dirty = log.dirty_blocks();
    if taken == Taken::Resized && found.bytes != record.bytes {
        let bytes = found.bytes;
        record.take_size(bytes, dirty)?;
        // Identities hold the size.
        record.identity.clone_from(&found.identity);
        quiet.store.drop_space(clean_space(id))?;
        held = Held::none(bytes.div_ceil(BLOCK_BYTES));
    }
    let name = &record.options.name;
    if found.identity != record.identity || found.bytes != record.bytes {
        let next = match found.bytes == record.bytes {
            true => format!("`entresol volume adopt {name}` takes over the one that is there"),
            false => format!(
                "`entresol volume resize {name}` takes over a size that was changed on purpose"
            ),
        };
        let detail = format!(
            "volume {name}: expected the backing it was made for ({}, {} bytes), found {} of {} \
             bytes at {}; {dirty} blocks are dirty; {next}",
            record.identity, record.bytes, found.identity, found.bytes, record.options.backing
        );
        return Err(Error::new(ErrorKind::Incompatible, detail));
    }
    let since = match left {
        Left::Clean => Since::of(&record.version, &found.version),
        Left::Killed | Left::PowerLost => Since::Unknown,
    };
    let passed = record.options.mode == Mode::PassThrough && taken == Taken::Known;
    if passed && !planted!("trusted-after-passing-through") {
        // Others may have written to its backing in the meantime, as may have been the intention.
        quiet.store.drop_space(clean_space(id))?;
    }
    if matches!(since, Since::Written | Since::Touched) {
        if dirty > 0 && since == Since::Written {
            let detail = format!(
                "volume {name}: somebody else wrote to its backing {} since the cache was closed \
                 ({} expected, {} found), and {dirty} dirty blocks are to be written back to it; \
                 `entresol volume adopt {name} --keep-dirty` has them written over what is there, \
                 `--lose-dirty` drops them",
                record.options.backing, record.version, found.version
            );
            return Err(Error::new(ErrorKind::Incompatible, detail));
        }
        quiet.store.drop_space(clean_space(id))?;
        held = Held::none(record.bytes.div_ceil(BLOCK_BYTES));
    }
    let tells = !found.version.is_empty() && !matches!(taken, Taken::Adopted(_));
    let is_unverified = left != Left::Clean && tells;
    quiet.let_go_of_overwritten(id, record.bytes.div_ceil(BLOCK_BYTES), left)?;
    quiet.close_regions(id, record.bytes.div_ceil(BLOCK_BYTES), left)?;
    state.begin(incarnation, log.next());
    quiet.put(Key::new(META_SPACE, &key_of("state/", id)), &state.encode())?;
    record.version.clear();
    quiet.put(Key::new(META_SPACE, &key_of("volume/", id)), &record.encode())?;
    let volume = Volume::new(Parts { id, record, backing, log, held, state, incarnation });
    Ok(Attached { volume, is_unverified })
}

/// The log of the volume called `name` is damaged.
fn broken(name: &str, damage: &str) -> Error {
    let detail = format!(
        "volume {name}: {damage}; blocks that are dirty are lost, so the volume is not opened; \
         `entresol volume adopt {name} --lose-dirty` opens it without any that were not written \
         back"
    );
    Error::new(ErrorKind::Io, detail)
}

/// Has a volume take over the backing `found`, with what is `dirty` or without.
fn adopt(
    quiet: &mut Quiet<'_>,
    (id, record): (VolumeId, &mut VolumeRecord),
    (state, log): (&mut StateRecord, &mut DirtyLog),
    (found, dirty): (&Description, Dirty),
) -> Result<()> {
    let blocks = log.dirty_blocks();
    if dirty == Dirty::Keep && blocks > 0 && found.bytes != record.bytes {
        let detail = format!(
            "volume {}: {blocks} blocks are dirty, and are kept for a backing of {} bytes only; \
             that at {} has {}: give it that size, or lose them (`--lose-dirty`)",
            record.options.name, record.bytes, record.options.backing, found.bytes
        );
        return Err(Error::new(ErrorKind::Incompatible, detail));
    }
    if dirty == Dirty::Lose {
        state.written_back = log.next() - 1;
        // A power loss that took it would leave a log that names what is gone.
        quiet.put(Key::new(META_SPACE, &key_of("state/", id)), &state.encode())?;
        quiet.store.drop_space(log_space(id))?;
        *log = DirtyLog::new(log.next(), 1);
    }
    quiet.store.drop_space(clean_space(id))?;
    record.bytes = found.bytes;
    record.identity.clone_from(&found.identity);
    record.version.clone_from(&found.version);
    Ok(())
}

/// Refuses a backing that takes no single blocks.
pub(crate) fn demand_blocks(place: &str, description: &Description) -> Result<()> {
    if u64::from(description.alignment) <= BLOCK_BYTES {
        return Ok(());
    }
    let detail = format!(
        "{place}: its requests must be aligned to {} bytes; at most {BLOCK_BYTES} expected",
        description.alignment
    );
    Err(Error::new(ErrorKind::Unsupported, detail))
}

/// Opens the backing of volume `name` at `place`. Refuses one that another volume has, unless it
/// may only be read. Files and devices are claimed by who opens them, which does not tell whose
/// they are; exports of NBD servers by nobody.
pub(crate) fn open_own(
    open: &OpenBacking,
    name: &str,
    place: &str,
    others: &[(String, String)],
) -> Result<Box<dyn Backing>> {
    let opened = open(place);
    let is_exclusive = match &opened {
        Ok(backing) => !backing.description().read_only,
        Err(error) => error.kind() == ErrorKind::Unavailable,
    };
    match refusal(name, place, others) {
        Some(refusal) if is_exclusive => Err(refusal),
        _ => opened,
    }
}

/// Has the gate know what each volume gets.
pub(crate) fn set_gate(core: &Core) {
    let volumes = core.volumes.borrow();
    let all: Vec<_> = volumes
        .iter()
        .flatten()
        .map(|volume| (volume.id, volume.record.borrow().options.qos))
        .collect();
    drop(volumes);
    core.gate.set(&all, core.now.get());
}

/// Begins the tasks of a volume and lists it.
pub(crate) fn enlist(core: &Rc<Core>, volume: Volume) -> Rc<Volume> {
    let volume = Rc::new(volume);
    volume.be_watched(&core.devices);
    if core.held(&volume) > 0 {
        volume.share.borrow_mut().found(volume.blocks());
    }
    let place = usize::from(volume.id.0);
    let mut volumes = core.volumes.borrow_mut();
    if volumes.len() <= place {
        volumes.resize_with(place + 1, || None);
    }
    volumes[place] = Some(Rc::clone(&volume));
    drop(volumes);
    set_gate(core);
    core.tasks.spawn(crate::cache::clean::clean(Rc::clone(core), Rc::clone(&volume)));
    volume
}
