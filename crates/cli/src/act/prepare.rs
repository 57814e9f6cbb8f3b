//! `entresol act prep`.

use clap::Args;

use crate::failure::{Failure, Outcome};

/// Options of `entresol act prep`.
#[derive(Debug, Args)]
pub(crate) struct PrepareArgs {}

/// Fill a device with zeros, then with random data.
pub(crate) fn run(_args: &PrepareArgs) -> Outcome<()> {
    Err(Failure::CannotRun("not on this branch yet".to_owned()))
}
