//! Every device passes the same checks.

use std::sync::Arc;

use entresol_device::{
    Device, FileDevice, FileOptions, IoEngine, MemoryDevice, Preparation, QueueOptions,
    StripeDevice, StripeOptions,
};
use entresol_sim::{SimDevice, SimOptions, conformance};

use crate::place::Place;

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
    let place = Place::temporary("blocking");
    let options = options(IoEngine::Blocking, Preparation::Allocated);
    let device = FileDevice::open(place.path().join("device"), &options).unwrap();
    assert!(device.describe().contains("blocking"), "{}", device.describe());
    conformance::check(&device);
}

#[test]
fn file_through_io_uring_conforms() {
    let place = Place::temporary("uring");
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
    for io in [IoEngine::Auto, IoEngine::Uring, IoEngine::Blocking] {
        let path = place.path().join(format!("{io:?}"));
        let device = FileDevice::open(path, &options(io, Preparation::Allocated)).unwrap();
        let inline = device.describe().contains("inline");
        assert_eq!(inline, io == IoEngine::Auto, "{}", device.describe());
        assert_eq!(device.answers_at_once(4096), inline, "{}", device.describe());
        assert!(!device.answers_at_once(1 << 20), "{}", device.describe());
        conformance::check(&device);
    }
}

#[test]
fn file_through_inline_transfers_conforms() {
    let place = Place::temporary("inline");
    let options = options(IoEngine::Inline, Preparation::Written);
    let device = FileDevice::open(place.path().join("device"), &options).unwrap();
    conformance::check(&device);
}

fn files(place: &Place, io: IoEngine, count: u32) -> Vec<Arc<dyn Device>> {
    let options = options(io, Preparation::Allocated);
    let open = |number| FileDevice::open(place.path().join(format!("{number}")), &options).unwrap();
    (0..count).map(|number| Arc::new(open(number)) as Arc<dyn Device>).collect()
}

#[test]
fn stripes_over_files_conform() {
    let place = Place::temporary("stripe");
    for (io, count, unit_bytes) in [
        (IoEngine::Uring, 3, 64 << 10),
        (IoEngine::Blocking, 2, 1 << 20),
        (IoEngine::Uring, 1, 4096),
        (IoEngine::Inline, 2, 256 << 10),
    ] {
        let dir = Place::under(place.path(), "members");
        let options = StripeOptions { unit_bytes, ..StripeOptions::default() };
        let stripe = StripeDevice::open(files(&dir, io, count), options).unwrap();
        let polls = stripe.queue(QueueOptions { depth: 1, buffer_bytes: 0 }).unwrap().poll_fd();
        assert_eq!(polls.is_some(), io != IoEngine::Blocking, "a queue of rings can be polled");
        conformance::check(&stripe);
    }
}

#[test]
fn stripes_over_devices_of_all_kinds_conform() {
    let place = Place::temporary("stripe-mixed");
    let mut members = files(&place, IoEngine::Uring, 2);
    members.push(Arc::new(MemoryDevice::new(16 << 20).unwrap()));
    members.push(Arc::new(SimDevice::new(SimOptions::new(5, 16 << 20))));
    let options = StripeOptions { unit_bytes: 8192, ..StripeOptions::default() };
    conformance::check(&StripeDevice::open(members, options).unwrap());
}
