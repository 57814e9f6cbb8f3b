//! The journal: appended, cut, replayed; on full, damaged and encrypted stores.

use std::sync::atomic::Ordering;

use entresol_flash::{JournalAppend, JournalContinuation, JournalRoom, JournalSequence};

use super::*;

const SEGMENT: u64 = 64 << 10;

/// One shard, with a journal of three segments.
fn journaled() -> StoreOptions {
    with_journal(3)
}

fn with_journal(segments: u64) -> StoreOptions {
    StoreOptions { shards: 1, journal_bytes: segments * SEGMENT, ..small() }
}

fn try_append(session: &mut Session, append: JournalAppend<'_>) -> Result<JournalSequence, String> {
    let mut answer = None;
    let mut visit = |token: u64, outcome: entresol_flash::Result<Outcome<'_>>| {
        assert_eq!(token, 7);
        answer = Some(match outcome {
            Ok(Outcome::Journaled { sequence, .. }) => Ok(sequence),
            Ok(other) => panic!("{other:?}"),
            Err(error) => Err(format!("{:?}: {error}", error.kind())),
        });
    };
    session.submit_journal(7, NOW, append, &mut visit);
    while session.in_flight() > 0 {
        session.poll(1, NOW, &mut visit).unwrap();
    }
    answer.unwrap()
}

fn append(session: &mut Session, owner: u64, bytes: &[u8]) -> JournalSequence {
    let append = JournalAppend {
        lane: 0,
        owner,
        bytes,
        durability: None,
        continues: None,
        room: JournalRoom::Leaving(0),
    };
    try_append(session, append).unwrap()
}

/// As `append`, in place of which `after` may be continued; also the record that it continues.
fn append_after(
    session: &mut Session,
    after: JournalSequence,
    bytes: &[u8],
) -> (JournalSequence, JournalSequence) {
    let continues = Some(JournalContinuation { after, bytes });
    let whole = [b"whole ", bytes].concat();
    let append = JournalAppend {
        lane: 0,
        owner: 9,
        bytes: &whole,
        durability: None,
        continues,
        room: JournalRoom::Leaving(0),
    };
    let mut answer = None;
    session.submit_journal(7, NOW, append, &mut |_, outcome| match outcome {
        Ok(Outcome::Journaled { sequence, head }) => answer = Some((sequence, head)),
        other => panic!("{other:?}"),
    });
    answer.unwrap()
}

fn replayed(store: &Store, lane: u16) -> Vec<(JournalSequence, u64, Vec<u8>)> {
    let mut all = Vec::new();
    let replay = store
        .replay_journal(lane, &mut |record| {
            all.push((record.sequence, record.owner, record.bytes.to_vec()));
        })
        .unwrap();
    assert_eq!(replay.records, all.len() as u64);
    all
}

/// So many records of lengths up to two thousand bytes, as they will be replayed.
fn fill(
    session: &mut Session,
    owners: std::ops::Range<u64>,
) -> Vec<(JournalSequence, u64, Vec<u8>)> {
    owners
        .map(|owner| {
            let bytes = value_of(owner, (owner * 97 % 2000) as usize);
            (append(session, owner, &bytes), owner, bytes)
        })
        .collect()
}

#[test]
fn what_is_appended_is_replayed_in_its_order_after_a_clean_stop_and_after_a_kill() {
    let device = device(4 << 20);
    let (store, mut session) = open(&device, with_journal(9));
    let mut all = fill(&mut session, 0..40);
    assert!(all.is_sorted_by(|a, b| a.0 < b.0));
    assert_eq!(replayed(&store, 0), all);
    put(&mut session, b"k", b"beside", PutOptions::default());
    drop(session);
    store.close(NOW).unwrap();
    for close in [false, true, false] {
        let (store, mut session) = open(&device, with_journal(9));
        assert_eq!(replayed(&store, 0), all);
        let more = all.len() as u64;
        all.extend(fill(&mut session, more..more + 20));
        assert!(all.is_sorted_by(|a, b| a.0 < b.0), "sequences are never used again");
        assert_eq!(get(&mut session, b"k").as_deref(), Some(&b"beside"[..]));
        assert_eq!(store.count(SPACE), 1, "no key has what is in the journal");
        drop(session);
        match close {
            true => store.close(NOW).unwrap(),
            false => store.sync().unwrap(),
        }
    }
    let (store, _session) = open(&device, with_journal(9));
    assert_eq!(replayed(&store, 0), all);
    let verified = store.verify().unwrap();
    assert_eq!((verified.journaled, verified.damaged), (all.len() as u64, vec![]));
}

/// No line of a footer, no slot of the index: what is written is the records.
#[test]
fn small_records_of_the_journal_write_their_bytes_and_headers_alone() {
    const RECORDS: u64 = 700;
    let device = device(4 << 20);
    let unit = u64::from(device.geometry().sync_unit_bytes);
    let (store, mut session) = open(&device, journaled());
    append(&mut session, 0, b"the first one raises the format");
    store.sync().unwrap();
    let written = || device.counters().written_bytes.load(Ordering::Relaxed);
    let (before, index) = (written(), store.statistics().index_bytes);
    for owner in 1..=RECORDS {
        append(&mut session, owner, &owner.to_le_bytes());
    }
    store.sync().unwrap();
    // A header has 32 bytes, the owner's number 8; records start at multiples of 32.
    let records = RECORDS * (32_u64 + 8 + 8).next_multiple_of(32);
    let more = written() - before - records;
    assert!(more < unit, "{more} bytes more than the records");
    assert_eq!(store.statistics().index_bytes, index);
    assert_eq!(store.statistics().live_bytes, 0);
    assert_eq!(replayed(&store, 0).len() as u64, RECORDS + 1);
}

#[test]
fn what_continues_a_record_takes_eight_bytes_beside_its_own() {
    const APPENDS: u64 = 700;
    let device = device(4 << 20);
    let unit = u64::from(device.geometry().sync_unit_bytes);
    let (store, mut session) = open(&device, journaled());
    let mut last = append(&mut session, 9, b"the first one");
    store.sync().unwrap();
    let written = || device.counters().written_bytes.load(Ordering::Relaxed);
    let (before, mut records) = (written(), 0);
    for number in 0..APPENDS {
        let (sequence, head) = append_after(&mut session, last, &number.to_le_bytes());
        assert!(sequence > last);
        records += u64::from(head == sequence);
        last = sequence;
    }
    store.sync().unwrap();
    // A record has a header of 32 bytes, the owner's number and a longer text, and is aligned.
    let more = written() - before - APPENDS * 16;
    assert!(more < records * (64 + 6) + unit, "{more} bytes more, in {records} records");
    assert!((2..=4).contains(&records), "{records} records of four thousand bytes");
    let found = replayed(&store, 0);
    assert_eq!(found.len() as u64, APPENDS + 1);
    assert!(found.is_sorted_by(|a, b| a.0 < b.0));
    let is_last = |(place, found): (usize, &(_, u64, Vec<u8>))| {
        found.1 == 9 && found.2.ends_with(&(place as u64).to_le_bytes())
    };
    assert!(found[1..].iter().enumerate().all(is_last));
}

#[test]
fn only_the_last_append_is_continued_and_only_until_it_is_written() {
    let device = device(4 << 20);
    let options = StoreOptions { encryption: Some(EncryptionKey([5; 32])), ..journaled() };
    for options in [journaled(), options] {
        let (store, mut session) = open(&device, options);
        let first = append(&mut session, 9, b"first");
        let continued = append_after(&mut session, first, b"second");
        assert_eq!(continued.1, first);
        let other = append_after(&mut session, first, b"third");
        assert_eq!(other.0, other.1, "another one came meanwhile");
        let fourth = append_after(&mut session, other.0, b"fourth");
        assert_eq!(fourth.1, other.0);
        store.sync().unwrap();
        let fifth = append_after(&mut session, fourth.0, b"fifth");
        assert_eq!(fifth.0, fifth.1, "it is on flash");
        let large = append_after(&mut session, fifth.0, &[1; 5000]);
        assert_eq!(large.0, large.1, "it is too large");
        put(&mut session, b"k", b"beside", PutOptions::default());
        let last = append_after(&mut session, large.0, b"");
        assert_eq!(last.0, last.1, "there is nothing of it");
        let expected = [
            (first, b"first".to_vec()),
            (continued.0, b"second".to_vec()),
            (other.0, b"whole third".to_vec()),
            (fourth.0, b"fourth".to_vec()),
            (fifth.0, b"whole fifth".to_vec()),
            (large.0, [&b"whole "[..], &[1; 5000]].concat()),
            (last.0, b"whole ".to_vec()),
        ]
        .map(|(sequence, bytes)| (sequence, 9, bytes));
        assert_eq!(replayed(&store, 0), expected);
        store.trim_journal(0, continued.0).unwrap();
        assert_eq!(replayed(&store, 0), expected[1..]);
        drop(session);
        store.close(NOW).unwrap();
        device.write_at(0, &entresol_device::IoBuffer::aligned(4 << 20)).unwrap();
    }
}

/// A record that is continued says no longer which of it was durable: what continues it does.
#[test]
fn damage_in_what_continues_a_record_is_told() {
    let sim = SimDevice::new(SimOptions::new(3, 4 << 20));
    let device: Arc<dyn Device> = Arc::new(sim.clone());
    let (store, mut session) = open(&device, journaled());
    let mut last = append(&mut session, 9, b"the first one");
    for number in 0..20_u64 {
        last = append_after(&mut session, last, &number.to_le_bytes()).0;
    }
    store.sync().unwrap();
    append(&mut session, 9, b"says that those before are durable");
    store.sync().unwrap();
    let segments = store.segments();
    let of_journal = segments.iter().find(|segment| segment.state == "open").unwrap();
    // A header of 64 bytes, a record of 53, then 16 each.
    let at = of_journal.offset + 64 + 53 + 7 * 16 + 9;
    drop((session, store));
    sim.flip_bits(at, 0xff);
    let (store, _session) = open(&device, journaled());
    let mut found = 0;
    let ended = store.replay_journal(0, &mut |_| found += 1);
    assert_eq!((ended.unwrap_err().kind(), found), (ErrorKind::Corrupt, 8));
}

#[test]
fn a_full_lane_takes_appends_again_once_it_is_trimmed() {
    let device = device(4 << 20);
    let (store, mut session) = open(&device, journaled());
    let bytes = value_of(3, 8000);
    let mut sequences = Vec::new();
    let mut refused = 0;
    for round in 0..400 {
        let append = JournalAppend {
            lane: 0,
            owner: round,
            bytes: &bytes,
            durability: None,
            continues: None,
            room: JournalRoom::Leaving(0),
        };
        match try_append(&mut session, append) {
            Ok(sequence) => sequences.push((sequence, round)),
            Err(why) => {
                assert!(why.starts_with("Full") && why.contains("trim it"), "{why}");
                refused += 1;
                let state = store.journal_state(0).unwrap();
                assert_eq!((state.segments, state.segments_max), (3, 3));
                let half = sequences.len() / 2;
                store.sync().unwrap();
                store.trim_journal(0, sequences[half].0).unwrap();
                sequences.drain(..half);
                let left: Vec<_> = replayed(&store, 0).iter().map(|r| (r.0, r.1)).collect();
                assert_eq!(left, sequences, "what is below the watermark is left out");
                store.maintain(NOW, Budget { segments: 4 }).unwrap();
            }
        }
    }
    assert!(refused > 10, "{refused} of 400");
    store.sync().unwrap();
    store.trim_journal(0, JournalSequence(u64::MAX)).unwrap();
    assert!(replayed(&store, 0).is_empty());
    let last = append(&mut session, 1, b"after all");
    assert_eq!(replayed(&store, 0), [(last, 1, b"after all".to_vec())]);
    drop(session);
    store.close(NOW).unwrap();
    let (store, _session) = open(&device, journaled());
    assert_eq!(replayed(&store, 0), [(last, 1, b"after all".to_vec())]);
}

/// Openings begin segments of their own, so that nothing may be left of what others left.
#[test]
fn appends_that_make_room_go_four_segments_beyond_a_full_lane_over_openings() {
    let device = device(4 << 20);
    let bytes = value_of(3, 8000);
    let take = |session: &mut Session, room| {
        let (lane, owner, durability, continues) = (0, 1, None, None);
        let append = JournalAppend { lane, owner, bytes: &bytes, durability, continues, room };
        try_append(session, append)
    };
    let mut taken = Vec::new();
    let (store, mut session) = open(&device, journaled());
    while let Ok(sequence) = take(&mut session, JournalRoom::Leaving(0)) {
        taken.push(sequence);
    }
    drop(session);
    store.sync().unwrap();
    drop(store);
    for opening in 1..=4 {
        let (store, mut session) = open(&device, journaled());
        assert!(take(&mut session, JournalRoom::Leaving(0)).is_err());
        taken.push(take(&mut session, JournalRoom::Beyond).unwrap());
        assert_eq!(store.journal_state(0).unwrap().segments, 3 + opening);
        drop(session);
        store.sync().unwrap();
    }
    let (store, mut session) = open(&device, journaled());
    let refused = take(&mut session, JournalRoom::Beyond).unwrap_err();
    assert!(refused.starts_with("Full") && refused.contains("7 of the 3"), "{refused}");
    let found: Vec<_> = replayed(&store, 0).iter().map(|record| record.0).collect();
    assert_eq!(found, taken);
    store.trim_journal(0, JournalSequence(u64::MAX)).unwrap();
    store.free_journal(0).unwrap();
    take(&mut session, JournalRoom::Leaving(0)).unwrap();
    assert!(store.journal_state(0).unwrap().segments <= 3);
}

#[test]
fn a_store_full_of_entries_takes_appends_and_keeps_them_beside_reclaim() {
    let device = device(3 << 20);
    let (store, mut session) = open(&device, with_journal(11));
    let mut all = Vec::new();
    let mut random = entresol_sim::Random::new(9);
    let mut n = 0_u64;
    let full = loop {
        let options = PutOptions::default();
        let name = n.to_be_bytes();
        let operation = Operation::Put { key: key(&name), value: &value_of(n, 900), options };
        match session.run(NOW, operation, &mut |_| {}) {
            Ok(()) => n += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(full.kind(), ErrorKind::Full);
    for round in 0..3000_u64 {
        let name = random.below(n).to_be_bytes();
        put(&mut session, &name, &value_of(round, 900), PutOptions::default());
        if round % 3 == 0 {
            let bytes = value_of(round, 120);
            all.push((append(&mut session, round, &bytes), round, bytes));
        }
        if all.len() > 150 {
            store.sync().unwrap();
            all.drain(..100);
            store.trim_journal(0, all[0].0).unwrap();
        }
        store.maintain(NOW, Budget { segments: 2 }).unwrap();
    }
    assert!(store.statistics().moved_bytes > 0);
    assert_eq!(replayed(&store, 0), all);
    assert_eq!(store.count(SPACE), n);
    assert_eq!(store.verify().unwrap().damaged, Vec::<String>::new());
}

#[test]
fn lanes_are_ordered_and_cut_each_by_itself() {
    let device = device(8 << 20);
    let options = StoreOptions { shards: 3, journal_bytes: 6 * SEGMENT, ..small() };
    let (store, mut session) = open(&device, options.clone());
    assert_eq!(store.journal_lanes(), 3);
    let mut lanes = [const { Vec::new() }; 3];
    for owner in 0..300_u64 {
        let lane = (owner * 7 % 3) as u16;
        let append = JournalAppend {
            lane,
            owner,
            bytes: &owner.to_le_bytes(),
            durability: None,
            continues: None,
            room: JournalRoom::Leaving(0),
        };
        lanes[usize::from(lane)].push((try_append(&mut session, append).unwrap(), owner));
    }
    store.sync().unwrap();
    store.trim_journal(1, lanes[1][50].0).unwrap();
    lanes[1].drain(..50);
    drop((session, store));
    let (store, _session) = open(&device, options);
    for (lane, all) in lanes.iter().enumerate() {
        let found: Vec<_> = replayed(&store, lane as u16).iter().map(|r| (r.0, r.1)).collect();
        // After a kill the beginning may be there again.
        assert!(found.ends_with(all), "lane {lane}");
    }
}

#[test]
fn several_appends_of_a_session_are_answered_once_they_are_durable_and_keep_their_order() {
    let sim = SimDevice::new(SimOptions::new(3, 4 << 20));
    let device: Arc<dyn Device> = Arc::new(sim.clone());
    let (store, mut session) = open(&device, journaled());
    let mut answered = Vec::new();
    let mut visit = |token: u64, outcome: entresol_flash::Result<Outcome<'_>>| match outcome {
        Ok(Outcome::Journaled { sequence, .. }) => answered.push((token, sequence)),
        other => panic!("{other:?}"),
    };
    for token in 0..20 {
        let durability = Some(Durability::Synced);
        let bytes = &[token as u8; 100];
        let append = JournalAppend {
            lane: 0,
            owner: token,
            bytes,
            durability,
            continues: None,
            room: JournalRoom::Leaving(0),
        };
        session.submit_journal(token, NOW, append, &mut visit);
    }
    while session.in_flight() > 0 {
        session.poll(1, NOW, &mut visit).unwrap();
    }
    answered.sort_unstable();
    assert!(answered.is_sorted_by(|a, b| a.1 < b.1) && answered.len() == 20);
    sim.crash_now();
    drop((session, store));
    let device: Arc<dyn Device> = Arc::new(sim.reopened(CrashChoice::DropAll));
    let (store, _session) = open(&device, journaled());
    let owners: Vec<u64> = replayed(&store, 0).iter().map(|record| record.1).collect();
    assert_eq!(owners, (0..20).collect::<Vec<_>>());
}

#[test]
fn damage_in_the_middle_is_told_after_all_before_it_and_until_it_is_trimmed() {
    let sim = SimDevice::new(SimOptions::new(3, 4 << 20));
    let device: Arc<dyn Device> = Arc::new(sim.clone());
    let (store, mut session) = open(&device, with_journal(6));
    let all = fill(&mut session, 0..120);
    store.sync().unwrap();
    drop(session);
    store.close(NOW).unwrap();
    let (store, mut session) = open(&device, with_journal(6));
    let segments: Vec<_> = store.segments();
    let mut of_journal: Vec<_> = segments.iter().filter(|s| s.state == "journal").collect();
    of_journal.sort_by_key(|segment| segment.sequence);
    assert_eq!(of_journal.len(), 2);
    // In the first of them, far behind its header.
    let damaged_at = of_journal[0].offset + 30_000;
    let offset = of_journal[0].offset;
    for at in damaged_at..damaged_at + 4 {
        sim.flip_bits(at, 0xff);
    }
    let told = |store: &Store| {
        let mut found = Vec::new();
        let ended = store.replay_journal(0, &mut |record| {
            found.push((record.sequence, record.owner, record.bytes.to_vec()));
        });
        let error = ended.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(error.to_string().contains(&format!("byte {offset}")), "{error}");
        assert!(!found.is_empty() && found.len() < 60 && all.starts_with(&found));
    };
    told(&store);
    let verified = store.verify().unwrap();
    assert_eq!(verified.damaged.len(), 1, "{:?}", verified.damaged);
    // A later record says that those before it were durable: it is damage, and no tear.
    let more = append(&mut session, 900, b"after a sync");
    store.sync().unwrap();
    drop((store, session));
    // What recovers from the segments tells the same.
    let (store, mut session) = open(&device, with_journal(6));
    told(&store);
    let last = append(&mut session, 1000, b"goes on");
    let (before, kept) = all.split_at(all.len() - 3);
    assert!(!before.is_empty());
    store.sync().unwrap();
    store.trim_journal(0, kept[0].0).unwrap();
    let found = replayed(&store, 0);
    assert_eq!(found[..3], *kept);
    let (more, last) = ((more, 900, b"after a sync".to_vec()), (last, 1000, b"goes on".to_vec()));
    assert_eq!(found[3..], [more, last]);
    assert_eq!(store.verify().unwrap().damaged, Vec::<String>::new());
}

#[test]
fn a_journal_whose_segment_lost_its_header_tells_that_it_is_missing() {
    let sim = SimDevice::new(SimOptions::new(3, 4 << 20));
    let device: Arc<dyn Device> = Arc::new(sim.clone());
    let (store, mut session) = open(&device, with_journal(6));
    fill(&mut session, 0..180);
    store.sync().unwrap();
    let mut of_journal: Vec<_> = store.segments();
    of_journal.retain(|segment| segment.state == "journal" || segment.state == "open");
    of_journal.sort_by_key(|segment| segment.sequence);
    assert_eq!(of_journal.len(), 3);
    drop((session, store));
    (0..32).for_each(|at| sim.flip_bits(of_journal[1].offset + at, 0x5a));
    let (store, _session) = open(&device, with_journal(6));
    let error = store.replay_journal(0, &mut |_| {}).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.to_string().contains("missing"), "{error}");
}

#[test]
fn records_of_an_encrypted_journal_are_not_on_the_medium_in_the_clear() {
    let device = device(4 << 20);
    let encryption = Some(EncryptionKey([5; 32]));
    let options = StoreOptions { encryption, ..journaled() };
    let (store, mut session) = open(&device, options.clone());
    let secret = b"a secret that stands nowhere";
    let first = append(&mut session, 0x0123_4567_89ab_cdef, secret);
    store.sync().unwrap();
    drop((session, store));
    let mut image = entresol_device::IoBuffer::aligned(4 << 20);
    device.read_at(0, &mut image).unwrap();
    let owner = 0x0123_4567_89ab_cdef_u64.to_le_bytes();
    assert!(!image.windows(8).any(|window| window == &secret[..8] || window == owner));
    let (store, _session) = open(&device, options);
    assert_eq!(replayed(&store, 0), [(first, 0x0123_4567_89ab_cdef, secret.to_vec())]);
}

#[test]
fn what_no_journal_can_take_is_refused_with_what_it_can() {
    let device = device(4 << 20);
    let (store, mut session) = open(&device, StoreOptions { journal_bytes: 0, ..journaled() });
    let with = |lane, bytes| JournalAppend {
        lane,
        owner: 0,
        bytes,
        durability: None,
        continues: None,
        room: JournalRoom::Leaving(0),
    };
    let refused = try_append(&mut session, with(0, b"x")).unwrap_err();
    assert!(refused.starts_with("InvalidInput") && refused.contains("journal_bytes"), "{refused}");
    drop((session, store));
    let (store, mut session) = open(&device, journaled());
    let refused = try_append(&mut session, with(1, b"x")).unwrap_err();
    assert!(refused.starts_with("InvalidInput") && refused.contains("below 1"), "{refused}");
    let most = store.journal_record_bytes_max();
    let long = vec![1; most + 1];
    let refused = try_append(&mut session, with(0, &long)).unwrap_err();
    assert!(refused.contains(&most.to_string()), "{refused}");
    try_append(&mut session, with(0, &long[1..])).unwrap();
    try_append(&mut session, with(0, &long[1..])).unwrap();
    assert_eq!(store.journal_state(0).unwrap().segments, 1, "two of the longest fit a segment");
    drop((session, store));
    let opened = |options: StoreOptions| {
        let opened = Store::open(Arc::clone(&device), options, NOW).map(drop);
        opened.unwrap_err().to_string()
    };
    let cache = StoreOptions { reclaim: Reclaim::Evict, ..journaled() };
    assert!(opened(cache).contains("cache"));
    let large = StoreOptions { journal_bytes: 40 * SEGMENT, ..journaled() };
    assert!(opened(large).contains("at most"));
}

#[test]
fn a_store_that_is_only_read_replays_what_write_buffers_alone_hold() {
    let device = device(4 << 20);
    let directory = std::env::temp_dir().join(format!("entresol-jr-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let durability = Durability::Process;
    let buffer_directory = Some(directory.clone());
    let options = StoreOptions { durability, buffer_directory, boot: 3, ..journaled() };
    let (store, mut session) = open(&device, options.clone());
    let all = fill(&mut session, 0..90);
    drop((session, store));
    let read_only = StoreOptions { mode: OpenMode::ReadOnly, ..options.clone() };
    let store = Store::open(Arc::clone(&device), read_only, NOW).unwrap();
    assert_eq!(replayed(&store, 0), all);
    drop(store);
    let (store, session) = open(&device, options);
    assert_eq!(replayed(&store, 0), all);
    drop((session, store));
    std::fs::remove_dir_all(&directory).unwrap();
}
