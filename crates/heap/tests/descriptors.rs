//! The resources of a closed heap that somebody still holds. The test is alone in its process,
//! because it counts the process's descriptors.
#![expect(clippy::unwrap_used, reason = "a test stops where something fails")]

use std::path::PathBuf;

use entresol_heap::{Access, Aes256Gcm, CreateOptions, ErrorKind, Heap, Medium, OpenOptions};

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

fn path(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("entresol-descriptors-{}-{name}", std::process::id()))
}

/// A closed heap kept two descriptors until the last clone of it was dropped, in Java until garbage
/// was collected: a program that made heaps and closed them found too many files open.
#[test]
fn a_closed_heap_has_no_descriptors_although_others_have_it() {
    let mut closed = Vec::new();
    let before = descriptors();
    for (number, (medium, key)) in
        [(Medium::Pages, false), (Medium::Bytes, false), (Medium::Auto, true)].iter().enumerate()
    {
        let cipher = || key.then(|| std::sync::Arc::new(Aes256Gcm::new([7; 32])) as _);
        let path = path(&number.to_string());
        let options = CreateOptions {
            bytes: 8 << 20,
            medium: *medium,
            cipher: cipher(),
            ..CreateOptions::default()
        };
        let heap = Heap::create(&path, &options).unwrap();
        assert!(descriptors() > before);
        heap.close_under_users().unwrap();
        assert_eq!(descriptors(), before, "made, {medium:?}");
        let refused = heap.sync().and_then(|()| heap.grow(16 << 20)).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Closed, "{refused}");
        closed.push(heap);
        for access in [Access::ReadWrite, Access::ReadOnly] {
            let options = OpenOptions {
                label: None,
                access,
                medium: *medium,
                cipher: cipher(),
                ..OpenOptions::default()
            };
            let heap = Heap::open(&path, &options).unwrap();
            let clone = heap.clone();
            heap.close().unwrap();
            assert_eq!(descriptors(), before, "opened, {medium:?}, {access:?}");
            closed.push(clone);
        }
        std::fs::remove_file(&path).unwrap();
    }
}
