//! `entresol volume`: volumes over slow backing devices, their blocks cached on flash, for virtual
//! machines and whoever else speaks NBD.

mod cache;
mod control;
mod create;
mod serve;

use clap::Subcommand;

use crate::failure::Outcome;

/// What is done with volumes.
#[derive(Debug, Subcommand)]
pub(crate) enum VolumeCommand {
    /// Make a volume: a cache over a backing device
    Create(create::CreateArgs),
    /// Export the volumes of a cache over NBD
    Serve(Box<serve::ServeArgs>),
}

/// Does it.
pub(crate) fn run(command: &VolumeCommand) -> Outcome<()> {
    match command {
        VolumeCommand::Create(args) => create::run(args),
        VolumeCommand::Serve(args) => serve::run(args),
    }
}
