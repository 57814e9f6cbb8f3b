//! Ordered tables in a program of your own: writes a batch, scans a range, and closes the store.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use entresol_device::{FileDevice, FileOptions};
use entresol_tier::{
    Admission, Result as Stored, SessionOptions, StoreOptions, Tiered, TieredOptions, Timestamp,
};
use entresol_tree::{Action, Order, Outcome, RowRange, Tree, TreeOptions, Write, WriteBatch};

// ANCHOR: tables
fn november(path: &Path, now: Timestamp) -> Result<Vec<String>, Box<dyn Error>> {
    let capacity_bytes = Some(256 << 20);
    let file = FileDevice::open(path, &FileOptions { capacity_bytes, ..FileOptions::default() })?;
    let options = TieredOptions {
        store: StoreOptions { journal_bytes: 16 << 20, ..StoreOptions::default() },
        memory_bytes: 256 << 20,
        cache_bytes: None,
        admission: Admission::Always,
    };
    let tree = TreeOptions::default();
    let reserved = tree.memory_bytes_max(); // a part of the cap, for tables
    let store = Tiered::open_reserving(Arc::new(file), options, reserved, now)?;
    let tree = Tree::open(Arc::clone(&store), tree, now)?;
    let mut session = tree.session(SessionOptions::default())?; // one for each thread
    let events = session.table(now, b"events")?;

    let put = |key, value| Write { table: &events, key, action: Action::Put(value) };
    let writes = [put(&b"2026-11-02"[..], &b"frost"[..]), put(b"2026-12-24", b"snow")];
    let batch = WriteBatch { writes: &writes, durability: None };
    let mut written = Ok(());
    let mut visit = |_, outcome: Stored<Outcome<'_>>| written = outcome.map(|_| ());
    session.write(1, now, batch, &mut visit);
    while session.in_flight() > 0 {
        session.poll(1, now, &mut visit)?;
    }
    written?;

    let (low, high) = (&b"2026-11"[..], Some(&b"2026-12"[..]));
    let range = RowRange { table: &events, low, high, limit: 100, order: Order::Ascending };
    let mut found = Vec::new();
    let mut visit = |_, outcome: Stored<Outcome<'_>>| {
        if let Ok(Outcome::Rows(rows)) = outcome {
            found.extend(rows.iter().map(|(_, value)| String::from_utf8_lossy(value).into_owned()));
        }
    };
    session.scan(2, now, range, &mut visit);
    while session.in_flight() > 0 {
        session.poll(1, now, &mut visit)?;
    }
    tree.settle(now)?; // merges all changes: the next opening is fast
    store.close(now)?;
    Ok(found)
}
// ANCHOR_END: tables

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args_os().nth(1).ok_or("name a file for the store")?;
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH)?;
    let now = Timestamp(u64::try_from(since_epoch.as_millis())?);
    for event in november(Path::new(&path), now)? {
        println!("{event}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_finds_the_rows_of_its_range_alone() -> Result<(), Box<dyn Error>> {
        let name = format!("entresol-tables-example-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let found = november(&path, Timestamp(1_000));
        std::fs::remove_file(&path)?;
        assert_eq!(found?, ["frost"]);
        Ok(())
    }
}
