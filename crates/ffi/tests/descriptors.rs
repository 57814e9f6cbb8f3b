//! What a closed store leaves behind while a program still has it. Alone in its process, whose
//! descriptors it counts.
#![expect(unsafe_code, clippy::unwrap_used, reason = "a caller in another language")]

#[expect(dead_code, reason = "other tests use more of it")]
mod support;

use support::*;

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Each kept two until it was released, in Java until garbage was collected.
#[test]
fn a_closed_store_has_no_descriptors_although_it_is_not_released() {
    let mut kept = Vec::new();
    let mut before = None;
    for number in 0..4 {
        let folder = Folder::new(&format!("descriptors-{number}"));
        let capacity = format!("capacity={}", 64 * MIB);
        let mut store = Store::open(&folder.file(), &capacity).unwrap();
        assert_eq!(store.run(PUT, 0, b"key", b"value").kind, STORED);
        store.close();
        assert_eq!(store.reap(), 0);
        let late = store.run(GET, 0, b"key", b"");
        assert_eq!(late.kind, FAILED);
        kept.push((store, folder));
        // The first may open what the process keeps.
        assert_eq!(*before.get_or_insert_with(descriptors), descriptors(), "store {number}");
    }
}
