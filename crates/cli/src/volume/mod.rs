//! `entresol volume`: volumes over slow backing devices, their blocks cached on flash, for virtual
//! machines and other clients of NBD.

mod adopt;
mod cache;
mod change;
mod check;
mod control;
mod create;
mod log_level;
mod reach;
mod resize;
mod serve;
mod set;
mod stat;

use clap::Subcommand;

use crate::failure::Outcome;

/// What is done with volumes.
#[derive(Debug, Subcommand)]
pub(crate) enum VolumeCommand {
    /// Make a volume: a cache over a backing device
    Create(create::CreateArgs),
    /// Export the volumes of a cache over NBD
    Serve(Box<serve::ServeArgs>),
    /// Figures of a cache and its volumes
    Stat(stat::StatArgs),
    /// Write back what is dirty
    Flush(change::FlushArgs),
    /// Change what a volume does with the cache
    Mode(change::ModeArgs),
    /// Change a volume's options
    Set(set::SetArgs),
    /// Change how much the log of a running server says
    LogLevel(log_level::LogLevelArgs),
    /// Read every cached block and hold it against the backing
    Check(check::CheckArgs),
    /// Take over the size that a volume's backing has now
    Resize(resize::ResizeArgs),
    /// Take over a volume's backing as it is now
    Adopt(adopt::AdoptArgs),
    /// Take a volume off its cache
    Remove(resize::RemoveArgs),
}

/// Does it.
pub(crate) fn run(command: &VolumeCommand) -> Outcome<()> {
    match command {
        VolumeCommand::Create(args) => create::run(args),
        VolumeCommand::Serve(args) => serve::run(args),
        VolumeCommand::Stat(args) => stat::run(args),
        VolumeCommand::Flush(args) => change::flush(args),
        VolumeCommand::Mode(args) => change::mode(args),
        VolumeCommand::Set(args) => set::run(args),
        VolumeCommand::LogLevel(args) => log_level::run(args),
        VolumeCommand::Check(args) => check::run(args),
        VolumeCommand::Resize(args) => resize::resize(args),
        VolumeCommand::Adopt(args) => adopt::run(args),
        VolumeCommand::Remove(args) => resize::remove(args),
    }
}
