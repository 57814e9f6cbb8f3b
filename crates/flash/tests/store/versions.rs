//! Changes of an entry's end, and of its value, that meet.

use super::*;

/// A value that lies in one record, and one that is cut into pieces.
const LENGTHS: [usize; 2] = [200, 100_000];

fn touch(session: &mut Session, k: &[u8], at: u64, condition: Condition) -> Option<Version> {
    let expiry = Expiry { at: Some(Timestamp(at)), idle_seconds: None };
    let mut version = None;
    session
        .run(NOW, Operation::Touch { key: key(k), expiry, condition }, &mut |outcome| match outcome
        {
            Outcome::Touched { version: v } => version = Some(v),
            Outcome::Refused { .. } | Outcome::Missing => {}
            other => panic!("{other:?}"),
        })
        .unwrap();
    version
}

#[test]
fn who_read_an_entry_before_it_got_an_end_does_not_write_the_old_one_back() {
    for length in LENGTHS {
        let device = device(16 << 20);
        let (_store, mut session) = open(&device, small());
        let value = value_of(1, length);
        let read = put(&mut session, b"k", &value, PutOptions::default()).unwrap();
        let touched = touch(&mut session, b"k", NOW.0 + 5000, Condition::Always).unwrap();
        assert!(touched > read);
        let condition = Condition::Version(read);
        let stale = PutOptions { condition, ..PutOptions::default() };
        assert_eq!(put(&mut session, b"k", b"other", stale), None);
        assert_eq!(get(&mut session, b"k"), Some(value));
        assert_eq!(get_at(&mut session, b"k", Timestamp(NOW.0 + 5000)), None);
    }
}

#[test]
fn an_end_is_changed_only_where_its_condition_holds() {
    for length in LENGTHS {
        let device = device(16 << 20);
        let (_store, mut session) = open(&device, small());
        let value = value_of(2, length);
        let first = put(&mut session, b"k", b"older", PutOptions::default()).unwrap();
        let second = put(&mut session, b"k", &value, PutOptions::default()).unwrap();
        assert_eq!(touch(&mut session, b"k", NOW.0 + 1, Condition::Version(first)), None);
        assert_eq!(touch(&mut session, b"k", NOW.0 + 1, Condition::Absent), None);
        assert_eq!(touch(&mut session, b"none", NOW.0 + 1, Condition::Version(second)), None);
        assert_eq!(get_at(&mut session, b"k", Timestamp(NOW.0 + 1)), Some(value.clone()));
        assert!(touch(&mut session, b"k", NOW.0 + 1, Condition::Version(second)).is_some());
        assert_eq!(get_at(&mut session, b"k", Timestamp(NOW.0 + 1)), None);
    }
}
