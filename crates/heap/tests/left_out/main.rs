//! Each sync and fence of the engine is left out in turn, and the net of the crash tests must catch
//! it: a call whose absence nothing notices is either not needed or not tested.
#![expect(clippy::unwrap_used, reason = "a test stops where something fails")]

#[path = "../crash/explore.rs"]
mod explore;
#[path = "../crash/pages.rs"]
mod pages;
#[path = "../crash/recorder.rs"]
mod recorder;
#[path = "../crash/words.rs"]
mod words;
#[path = "../crash/workload.rs"]
mod workload;

use entresol_heap::backing::Site;

use crate::explore::{Bed, explore};

/// Seeds tried for each call that is left out.
const SEEDS_TO_CATCH: u64 = 40;
/// One of so many states is opened under a second crash.
const NESTED: usize = 23;

/// Each of these left out alone must be caught by some state.
fn catch(bed: Bed, sites: &[Site]) {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let mut missed = Vec::new();
    for site in sites {
        // Recovery's own sync can only be missed by a recovery that is cut short.
        let nested = if *site == Site::Restore { 2 } else { NESTED };
        let caught = (0..SEEDS_TO_CATCH).find_map(|seed| {
            explore(bed, seed, Some(*site), nested).err().map(|error| (seed, error))
        });
        match caught {
            Some((seed, error)) => println!("{bed:?} without {site:?}: seed {seed}: {error}"),
            None => missed.push(*site),
        }
    }
    std::panic::set_hook(hook);
    assert!(missed.is_empty(), "{bed:?}: nothing noticed that these were left out: {missed:?}");
}

#[test]
fn every_sync_on_pages_is_needed() {
    catch(Bed::Pages, &Site::OF_PAGES);
}

#[test]
fn every_sync_on_encrypted_pages_is_needed() {
    catch(Bed::EncryptedPages, &Site::OF_PAGES);
}

#[test]
fn every_fence_on_words_is_needed() {
    catch(Bed::Words, &Site::OF_WORDS);
}
