//! Commands that read an entry, decide, and write it: at once as long as memory answers, else as
//! tasks.

use std::rc::Rc;

use entresol_tier::Key;

use super::Worker;
use super::claim::COPIES_CHANGED;
use super::execute::{Command, Work};
use crate::command::plan::{Change, Steps, Update};
use crate::failure::Failure;
use crate::modification::{Modification, Modify, Progress};

impl Worker {
    /// Reads an entry, decides, and writes; at once as long as memory answers.
    pub(super) fn update_entry(
        &mut self,
        command: &Command<'_>,
        key: Key<'_>,
        update: Update,
    ) -> Work {
        let engine = Rc::clone(&self.engine);
        let mut change = std::mem::take(&mut self.change);
        let mut modification = Modification::within(self.allowance(command.place));
        let modify = Modify { engine: &engine, request: &command.request, key, update };
        let progress = modification.advance(&modify, &mut change);
        let mut work = Work::Bytes(modification.read_bytes.max(change.value.len()));
        match progress {
            Ok(Progress::Done) => self.answer_raw(command, &change.reply),
            Ok(Progress::Larger(bytes)) => work = Work::Larger(bytes as usize, COPIES_CHANGED),
            Ok(Progress::Waits(_)) => {
                let steps = self.steps(command);
                // The engine has what is written; of the decision only the answer is needed.
                let decided = Change { reply: change.reply.clone(), ..Change::default() };
                let rest = finish(steps, update, modification, decided);
                self.spawn(command, Box::pin(rest));
                work = Work::OfTask;
            }
            Err(failure) => self.answer_error(command, &failure),
        }
        self.change = change;
        work
    }
}

/// Goes on with a modification that has to wait.
async fn finish(
    steps: Steps,
    update: Update,
    modification: Modification,
    mut change: Change,
) -> Result<Vec<u8>, Failure> {
    let request = steps.request();
    let key = request.key(1)?;
    let modify = Modify { engine: &steps.engine, request: &request, key, update };
    modification.finish(&modify, &mut change).await?;
    Ok(change.reply)
}
