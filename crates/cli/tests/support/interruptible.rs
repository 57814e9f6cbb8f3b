//! The program, for tests that interrupt it.

use std::process::Command;

/// The program as a terminal starts it: it heeds no interrupt that was ignored when it started, as
/// it is for what a script runs in the background.
pub(crate) fn interruptible() -> Command {
    let mut command = Command::new("env");
    command.args(["--default-signal=INT", env!("CARGO_BIN_EXE_entresol")]);
    command
}
