//! Copies of a store share its identity, and nothing else: neither takes what is the other's.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use entresol_flash::FormerBuffers;

use super::*;

/// Folders for stores and for the write buffers of all of them; removed with the test.
pub(crate) struct Yard(PathBuf);

impl Yard {
    pub(crate) fn new(name: &str) -> Yard {
        let name = format!("entresol-yard-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _none = fs::remove_dir_all(&path);
        fs::create_dir_all(path.join("buffers")).unwrap();
        Yard(path)
    }

    pub(crate) fn path(&self, store: &str) -> PathBuf {
        self.0.join(store)
    }

    pub(crate) fn options(&self) -> StoreOptions {
        StoreOptions {
            durability: Durability::Process,
            buffer_directory: Some(self.0.join("buffers")),
            boot: 7,
            ..small()
        }
    }

    pub(crate) fn open(&self, store: &str) -> (Store, Session) {
        self.open_with(store, self.options())
    }

    pub(crate) fn open_with(&self, store: &str, options: StoreOptions) -> (Store, Session) {
        let capacity_bytes = Some(8 << 20);
        let file = FileOptions { capacity_bytes, ..FileOptions::default() };
        let device: Arc<dyn Device> = Arc::new(FileDevice::open(self.path(store), &file).unwrap());
        super::open(&device, options)
    }

    /// Opens the store, sees what it holds and kills it.
    fn holds(&self, store: &str) -> (Vec<String>, FormerBuffers) {
        let (opened, mut session) = self.open(store);
        let names = ["x", "late", "later", "copy"].into_iter();
        let held = names.filter(|name| get(&mut session, name.as_bytes()).is_some());
        (held.map(str::to_owned).collect(), opened.statistics().former_buffers)
    }

    fn copy(&self, from: &str, to: &str) {
        fs::copy(self.path(from), self.path(to)).unwrap();
    }

    pub(crate) fn buffers(&self) -> Vec<PathBuf> {
        let files = fs::read_dir(self.0.join("buffers")).unwrap();
        let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
        files.sort();
        files
    }
}

impl Drop for Yard {
    fn drop(&mut self) {
        let _gone = fs::remove_dir_all(&self.0);
    }
}

fn set(session: &mut Session, name: &str) {
    put(session, name.as_bytes(), name.as_bytes(), PutOptions::default());
}

fn is_of(state: &FormerBuffers, path: &Path) -> bool {
    matches!(state, FormerBuffers::OfAnother { store, .. } if store == path)
}

/// A store, stopped, copied, and killed later: the copy took its write buffers for its own and
/// removed them, and with them 1,500 acknowledged writes.
#[test]
fn a_copy_of_a_stopped_store_leaves_what_its_original_acknowledged_since() {
    let yard = Yard::new("stopped");
    let (store, mut session) = yard.open("a");
    set(&mut session, "x");
    store.close(NOW).unwrap();
    drop((store, session));
    yard.copy("a", "b");
    let (_, mut session) = yard.open("a");
    set(&mut session, "late");
    drop(session);
    assert_eq!(yard.holds("b"), (vec!["x".into()], FormerBuffers::None));
    assert_eq!(yard.holds("a"), (vec!["x".into(), "late".into()], FormerBuffers::Taken));
}

#[test]
fn a_copy_of_a_killed_store_opens_without_its_buffers_and_says_so() {
    let yard = Yard::new("killed");
    let (store, mut session) = yard.open("a");
    set(&mut session, "x");
    store.sync().unwrap();
    set(&mut session, "late");
    drop((store, session));
    yard.copy("a", "b");
    let (copy, mut session) = yard.open("b");
    let state = copy.statistics().former_buffers;
    assert!(is_of(&state, &yard.path("a")), "{state:?}");
    assert!(state.notice().unwrap().contains("is a copy of the store at"));
    assert_eq!(get(&mut session, b"late"), None);
    set(&mut session, "copy");
    drop((copy, session));
    assert_eq!(yard.holds("a").0, ["x", "late"]);
    assert_eq!(yard.holds("b").0, ["x", "copy"]);
}

/// Old values came back in the original, and the copy showed what was written after it was made.
#[test]
fn a_store_and_a_copy_of_it_run_side_by_side_with_buffers_of_their_own() {
    let yard = Yard::new("running");
    let (store, mut session) = yard.open("a");
    set(&mut session, "x");
    store.sync().unwrap();
    yard.copy("a", "b");
    set(&mut session, "late");
    let (copy, mut session_of_copy) = yard.open("b");
    assert!(is_of(&copy.statistics().former_buffers, &yard.path("a")));
    assert_eq!(get(&mut session_of_copy, b"late"), None);
    set(&mut session_of_copy, "copy");
    set(&mut session, "later");
    assert_eq!(yard.buffers().len(), 2);
    drop((store, session));
    drop((copy, session_of_copy));
    assert_eq!(yard.holds("b").0, ["x", "copy"]);
    assert_eq!(yard.holds("a").0, ["x", "late", "later"]);
}

#[test]
fn a_killed_store_that_moved_finds_its_buffers() {
    let yard = Yard::new("moved");
    let (store, mut session) = yard.open("a");
    set(&mut session, "x");
    store.sync().unwrap();
    set(&mut session, "late");
    drop((store, session));
    fs::rename(yard.path("a"), yard.path("b")).unwrap();
    assert_eq!(yard.holds("b"), (vec!["x".into(), "late".into()], FormerBuffers::Taken));
    // To another disk: all numbers are others.
    yard.copy("b", "c");
    fs::remove_file(yard.path("b")).unwrap();
    let (held, state) = yard.holds("c");
    assert_eq!(held, ["x", "late"]);
    let FormerBuffers::Moved { buffers } = state else { panic!("{state:?}") };
    assert!(buffers.is_file(), "another copy may need them");
    assert_eq!(yard.holds("c").1, FormerBuffers::Taken, "its own by now");
}

/// A copy that was made before, and whose original is gone: what it lacks cannot be in buffers
/// alone.
#[test]
fn buffers_of_a_later_state_are_not_mixed_with_an_earlier_one() {
    let yard = Yard::new("earlier");
    let (store, mut session) = yard.open("a");
    set(&mut session, "x");
    store.sync().unwrap();
    yard.copy("a", "elsewhere");
    set(&mut session, "late");
    store.sync().unwrap();
    set(&mut session, "later");
    drop((store, session));
    yard.copy("a", "kept");
    yard.copy("elsewhere", "a");
    let (held, state) = yard.holds("a");
    assert_eq!(held, ["x"], "{state:?}");
    assert!(matches!(state, FormerBuffers::OfAnotherTime { .. }), "{state:?}");
    fs::remove_file(yard.path("a")).unwrap();
    fs::rename(yard.path("elsewhere"), yard.path("b")).unwrap();
    assert_eq!(yard.holds("b").0, ["x"]);
    let (held, state) = yard.holds("kept");
    assert_eq!(held, ["x", "late", "later"], "{state:?}");
}

/// Old and new buffers had to fit side by side: in 64 MiB of shared memory a store with four shards
/// started, but not again after it had been killed.
#[test]
fn a_start_after_a_kill_takes_the_buffers_that_are_there() {
    let yard = Yard::new("reused");
    drop(yard.open("a"));
    let inode = |file: &PathBuf| fs::metadata(file).unwrap().ino();
    let before = yard.buffers().iter().map(inode).collect::<Vec<_>>();
    for round in 0..3 {
        let (store, mut session) = yard.open("a");
        assert_eq!(yard.buffers().iter().map(inode).collect::<Vec<_>>(), before);
        set(&mut session, &round.to_string());
        drop((store, session));
    }
    // With others there is one file at a time as well.
    let options = StoreOptions { buffers_per_shard: 10, ..yard.options() };
    let (store, mut session) = yard.open_with("a", options);
    assert!((0..3).all(|round| get(&mut session, round.to_string().as_bytes()).is_some()));
    assert_eq!(yard.buffers().len(), 1);
    assert!(fs::metadata(&yard.buffers()[0]).unwrap().len() > 20 * (64 << 10));
    store.close(NOW).unwrap();
    assert!(yard.buffers().is_empty());
}

#[test]
fn what_is_missing_of_a_killed_store_is_said() {
    let yard = Yard::new("missing");
    let (store, mut session) = yard.open("a");
    set(&mut session, "x");
    drop((store, session));
    yard.buffers().iter().for_each(|file| fs::remove_file(file).unwrap());
    let rebooted = StoreOptions { boot: 8, ..yard.options() };
    yard.copy("a", "b");
    assert_eq!(yard.holds("a"), (vec![], FormerBuffers::Missing));
    let (store, _) = yard.open_with("b", rebooted);
    assert_eq!(store.statistics().former_buffers, FormerBuffers::None, "power took them");
}

/// What stood in write buffers alone was left out, without a word.
#[test]
fn a_killed_store_that_is_only_read_shows_what_stands_in_its_buffers() {
    let yard = Yard::new("read");
    let (store, mut session) = yard.open("a");
    let long = value_of(1, 300_000);
    set(&mut session, "x");
    store.sync().unwrap();
    put(&mut session, b"long", &long, PutOptions::default());
    set(&mut session, "late");
    drop((store, session));
    let (file, buffers) = (fs::read(yard.path("a")).unwrap(), yard.buffers());
    let held = fs::read(&buffers[0]).unwrap();
    let options = StoreOptions { mode: OpenMode::ReadOnly, ..yard.options() };
    let (store, mut session) = yard.open_with("a", options);
    assert_eq!(get(&mut session, b"late").as_deref(), Some(&b"late"[..]));
    assert_eq!(get(&mut session, b"long"), Some(long));
    assert_eq!((store.count(SPACE), get(&mut session, b"x").is_some()), (3, true));
    drop((store, session));
    assert!(fs::read(yard.path("a")).unwrap() == file && fs::read(&buffers[0]).unwrap() == held);
    assert_eq!(yard.buffers(), buffers);
    assert_eq!(yard.holds("a").0, ["x", "late"]);
}
