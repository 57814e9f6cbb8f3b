//! `entresol act storage`.

use clap::Args;

use crate::failure::{Failure, Outcome};

/// Options of `entresol act storage`.
#[derive(Debug, Args)]
pub(crate) struct StorageArgs {}

/// Load data devices as a configuration says.
pub(crate) fn run(_args: &StorageArgs) -> Outcome<()> {
    Err(Failure::CannotRun("not on this branch yet".to_owned()))
}
