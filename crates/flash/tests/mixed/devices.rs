//! What a store of a run lies on: one device, or a stripe over several, which lose power together.

use std::sync::Arc;

use entresol_device::{Device, StripeDevice, StripeOptions};
use entresol_sim::{CrashChoice, SimDevice, SimOptions, Stall};

#[derive(Clone)]
pub(crate) struct Devices {
    members: Vec<SimDevice>,
    /// Bytes that go to one of them before the next.
    unit_bytes: u64,
}

impl Devices {
    /// So many that have `bytes` together.
    pub(crate) fn new(seed: u64, bytes: u64, (members, unit_bytes): (u64, u64)) -> Devices {
        // A stripe keeps the first unit of each for itself.
        let each = (bytes.div_ceil(unit_bytes).div_ceil(members) + 1) * unit_bytes;
        let each = if members == 1 { bytes } else { each };
        let made = |number| SimDevice::new(SimOptions::new(seed ^ number << 32, each));
        Devices { members: (0..members).map(made).collect(), unit_bytes }
    }

    pub(crate) fn open(&self) -> Arc<dyn Device> {
        if let [only] = &self.members[..] {
            return Arc::new(only.clone());
        }
        // In any order, as somebody may name them.
        let members = self.members.iter().rev();
        let members = members.map(|member| Arc::new(member.clone()) as Arc<dyn Device>).collect();
        let options = StripeOptions { unit_bytes: self.unit_bytes, ..StripeOptions::default() };
        Arc::new(StripeDevice::open(members, options).expect("a stripe opens"))
    }

    pub(crate) fn stall(&self, stall: Stall) {
        self.members.iter().for_each(|member| member.stall(stall));
    }

    /// Power fails at the call of that number, of each.
    pub(crate) fn crash_after(&self, calls: u64) {
        self.members.iter().for_each(|member| member.crash_after(calls));
    }

    /// Writes and syncs so far.
    pub(crate) fn calls(&self) -> u64 {
        self.members.iter().map(SimDevice::calls).sum()
    }

    /// After a crash of which `choice` is left, on each of them another one.
    pub(crate) fn reopened(&self, choice: CrashChoice) -> Devices {
        let choice_of = |number: u64| match choice {
            CrashChoice::Random(seed) => CrashChoice::Random(seed ^ number << 32),
            choice => choice,
        };
        let members = (0..).zip(&self.members);
        let members = members.map(|(number, member)| member.reopened(choice_of(number))).collect();
        Devices { members, unit_bytes: self.unit_bytes }
    }
}
