//! `entresol`: one subcommand per job.
//!
//! Exit status: 0 done, 1 the thing tested failed, 2 could not run.

#![deny(clippy::print_stderr)]

/// Says a line to whoever reads the standard error. Where it cannot be written, as on a full disk,
/// the work goes on: `eprintln` would end the program.
macro_rules! say {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _nobody_reads = writeln!(std::io::stderr(), $($text)*);
    }};
}

mod act;
mod address;
mod backup;
mod bench;
mod cleanup;
mod client;
mod data;
mod demo;
mod engine;
mod failure;
mod heap;
mod holder;
mod live;
mod manual;
mod meter;
mod pblio;
mod progress;
mod records;
mod report;
mod restore;
mod scratch;
mod serve;
mod service;
mod stoppable;
mod store;
mod tables;
mod transfer;
mod units;
mod user;
mod volume;

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use bench::BenchArgs;
use failure::{Failure, NOBODY_READS};

/// A data set larger than memory, served from flash as if it were in memory.
#[derive(Debug, Parser)]
#[command(name = "entresol", version, arg_required_else_help = true)]
#[command(after_help = "\
Exit status: 0 done, 1 the thing tested failed, 2 could not run.

Examples:
  entresol serve --dir /var/lib/entresol --port 6379 --memory 1GiB
  entresol bench flash-get
  entresol demo")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve a data directory or devices over RESP
    ///
    /// The first line of output names the ports, for example `listening port=6379`.
    /// Each option is also a key of the file that `--config` names, and an environment variable.
    #[command(
        version,
        after_help = "\
Examples:
  entresol serve --dir /var/lib/entresol --memory 1GiB --capacity 100GiB
  entresol serve --devices /dev/nvme0n1 --durability synced --admin-port 8080
  ENTRESOL_MEMORY=1GiB entresol serve --config /etc/entresol/entresol.conf"
    )]
    Serve(serve::ServeArgs),
    /// Load CSV or JSON lines into a store or a server
    Load(transfer::LoadArgs),
    /// Write all entries of a space of a store or a server as JSON lines or CSV
    Export(transfer::ExportArgs),
    /// Print how a running server is: health, fullness, memory, where reads are answered
    Status(live::StatusArgs),
    /// Print rates of a running server, a line a second
    Top(live::TopArgs),
    /// Back up a running server's store into a folder or a bucket, or look after such backups
    Backup(backup::BackupArgs),
    /// Write the data file of a backup into a directory
    Restore(restore::RestoreArgs),
    /// Look into a stopped store
    #[command(subcommand)]
    Store(store::StoreCommand),
    /// Make lines of the server's users file
    #[command(subcommand)]
    User(user::UserCommand),
    /// Certify storage devices: how much load they sustain under a bound on latency
    #[command(subcommand)]
    Act(act::ActCommand),
    /// Run a workload and report rates, latencies and costs
    Bench(BenchArgs),
    /// Run an SPC-1-like OLTP workload on files or devices, or simulate it
    Pblio(Box<pblio::PblioArgs>),
    /// Cache slow devices on flash and export them over NBD
    #[command(subcommand)]
    Volume(volume::VolumeCommand),
    /// Persistent heaps: make, look into, check and back up
    #[command(subcommand)]
    Heap(heap::HeapCommand),
    /// Serve a data set ten times the memory cap, kill the server, lose nothing
    Demo(demo::DemoArgs),
    /// Print what a shell completes commands and options by
    #[command(
        after_help = "Example:\n  entresol completions bash > /etc/bash_completion.d/entresol"
    )]
    Completions(manual::CompletionsArgs),
    /// Print the page of a command for `man`
    #[command(after_help = "\
Examples:
  entresol man serve | man -l -
  entresol man --dir /usr/local/share/man/man1")]
    Man(manual::ManArgs),
    /// Fill a store for `bench recovery` until killed
    #[command(hide = true)]
    FillUntilKilled(BenchArgs),
}

fn main() -> ExitCode {
    end_when_output_fails();
    let arguments = act::named_by_link(std::env::args_os().collect());
    let arguments = pblio::respelled(arguments, &options_of("pblio"));
    let cli = match Cli::try_parse_from(&arguments) {
        Ok(cli) => cli,
        Err(error) if arguments.get(1).is_some_and(|command| command == "serve") => {
            return answered(&serve::with_advice(error, &arguments));
        }
        Err(error) => return answered(&error),
    };
    let result = match &cli.command {
        Command::Serve(args) => serve::run(args),
        Command::Load(args) => transfer::load(args),
        Command::Export(args) => transfer::export(args),
        Command::Status(args) => live::status(args),
        Command::Top(args) => live::top(args),
        Command::Backup(args) => backup::run(args),
        Command::Restore(args) => restore::run(args),
        Command::Store(command) => store::run(command),
        Command::User(command) => user::run(command),
        Command::Act(command) => act::run(command),
        Command::Bench(args) => bench::run(args),
        Command::Pblio(args) => pblio::run(args),
        Command::Volume(command) => volume::run(command),
        Command::Heap(command) => heap::run(command),
        Command::Demo(args) => demo::run(args),
        Command::Completions(args) => manual::completions(args, Cli::command()),
        Command::Man(args) => manual::man(args, Cli::command()),
        Command::FillUntilKilled(args) => bench::fill_until_killed(args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Told(status)) => ExitCode::from(status),
        Err(failure) => {
            // The status counts, whether or not somebody still reads the sentence.
            let _nobody_reads = writeln!(std::io::stderr(), "entresol: {failure}");
            ExitCode::from(failure.status())
        }
    }
}

/// Says what is wrong with a command line, or the help or version that it asks for.
fn answered(answer: &clap::Error) -> ExitCode {
    if answer.use_stderr() || std::io::stdout().is_terminal() {
        let _nobody_reads = answer.print();
    } else {
        // By the way that notices when nobody can have read it.
        print!("{}", answer.render());
    }
    ExitCode::from(u8::try_from(answer.exit_code()).unwrap_or(2))
}

/// Lets the program end without a word when its output goes into a pipe that was closed, as `head`
/// does, and with a sentence when it cannot be written, as on a full disk; the standard library
/// would call both a defect.
fn end_when_output_fails() {
    let otherwise = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let message = info.payload_as_str().unwrap_or_default();
        let Some(why) = message.strip_prefix("failed printing to stdout: ") else {
            return otherwise(info);
        };
        if why.contains("Broken pipe") {
            std::process::exit(NOBODY_READS.into());
        }
        let failure = Failure::doing("cannot write", why);
        let _nobody_reads = writeln!(std::io::stderr(), "entresol: {failure}");
        std::process::exit(failure.status().into());
    }));
}

/// The long options of a subcommand, as they are spelled after the dashes.
fn options_of(subcommand: &str) -> Vec<String> {
    let command = Cli::command();
    let found = command.find_subcommand(subcommand).into_iter();
    let arguments = found.flat_map(|command| command.get_arguments());
    let longs = arguments.flat_map(|argument| argument.get_long_and_visible_aliases());
    longs.flatten().map(str::to_owned).chain(["help".to_owned()]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The help of `--devices` broke off in the middle of a line: braces around an `n` mean a new
    /// one to those who lay it out.
    #[test]
    fn no_help_holds_what_breaks_its_lines() {
        fn walk(command: &clap::Command) {
            let of_command = command.get_about().into_iter().chain(command.get_long_about());
            let arguments = command.get_arguments();
            let of_arguments = arguments.flat_map(|argument| {
                argument.get_help().into_iter().chain(argument.get_long_help())
            });
            for help in of_command.chain(of_arguments) {
                assert!(!help.to_string().contains("{n}"), "{}: {help}", command.get_name());
            }
            command.get_subcommands().for_each(walk);
        }
        walk(&Cli::command());
    }
}
