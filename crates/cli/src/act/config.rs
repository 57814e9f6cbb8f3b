//! `entresol act config`.

use clap::Args;

use crate::failure::{Failure, Outcome};

/// Options of `entresol act config`.
#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {}

/// Make or explain a configuration.
pub(crate) fn run(_args: &ConfigArgs) -> Outcome<()> {
    Err(Failure::CannotRun("not on this branch yet".to_owned()))
}
