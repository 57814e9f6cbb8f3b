//! `entresol act prep`.

use std::path::PathBuf;

use clap::Args;
use entresol_certify::load::{Durability, Manner, Target, TargetOptions};
use entresol_certify::prepare::{self, Pass, PassProgress, Prepared, Survey};
use indicatif::ProgressBar;

use super::tester;
use crate::failure::{Failure, Outcome};
use crate::{progress, units};

/// Options of `entresol act prep`.
#[derive(Debug, Args)]
#[command(after_help = "\
A preparation that was stopped goes on where it was. Exit status: 0 done, 1 contents are not as
they were written (--verify), 2 could not run, 130 stopped.

Examples:
  entresol act prep /dev/nvme0n1
  entresol act prep ./target --capacity 10GiB
  entresol act prep /dev/nvme0n1 --verify")]
pub(crate) struct PrepareArgs {
    /// Device, partition or file
    #[arg(value_name = "DEVICE")]
    device: PathBuf,
    /// Make a file of this size if there is none
    #[arg(long, value_name = "SIZE", value_parser = units::parse_size, conflicts_with = "verify")]
    capacity: Option<u64>,
    /// All on the device with this serial number (or path, where it has none) may be lost, whatever
    /// it is
    #[arg(long, value_name = "SERIAL")]
    destroy: Vec<String>,
    /// Write nothing: read everything and compare it with what preparations and loads wrote
    #[arg(long)]
    verify: bool,
}

/// Bytes of ACT's blocks, in which it counts a device.
const BLOCK_BYTES: u32 = 128 << 10;
/// The exit status of a preparation that a signal stopped.
const STOPPED: u8 = 130;

/// Fill a device with zeros, then with random data.
pub(crate) fn run(args: &PrepareArgs) -> Outcome<()> {
    let options = TargetOptions {
        manner: Manner::Strict,
        file_mbytes: file_mbytes(args)?,
        durability: Durability::Flushed,
        destroy: args.destroy.clone(),
    };
    let name = args.device.display().to_string();
    if args.capacity.is_none() && !args.device.exists() {
        return Err(Failure::CannotRun(format!(
            "{name}: no such file or device; `lsblk` lists the devices, and --capacity makes a file"
        )));
    }
    let targets = tester::open_all(&[name], &options)?;
    let target = &targets[0];
    println!(
        "{} size = {} bytes, {} large blocks",
        target.name(),
        target.size_bytes(),
        target.blocks(BLOCK_BYTES)
    );
    if args.verify { verify(target) } else { fill(target) }
}

fn fill(target: &Target) -> Outcome<()> {
    let stop = tester::stop_on_signals()?;
    match prepare::survey(target).map_err(cannot)? {
        Survey::Zeroing { done_bytes, .. } => {
            println!("going on with a preparation stopped after {done_bytes} bytes of zeros");
        }
        Survey::Randomizing { done_bytes, .. } => {
            println!("going on with a preparation stopped after {done_bytes} random bytes");
        }
        Survey::Unprepared | Survey::Prepared { .. } => {}
    }
    let mut bars = Bars { name: target.name(), shown: None };
    let prepared = prepare::prepare(target, &stop, &mut |progress| bars.show(progress));
    bars.finish();
    match prepared.map_err(cannot)? {
        Prepared::Whole => {
            println!("prepared {}", target.name());
            Ok(())
        }
        Prepared::Stopped => {
            tester::tell("entresol: stopped; the same command goes on from here");
            Err(Failure::Told(STOPPED))
        }
    }
}

fn verify(target: &Target) -> Outcome<()> {
    let stop = tester::stop_on_signals()?;
    let mut bars = Bars { name: target.name(), shown: None };
    let found = prepare::verify(target, &stop, &mut |progress| bars.show(progress));
    bars.finish();
    let Some(found) = found.map_err(cannot)? else { return Err(Failure::Told(STOPPED)) };
    println!(
        "{} sectors as written, {} not ours, {} wrong, {} unreadable",
        found.good, found.foreign, found.wrong, found.unreadable
    );
    match &found.first {
        None => Ok(()),
        Some(first) => Err(Failure::Failed(format!("not all is as it was written: {first}"))),
    }
}

/// A bar for each pass.
struct Bars<'a> {
    name: &'a str,
    shown: Option<(Pass, ProgressBar)>,
}

impl Bars<'_> {
    fn show(&mut self, progress: PassProgress) {
        if self.shown.as_ref().is_none_or(|(pass, _)| *pass != progress.pass) {
            self.finish();
            let doing = match progress.pass {
                Pass::Zeros => "cleaning",
                Pass::Random => "salting",
                Pass::Verify => "verifying",
            };
            println!("{doing} device {}", self.name);
            let bar = progress::bytes_bar(doing, progress.total_bytes);
            bar.set_position(progress.done_bytes);
            bar.reset_eta();
            self.shown = Some((progress.pass, bar));
        }
        if let Some((_, bar)) = &self.shown {
            bar.set_position(progress.done_bytes);
        }
    }

    fn finish(&mut self) {
        if let Some((_, bar)) = self.shown.take() {
            bar.finish_and_clear();
        }
    }
}

fn file_mbytes(args: &PrepareArgs) -> Outcome<u32> {
    let Some(bytes) = args.capacity else { return Ok(0) };
    let whole = bytes.is_multiple_of(1 << 20).then(|| u32::try_from(bytes >> 20).ok()).flatten();
    whole.filter(|&mbytes| mbytes > 0).ok_or_else(|| {
        Failure::CannotRun(format!(
            "--capacity {bytes}: expected whole MiB, such as 512MiB or 10GiB"
        ))
    })
}

fn cannot(error: entresol_certify::load::Error) -> Failure {
    Failure::CannotRun(error.to_string())
}
