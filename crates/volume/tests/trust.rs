//! When a cache trusts its clean blocks after others may have written to the backing.
#![expect(clippy::unwrap_used, reason = "a test stops where something fails")]

use std::sync::Arc;

use bytes::Bytes;
use entresol_sim::{CrashChoice, Random, SimDevice, SimOptions};
use entresol_volume::backing::memory::MemoryMedium;
use entresol_volume::backing::{Backing, Description};
use entresol_volume::{
    Cache, CacheOptions, Durable, Mode, Moment, Request, VolumeId, VolumeOptions, Volumes,
};

const BLOCK: usize = 4096;
const BLOCKS: usize = 64;

/// One of several hosts: its cache, over a backing that the others reach, too.
struct Host {
    device: SimDevice,
    medium: MemoryMedium,
    cache: Option<Cache>,
    now: u64,
}

impl Host {
    fn new(medium: &MemoryMedium, mode: Mode, seed: u64) -> Host {
        let device = SimDevice::new(SimOptions::new(seed, 8 << 20));
        let mut host = Host { device, medium: medium.clone(), cache: None, now: 0 };
        host.start();
        let options = VolumeOptions {
            name: "disk".to_owned(),
            backing: "shared".to_owned(),
            mode,
            sequential_cutoff_bytes: 0,
            ..VolumeOptions::default()
        };
        host.cache.as_mut().unwrap().create(&options, Moment(0)).unwrap();
        host
    }

    fn start(&mut self) {
        let medium = self.medium.clone();
        let options = CacheOptions {
            open_backing: Box::new(move |_| Ok(Box::new(medium.open()?) as Box<dyn Backing>)),
            ..CacheOptions::default()
        };
        let device = Arc::new(self.device.clone());
        let cache = Cache::open(device, options, Moment(self.now)).unwrap();
        assert!(cache.absent().is_empty(), "{:?}", cache.absent());
        self.cache = Some(cache);
    }

    fn stop(&mut self) {
        self.cache.take().unwrap().close(Moment(self.now)).unwrap();
        self.device = self.device.reopened(CrashChoice::KeepAll);
    }

    fn kill(&mut self) {
        drop(self.cache.take());
        self.device = self.device.reopened(CrashChoice::KeepAll);
    }

    fn run(&mut self, request: Request) -> Bytes {
        let cache = self.cache.as_mut().unwrap();
        cache.submit(VolumeId(0), 1, request, Moment(self.now));
        let mut completions = Vec::new();
        for _ in 0..10_000 {
            self.now += 10_000_000;
            cache.wait(Moment(self.now), &mut completions);
            if let Some(completion) = completions.pop() {
                return completion.result.unwrap();
            }
        }
        panic!("a request never completes: {}", cache.statistics());
    }

    fn write(&mut self, block: usize, byte: u8) {
        let (offset, bytes) = ((block * BLOCK) as u64, Bytes::from(vec![byte; BLOCK]));
        self.run(Request::Write { offset, bytes, durable: Durable::AtFlush });
    }

    fn read(&mut self, block: usize) -> u8 {
        let request = Request::Read { offset: (block * BLOCK) as u64, length: BLOCK as u32 };
        let bytes = self.run(request);
        assert!(bytes.iter().all(|byte| *byte == bytes[0]), "block {block} is torn");
        bytes[0]
    }
}

// The guide's own way to another host and back: the volume was set to pass through and the server
// stopped, the other host wrote, and the first one read what it had cached before.
#[test]
fn a_volume_that_passed_through_reads_what_other_hosts_wrote_however_it_comes_back() {
    for seed in 0..24u64 {
        let mut random = Random::new(seed);
        let medium = MemoryMedium::new(BLOCKS * BLOCK);
        let lazy = [Mode::WriteThrough, Mode::WriteBack, Mode::WriteAround];
        let mode = lazy[seed as usize % lazy.len()];
        let mut hosts = [Host::new(&medium, mode, seed), Host::new(&medium, mode, seed + 1000)];
        hosts.iter_mut().for_each(Host::stop);
        let mut model = [0u8; BLOCKS];
        for round in 0..6u8 {
            let host = &mut hosts[usize::from(round) % 2];
            host.start();
            let early = random.one_in(2);
            if early {
                host.run(Request::SetMode(mode));
            }
            for (block, expected) in model.iter().enumerate() {
                assert_eq!(host.read(block), *expected, "seed {seed}, round {round}: {block}");
            }
            host.run(Request::SetMode(mode));
            for (block, expected) in model.iter_mut().enumerate() {
                assert_eq!(host.read(block), *expected, "seed {seed}, round {round}: {block}");
                if random.one_in(3) {
                    *expected = round + 1;
                    host.write(block, round + 1);
                    assert_eq!(host.read(block), round + 1);
                }
            }
            host.run(Request::Flush);
            host.run(Request::SetMode(Mode::PassThrough));
            match random.one_in(2) {
                true => host.stop(),
                false => host.kill(),
            }
        }
    }
}

#[test]
fn a_volume_that_passes_through_while_others_write_reads_what_they_wrote_in_every_mode_after() {
    for mode in Mode::ALL {
        let medium = MemoryMedium::new(BLOCKS * BLOCK);
        let mut host = Host::new(&medium, Mode::WriteThrough, 5);
        (0..BLOCKS).for_each(|block| host.write(block, 1));
        assert_eq!(host.read(7), 1);
        host.run(Request::SetMode(Mode::PassThrough));
        medium.overwrite(0, &vec![2; BLOCKS * BLOCK]);
        host.run(Request::SetMode(mode));
        (0..BLOCKS).for_each(|block| assert_eq!(host.read(block), 2, "{mode}, block {block}"));
    }
}

// Somebody put an older file in its place and gave it the former time of modification.
#[test]
fn a_file_whose_time_of_modification_was_set_back_is_read_anew_and_keeps_what_is_dirty() {
    for mode in [Mode::WriteThrough, Mode::WriteBack] {
        let medium = MemoryMedium::new(BLOCKS * BLOCK);
        let description = medium.open().unwrap().description().clone();
        let told =
            |version: &str| Description { version: version.to_owned(), ..description.clone() };
        medium.set_description(told("monday monday"));
        let mut host = Host::new(&medium, mode, 9);
        (0..BLOCKS).for_each(|block| assert_eq!(host.read(block), 0));
        host.write(3, 1);
        host.stop();
        medium.overwrite(0, &vec![2; BLOCKS * BLOCK]);
        medium.set_description(told("monday tuesday"));
        host.start();
        let expected = |block| if block == 3 && mode == Mode::WriteBack { 1 } else { 2 };
        (0..BLOCKS).for_each(|block| assert_eq!(host.read(block), expected(block), "{mode}"));
    }
}
