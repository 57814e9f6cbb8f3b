//! The journal, crashed after every prefix of device calls: what is replayed is a run of what was
//! appended, without a gap, up to all that was acknowledged, and from the watermark on at least.

use std::sync::Arc;

use entresol_device::Device;
use entresol_flash::{
    Budget, Durability, EncryptionKey, ErrorKind, JournalAppend, JournalContinuation, JournalRoom,
    JournalSequence, Key, Operation, Outcome, PutOptions, Session, SessionOptions, SpaceId, Store,
    Timestamp,
};
use entresol_sim::{CrashChoice, Random, SimDevice};

use crate::explore::{choices, number_of, seeds};
use crate::setup::{Directory, Ending, Setup};

const NOW: Timestamp = Timestamp(1_700_000_000_000);
/// Steps of a run, and of a second life.
const STEPS: usize = 70;
const LIFE_STEPS: usize = 20;
/// Keys whose entries are put beside.
const KEYS: u64 = 30;

fn setup(name: &'static str, durability: Durability) -> Setup {
    let journal_bytes = 3 * (64 << 10);
    Setup { segments: 24, journal_bytes, ..Setup::of(name, durability) }
}

#[test]
fn a_synced_journal_keeps_every_acknowledged_record() {
    explore(&setup("journal-synced", Durability::Synced));
}

#[test]
fn a_journal_in_shared_memory_keeps_all_through_a_kill() {
    explore(&setup("journal-process", Durability::Process));
}

#[test]
fn a_flushed_journal_keeps_all_through_a_kill() {
    explore(&setup("journal-flushed", Durability::Flushed));
}

#[test]
fn an_encrypted_journal_in_memory_keeps_what_was_synced() {
    let encryption = Some(EncryptionKey([9; 32]));
    explore(&Setup { encryption, ..setup("journal-memory", Durability::Memory) });
}

/// What was appended, oldest first, and how much of it must be there.
#[derive(Debug, Clone, Default)]
struct Model {
    ids: Vec<u32>,
    /// So many of them are certain after a power loss, after a kill.
    certain: [usize; 2],
    /// So many of them may be gone.
    trimmed: usize,
    /// Sequences of those that were answered.
    sequences: Vec<(u32, JournalSequence)>,
}

struct Life {
    setup: Setup,
    device: SimDevice,
    directory: Directory,
    model: Model,
    boot: u128,
    open: Option<(Store, Session)>,
    random: Random,
    ids: u32,
}

/// Why a run went no further.
type Stop = String;

fn bytes_of(id: u32) -> Vec<u8> {
    let mut random = Random::new(u64::from(id) + 1);
    let length = match random.below(10) {
        0..=6 => 4 + random.below(400),
        7 | 8 => 2000 + random.below(4000),
        _ => 10_000 + random.below(15_000),
    };
    let mut bytes = vec![0; length as usize];
    random.fill(&mut bytes);
    bytes[..4].copy_from_slice(&id.to_le_bytes());
    bytes
}

impl Life {
    fn new(setup: &Setup, seed: u64) -> Life {
        Life {
            setup: setup.clone(),
            device: SimDevice::new(setup.device(seed)),
            directory: Directory::new(),
            model: Model::default(),
            boot: 1,
            open: None,
            random: Random::new(seed),
            ids: 0,
        }
    }

    fn after(&self, device: SimDevice, ending: Ending) -> Life {
        let directory = match ending {
            Ending::Kill => self.directory.copied(),
            Ending::PowerLoss => Directory::new(),
        };
        Life {
            setup: self.setup.clone(),
            device,
            directory,
            model: self.model.clone(),
            boot: self.boot + u128::from(ending == Ending::PowerLoss),
            open: None,
            random: self.random.clone(),
            ids: self.ids + 1000,
        }
    }

    fn open(&mut self) -> Result<(), Stop> {
        let device: Arc<dyn Device> = Arc::new(self.device.clone());
        let options = self.setup.options(&self.directory.0, self.boot, 0);
        let store = Store::open(device, options, NOW).map_err(|error| error.to_string())?;
        let options = SessionOptions { depth: 8, read_buffer_bytes: 4096, ..Default::default() };
        let session = store.session(options).map_err(|error| error.to_string())?;
        self.open = Some((store, session));
        Ok(())
    }

    fn run(&mut self) -> Result<(), Stop> {
        self.open()?;
        self.live(STEPS)
    }

    fn live(&mut self, steps: usize) -> Result<(), Stop> {
        (0..steps).try_for_each(|_| self.step())
    }

    fn step(&mut self) -> Result<(), Stop> {
        match self.random.below(100) {
            0..=44 => self.append(1),
            45..=54 => self.append(4),
            55..=74 => self.put(),
            75..=82 => self.maintain(),
            83..=88 => self.trim(),
            89..=92 => self.sync(),
            93..=95 => self.reopen(true),
            _ => self.reopen(false),
        }
    }

    fn store(&self) -> &Store {
        &self.open.as_ref().expect("the run has opened its store").0
    }

    fn append(&mut self, count: usize) -> Result<(), Stop> {
        let level = self.random.one_in(6).then_some(Durability::Synced);
        let ids: Vec<u32> = (0..count as u32).map(|more| self.ids + more + 1).collect();
        self.ids += count as u32;
        self.model.ids.extend(&ids);
        let (_, session) = self.open.as_mut().expect("the run has opened its store");
        let mut answers = Vec::new();
        let mut visit = |token: u64, outcome: entresol_flash::Result<Outcome<'_>>| {
            answers.push((
                token as u32,
                match outcome {
                    Ok(Outcome::Journaled { sequence, .. }) => Ok(sequence),
                    Ok(other) => panic!("{other:?}"),
                    Err(error) => Err((error.kind(), error.to_string())),
                },
            ));
        };
        let mut last = self.model.sequences.last().map(|(_, sequence)| *sequence);
        for id in &ids {
            let bytes = bytes_of(*id);
            let owner = u64::from(*id) << 3;
            // Where something else was appended meanwhile it is a record of its own.
            let after = last.filter(|_| !id.is_multiple_of(5));
            let mut visit = |token: u64, outcome: entresol_flash::Result<Outcome<'_>>| {
                if let Ok(Outcome::Journaled { sequence, .. }) = &outcome {
                    last = Some(*sequence);
                }
                visit(token, outcome);
            };
            let continues = after.map(|after| JournalContinuation { after, bytes: &bytes });
            let append = JournalAppend {
                lane: 0,
                owner,
                bytes: &bytes,
                durability: level,
                continues,
                room: JournalRoom::Leaving(0),
            };
            session.submit_journal(u64::from(*id), NOW, append, &mut visit);
        }
        let mut ended = session.flush();
        while ended.is_ok() && session.in_flight() > 0 {
            ended = session.poll(1, NOW, &mut visit).map(drop);
        }
        let mut full = false;
        for (id, answer) in answers {
            match answer {
                Ok(sequence) => self.acknowledge(id, sequence, level)?,
                Err((ErrorKind::Full, _)) => {
                    self.model.ids.retain(|other| *other != id);
                    full = true;
                }
                Err((_, why)) => return Err(why),
            }
        }
        ended.map_err(|error| error.to_string())?;
        if full { self.sync().and_then(|()| self.trim_half()) } else { Ok(()) }
    }

    fn acknowledge(
        &mut self,
        id: u32,
        sequence: JournalSequence,
        level: Option<Durability>,
    ) -> Result<(), Stop> {
        let at = self.model.ids.iter().position(|other| *other == id);
        let at = at.ok_or_else(|| format!("{id} was answered twice"))?;
        let ordered = |other: &(u32, JournalSequence)| (other.0 < id) == (other.1 < sequence);
        if !self.model.sequences.iter().all(ordered) {
            return Err(format!("{id} has the sequence {sequence:?}, out of order"));
        }
        self.model.sequences.push((id, sequence));
        for (number, ending) in [Ending::PowerLoss, Ending::Kill].into_iter().enumerate() {
            if self.setup.keeps(level.unwrap_or(self.setup.durability), ending) {
                self.model.certain[number] = self.model.certain[number].max(at + 1);
            }
        }
        Ok(())
    }

    fn put(&mut self) -> Result<(), Stop> {
        let name = self.random.below(KEYS).to_be_bytes();
        let value = vec![7; 3000 + self.random.below(6000) as usize];
        let key = Key::new(SpaceId(0), &name);
        let operation = Operation::Put { key, value: &value, options: PutOptions::default() };
        let (_, session) = self.open.as_mut().expect("the run has opened its store");
        session.run(NOW, operation, &mut |_| {}).map_err(|error| error.to_string())
    }

    fn maintain(&mut self) -> Result<(), Stop> {
        let done = self.store().maintain(NOW, Budget { segments: 2 });
        done.map(drop).map_err(|error| error.to_string())
    }

    fn sync(&mut self) -> Result<(), Stop> {
        self.store().sync().map_err(|error| error.to_string())?;
        self.model.certain = [self.model.ids.len(); 2];
        Ok(())
    }

    fn trim(&mut self) -> Result<(), Stop> {
        if self.random.one_in(3) {
            return self.trim_to(self.model.ids.len());
        }
        self.trim_half()
    }

    fn trim_half(&mut self) -> Result<(), Stop> {
        self.trim_to((self.model.trimmed + self.model.ids.len()) / 2)
    }

    /// The first `count` records are superseded.
    fn trim_to(&mut self, count: usize) -> Result<(), Stop> {
        let Some(last) = count.checked_sub(1).map(|last| self.model.ids[last]) else {
            return Ok(());
        };
        let sequence = self.model.sequences.iter().find(|(id, _)| *id == last);
        let Some((_, JournalSequence(sequence))) = sequence.copied() else { return Ok(()) };
        self.model.trimmed = self.model.trimmed.max(count);
        let below = JournalSequence(sequence + 1);
        self.store().trim_journal(0, below).map_err(|error| error.to_string())
    }

    fn reopen(&mut self, close: bool) -> Result<(), Stop> {
        if close {
            self.store().close(NOW).map_err(|error| error.to_string())?;
            self.model.certain = [self.model.ids.len(); 2];
        } else if !self.setup.keeps(self.setup.durability, Ending::Kill) {
            self.sync()?;
        }
        self.open = None;
        self.open()?;
        self.compare(Ending::Kill)
    }

    /// Compares a replay with what was appended; what was found is all there is from then on.
    fn compare(&mut self, ending: Ending) -> Result<(), Stop> {
        let mut found = Vec::new();
        let mut foreign = None;
        let replayed = self.store().replay_journal(0, &mut |record| {
            let id = record.bytes.get(..4).map_or(0, |b| u32::from_le_bytes(b.try_into().unwrap()));
            let continues = record.head < record.sequence;
            let is_owned = continues || record.owner == u64::from(id) << 3;
            if record.bytes != bytes_of(id) || !is_owned {
                foreign = Some(record.sequence);
            }
            found.push((id, record.sequence));
        });
        replayed.map_err(|error| format!("replay: {error}"))?;
        if let Some(sequence) = foreign {
            return Err(format!("the record of {sequence:?} is nobody's"));
        }
        if !found.is_sorted_by(|a, b| a.1 < b.1) {
            return Err(format!("out of order: {found:?}"));
        }
        let ids: Vec<u32> = found.iter().map(|(id, _)| *id).collect();
        let Model { ids: appended, certain, trimmed, .. } = &self.model;
        let certain = certain[usize::from(ending == Ending::Kill)];
        let first = ids.first().and_then(|first| appended.iter().position(|id| id == first));
        let whole = match first {
            None => ids.is_empty() && certain <= *trimmed,
            Some(first) => {
                let end = first + ids.len();
                appended.get(first..end) == Some(&ids[..]) && first <= *trimmed && end >= certain
            }
        };
        if !whole {
            return Err(format!(
                "{ids:?} replayed of {appended:?}, {certain} of which are certain and {trimmed} \
                 trimmed"
            ));
        }
        let verified = self.store().verify().map_err(|error| error.to_string())?;
        if !verified.damaged.is_empty() {
            return Err(format!("verify found damage: {:?}", verified.damaged));
        }
        // What was trimmed may come back.
        let gone = first.unwrap_or(*trimmed);
        let mut all = appended[..gone].to_vec();
        let mut sequences = self.model.sequences.clone();
        sequences.retain(|(id, _)| all.contains(id));
        sequences.extend(found);
        all.extend(ids);
        self.model = Model { certain: [all.len(); 2], ids: all, trimmed: gone, sequences };
        Ok(())
    }
}

fn explore(setup: &Setup) {
    for seed in seeds() {
        let mut whole = Life::new(setup, seed);
        if let Err(why) = whole.run() {
            panic!("{} seed {seed}: a run without a crash stopped: {why}", setup.name);
        }
        let calls = whole.device.calls();
        drop(whole);
        let only: Option<u64> = number_of("ENTRESOL_PREFIX");
        for prefix in (0..=calls).filter(|prefix| only.is_none_or(|only| only == *prefix)) {
            let told = |how: &str, choice: CrashChoice, why: Stop| {
                panic!(
                    "{why}\nafter {how} with {choice:?} at call {prefix} of setup {}; replay: \
                     ENTRESOL_SEED={seed} ENTRESOL_PREFIX={prefix} \
                     cargo test -p entresol-flash --test crash journal",
                    setup.name
                )
            };
            crash(setup, seed, prefix, &told);
        }
    }
}

/// Says how a failure came about, and panics.
type Told<'t> = &'t dyn Fn(&str, CrashChoice, Stop);

fn crash(setup: &Setup, seed: u64, prefix: u64, told: Told<'_>) {
    let mut life = Life::new(setup, seed);
    life.device.crash_after(prefix);
    let _stopped = life.run();
    life.open = None;
    life.device.crash_now();
    let mut random = Random::new(seed ^ prefix << 20);
    for choice in choices(&life.device, &mut random) {
        let after = life.after(life.device.reopened(choice), Ending::PowerLoss);
        recovered(after, Ending::PowerLoss, &mut random).unwrap_or_else(|why| {
            told("power loss", choice, why);
        });
    }
    let kept = CrashChoice::KeepAll;
    let after = life.after(life.device.reopened(kept), Ending::Kill);
    recovered(after, Ending::Kill, &mut random).unwrap_or_else(|why| told("a kill", kept, why));
    let choice = CrashChoice::Random(random.next_u64());
    crash_recovery(&life, choice, &mut random).unwrap_or_else(|why| {
        told("power loss, and again while it was opened,", choice, why);
    });
}

/// Opens and compares; now and then the store lives on, and crashes again.
fn recovered(mut life: Life, ending: Ending, random: &mut Random) -> Result<(), Stop> {
    life.open()?;
    life.compare(ending)?;
    if !random.one_in(4) {
        return Ok(());
    }
    life.live(LIFE_STEPS).map_err(|why| format!("in its second life: {why}"))?;
    life.open = None;
    life.device.crash_now();
    for _ in 0..2 {
        let choice = CrashChoice::Random(random.next_u64());
        let mut after = life.after(life.device.reopened(choice), Ending::PowerLoss);
        after.open()?;
        let compared = after.compare(Ending::PowerLoss);
        compared.map_err(|why| format!("after its second life, with {choice:?}: {why}"))?;
    }
    Ok(())
}

/// The recovery is crashed, too.
fn crash_recovery(life: &Life, choice: CrashChoice, random: &mut Random) -> Result<(), Stop> {
    let mut sound = life.after(life.device.reopened(choice), Ending::PowerLoss);
    sound.open()?;
    let calls = sound.device.calls();
    for call in 0..calls {
        if calls > 6 && !random.one_in(calls / 3) {
            continue;
        }
        let mut first = life.after(life.device.reopened(choice), Ending::PowerLoss);
        first.device.crash_after(call);
        let _stopped = first.open();
        first.open = None;
        first.device.crash_now();
        let second = CrashChoice::Random(random.next_u64());
        let mut after = first.after(first.device.reopened(second), Ending::PowerLoss);
        after.open()?;
        let compared = after.compare(Ending::PowerLoss);
        compared.map_err(|why| format!("at call {call}, then {second:?}: {why}"))?;
    }
    Ok(())
}
