//! Streams: their blocks come ahead of them, and leave the cache to blocks that are read again.
#![expect(clippy::unwrap_used, reason = "a test stops where something fails")]

use std::sync::Arc;

use bytes::Bytes;
use entresol_device::MemoryDevice;
use entresol_volume::backing::Backing;
use entresol_volume::backing::memory::MemoryMedium;
use entresol_volume::{
    Cache, CacheOptions, Completion, Counts, Durable, Mode, Moment, Request, VolumeId,
    VolumeOptions, Volumes,
};
use entresol_workload::oltp::{
    Asu, Configuration, Layout, Mix, Operation, RequestStream, Style, TICKS_PER_SECOND,
};

const BLOCK: u64 = 4096;
const MIB: u64 = 1 << 20;

struct Volumed {
    cache: Option<Cache>,
    device: Arc<MemoryDevice>,
    media: Vec<MemoryMedium>,
    volumes: Vec<VolumeId>,
    now: u64,
}

impl Volumed {
    /// Volumes of so many blocks each, as they are made where nobody says otherwise.
    fn new(cache_bytes: u64, volumes: &[u64], options: &VolumeOptions) -> Volumed {
        let media = volumes.iter().map(|blocks| MemoryMedium::new((blocks * BLOCK) as usize));
        let mut volumed = Volumed {
            cache: None,
            device: Arc::new(MemoryDevice::new(cache_bytes).unwrap()),
            media: media.collect(),
            volumes: Vec::new(),
            now: 0,
        };
        volumed.open();
        for number in 0..volumes.len() {
            let (name, backing) = (number.to_string(), number.to_string());
            let options = VolumeOptions { name, backing, ..options.clone() };
            let made = volumed.cache().create(&options, Moment(0)).unwrap();
            volumed.volumes.push(made);
        }
        volumed
    }

    fn open(&mut self) {
        let media = self.media.clone();
        let options = CacheOptions {
            open_backing: Box::new(move |number: &str| {
                let number: usize = number.parse().unwrap();
                Ok(Box::new(media[number].open()?) as Box<dyn Backing>)
            }),
            ..CacheOptions::default()
        };
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

    /// Lets time pass, and the cache work.
    fn wait_until(&mut self, moment: u64) {
        let mut done = Vec::new();
        while self.now < moment {
            self.now = moment.min(self.now + 5_000_000);
            let now = Moment(self.now);
            self.cache().turn(now, &mut done);
        }
    }

    fn run(&mut self, number: usize, request: Request) -> Bytes {
        let volume = self.volumes[number];
        let now = Moment(self.now);
        self.cache().submit(volume, 0, request, now);
        let mut done: Vec<Completion> = Vec::new();
        while done.is_empty() {
            self.now += 100_000;
            let now = Moment(self.now);
            self.cache().wait(now, &mut done);
        }
        done.pop().unwrap().result.unwrap()
    }

    fn read(&mut self, number: usize, block: u64, blocks: u64) -> Bytes {
        let length = (blocks * BLOCK) as u32;
        self.run(number, Request::Read { offset: block * BLOCK, length })
    }

    fn write(&mut self, number: usize, block: u64, bytes: Bytes) {
        let durable = Durable::AtFlush;
        self.run(number, Request::Write { offset: block * BLOCK, bytes, durable });
    }

    fn counts(&self, number: usize) -> Counts {
        self.cache.as_ref().unwrap().counts(self.volumes[number]).unwrap()
    }
}

#[test]
fn what_was_read_ahead_of_a_write_is_never_read_after_it() {
    for mode in [Mode::WriteThrough, Mode::WriteBack, Mode::WriteAround] {
        let options = VolumeOptions { mode, ..VolumeOptions::default() };
        let mut volumed = Volumed::new(16 * MIB, &[1024], &options);
        (0..8).for_each(|block| drop(volumed.read(0, block, 1)));
        let before = volumed.counts(0);
        assert!(before.blocks_from_backing > 8, "nothing was read ahead: {before:?}");
        // A part of a block as well.
        volumed.write(0, 8, Bytes::from(vec![1; 3 * BLOCK as usize]));
        let durable = Durable::AtFlush;
        let bytes = Bytes::from(vec![2; 512]);
        volumed.run(0, Request::Write { offset: 11 * BLOCK, bytes, durable });
        let zero = Request::Zero {
            offset: 8 * BLOCK,
            length: BLOCK,
            hole: entresol_volume::Hole::Allowed,
            cost: entresol_volume::Cost::Any,
            durable,
        };
        volumed.run(0, zero);
        let expected = [(8, 0), (9, 1), (10, 1), (11, 2), (12, 0)];
        for (block, value) in expected {
            let read = volumed.read(0, block, 1);
            assert!(read[..512].iter().all(|byte| *byte == value), "{mode}: block {block}");
        }
        assert!(volumed.read(0, 11, 1)[512..].iter().all(|byte| *byte == 0));
    }
}

#[test]
fn a_stream_asks_the_backing_seldom_and_a_second_one_finds_what_the_first_read_in_the_cache() {
    let mut volumed = Volumed::new(64 * MIB, &[4096], &VolumeOptions::default());
    let mut asked = Vec::new();
    for _ in 0..3 {
        let before = volumed.counts(0);
        (0..512).for_each(|block| drop(volumed.read(0, block, 1)));
        let after = volumed.counts(0);
        asked.push((
            after.backing_reads - before.backing_reads,
            after.insertions - before.insertions,
        ));
    }
    assert!(asked[0].0 < 40 && asked[0].1 < 8, "{asked:?}");
    assert!(asked[1].1 > 500, "the second time they are cached: {asked:?}");
    assert!(asked[2].0 < 4, "{asked:?}");
}

/// More was said to be in use than there was room for.
#[test]
fn a_full_cache_says_that_its_blocks_take_no_more_than_its_room() {
    let mut volumed = Volumed::new(16 * MIB, &[16_384], &VolumeOptions::default());
    // Far from one another, so that they are no stream.
    (0..6000).for_each(|number| drop(volumed.read(0, number * 4099 % 16_384, 1)));
    let figures: serde_json::Value = serde_json::from_str(&volumed.cache().statistics()).unwrap();
    let of = |path: &str| figures.pointer(path).and_then(serde_json::Value::as_u64).unwrap();
    let (live, room) = (of("/cache/live_bytes"), of("/cache/capacity_bytes"));
    assert!(of("/cache/evicted") > 0, "{figures}");
    assert!(live <= room, "{live} of {room}: {figures}");
    let blocks = of("/volumes/0/usage/occupancy") * BLOCK;
    assert!((blocks..blocks * 11 / 10).contains(&live), "{live} for {blocks}: {figures}");
}

// The benchmark of the cache that pblio comes from: three quarters of the reads of its backing were
// gone. Streams took the places of hot blocks, half of the streams were not seen as such, blocks
// that were read from the device, however often, were evicted in order, and of what was written
// back two copies took the place of one.
#[test]
fn an_oltp_load_over_a_warm_cache_of_a_tenth_asks_the_backing_a_quarter_as_often() {
    const STORE: u64 = 288 * MIB / BLOCK;
    let layout = Layout::new([STORE, STORE, STORE * 2 / 9]).unwrap();
    let load = |volumed: &mut Volumed, bsus, seed, seconds| {
        let (contexts, style, mix) = (1, Style::Fixed, Mix::Pblio);
        let mut stream = RequestStream::new(&Configuration {
            layout,
            bsus,
            contexts,
            style,
            mix,
            seed: Some(seed),
        });
        let (mut reads, begun) = (0, volumed.now);
        loop {
            let request = stream.next();
            if request.due >= seconds * TICKS_PER_SECOND {
                return reads;
            }
            volumed.wait_until(begun + request.due * (1_000_000_000 / TICKS_PER_SECOND));
            let number = match request.asu {
                Asu::Data => 0,
                Asu::User => 1,
                Asu::Log => continue,
            };
            match request.operation {
                Operation::Read => {
                    reads += 1;
                    volumed.read(number, request.position, request.blocks);
                }
                Operation::Write => {
                    let bytes = vec![0; (request.blocks * BLOCK) as usize];
                    volumed.write(number, request.position, Bytes::from(bytes));
                }
            }
        }
    };
    for mode in [Mode::WriteThrough, Mode::WriteBack] {
        let options = VolumeOptions { mode, ..VolumeOptions::default() };
        let mut volumed = Volumed::new(64 * MIB, &[STORE, STORE], &options);
        load(&mut volumed, 100, 501, 60);
        volumed.reopen();
        let reads = load(&mut volumed, 31, 1, 20);
        let asked: u64 = [0, 1].iter().map(|number| volumed.counts(*number).backing_reads).sum();
        let saved = 1.0 - asked as f64 / reads as f64;
        assert!(
            saved >= 0.75,
            "{mode}: {asked} reads of the backing for {reads}: {saved:.3} saved"
        );
    }
}
