//! `--fill`: every block of every unit written once, so that reads find blocks that describe
//! themselves, and none is answered from a hole.

use std::sync::atomic::Ordering;
use std::time::Duration;

use entresol_device::{WriteBuffer, wait_readable};
use entresol_workload::oltp::{Asu, BLOCK_BYTES, Operation, Request};

use super::lanes::{Done, Lanes};
use super::ledger::Ledger;
use super::live::Setting;
use super::units::Way;
use crate::failure::{Failure, Outcome};

const IN_FLIGHT: usize = 8;
const WAIT_MAX: Duration = Duration::from_millis(100);

/// Writes all blocks as an earlier run would have, in order.
pub(super) fn run(setting: Setting<'_>) -> Outcome<()> {
    let layout = setting.units.layout();
    let mut ledger = Ledger::new(0);
    let mut lanes = setting.units.lanes(setting.args, Way::AroundCache, IN_FLIGHT)?;
    for asu in Asu::ALL {
        let end = layout.blocks(asu);
        for position in (0..end).step_by(Request::BLOCKS_MAX as usize) {
            if setting.interrupted.load(Ordering::Relaxed) {
                return Err(Failure::CannotRun("interrupted while --fill was writing".into()));
            }
            let blocks = Request::BLOCKS_MAX.min(end - position);
            let operation = Operation::Write;
            let request = Request { asu, operation, blocks, stream: 0, position, due: 0 };
            // The queue keeps the memory until it is written.
            let mut buffer = WriteBuffer::anonymous((blocks * BLOCK_BYTES) as usize)?;
            ledger.begin_write(&request, buffer.bytes_mut());
            for part in setting.units.parts(&request) {
                while !lanes.has_room(&part, 1) {
                    wait(&mut lanes)?;
                }
                lanes.write(0, &part, &buffer)?;
            }
        }
    }
    while lanes.in_flight() > 0 {
        wait(&mut lanes)?;
    }
    lanes.close()
}

/// Collects what is done, and waits for more while anything is in flight.
fn wait(lanes: &mut Lanes) -> Outcome<()> {
    let mut done: Vec<Done> = Vec::new();
    lanes.collect(&mut done)?;
    if done.is_empty() && lanes.in_flight() > 0 {
        wait_readable(&lanes.descriptors(), WAIT_MAX)?;
    }
    Ok(())
}
