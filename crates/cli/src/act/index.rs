//! `entresol act index`.

use clap::Args;

use crate::failure::{Failure, Outcome};

/// Options of `entresol act index`.
#[derive(Debug, Args)]
pub(crate) struct IndexArgs {}

/// Load index devices as a configuration says.
pub(crate) fn run(_args: &IndexArgs) -> Outcome<()> {
    Err(Failure::CannotRun("not on this branch yet".to_owned()))
}
