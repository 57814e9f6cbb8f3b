//! The longest keys beside the smallest segments.

use super::*;

fn outcome_of(session: &mut Session, operation: Operation<'_>) -> Result<String, ErrorKind> {
    let mut told = String::new();
    let ended = session.run(NOW, operation, &mut |outcome| {
        told = match outcome {
            Outcome::Found(entry) => format!("Found {}", entry.value.len()),
            other => format!("{other:?}"),
        };
    });
    ended.map_err(|error| error.kind()).map(|()| told)
}

// The record of a key of 64 KiB was written past the end of a segment of 64 KiB: the program ended.
#[test]
fn a_key_that_no_segment_has_room_for_is_refused_and_any_other_is_kept() {
    let mut refused = 0;
    for (reclaim, durability, encryption) in [
        (Reclaim::Compact, Durability::Synced, None),
        (Reclaim::Compact, Durability::Memory, Some(EncryptionKey([1; 32]))),
        (Reclaim::Evict, Durability::Memory, None),
    ] {
        let device = device(8 << 20);
        let options = StoreOptions { shards: 1, durability, reclaim, encryption, ..small() };
        let (mut store, mut session) = open(&device, options.clone());
        let never = Condition::Always;
        for length in (65_000..65_530).step_by(8).chain([65_535, 65_536]) {
            let name = vec![7; length];
            let value = value_of(length as u64, length % 16 * 5000);
            let kept = format!("Found {}", value.len());
            let get = Operation::Get { key: key(&name) };
            let write =
                Operation::Put { key: key(&name), value: &value, options: PutOptions::default() };
            let (remove, missing) =
                (Operation::Remove { key: key(&name), condition: never }, "Missing".to_string());
            if let Err(kind) = outcome_of(&mut session, write) {
                assert_eq!(kind, ErrorKind::InvalidInput, "{length}");
                assert_eq!(outcome_of(&mut session, get), Ok(missing.clone()), "{length}");
                assert_eq!(outcome_of(&mut session, remove), Ok(missing), "{length}");
                refused += 1;
                continue;
            }
            assert_eq!(outcome_of(&mut session, get), Ok(kept.clone()), "{length}");
            store.sync().unwrap();
            drop((session, store));
            (store, session) = open(&device, options.clone());
            assert_eq!(outcome_of(&mut session, get), Ok(kept), "{length}, recovered");
            let removed = outcome_of(&mut session, remove).unwrap();
            assert!(removed.starts_with("Removed"), "{length}: {removed}");
            store.maintain(NOW, Budget { segments: 8 }).unwrap();
        }
        assert_eq!(store.count(SPACE), 0);
    }
    assert!((3 * 3..3 * 40).contains(&refused), "{refused} lengths are refused");
}
