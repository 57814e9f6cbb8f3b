//! What one get costs of reads.

use std::sync::atomic::Ordering;

use super::*;

/// Pages of tables above the engine are as long, with their headers.
#[test]
fn an_entry_as_long_as_the_read_buffers_is_one_read_up_to_64_kib() {
    let path = std::env::temp_dir().join(format!("entresol-reads-{}", std::process::id()));
    let on_file = FileOptions { capacity_bytes: Some(64 << 20), ..FileOptions::default() };
    let file: Arc<dyn Device> = Arc::new(FileDevice::open(&path, &on_file).unwrap());
    for device in [file, Arc::new(SimDevice::new(SimOptions::new(1, 64 << 20)))] {
        let options = StoreOptions { segment_bytes: 1 << 20, shards: 1, ..small() };
        let store = Store::open(Arc::clone(&device), options, NOW).unwrap();
        for read_buffer_bytes in [4 << 10, 8 << 10, 12 << 10, 16 << 10, 20 << 10, 64 << 10] {
            let options = SessionOptions { depth: 4, read_buffer_bytes, ..Default::default() };
            let mut session = store.session(options).unwrap();
            let lengths = [100, read_buffer_bytes / 2, read_buffer_bytes - 512];
            let name = |length: usize| format!("{read_buffer_bytes} {length}").into_bytes();
            for length in lengths {
                let value = value_of(length as u64, length);
                put(&mut session, &name(length), &value, PutOptions::default());
            }
            // Out of the write buffers.
            for n in 0..20 {
                put(&mut session, b"filler", &value_of(n, 1 << 20), PutOptions::default());
                while store.maintain(NOW, Budget { segments: 8 }).unwrap().more {}
            }
            for length in lengths {
                let before = device.counters().reads.load(Ordering::Relaxed);
                let found = get(&mut session, &name(length));
                assert!(found == Some(value_of(length as u64, length)), "{length} bytes");
                let reads = device.counters().reads.load(Ordering::Relaxed) - before;
                assert_eq!(reads, 1, "{length} bytes by buffers of {read_buffer_bytes}");
            }
        }
    }
    std::fs::remove_file(&path).unwrap();
}
