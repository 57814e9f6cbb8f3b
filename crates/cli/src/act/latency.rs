//! `entresol act latency`.

use clap::Args;

use crate::failure::{Failure, Outcome};

/// Options of `entresol act latency`.
#[derive(Debug, Args)]
pub(crate) struct LatencyArgs {}

/// Tabulate the latencies of a log.
pub(crate) fn run(_args: &LatencyArgs) -> Outcome<()> {
    Err(Failure::CannotRun("not on this branch yet".to_owned()))
}
