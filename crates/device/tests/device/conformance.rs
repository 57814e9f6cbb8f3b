//! Every device passes the same checks.

use crate::place::Place;
use entresol_device::{FileDevice, FileOptions, IoEngine, MemoryDevice, Preparation};
use entresol_sim::conformance;

fn options(io: IoEngine, preparation: Preparation) -> FileOptions {
    let capacity_bytes = Some(16 << 20);
    FileOptions { capacity_bytes, preparation, io, ..FileOptions::default() }
}

#[test]
fn memory_conforms() {
    conformance::check(&MemoryDevice::new(16 << 20).unwrap());
}

#[test]
fn file_through_blocking_transfers_conforms() {
    let place = Place::on_disk("blocking");
    let options = options(IoEngine::Blocking, Preparation::Allocated);
    let device = FileDevice::open(place.path().join("device"), &options).unwrap();
    assert!(device.describe().contains("blocking"), "{}", device.describe());
    conformance::check(&device);
}

#[test]
fn file_through_io_uring_conforms() {
    let place = Place::on_disk("uring");
    let options = options(IoEngine::Uring, Preparation::Written);
    let device = FileDevice::open(place.path().join("device"), &options).unwrap();
    println!("{}", device.describe());
    conformance::check(&device);
}

#[test]
fn file_on_a_memory_file_system_conforms() {
    let Some(place) = Place::in_memory("memory-fs") else {
        println!("skipped: no /dev/shm here");
        return;
    };
    for io in [IoEngine::Uring, IoEngine::Blocking] {
        let path = place.path().join(format!("{io:?}"));
        let device = FileDevice::open(path, &options(io, Preparation::Allocated)).unwrap();
        println!("{}", device.describe());
        conformance::check(&device);
    }
}
