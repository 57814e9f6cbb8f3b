//! What one get costs of reads.

use std::sync::atomic::Ordering;

use super::*;

/// Pages of tables above the engine are as long, with their headers.
#[test]
fn an_entry_as_long_as_the_read_buffers_is_one_read_up_to_64_kib() {
    let path = std::env::temp_dir().join(format!("entresol-reads-{}", std::process::id()));
    let on_file = FileOptions { capacity_bytes: Some(64 << 20), ..FileOptions::default() };
    let file: Arc<dyn Device> = Arc::new(FileDevice::open(&path, &on_file).unwrap());
    const BUFFERS: [usize; 6] = [4 << 10, 8 << 10, 12 << 10, 16 << 10, 20 << 10, 64 << 10];
    let lengths = |buffer: usize| [100, buffer / 2, buffer - 512];
    let name = |buffer: usize, length: usize| format!("{buffer} {length}").into_bytes();
    for device in [file, Arc::new(SimDevice::new(SimOptions::new(1, 64 << 20)))] {
        let options = StoreOptions { segment_bytes: 1 << 20, shards: 1, ..small() };
        let (store, mut session) = open(&device, options.clone());
        for buffer in BUFFERS {
            for length in lengths(buffer) {
                let value = value_of(length as u64, length);
                put(&mut session, &name(buffer, length), &value, PutOptions::default());
            }
        }
        drop(session);
        store.close(NOW).unwrap();
        drop(store);
        // Nothing is in a write buffer now.
        let store = Store::open(Arc::clone(&device), options, NOW).unwrap();
        for read_buffer_bytes in BUFFERS {
            let options = SessionOptions { depth: 4, read_buffer_bytes, ..Default::default() };
            let mut session = store.session(options).unwrap();
            for length in lengths(read_buffer_bytes) {
                let before = device.counters().reads.load(Ordering::Relaxed);
                let found = get(&mut session, &name(read_buffer_bytes, length));
                assert!(found == Some(value_of(length as u64, length)), "{length} bytes");
                let reads = device.counters().reads.load(Ordering::Relaxed) - before;
                assert_eq!(reads, 1, "{length} bytes by buffers of {read_buffer_bytes}");
            }
        }
    }
    std::fs::remove_file(&path).unwrap();
}
