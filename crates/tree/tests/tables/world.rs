//! Tables on a simulated device beside a model: each batch is a state of its own.

use std::collections::BTreeSet;
use std::sync::Arc;

use entresol_device::Device;
use entresol_flash::{
    Budget, Compression, Durability, EncryptionKey, ErrorKind, StoreOptions, Timestamp,
};
use entresol_sim::{Ordering, SimDevice, SimOptions};
use entresol_tier::{Admission, SessionOptions, Tiered, TieredOptions};
use entresol_tree::{Folded, MergeFunction, Order, Outcome, Session, Table, Tree, TreeOptions};
use entresol_workload::Random;

use crate::counts::{KEPT, check_counts};
use crate::history::{Change, Ended, Owned, Rows, Wanted, apply};
use crate::open::{Bounds, Open, Row};
use crate::unfolded::Together;

pub(crate) const NOW: Timestamp = Timestamp(1_000);
/// Long after.
const LATER: Timestamp = Timestamp(1_000_000);
const SEGMENT_BYTES: u32 = 64 << 10;
const SEGMENTS: u64 = 40;
const NAMES: [&[u8]; 3] = [b"first", b"second", b"third"];

/// Folds parts by writing one behind the other.
pub(crate) struct Append;

impl MergeFunction for Append {
    fn fold(&self, _: &[u8], base: Option<&[u8]>, parts: &[&[u8]], out: &mut Vec<u8>) -> Folded {
        out.extend_from_slice(base.unwrap_or_default());
        parts.iter().for_each(|part| out.extend_from_slice(part));
        Folded::Row
    }
}

/// A store with tables, and all batches that were given to it.
pub(crate) struct World {
    pub seed: u64,
    pub device: SimDevice,
    pub random: Random,
    pub history: Vec<Vec<Change>>,
    /// So many batches of the history are durable for sure.
    pub durable: usize,
    pub open: Option<Open>,
    /// Whether openings are told the tables' merge functions.
    pub knows_merges: bool,
    /// Whether its tables keep counts, which are compared with the model as rows are.
    pub keeps_counts: bool,
    /// Most bytes of the store's cache.
    pub cache_bytes: Option<u64>,
    /// Whether the store encrypts and compresses.
    pub form: Form,
    /// Leaves and delta pages that were written in openings that ended.
    pub leaf_writes: u64,
    pub delta_writes: u64,
    /// Pages of dropped tables that were removed in them.
    pub pages_cleared: u64,
    /// Leaves and inner nodes that neighbours absorbed in them.
    pub leaves_absorbed: u64,
    pub nodes_absorbed: u64,
    /// How the tables are kept.
    pub options: TreeOptions,
}

/// How a store writes what it is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Plain,
    /// Encrypted and compressed.
    Sealed,
}

impl World {
    pub(crate) fn new(seed: u64) -> World {
        let device = SimDevice::new(options_of(seed));
        World {
            seed,
            device,
            random: Random::new(seed),
            history: Vec::new(),
            durable: 0,
            open: None,
            knows_merges: true,
            keeps_counts: false,
            cache_bytes: None,
            form: Form::Plain,
            leaf_writes: 0,
            delta_writes: 0,
            pages_cleared: 0,
            leaves_absorbed: 0,
            nodes_absorbed: 0,
            options: TreeOptions {
                waiting_bytes_max: 16 << 10,
                // Sweeps of one round, and of many.
                round_parts: if seed.is_multiple_of(2) { 1 } else { 24 },
                leaf_bytes_max: 512,
                separate_bytes_min: 100,
                ..TreeOptions::default()
            },
        }
    }

    /// A world whose device takes longer than whoever uses it: maintenance goes on in many steps.
    pub(crate) fn late(seed: u64) -> World {
        World::late_by(seed, 6)
    }

    /// Whoever uses it looks so many times at most until a call is done.
    pub(crate) fn late_by(seed: u64, looks_max: u32) -> World {
        let mut world = World::new(seed);
        let options = options_of(seed);
        let ordering = Ordering::Late { looks_max };
        world.device = SimDevice::new(SimOptions { ordering, ..options });
        world
    }

    /// The same history on another device.
    pub(crate) fn after(&self, device: SimDevice, seed: u64) -> World {
        let (history, durable) = (self.history.clone(), self.durable);
        let (options, form) = (self.options.clone(), self.form);
        let keeps_counts = self.keeps_counts;
        let new = World::new(seed);
        World { device, history, durable, options, form, keeps_counts, ..new }
    }

    pub(crate) fn open(&mut self) -> Result<(), String> {
        let store = StoreOptions {
            durability: Durability::Memory,
            shards: 2,
            segment_bytes: SEGMENT_BYTES,
            buffers_per_shard: 6,
            journal_bytes: 8 * u64::from(SEGMENT_BYTES),
            encryption: (self.form == Form::Sealed).then_some(EncryptionKey([7; 32])),
            compression: match self.form {
                Form::Plain => Compression::None,
                Form::Sealed => Compression::Zstd,
            },
            ..StoreOptions::default()
        };
        let options = TieredOptions {
            store,
            memory_bytes: 16 << 20,
            cache_bytes: self.cache_bytes,
            admission: Admission::Always,
        };
        let device: Arc<dyn Device> = Arc::new(self.device.clone());
        let tiered = Tiered::open(device, options, NOW).map_err(|error| error.to_string())?;
        let options = self.options.clone();
        let tree = Tree::open(Arc::clone(&tiered), options, NOW).map_err(|e| e.to_string())?;
        if self.knows_merges {
            NAMES.iter().for_each(|name| tree.set_merge(name, Arc::new(Append)));
            tree.set_merge(NAMES[2], Arc::new(Together));
        }
        let mut session = tree.session(SessionOptions::default()).map_err(|e| e.to_string())?;
        let tables = open_tables(&mut session, self.keeps_counts)?;
        self.open = Some(Open { tiered, tree, session, tables });
        Ok(())
    }

    fn key(&mut self) -> Vec<u8> {
        match self.random.below(4) {
            0 => format!("k{:05}", self.random.below(600)).into_bytes(),
            1 => format!("long common prefix of keys {:03}", self.random.below(100)).into_bytes(),
            2 => (self.history.len() as u32 / 2).to_be_bytes().to_vec(),
            _ => vec![self.random.below(256) as u8],
        }
    }

    /// Of a value: small ones, those that are records of their own, and a few that no leaf holds.
    fn length(&mut self) -> usize {
        let most = match self.random.below(60) {
            0 => 10_000,
            1..20 => 300,
            _ => 60,
        };
        self.random.below(most) as usize
    }

    fn batch(&mut self) -> Vec<Change> {
        let count = 1 + self.random.below(5) * self.random.below(2);
        let change = |world: &mut World| {
            let (table, key) = (world.random.below(3) as usize, world.key());
            let length = world.length();
            let value = vec![b'a' + world.random.below(26) as u8; length];
            let action = match world.random.below(10) {
                0..7 => Owned::Put(value),
                7 | 8 => Owned::Remove,
                _ => Owned::Add(value[..value.len().min(3)].to_vec()),
            };
            Change { table, key, action }
        };
        (0..count).map(|_| change(self)).collect()
    }

    /// Writes a batch.
    pub(crate) fn write(&mut self, durability: Durability) -> Result<(), String> {
        let batch = self.batch();
        self.write_batch(batch, durability)
    }

    fn write_batch(&mut self, batch: Vec<Change>, durability: Durability) -> Result<(), String> {
        self.history.push(batch.clone());
        match self.write_patiently(&batch, &[], durability)? {
            Ended::Done => Ok(()),
            refused @ Ended::Refused(..) => Err(format!("a batch ended as {refused:?}")),
        }
    }

    /// Writes a small batch; the journal must have room for it.
    pub(crate) fn write_at_once(&mut self, durability: Durability) -> Result<(), String> {
        let mut batch = self.batch();
        batch.truncate(1);
        self.history.push(batch.clone());
        let written = self.opened().try_write(&batch, &[], durability);
        written.map_err(|(kind, why)| format!("{kind:?}: {why}"))?;
        if durability == Durability::Synced {
            self.durable = self.history.len();
        }
        Ok(())
    }

    /// Puts rows in a table, or removes those without a value.
    pub(crate) fn put_all(
        &mut self,
        table: usize,
        rows: &[(Vec<u8>, Option<Vec<u8>>)],
        durability: Durability,
    ) -> Result<(), String> {
        let change = |(key, value): &(Vec<u8>, Option<Vec<u8>>)| Change {
            table,
            key: key.clone(),
            action: value.clone().map_or(Owned::Remove, Owned::Put),
        };
        self.write_batch(rows.iter().map(change).collect(), durability)
    }

    /// Writes one row.
    pub(crate) fn put(
        &mut self,
        table: usize,
        key: &[u8],
        value: &[u8],
        durability: Durability,
    ) -> Result<(), String> {
        let action = Owned::Put(value.to_vec());
        let batch = vec![Change { table, key: key.to_vec(), action }];
        self.history.push(batch.clone());
        self.write_patiently(&batch, &[], durability).map(drop)
    }

    /// Adds a part to a row.
    pub(crate) fn add(
        &mut self,
        table: usize,
        key: &[u8],
        part: &[u8],
        durability: Durability,
    ) -> Result<(), String> {
        let action = Owned::Add(part.to_vec());
        self.write_batch(vec![Change { table, key: key.to_vec(), action }], durability)
    }

    /// Drops a table; `Full` is waited out.
    pub(crate) fn drop_table(&mut self, table: usize) -> Result<(), String> {
        self.history.push(vec![Change { table, key: Vec::new(), action: Owned::Drop }]);
        for _ in 0..1000 {
            let early = self.random.below(2) == 0;
            let Some(Open { session, tables, tree, .. }) = &mut self.open else { unreachable!() };
            let mut ended = None;
            let mut visit = |_: u64, outcome: entresol_flash::Result<Outcome<'_>>| {
                ended = Some(outcome.map(drop));
            };
            session.drop_table(1, NOW, &tables[table], &mut visit);
            if early {
                let maintained = tree.maintain(NOW, Budget { segments: 2 });
                maintained.map_err(|error| error.to_string())?;
            }
            while session.in_flight() > 0 {
                session.poll(1, NOW, &mut visit).map_err(|error| error.to_string())?;
            }
            match ended {
                Some(Ok(())) => {
                    self.durable = self.history.len();
                    return Ok(());
                }
                Some(Err(error)) if error.kind() == ErrorKind::Full => self.maintain(4)?,
                other => return Err(format!("a drop ended as {other:?}")),
            }
        }
        Err("a drop found no room".to_string())
    }

    /// Writes a batch with conditions that hold or do not hold.
    pub(crate) fn write_if(&mut self, durability: Durability) -> Result<(), String> {
        let (batch, model) = (self.batch(), self.model(self.history.len()));
        let wanted: Vec<Wanted> =
            (0..=self.random.below(3)).map(|_| self.wanted(&batch, &model)).collect();
        let holds = wanted.iter().all(|wanted| wanted.is_met_by(&model));
        if holds {
            self.history.push(batch.clone());
        }
        match self.write_patiently(&batch, &wanted, durability)? {
            Ended::Done if holds => Ok(()),
            Ended::Refused(index, found)
                if !wanted[index].is_met_by(&model)
                    && found.as_ref() == model[wanted[index].table].get(&wanted[index].key) =>
            {
                Ok(())
            }
            other => Err(format!("a batch of {wanted:?} ended as {other:?}, holds: {holds}")),
        }
    }

    /// A condition, which mostly holds.
    fn wanted(&mut self, batch: &[Change], model: &[Rows; 3]) -> Wanted {
        let (mut table, mut key) = (self.random.below(3) as usize, self.key());
        if self.random.below(2) == 0 {
            (table, key) = (batch[0].table, batch[0].key.clone());
        }
        if self.random.below(3) == 0
            && let Some((some, _)) = model[table].range(key.clone()..).next()
        {
            key = some.clone();
        }
        let row = model[table].get(&key).cloned();
        let is_there = row.is_some() != (self.random.below(8) == 0);
        let wrong = self.random.below(8) == 0;
        let value = match self.random.below(2) {
            _ if !is_there => None,
            0 => None,
            _ if wrong => Some(b"no such value".to_vec()),
            _ => row,
        };
        Wanted { table, key, is_there, value }
    }

    /// Writes a batch; `Busy` and `Full` are waited out.
    fn write_patiently(
        &mut self,
        batch: &[Change],
        wanted: &[Wanted],
        durability: Durability,
    ) -> Result<Ended, String> {
        let mut last = String::new();
        for _ in 0..1000 {
            match self.opened().try_write(batch, wanted, durability) {
                Ok(ended) => {
                    if durability == Durability::Synced && matches!(ended, Ended::Done) {
                        self.durable = self.history.len();
                    }
                    return Ok(ended);
                }
                Err((ErrorKind::Busy | ErrorKind::Full, why)) => {
                    last = why;
                    self.maintain(4)?;
                }
                Err((_, why)) => return Err(why),
            }
        }
        let Some(Open { tree, tiered, .. }) = &self.open else { unreachable!() };
        let journal = tiered.store().journal_state(0).map_err(|error| error.to_string())?;
        Err(format!("a batch found no room: {last}; {journal:?}, {:?}", tree.statistics()))
    }

    /// Gives all tables up for a while, so that those that can leave memory, and opens them again.
    /// How many had left.
    pub(crate) fn let_tables_leave(&mut self) -> Result<u64, String> {
        let Some(Open { tree, session, tables, .. }) = &mut self.open else { return Ok(0) };
        let open = tree.statistics().open_tables;
        tables.clear();
        // Twice: numbers of pages are given back before.
        for _ in 0..2 {
            tree.maintain(LATER, Budget { segments: 2 }).map_err(|error| error.to_string())?;
        }
        let left = open - tree.statistics().open_tables;
        *tables = open_tables(session, self.keeps_counts)?;
        Ok(left)
    }

    /// Opens one more table.
    pub(crate) fn open_named(&mut self, name: &[u8]) -> Result<(), String> {
        let Some(Open { session, .. }) = &mut self.open else { unreachable!() };
        session.table(NOW, name).map(drop).map_err(|error| error.to_string())
    }

    pub(crate) fn maintain(&mut self, turns: usize) -> Result<(), String> {
        let Some(Open { tree, .. }) = &self.open else { return Ok(()) };
        for _ in 0..turns {
            let budget = Budget { segments: 2 };
            tree.maintain(NOW, budget).map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    /// Brings all that waits to pages.
    pub(crate) fn settle(&mut self) -> Result<(), String> {
        let Some(Open { tree, .. }) = &self.open else { return Ok(()) };
        tree.settle(NOW).map_err(|error| error.to_string())?;
        self.durable = self.history.len();
        Ok(())
    }

    /// Closes the store without a merge.
    pub(crate) fn close(&mut self) -> Result<(), String> {
        let Some(Open { tree, tiered, session, .. }) = self.open.take() else { return Ok(()) };
        drop((session, tree));
        tiered.close(NOW).map_err(|error| error.to_string())?;
        self.durable = self.history.len();
        Ok(())
    }

    pub(crate) fn settle_and_close(&mut self) -> Result<(), String> {
        let Some(Open { tree, tiered, session, .. }) = self.open.take() else { return Ok(()) };
        drop(session);
        tree.settle(NOW).map_err(|error| error.to_string())?;
        self.leaf_writes += tree.statistics().leaf_writes;
        self.delta_writes += tree.statistics().delta_writes;
        self.pages_cleared += tree.statistics().pages_cleared;
        self.leaves_absorbed += tree.statistics().leaves_absorbed;
        self.nodes_absorbed += tree.statistics().nodes_absorbed;
        drop(tree);
        tiered.close(NOW).map_err(|error| error.to_string())?;
        self.durable = self.history.len();
        Ok(())
    }

    /// The model after the first `batches` batches.
    pub(crate) fn model(&self, batches: usize) -> [Rows; 3] {
        let mut tables: [Rows; 3] = Default::default();
        self.history[..batches].iter().for_each(|batch| apply(&mut tables, batch));
        tables
    }

    /// All rows of the tables, by scans of a few rows each, each table upwards or downwards.
    pub(crate) fn scan_all(&mut self) -> Result<[Rows; 3], String> {
        let mut found: [Rows; 3] = Default::default();
        for (index, rows) in found.iter_mut().enumerate() {
            let order = self.order();
            let (mut low, mut high) = (Vec::new(), None);
            loop {
                let limit = 1 + self.random.below(20) as usize;
                let bounds = Bounds { low: &low, high: high.as_deref(), limit, order };
                let got = self.scan(index, bounds)?;
                let Some((last, _)) = got.last() else { break };
                match order {
                    Order::Ascending => low = [&last[..], &[0]].concat(),
                    Order::Descending => high = Some(last.clone()),
                }
                rows.extend(got);
            }
        }
        Ok(found)
    }

    fn order(&mut self) -> Order {
        if self.random.below(2) == 0 { Order::Ascending } else { Order::Descending }
    }

    /// The open tables.
    pub(crate) fn opened(&mut self) -> &mut Open {
        self.open.as_mut().expect("a world that is open")
    }

    pub(crate) fn get(&mut self, table: usize, key: &[u8]) -> Result<Option<Vec<u8>>, String> {
        self.opened().get(table, key)
    }

    pub(crate) fn scan(&mut self, table: usize, bounds: Bounds<'_>) -> Result<Vec<Row>, String> {
        self.opened().scan(table, bounds)
    }

    /// Compares gets and a scan of some of the keys with the model of all batches.
    pub(crate) fn check_some(&mut self) -> Result<(), String> {
        let model = self.model(self.history.len());
        for _ in 0..20 {
            let (table, key) = (self.random.below(3) as usize, self.key());
            let found = self.get(table, &key)?;
            if found.as_ref() != model[table].get(&key) {
                let expected = model[table].get(&key);
                return Err(format!("get of {key:?} in {table}: {found:?}, expected {expected:?}"));
            }
        }
        self.check_counts(&model)?;
        self.check_scan(&model)
    }

    /// Compares gets of all keys that were ever written with the first `batches` batches.
    pub(crate) fn check_gets(&mut self, batches: usize) -> Result<(), String> {
        let model = self.model(batches);
        let changes = self.history.iter().flatten().filter(|change| !change.key.is_empty());
        let keys: BTreeSet<_> = changes.map(|change| (change.table, change.key.clone())).collect();
        for (table, key) in keys {
            let (found, expected) = (self.get(table, &key)?, model[table].get(&key));
            if found.as_ref() != expected {
                return Err(format!("get of {key:?} in {table}: {found:?}, expected {expected:?}"));
            }
        }
        Ok(())
    }

    /// Compares counts with a model, where they are kept.
    fn check_counts(&mut self, model: &[Rows; 3]) -> Result<(), String> {
        let Some(open) = self.open.as_mut().filter(|_| self.keeps_counts) else { return Ok(()) };
        check_counts(open, model, &mut self.random)
    }

    fn check_scan(&mut self, model: &[Rows; 3]) -> Result<(), String> {
        let (table, low, high) = (self.random.below(3) as usize, self.key(), self.key());
        let high = (self.random.below(4) > 0).then_some(high);
        let (limit, order) = (self.random.below(40) as usize, self.order());
        let found = self.scan(table, Bounds { low: &low, high: high.as_deref(), limit, order })?;
        let within = |key: &[u8]| key >= &low[..] && high.as_deref().is_none_or(|high| key < high);
        let rows = model[table].iter().filter(|(key, _)| within(key));
        let mut expected: Vec<_> = rows.map(|(key, value)| (key.clone(), value.clone())).collect();
        if order == Order::Descending {
            expected.reverse();
        }
        expected.truncate(limit);
        if found != expected {
            let keys = |rows: &[Row]| {
                rows.iter()
                    .map(|row| String::from_utf8_lossy(&row.0).into_owned())
                    .collect::<Vec<_>>()
            };
            let (found, expected) = (keys(&found), keys(&expected));
            return Err(format!(
                "{order:?} scan of {table} from {low:?} to {high:?}: {found:?}, {expected:?}"
            ));
        }
        Ok(())
    }

    /// Which prefix of the history the tables are.
    pub(crate) fn check_prefix(&mut self) -> Result<usize, String> {
        let found = self.scan_all()?;
        let mut model = self.model(self.durable);
        for batches in self.durable..=self.history.len() {
            if model == found {
                self.check_counts(&found)?;
                return Ok(batches);
            }
            if let Some(batch) = self.history.get(batches) {
                apply(&mut model, batch);
            }
        }
        let durable = self.model(self.durable);
        let mut differences = Vec::new();
        for (table, (found, model)) in found.iter().zip(&durable).enumerate() {
            for key in found.keys().chain(model.keys()) {
                if found.get(key) != model.get(key) {
                    differences.push((table, key.clone(), found.get(key), model.get(key)));
                }
            }
        }
        differences.truncate(6);
        let gets: Vec<_> =
            differences.iter().map(|(table, key, ..)| self.get(*table, key)).collect();
        Err(format!(
            "no state from batch {} to {}; beside the first: {differences:?}; \
             gets: {gets:?}",
            self.durable,
            self.history.len()
        ))
    }
}

fn open_tables(session: &mut Session, keeps_counts: bool) -> Result<Vec<Arc<Table>>, String> {
    let open = |name: &&[u8]| match keeps_counts {
        true => session.table_with(NOW, name, KEPT),
        false => session.table(NOW, name),
    };
    let tables = NAMES.iter().map(open).collect::<Result<Vec<_>, _>>();
    tables.map_err(|error| error.to_string())
}

fn options_of(seed: u64) -> SimOptions {
    let base = u64::from(SEGMENT_BYTES).max(128 << 10);
    let capacity = base + SEGMENTS * u64::from(SEGMENT_BYTES);
    SimOptions { place: 1, ..SimOptions::new(seed, capacity) }
}
