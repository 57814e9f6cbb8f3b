//! A store in a program of your own: puts an entry, gets it, and closes the store.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use entresol_device::{FileDevice, FileOptions};
use entresol_tier::{
    Admission, Key, Operation, Outcome, PutOptions, SessionOptions, SpaceId, StoreOptions, Tiered,
    TieredOptions, Timestamp,
};

// ANCHOR: embed
fn greet(path: &Path, now: Timestamp) -> Result<String, Box<dyn Error>> {
    let capacity_bytes = Some(256 << 20);
    let file = FileDevice::open(path, &FileOptions { capacity_bytes, ..FileOptions::default() })?;
    let options = TieredOptions {
        store: StoreOptions::default(),
        memory_bytes: 64 << 20, // one cap for index, write buffers and cache
        cache_bytes: None,
        admission: Admission::Always,
    };
    let store = Tiered::open(Arc::new(file), options, now)?;
    let mut session = store.session(SessionOptions::default())?; // one for each thread
    let key = Key { space: SpaceId(0), partition: 0, bytes: b"greeting" };
    let put = Operation::Put { key, value: b"hello from flash", options: PutOptions::default() };
    session.run(now, put, &mut |_| {})?;
    let mut greeting = String::new();
    session.run(now, Operation::Get { key }, &mut |outcome| {
        if let Outcome::Found(entry) = outcome {
            greeting.push_str(&String::from_utf8_lossy(entry.value));
        }
    })?;
    store.close(now)?;
    Ok(greeting)
}
// ANCHOR_END: embed

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args_os().nth(1).ok_or("name a file for the store")?;
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH)?;
    let now = Timestamp(u64::try_from(since_epoch.as_millis())?);
    println!("{}", greet(Path::new(&path), now)?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_found_again_after_it_was_put() -> Result<(), Box<dyn Error>> {
        let path = std::env::temp_dir().join(format!("entresol-embed-{}", std::process::id()));
        let greeting = greet(&path, Timestamp(1_000));
        std::fs::remove_file(&path)?;
        assert_eq!(greeting?, "hello from flash");
        Ok(())
    }
}
