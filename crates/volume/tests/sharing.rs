//! Volumes that share a cache: each within its limit and its share, and none sees another's blocks,
//! crash or no crash.
#![expect(clippy::unwrap_used, reason = "a test stops where something fails")]

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use entresol_sim::{CrashChoice, SimDevice, SimOptions};
use entresol_volume::backing::memory::{Fault, Kind, Loss, MemoryMedium, Pace};
use entresol_volume::backing::{Backing, BackingCompletion, BackingRequest, Description, Extent};
use entresol_volume::{
    Adoption, Cache, CacheOptions, Completion, Context, Cost, Dirty, Durable, Error, ErrorKind,
    Hole, Mode, Moment, Qos, Request, Run, VolumeId, VolumeOptions, Volumes,
};

const BLOCK: u64 = 4096;

struct Shared {
    device: SimDevice,
    media: HashMap<String, MemoryMedium>,
    cache: Option<Cache>,
    now: u64,
    /// Whether backings cannot be opened.
    away: bool,
    /// Percent of the cache that may be dirty, and for how many milliseconds.
    dirty: (u8, u64),
    adopt: Option<Adoption>,
}

impl Shared {
    fn new(cache_bytes: u64, blocks: &[(&str, u64)]) -> Shared {
        let medium = |blocks: &u64| MemoryMedium::new((blocks * BLOCK) as usize);
        let media = blocks.iter().map(|(name, size)| ((*name).to_owned(), medium(size))).collect();
        let device = SimDevice::new(SimOptions::new(3, cache_bytes));
        let dirty = (25, 500);
        let (cache, adopt) = (None, None);
        let mut shared = Shared { device, media, cache, now: 0, away: false, dirty, adopt };
        shared.open();
        shared
    }

    fn open(&mut self) {
        let (media, away) = (self.media.clone(), self.away);
        let options = CacheOptions {
            dirty_percent: self.dirty.0,
            write_back_delay_ms: self.dirty.1,
            adopt: self.adopt.take(),
            open_backing: Box::new(move |name| {
                if away {
                    return Err(Error::new(ErrorKind::Unavailable, format!("{name} is away")));
                }
                Ok(Box::new(media[name].open()?) as Box<dyn Backing>)
            }),
            ..CacheOptions::default()
        };
        let device = Arc::new(self.device.clone());
        self.cache = Some(Cache::open(device, options, Moment(self.now)).unwrap());
    }

    fn create(&mut self, name: &str, options: VolumeOptions) -> VolumeId {
        self.try_create(name, name, options).unwrap()
    }

    fn try_create(
        &mut self,
        name: &str,
        backing: &str,
        options: VolumeOptions,
    ) -> entresol_volume::Result<VolumeId> {
        let (name, backing) = (name.to_owned(), backing.to_owned());
        let options = VolumeOptions { name, backing, ..options };
        self.cache.as_mut().unwrap().create(&options, Moment(self.now))
    }

    /// Power is lost, and nothing that was not synced is left.
    fn lose_power(&mut self) {
        self.device.crash_now();
        drop(self.cache.take());
        self.media.values().for_each(|medium| medium.crash(Loss::All));
        self.device = self.device.reopened(CrashChoice::DropAll);
        self.open();
    }

    fn close_and_open(&mut self) {
        self.cache.take().unwrap().close(Moment(self.now)).unwrap();
        self.device = self.device.reopened(CrashChoice::KeepAll);
        self.open();
    }

    fn all(&mut self, requests: Vec<(VolumeId, Request)>) -> Vec<Bytes> {
        let count = requests.len();
        let cache = self.cache.as_mut().unwrap();
        for (token, (volume, request)) in requests.into_iter().enumerate() {
            cache.submit(volume, token as u64, request, Moment(self.now));
        }
        let mut done: Vec<Completion> = Vec::new();
        while done.len() < count {
            self.now += 100_000;
            cache.wait(Moment(self.now), &mut done);
        }
        done.sort_by_key(|completion| completion.token);
        done.into_iter().map(|completion| completion.result.unwrap()).collect()
    }
}

fn contents(block: u64, round: u64) -> Bytes {
    let mut bytes = vec![0; BLOCK as usize];
    for chunk in bytes.chunks_mut(16) {
        chunk[..8].copy_from_slice(&block.to_le_bytes());
        chunk[8..].copy_from_slice(&round.to_le_bytes());
    }
    Bytes::from(bytes)
}

fn write(block: u64, round: u64) -> Request {
    let bytes = contents(block, round);
    Request::Write { offset: block * BLOCK, bytes, durable: Durable::AtFlush }
}

fn read(block: u64) -> Request {
    Request::Read { offset: block * BLOCK, length: BLOCK as u32 }
}

#[test]
fn sixteen_thousand_blocks_rewritten_before_a_crash_are_neither_stale_nor_foreign() {
    const BLOCKS: u64 = 16_000;
    for mode in [Mode::WriteThrough, Mode::WriteBack] {
        let mut shared = Shared::new(96 << 20, &[("a", BLOCKS)]);
        let options = VolumeOptions { mode, sequential_cutoff_bytes: 0, ..Default::default() };
        let volume = shared.create("a", options);
        for round in 1..=2 {
            for batch in (0..BLOCKS).collect::<Vec<_>>().chunks(200) {
                shared.all(batch.iter().map(|block| (volume, write(*block, round))).collect());
            }
            shared.all(vec![(volume, Request::Flush)]);
        }
        // Behind the last flush: may be lost, must not be mixed up.
        shared.all((0..2000).map(|block| (volume, write(block, 3))).collect());
        shared.lose_power();
        let (mut stale, mut foreign, mut later) = (0, 0, 0);
        for pass in 0..2 {
            for batch in (0..BLOCKS).collect::<Vec<_>>().chunks(200) {
                let found = shared.all(batch.iter().map(|b| (volume, read(*b))).collect());
                for (block, found) in batch.iter().zip(found) {
                    let is = |round| found == contents(*block, round);
                    later += u64::from(is(3));
                    stale += u64::from(is(1));
                    foreign += u64::from(!(1..=3).any(is));
                }
            }
            assert_eq!((stale, foreign), (0, 0), "mode {mode}, pass {pass}");
        }
        assert!(later <= 4000, "only what was written a third time");
    }
}

#[test]
fn a_volume_keeps_to_its_limit_and_leaves_the_rest_to_others() {
    let mut shared = Shared::new(16 << 20, &[("a", 64), ("b", 64)]);
    let limited = Qos { limit: 200.0, ..Qos::default() };
    let a = shared.create("a", VolumeOptions { qos: limited, ..Default::default() });
    let b = shared.create("b", VolumeOptions::default());
    let (mut done_a, mut done_b, mut token) = (0u64, 0u64, 0u64);
    let mut waiting = [0u64, 0];
    let begun = shared.now;
    let cache = shared.cache.as_mut().unwrap();
    let mut completions = Vec::new();
    for turn in 0..10_000u64 {
        let now = Moment(begun + turn * 1_000_000);
        for (at, volume) in [a, b].into_iter().enumerate() {
            while waiting[at] < 4 {
                cache.submit(volume, token, read(token % 64), now);
                token += 1;
                waiting[at] += 1;
            }
        }
        cache.wait(now, &mut completions);
        for completion in completions.drain(..) {
            completion.result.unwrap();
            let at = usize::from(completion.volume == b);
            waiting[at] -= 1;
            *[&mut done_a, &mut done_b][at] += 1;
        }
    }
    // Ten seconds of 200 requests; a request of 4 KiB counts as a sixteenth more.
    assert!((1_700..=2_010).contains(&done_a), "{done_a}");
    assert!(done_b > 5 * done_a, "{done_b}");
}

#[test]
fn a_volume_keeps_to_its_share_of_the_cache() {
    let mut shared = Shared::new(32 << 20, &[("a", 1000), ("b", 1000)]);
    let share = 100 * BLOCK;
    let a = shared.create("a", VolumeOptions { share_bytes: share, ..Default::default() });
    let b = shared.create("b", VolumeOptions::default());
    for volume in [a, b] {
        for block in (0..1000).map(|n| n * 619 % 1000) {
            shared.all(vec![(volume, read(block))]);
        }
    }
    let figures: serde_json::Value =
        serde_json::from_str(&shared.cache.as_ref().unwrap().statistics()).unwrap();
    let clean = |at: usize| figures["volumes"][at]["usage"]["clean"].as_u64().unwrap();
    assert!((99..=101).contains(&clean(0)), "{}", clean(0));
    assert_eq!(clean(1), 1000);
}

/// Which blocks there were was forgotten with the end of the process: a full share let go only of
/// what was put next, and of that at once.
#[test]
fn a_volume_keeps_to_its_share_of_the_cache_after_a_restart() {
    let mut shared = Shared::new(32 << 20, &[("a", 1000)]);
    let options = || VolumeOptions { share_bytes: 100 * BLOCK, ..Default::default() };
    let a = shared.create("a", options());
    let clean = |shared: &Shared| {
        let figures: serde_json::Value =
            serde_json::from_str(&shared.cache.as_ref().unwrap().statistics()).unwrap();
        figures["volumes"][0]["usage"]["clean"].as_u64().unwrap()
    };
    let blocks: Vec<u64> = (0..1000).map(|number| number * 619 % 1000).collect();
    for (round, blocks) in blocks.chunks(250).enumerate() {
        for block in blocks {
            shared.all(vec![(a, read(*block))]);
            // What goes for it is gone a turn later.
            shared.all(vec![(a, Request::Flush)]);
            let held = clean(&shared);
            assert!(held <= 101 && (round == 0 || held >= 99), "{held} in round {round}");
        }
        // What was read last is what there is.
        let hits = |shared: &Shared| shared.cache.as_ref().unwrap().counts(a).unwrap();
        let before = hits(&shared).blocks_read_hit;
        blocks[180..].iter().for_each(|block| drop(shared.all(vec![(a, read(*block))])));
        assert_eq!(hits(&shared).blocks_read_hit - before, 70, "in round {round}");
        shared.close_and_open();
    }
}

/// One request that lets go of a large range had the whole server wait for its end.
#[test]
fn others_are_served_while_a_large_range_is_trimmed() {
    const BLOCKS: u64 = 16 << 10;
    let mut shared = Shared::new(16 << 20, &[("a", BLOCKS), ("b", 64)]);
    let (a, b) = (
        shared.create("a", VolumeOptions::default()),
        shared.create("b", VolumeOptions::default()),
    );
    let (offset, length) = (BLOCK, (BLOCKS - 1) * BLOCK);
    let (hole, cost, durable) = (Hole::Allowed, Cost::Any, Durable::AtFlush);
    let zero = Request::Zero { offset, length, hole, cost, durable };
    for request in [Request::Trim { offset, length, durable }, zero] {
        // A range costs by the parts of it that have something in the cache: all have.
        let cached = (5..BLOCKS).step_by(64).chain([BLOCKS - 1]);
        shared.all(cached.map(|block| (a, read(block))).collect());
        let mut done: Vec<Completion> = Vec::new();
        shared.now += 1_000_000;
        let mut now = Moment(shared.now);
        let cache = shared.cache.as_mut().unwrap();
        cache.submit(a, 0, request, now);
        cache.turn(now, &mut done);
        let mut reads = 0;
        while done.is_empty() {
            cache.submit(b, 1, read(7), now);
            while done.is_empty() {
                now.0 += 1000;
                cache.wait(now, &mut done);
            }
            if done.iter().any(|completion| completion.token == 0) {
                break;
            }
            reads += done.drain(..).count();
        }
        shared.now = now.0;
        assert!(reads >= 2, "{reads} reads were answered beside it");
        let mut rest = Vec::new();
        while cache.in_flight() > 0 {
            shared.now += 1000;
            cache.wait(Moment(shared.now), &mut rest);
        }
    }
    let found = shared.all(vec![(a, read(5)), (a, read(BLOCKS - 1))]);
    assert!(found.iter().all(|found| found.iter().all(|byte| *byte == 0)));
}

/// A prefetch held its whole range until the last block had come, and every write there waited.
#[test]
fn a_write_waits_for_the_piece_of_a_prefetch_that_it_touches_and_no_more() {
    let mut shared = Shared::new(16 << 20, &[("a", 1024)]);
    let options = VolumeOptions { mode: Mode::WriteBack, ..Default::default() };
    let a = shared.create("a", options);
    shared.media["a"].set_pace(Pace::Never);
    let now = Moment(shared.now);
    let cache = shared.cache.as_mut().unwrap();
    cache.submit(a, 0, Request::Prefetch { offset: 0, length: 1024 * BLOCK }, now);
    let mut done: Vec<Completion> = Vec::new();
    cache.turn(now, &mut done);
    cache.submit(a, 1, write(1000, 1), now);
    cache.submit(a, 2, write(10, 1), now);
    for _ in 0..100 {
        shared.now += 100_000;
        cache.turn(Moment(shared.now), &mut done);
    }
    let tokens: Vec<u64> = done.iter().map(|completion| completion.token).collect();
    assert_eq!(tokens, [1]);
    shared.media["a"].set_pace(Pace::AtOnce);
    while done.len() < 3 {
        shared.now += 100_000;
        cache.wait(Moment(shared.now), &mut done);
    }
    assert!(done.iter().all(|completion| completion.result.is_ok()));
    let found = shared.all(vec![(a, read(10)), (a, read(1000))]);
    assert!(found[0] == contents(10, 1) && found[1] == contents(1000, 1));
}

/// Each volume wrote over what the other one had written, and read what it had cached before.
#[test]
fn an_export_is_the_backing_of_one_volume() {
    let places = ["nbd://nas/x", "nbds://nas:10809/x?tls-certificates=/pki", "nbd://nas/y"];
    let mut shared = Shared::new(8 << 20, &places.map(|place| (place, 64)));
    let create = |shared: &mut Shared, name: &str, place: &str| {
        let made = shared.try_create(name, place, VolumeOptions::default());
        made.map(drop).map_err(|error| error.to_string())
    };
    create(&mut shared, "a", places[0]).unwrap();
    let refused = create(&mut shared, "b", places[1]).unwrap_err();
    assert!(refused.contains("is the backing of volume a already"), "{refused}");
    assert!(refused.contains("`entresol volume remove a`"), "{refused}");
    create(&mut shared, "b", places[2]).unwrap();
    // Nor does one that is there move to it.
    let backing = Some(places[1].to_owned());
    shared.adopt = Some(Adoption { name: "b".to_owned(), backing, dirty: Dirty::Keep });
    shared.close_and_open();
    let absent = shared.cache.as_ref().unwrap().absent();
    let [(name, error)] = absent else { panic!("{absent:?}") };
    assert!(name == "b" && error.to_string().contains("of volume a already"), "{error}");
    // The one that is away is to come back.
    let refused = create(&mut shared, "c", places[2]).unwrap_err();
    assert!(refused.contains("is the backing of volume b already"), "{refused}");
    shared.close_and_open();
    assert_eq!(shared.cache.as_ref().unwrap().absent().len(), 0);
    // Who may only read does no harm.
    let medium = &shared.media[places[1]];
    let description = medium.open().unwrap().description().clone();
    medium.set_description(Description { read_only: true, ..description });
    create(&mut shared, "c", places[1]).unwrap();
}

/// How the cache was left was worked out for all volumes at once, and forgotten by the next start:
/// a volume whose backing was away then had its old blocks believed afterwards.
#[test]
fn a_volume_that_was_absent_at_the_start_after_power_loss_reads_nothing_stale_later() {
    let mut shared = Shared::new(8 << 20, &[("a", 64)]);
    let a = shared.create("a", VolumeOptions { sequential_cutoff_bytes: 0, ..Default::default() });
    shared.all((0..8).map(|block| (a, write(block, 1))).collect());
    shared.all((0..8).map(|block| (a, read(block))).collect());
    shared.all(vec![(a, Request::Flush)]);
    shared.close_and_open();
    shared.all((0..8).map(|block| (a, write(block, 2))).collect());
    shared.all(vec![(a, Request::Flush)]);
    shared.away = true;
    shared.lose_power();
    assert_eq!(shared.cache.as_ref().unwrap().absent().len(), 1);
    shared.away = false;
    shared.close_and_open();
    let found = shared.all((0..8).map(|block| (a, read(block))).collect());
    (0..).zip(found).for_each(|(block, found)| assert!(found == contents(block, 2), "{block}"));
}

#[test]
fn a_log_torn_by_power_loss_is_opened_although_its_volume_was_absent_in_between() {
    let mut shared = Shared::new(8 << 20, &[("a", 256)]);
    let options = VolumeOptions { mode: Mode::WriteBack, ..Default::default() };
    let a = shared.create("a", options);
    shared.all((0..8).map(|block| (a, write(block, 1))).collect());
    shared.all(vec![(a, Request::Flush)]);
    shared.all((8..120).map(|block| (a, write(block, 1))).collect());
    shared.device.crash_now();
    drop(shared.cache.take());
    let crashed = shared.device.clone();
    let choices = crashed.crash_choices().into_iter();
    for choice in choices.filter(|choice| matches!(choice, CrashChoice::DropOne(_))) {
        shared.media.values().for_each(|medium| medium.crash(Loss::All));
        shared.device = crashed.reopened(choice);
        shared.away = true;
        shared.open();
        shared.away = false;
        shared.close_and_open();
        let absent = shared.cache.as_ref().unwrap().absent();
        assert!(absent.is_empty(), "{choice:?}: {absent:?}");
        let found = shared.all((0..8).map(|block| (a, read(block))).collect());
        (0..).zip(found).for_each(|(block, found)| assert!(found == contents(block, 1), "{block}"));
        drop(shared.cache.take());
    }
}

/// A write waited for its own volume's log to become shorter, which was empty: what was in the way
/// was another volume's, and when that was gone nobody woke the write.
#[test]
fn a_write_goes_on_once_another_volume_that_filled_the_cache_has_written_back() {
    let mut shared = Shared::new(4 << 20, &[("a", 64), ("b", 64)]);
    let options = || VolumeOptions { mode: Mode::WriteBack, ..Default::default() };
    let (a, b) = (shared.create("a", options()), shared.create("b", options()));
    shared.dirty = (1, 1_000_000_000);
    shared.close_and_open();
    shared.media["a"].add_fault(Fault::Calls { kind: Kind::Write, from: 0, count: u64::MAX });
    let mut done = Vec::new();
    let mut turns = |shared: &mut Shared, count: u64| {
        for _ in 0..count {
            shared.now += 10_000_000;
            shared.cache.as_mut().unwrap().wait(Moment(shared.now), &mut done);
        }
        done.len()
    };
    let now = |shared: &Shared| Moment(shared.now);
    for block in 0..32 {
        let at = now(&shared);
        shared.cache.as_mut().unwrap().submit(a, block, write(block, 1), at);
    }
    let filled = turns(&mut shared, 100);
    assert!((1..32).contains(&filled), "{filled} writes found room");
    let at = now(&shared);
    shared.cache.as_mut().unwrap().submit(b, 100, write(1, 1), at);
    assert_eq!(turns(&mut shared, 100), filled);
    shared.media["a"].clear_faults();
    assert_eq!(turns(&mut shared, 1000), 33);
    assert!(done.iter().all(|completion| completion.result.is_ok()));
}

/// A backing that asks `answers` whenever it is reaped: whether it tells how ranges stand, which it
/// looked at when it was asked.
struct Asking {
    backing: Box<dyn Backing>,
    found: Vec<BackingCompletion>,
    answers: Box<dyn FnMut() -> bool + Send>,
}

impl Asking {
    fn open(
        medium: &MemoryMedium,
        answers: impl FnMut() -> bool + Send + 'static,
    ) -> Result<Box<dyn Backing>, Error> {
        let backing = Box::new(medium.open()?);
        Ok(Box::new(Asking { backing, found: Vec::new(), answers: Box::new(answers) }))
    }
}

impl Backing for Asking {
    fn description(&self) -> &Description {
        self.backing.description()
    }

    fn begin(&mut self, token: u64, request: BackingRequest) {
        self.backing.begin(token, request);
    }

    fn submit(&mut self) {
        self.backing.submit();
    }

    fn reap(&mut self, completions: &mut Vec<BackingCompletion>) {
        self.backing.reap(completions);
        if (self.answers)() {
            completions.append(&mut self.found);
        }
    }

    fn wait(&mut self, completions: &mut Vec<BackingCompletion>) {
        self.backing.wait(completions);
    }

    fn in_flight(&self) -> usize {
        self.backing.in_flight() + self.found.len()
    }

    fn poll_fd(&self) -> Option<std::os::fd::RawFd> {
        self.backing.poll_fd()
    }

    fn allocation(&mut self, range: (u64, u64), most: usize) -> Result<Vec<Extent>, Error> {
        self.backing.allocation(range, most)
    }

    fn begin_allocation(&mut self, token: u64, range: (u64, u64)) -> bool {
        let result = self.backing.allocation(range, 100).map(|found| Extent::encode(&found));
        self.found.push(BackingCompletion { token, result });
        true
    }
}

/// Closing waited for requests whose turn never came, for the time stood still meanwhile.
#[test]
fn a_cache_closes_while_requests_wait_for_their_turn() {
    let medium = MemoryMedium::new((64 * BLOCK) as usize);
    let options = CacheOptions {
        open_backing: Box::new(move |_| {
            let mut reaps_left = 10_000_u32;
            Asking::open(&medium, move || {
                reaps_left = reaps_left.checked_sub(1).expect("the cache is closed by now");
                true
            })
        }),
        ..CacheOptions::default()
    };
    let device = Arc::new(SimDevice::new(SimOptions::new(3, 8 << 20)));
    let mut cache = Cache::open(device, options, Moment(0)).unwrap();
    let qos = Qos { limit: 1.0, ..Qos::default() };
    let options = VolumeOptions { name: "a".to_owned(), qos, ..Default::default() };
    let volume = cache.create(&options, Moment(0)).unwrap();
    (0..20).for_each(|block| cache.submit(volume, block, read(block), Moment(0)));
    let mut done = Vec::new();
    cache.turn(Moment(0), &mut done);
    assert!(done.len() < 20, "all of them had their turn");
    cache.close(Moment(0)).unwrap();
}

/// Everybody waited for the server of one volume that was asked how a range stands there.
#[test]
fn who_asks_how_a_range_stands_keeps_nobody_waiting_and_is_told_of_what_was_written_before() {
    let medium = MemoryMedium::new((64 * BLOCK) as usize);
    let answers = Arc::new(AtomicBool::new(false));
    let may = Arc::clone(&answers);
    let options = CacheOptions {
        open_backing: Box::new(move |_| {
            let answers = Arc::clone(&may);
            Asking::open(&medium, move || answers.load(Ordering::SeqCst))
        }),
        ..CacheOptions::default()
    };
    let device = Arc::new(SimDevice::new(SimOptions::new(3, 8 << 20)));
    let mut cache = Cache::open(device, options, Moment(0)).unwrap();
    let options =
        VolumeOptions { name: "a".to_owned(), mode: Mode::WriteBack, ..Default::default() };
    let volume = cache.create(&options, Moment(0)).unwrap();
    let run = |cache: &mut Cache, token: u64| {
        let mut done = Vec::new();
        for at in 0..100_000 {
            cache.turn(Moment(at * 1000), &mut done);
            if let Some(found) = done.iter().position(|completion| completion.token == token) {
                return done.swap_remove(found).result.unwrap();
            }
            assert!(done.is_empty(), "{done:?}");
        }
        panic!("{token} was not answered")
    };
    cache.submit(volume, 1, write(5, 7), Moment(0));
    run(&mut cache, 1);
    let length = 64 * BLOCK;
    let question = Request::Allocation { offset: 0, length, most: 100 };
    cache.submit(volume, 2, question.clone(), Moment(0));
    cache.submit(volume, 3, read(9), Moment(0));
    run(&mut cache, 3);
    // No hole is told of where something was written, though it was one when the backing looked.
    cache.submit(volume, 4, Request::WriteBack, Moment(0));
    run(&mut cache, 4);
    answers.store(true, Ordering::SeqCst);
    let told = Run::decode(&run(&mut cache, 2));
    let runs = [(5 * BLOCK, 3), (BLOCK, 0), (58 * BLOCK, 3)];
    assert_eq!(told, runs.map(|(length, flags)| Run { length, flags }));
    cache.submit(volume, 5, question, Moment(0));
    assert_eq!(Run::decode(&run(&mut cache, 5)), told);
    assert_eq!(cache.extents(volume, Context::Allocation, (0, length), 100).unwrap(), told);
    cache.close(Moment(0)).unwrap();
}

/// What was written back stayed in the way until its partition of the log was complete: so much of
/// each volume that many of them filled the cache for good. Nothing was dirty, and every write, the
/// close and the next open failed for lack of room.
#[test]
fn logs_that_were_written_back_leave_room_however_many_volumes_there_are() {
    const LARGE: u64 = 4;
    let names: Vec<String> = (0..20).map(|number| format!("v{number}")).collect();
    let sizes: Vec<(&str, u64)> = names.iter().map(|name| (name.as_str(), 512)).collect();
    let mut shared = Shared::new(16 << 20, &sizes);
    let options = || VolumeOptions { mode: Mode::WriteBack, ..Default::default() };
    let volumes: Vec<VolumeId> = names.iter().map(|name| shared.create(name, options())).collect();
    let large = |at: u64, round: u64| {
        let blocks: Vec<Bytes> = (0..LARGE).map(|block| contents(at + block, round)).collect();
        let (offset, bytes) = (at * BLOCK, Bytes::from(blocks.concat()));
        Request::Write { offset, bytes, durable: Durable::AtFlush }
    };
    // As many as leave a partition incomplete: the logs of a volume may hold a quarter of the
    // cache, in blocks, and a partition a sixteenth of that, in entries.
    let statistics: serde_json::Value =
        serde_json::from_str(&shared.cache.as_ref().unwrap().statistics()).unwrap();
    let capacity = statistics["cache"]["capacity_bytes"].as_u64().unwrap();
    let count = capacity / 100 * 25 / BLOCK / 16 - 2;
    for volume in &volumes {
        let writes = (0..count).map(|at| (*volume, large(at * LARGE, 1))).collect();
        shared.all(writes);
        shared.all(vec![(*volume, Request::WriteBack)]);
    }
    for round in 2..4 {
        shared.all(volumes.iter().map(|volume| (*volume, large(0, round))).collect());
        shared.close_and_open();
        let found = shared.all(volumes.iter().map(|volume| (*volume, read(3))).collect());
        found.iter().for_each(|found| assert!(*found == contents(3, round)));
    }
}

/// All places were taken by requests to a backing that did not answer, and every other volume of
/// the cache waited for it, too.
#[test]
fn others_are_served_while_the_backing_of_a_volume_does_not_answer() {
    let mut shared = Shared::new(8 << 20, &[("a", 1024), ("b", 1024)]);
    let options =
        || VolumeOptions { qos: Qos { weight: 1.0, ..Qos::default() }, ..Default::default() };
    let (a, b) = (shared.create("a", options()), shared.create("b", options()));
    shared.media["a"].set_pace(Pace::Never);
    let cache = shared.cache.as_mut().unwrap();
    (0..256).for_each(|block| cache.submit(a, block, read(2 * block), Moment(shared.now)));
    let mut done: Vec<Completion> = Vec::new();
    for block in 0..100 {
        let began = shared.now;
        cache.submit(b, 1000 + block, read(2 * block), Moment(shared.now));
        while done.is_empty() {
            assert!(shared.now - began < 2_000_000_000, "block {block} is not answered");
            shared.now += 10_000_000;
            cache.turn(Moment(shared.now), &mut done);
        }
        let completion = done.pop().unwrap();
        assert_eq!((completion.volume, completion.token), (b, 1000 + block));
        assert!(completion.result.is_ok() && done.is_empty());
    }
    shared.media["a"].set_pace(Pace::AtOnce);
    while done.len() < 256 {
        shared.now += 10_000_000;
        cache.turn(Moment(shared.now), &mut done);
    }
    assert!(done.iter().all(|completion| completion.volume == a && completion.result.is_ok()));
}
