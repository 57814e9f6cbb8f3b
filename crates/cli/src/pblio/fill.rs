//! `--fill`: every block of every unit written once, so that reads find blocks that describe
//! themselves, and none is answered from a hole.

use std::sync::atomic::Ordering;

use entresol_device::{Completion, WriteBuffer, WriteMode, WriteRequest};
use entresol_workload::oltp::{Asu, BLOCK_BYTES, Operation, Request};

use super::ledger::Ledger;
use super::live::Setting;
use crate::failure::{Failure, Outcome};

const IN_FLIGHT: usize = 8;

/// Writes all blocks as an earlier run would have, in order.
pub(super) fn run(setting: Setting<'_>) -> Outcome<()> {
    let layout = setting.units.layout();
    let mut ledger = Ledger::new(0);
    let mut queues = setting.units.queues(IN_FLIGHT)?;
    let mut completions: Vec<Completion> = Vec::new();
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
                let queue = &mut queues[part.device];
                if queue.in_flight() == queue.depth() {
                    queue.reap(1, &mut completions)?;
                }
                let start = part.first * BLOCK_BYTES as usize;
                queue.write(WriteRequest {
                    token: 0,
                    offset: part.offset,
                    buffer: &buffer,
                    range: start..start + part.blocks * BLOCK_BYTES as usize,
                    mode: WriteMode::Flushed,
                })?;
            }
            demand_written(&mut completions)?;
        }
    }
    for queue in &mut queues {
        queue.reap(queue.in_flight(), &mut completions)?;
    }
    demand_written(&mut completions)
}

fn demand_written(completions: &mut Vec<Completion>) -> Outcome<()> {
    for completion in completions.drain(..) {
        completion.result?;
    }
    Ok(())
}
