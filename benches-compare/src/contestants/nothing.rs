//! No store at all: every get is a miss, every put is dropped. Shows what the measuring itself
//! costs in CPU; that much is in every other row too.

use crate::contestant::{
    Blocking, Contestant, Result, Settings, VisitRow, play_blocking, play_workers,
};
use crate::plan::Phase;
use crate::turn::Turn;

struct Nothing;

/// Opens nothing.
pub fn open(_settings: &Settings) -> Result<Box<dyn Contestant>> {
    Ok(Box::new(Nothing))
}

impl Contestant for Nothing {
    fn workers(&self, phase: Phase) -> usize {
        play_workers(phase, 2).min(2)
    }

    fn play(&self, turns: Vec<Turn>) -> Result<Vec<Turn>> {
        play_blocking(self, turns)
    }

    fn flush(&self) -> Result<()> {
        Ok(())
    }
}

impl Blocking for Nothing {
    fn get(&self, _key: &[u8], visit: &mut dyn FnMut(Option<&[u8]>)) -> Result<()> {
        visit(None);
        Ok(())
    }

    fn put(&self, _entries: &[(&[u8], &[u8])], _phase: Phase) -> Result<()> {
        Ok(())
    }

    fn scan(&self, _key: &[u8], _limit: usize, _visit: VisitRow<'_>) -> Result<()> {
        Ok(())
    }

    fn remove(&self, _key: &[u8]) -> Result<()> {
        Ok(())
    }
}
