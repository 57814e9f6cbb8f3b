//! `entresol act search`.

use clap::Args;

use crate::failure::{Failure, Outcome};

/// Options of `entresol act search`.
#[derive(Debug, Args)]
pub(crate) struct SearchArgs {}

/// Find the largest load that passes.
pub(crate) fn run(_args: &SearchArgs) -> Outcome<()> {
    Err(Failure::CannotRun("not on this branch yet".to_owned()))
}
