//! The simulated device, without an ordered fault, is a device like any other.

use entresol_sim::{Ordering, SimDevice, SimOptions, conformance};

const ORDERINGS: [Ordering; 3] =
    [Ordering::Shuffled, Ordering::AsSubmitted, Ordering::Late { looks_max: 5 }];

#[test]
fn simulated_device_conforms() {
    for seed in [1, 2, 3] {
        for ordering in ORDERINGS {
            let mut options = SimOptions::new(seed, conformance::CAPACITY_BYTES_MIN);
            options.ordering = ordering;
            conformance::check(&SimDevice::new(options));
        }
    }
}
