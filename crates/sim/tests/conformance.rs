//! The simulated device, without an ordered fault, is a device like any other.

use entresol_sim::{Ordering, SimDevice, SimOptions, conformance};

#[test]
fn simulated_device_conforms() {
    for seed in [1, 2, 3] {
        for ordering in [Ordering::Shuffled, Ordering::AsSubmitted] {
            let mut options = SimOptions::new(seed, conformance::CAPACITY_BYTES_MIN);
            options.ordering = ordering;
            conformance::check(&SimDevice::new(options));
        }
    }
}
