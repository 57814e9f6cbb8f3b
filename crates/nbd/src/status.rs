//! Block status: what is known of a range, what the volume is asked for, and what is told of it.

use entresol_volume::{Context, Run, Volumes};
use entresol_wire::nbd::ErrorCode;

use crate::pending::Asked;
use crate::validate::{Extents, Refusal, StatusQuestion, Terms, error_code};

/// Most extents of one context in an answer.
pub(crate) const EXTENTS_MAX: usize = 64 << 10;

impl Terms {
    /// How a range stands in each context that is asked for.
    pub(crate) fn status(
        &self,
        offset: u64,
        question: StatusQuestion,
        filter: Option<&[u32]>,
        volumes: &mut dyn Volumes,
    ) -> Result<Status, (ErrorCode, String)> {
        if let Err(Refusal { code, detail }) = self.check_status(offset, question.length) {
            return Err((code, detail));
        }
        let chosen: Vec<u32> = self.agreement.contexts.iter().map(|(id, _)| *id).collect();
        let mut wanted = filter.unwrap_or(&chosen).to_vec();
        wanted.sort_unstable();
        let known = |pair: &[u32]| pair[0] != pair[1];
        if !wanted.windows(2).all(known) || !wanted.iter().all(|id| chosen.contains(id)) {
            let detail = format!("expected contexts of {chosen:?}, each once, found {wanted:?}");
            return Err((ErrorCode::Invalid, detail));
        }
        let most = if question.extents == Extents::One { 1 } else { EXTENTS_MAX };
        let mut status = Status { known: Vec::new(), asks: None, most };
        for number in wanted {
            if number == 1 {
                // The backing may have to be asked, which takes its time.
                status.asks = Some(number);
                continue;
            }
            let range = (offset, question.length);
            let runs = volumes
                .extents(self.volume.id, Context::Residency, range, most)
                .map_err(|error| (error_code(error.kind(), Asked::Read), error.to_string()))?;
            status.known.push((number, told(runs, question.length, most)));
        }
        Ok(status)
    }
}

/// How a range stands: what is known of it, and the context that the volume is to be asked for.
pub(crate) struct Status {
    pub(crate) known: Vec<(u32, Vec<(u64, u32)>)>,
    pub(crate) asks: Option<u32>,
    pub(crate) most: usize,
}

/// What is told of runs: none past the `length` that was asked about.
pub(crate) fn told(runs: Vec<Run>, length: u64, most: usize) -> Vec<(u64, u32)> {
    let mut left = length;
    let mut told = Vec::new();
    for run in runs.iter().take(most).filter(|run| run.length > 0) {
        if left == 0 {
            break;
        }
        told.push((run.length.min(left), run.flags));
        left -= run.length.min(left);
    }
    if told.is_empty() {
        // Nothing known: data, which is always true enough.
        told.push((length, 0));
    }
    told
}
