//! The program, for tests that stop it by a signal.

use std::process::Command;

/// The program as a terminal starts it: it heeds no interrupt or hangup that was ignored when it
/// started, as they are for what a script runs in the background, and under nohup.
pub(crate) fn interruptible() -> Command {
    let mut command = Command::new("env");
    command.args(["--default-signal=INT,HUP", env!("CARGO_BIN_EXE_entresol")]);
    command
}
