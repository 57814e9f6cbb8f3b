//! Changes of a volume while it is served: options, size, creation and removal. Requests go on
//! meanwhile, and the changes hold after a restart.
#![expect(clippy::unwrap_used, reason = "a test stops where something fails")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use entresol_device::{Force, MemoryDevice};
use entresol_volume::backing::{self, Backing};
use entresol_volume::{
    Cache, CacheOptions, Completion, Dirty, Durable, ErrorKind, Mode, Moment, Request, Result,
    Tuning, VolumeId, VolumeOptions, Volumes,
};

const BLOCK: u64 = 4096;
const MIB: u64 = 1 << 20;

struct Setup {
    directory: PathBuf,
    device: Arc<MemoryDevice>,
    cache: Option<Cache>,
    now: u64,
}

impl Drop for Setup {
    fn drop(&mut self) {
        self.cache = None;
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

impl Setup {
    fn new() -> Setup {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("entresol-live-{}-{number}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&directory).unwrap();
        let device = Arc::new(MemoryDevice::new(32 * MIB).unwrap());
        let mut setup = Setup { directory, device, cache: None, now: 0 };
        setup.open();
        setup
    }

    fn open(&mut self) {
        let open = |place: &str| -> Result<Box<dyn Backing>> { backing::open(place, Force::No) };
        let options = CacheOptions { open_backing: Box::new(open), ..CacheOptions::default() };
        let device = Arc::clone(&self.device);
        self.cache = Some(Cache::open(device, options, Moment(self.now)).unwrap());
    }

    fn reopen(&mut self) {
        self.cache.take().unwrap().close(Moment(self.now)).unwrap();
        self.open();
    }

    fn cache(&mut self) -> &mut Cache {
        self.cache.as_mut().unwrap()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    fn create(&mut self, name: &str, mode: Mode) -> VolumeId {
        let path = self.path(name);
        set_size(&path, MIB + 512);
        let options = VolumeOptions {
            name: name.to_owned(),
            backing: path.display().to_string(),
            mode,
            sequential_cutoff_bytes: 0,
            read_ahead_bytes: 0,
            ..VolumeOptions::default()
        };
        let now = Moment(self.now);
        self.cache().create(&options, now).unwrap()
    }

    fn submit(&mut self, volume: VolumeId, token: u64, request: Request) {
        let now = Moment(self.now);
        self.cache().submit(volume, token, request, now);
    }

    /// Waits for so many ends, in order of their tokens.
    fn ends(&mut self, count: usize) -> Vec<Result<Bytes>> {
        let mut done: Vec<Completion> = Vec::new();
        while done.len() < count {
            self.now += 1_000_000;
            let now = Moment(self.now);
            self.cache().wait(now, &mut done);
        }
        done.sort_by_key(|completion| completion.token);
        done.into_iter().map(|completion| completion.result).collect()
    }

    fn run(&mut self, volume: VolumeId, request: Request) -> Result<Bytes> {
        self.submit(volume, 0, request);
        self.ends(1).remove(0)
    }

    fn write(&mut self, volume: VolumeId, block: u64, value: u8) {
        self.run(volume, write(block, value)).unwrap();
    }

    fn reads(&mut self, volume: VolumeId, block: u64) -> u8 {
        self.run(volume, read(block)).unwrap()[0]
    }

    fn info(&mut self, volume: VolumeId) -> String {
        let figures = self.cache().statistics();
        let figures: serde_json::Value = serde_json::from_str(&figures).unwrap();
        let volumes = figures["volumes"].as_array().unwrap();
        volumes.iter().find(|one| one["number"] == volume.0).unwrap().to_string()
    }
}

fn set_size(path: &Path, bytes: u64) {
    let file = std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
    file.set_len(bytes).unwrap();
}

fn write(block: u64, value: u8) -> Request {
    let bytes = Bytes::from(vec![value; BLOCK as usize]);
    Request::Write { offset: block * BLOCK, bytes, durable: Durable::AtFlush }
}

fn read(block: u64) -> Request {
    Request::Read { offset: block * BLOCK, length: BLOCK as u32 }
}

/// The server had to be stopped, and with it all guests of the cache.
#[test]
fn a_volume_grows_with_its_backing_while_requests_are_under_way() {
    for mode in [Mode::WriteThrough, Mode::WriteBack] {
        let mut setup = Setup::new();
        let (a, b) = (setup.create("a", mode), setup.create("b", mode));
        setup.write(a, 3, 7);
        setup.write(a, 255, 8);
        let past = setup.run(a, write(256, 9)).unwrap_err();
        assert_eq!(past.kind(), ErrorKind::NoSpace);
        // A size that the backing does not have is none.
        setup.run(a, Request::Resize).unwrap();
        assert_eq!(setup.run(a, write(256, 9)).unwrap_err().kind(), ErrorKind::NoSpace);
        let path = setup.path("a");
        set_size(&path, 64 * MIB);
        setup.submit(a, 1, write(4, 5));
        setup.submit(a, 2, read(3));
        setup.submit(a, 3, Request::Resize);
        setup.submit(a, 4, read(4));
        setup.submit(b, 5, write(1, 1));
        let ends = setup.ends(5);
        assert!(ends.iter().all(Result::is_ok), "{mode}: {ends:?}");
        assert_eq!((ends[1].as_ref().unwrap()[0], ends[3].as_ref().unwrap()[0]), (7, 5));
        setup.write(a, 256, 9);
        setup.write(a, 16_383, 10);
        let blocks = [(3, 7), (4, 5), (255, 8), (256, 9), (1000, 0), (16_383, 10)];
        for (block, value) in blocks {
            assert_eq!(setup.reads(a, block), value, "{mode}: block {block}");
        }
        let bytes = setup.cache().list()[0].bytes;
        assert_eq!(bytes, 64 * MIB);
        setup.reopen();
        assert!(setup.cache().absent().is_empty(), "{:?}", setup.cache().absent());
        for (block, value) in blocks {
            assert_eq!(setup.reads(a, block), value, "{mode}: block {block} after a restart");
        }
        // What is dirty would make it as long again.
        setup.run(a, Request::WriteBack).unwrap();
        set_size(&path, 2 * MIB);
        let shrunk = setup.run(a, Request::Resize).unwrap_err();
        assert_eq!(shrunk.kind(), ErrorKind::Unsupported);
        assert!(shrunk.to_string().contains("may only grow"), "{shrunk}");
        set_size(&path, 64 * MIB);
    }
}

#[test]
fn options_hold_from_the_moment_they_are_set_and_after_a_restart() {
    let mut setup = Setup::new();
    let a = setup.create("a", Mode::WriteThrough);
    for block in 0..128 {
        setup.reads(a, block);
    }
    let share = Tuning { share_bytes: Some(16 * BLOCK), ..Tuning::default() };
    setup.run(a, Request::Tune(share)).unwrap();
    // Each that is put lets some go that were there before.
    for block in 128..256 {
        setup.reads(a, block);
    }
    let held = |setup: &mut Setup| {
        let figures: serde_json::Value = serde_json::from_str(&setup.info(a)).unwrap();
        (figures["usage"]["clean"].as_u64(), figures["usage"]["share_bytes"].as_u64())
    };
    assert_eq!(held(&mut setup), (Some(16), Some(16 * BLOCK)));
    let twice = Tuning { share_bytes: Some(0), admission_hits: Some(2), ..Tuning::default() };
    setup.run(a, Request::Tune(twice)).unwrap();
    let misses = |setup: &mut Setup| {
        let before = setup.cache().counts(a).unwrap().blocks_from_backing;
        (0..3).for_each(|_| assert_eq!(setup.reads(a, 5), 0));
        setup.cache().counts(a).unwrap().blocks_from_backing - before
    };
    assert_eq!(misses(&mut setup), 2, "cached at its second miss");
    let wrong = Tuning { reservation: Some(5.0), limit: Some(1.0), ..Tuning::default() };
    assert_eq!(setup.run(a, Request::Tune(wrong)).unwrap_err().kind(), ErrorKind::InvalidInput);
    let limit = Tuning { limit: Some(100.0), ..Tuning::default() };
    setup.run(a, Request::Tune(limit)).unwrap();
    let took = |setup: &mut Setup| {
        let before = setup.now;
        (0..200).for_each(|block| assert_eq!(setup.reads(a, block), 0));
        (setup.now - before) / 1_000_000
    };
    assert!(took(&mut setup) >= 1_500, "200 requests at 100 a second");
    setup.reopen();
    assert!(took(&mut setup) >= 1_500, "the limit is gone after a restart");
    let none = Tuning { limit: Some(0.0), ..Tuning::default() };
    setup.run(a, Request::Tune(none)).unwrap();
    assert!(took(&mut setup) < 1_500, "the limit holds still");
}

#[test]
fn a_volume_is_removed_while_others_are_served_and_its_number_is_used_again() {
    let mut setup = Setup::new();
    let (a, b) = (setup.create("a", Mode::WriteBack), setup.create("b", Mode::WriteThrough));
    setup.write(b, 1, 1);
    setup.write(a, 2, 2);
    let kept = setup.run(a, Request::Remove(Dirty::Keep)).unwrap_err();
    assert!(kept.to_string().contains("are dirty"), "{kept}");
    assert_eq!(setup.reads(a, 2), 2);
    setup.run(a, Request::WriteBack).unwrap();
    setup.submit(a, 1, read(2));
    setup.submit(a, 2, Request::Remove(Dirty::Keep));
    setup.submit(a, 3, read(2));
    setup.submit(b, 4, read(1));
    let ends = setup.ends(4);
    assert_eq!(ends[0].as_ref().unwrap()[0], 2);
    assert!(ends[1].is_ok(), "{:?}", ends[1]);
    assert_eq!(ends[2].as_ref().unwrap_err().kind(), ErrorKind::Name, "it came after");
    assert_eq!(ends[3].as_ref().unwrap()[0], 1);
    assert_eq!(setup.run(a, read(2)).unwrap_err().kind(), ErrorKind::Name);
    // The file is nobody's any more, and what was cached of the old volume is not of the new one.
    std::fs::write(setup.path("a"), vec![9; MIB as usize]).unwrap();
    let again = setup.create("a", Mode::WriteThrough);
    assert_eq!(again, a);
    assert_eq!(setup.reads(again, 2), 9);
    setup.run(again, Request::Remove(Dirty::Lose)).unwrap();
    setup.reopen();
    assert_eq!(setup.cache().list().len(), 1);
    assert_eq!(setup.reads(b, 1), 1);
}
