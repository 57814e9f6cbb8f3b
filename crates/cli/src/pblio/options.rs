//! The options of `entresol pblio`: those of the original in its own spelling, and ours.

use std::ffi::{OsStr, OsString};

use clap::builder::BoolishValueParser;
use clap::{ArgAction, Args, ValueEnum};
use entresol_device::Force;
use entresol_workload::oltp::{Configuration, Layout, Mix, Style};

use crate::failure::{Failure, Outcome};
use crate::units;

/// A year.
const SECONDS_MAX: u64 = 31_536_000;

/// Files, load, cache and what comes of them.
#[derive(Debug, Args)]
#[command(disable_version_flag = true, args_override_self = true)]
#[command(after_help = "\
Options may be spelled with one dash, too: -asu1=file1 -bsu=2.
The workload is SPC-1-like; what it measures are no SPC-1 results.

Examples:
  entresol pblio --simulate --asu1 45MiB --asu2 45MiB --asu3 10MiB --bsu 2 --runlen 30 --cache 10MiB
  entresol pblio -asu1=file1 -asu2=file2 -asu3=file3 -bsu=2 -runlen=30
  entresol pblio --asu1 file1 --asu2 file2 --asu3 file3 --search --runlen 60 --ramp 10")]
pub(crate) struct PblioArgs {
    /// Data store: files, devices or NBD URIs, comma between them; with --simulate sizes as 45MiB
    #[arg(long, required_unless_present = "version", value_name = "FILES")]
    pub(super) asu1: Option<String>,
    /// User store, as large as the data store
    #[arg(long, required_unless_present = "version", value_name = "FILES")]
    pub(super) asu2: Option<String>,
    /// Log, at least two ninths of the data store
    #[arg(long, required_unless_present = "version", value_name = "FILES")]
    pub(super) asu3: Option<String>,
    /// Business scaling units, each 50 requests a second
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub(super) bsu: u64,
    /// Seconds of the run
    #[arg(long, default_value_t = 300)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=SECONDS_MAX))]
    pub(super) runlen: u64,
    /// Cache: a file or device; with --simulate a size such as 10MiB
    #[arg(long, value_name = "FILE")]
    pub(super) cache: Option<String>,
    /// Taken and not needed: the cache keeps its map in itself
    #[arg(long, value_name = "FILE")]
    pub(super) cachemeta: Option<String>,
    /// Block of the cache, KiB
    #[arg(long, default_value_t = 4, value_name = "KB")]
    pub(super) blocksize: u64,
    /// Go around the page cache; files under a cache are used through it
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    #[arg(default_value = "true", value_parser = BoolishValueParser::new())]
    #[arg(action = ArgAction::Set)]
    pub(super) directio: bool,
    /// Statistics as JSON lines, one for each period; `pblio.data` unless simulated
    #[arg(long, value_name = "FILE")]
    pub(super) data: Option<String>,
    /// Seconds of a period
    #[arg(long, default_value_t = 60)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=SECONDS_MAX))]
    pub(super) dataperiod: u64,
    /// Answer reads without I/O
    #[arg(long = "mock_reads", alias = "mock-reads")]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    #[arg(default_value = "false", value_parser = BoolishValueParser::new())]
    #[arg(action = ArgAction::Set)]
    pub(super) mock_reads: bool,
    /// Answer writes without I/O
    #[arg(long = "mock_writes", alias = "mock-writes")]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    #[arg(default_value = "false", value_parser = BoolishValueParser::new())]
    #[arg(action = ArgAction::Set)]
    pub(super) mock_writes: bool,
    /// Profiles are left to `perf record`; refused with that advice
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    #[arg(default_value = "false", value_parser = BoolishValueParser::new())]
    #[arg(action = ArgAction::Set)]
    pub(super) cpuprofile: bool,
    /// Print the version
    #[arg(long)]
    pub(super) version: bool,
    /// Run in a virtual clock: exact counters at once, no I/O
    #[arg(long)]
    pub(super) simulate: bool,
    /// How hot regions are walked
    #[arg(long, value_enum, default_value_t = StyleName::V2)]
    pub(super) style: StyleName,
    /// How many requests read
    #[arg(long, value_enum, default_value_t = MixName::Pblio)]
    pub(super) mix: MixName,
    /// Seed of the requests; without it they are those of the original
    #[arg(long, value_parser = clap::value_parser!(u64).range(0..=0xFFFF_FFFF))]
    pub(super) seed: Option<u64>,
    /// Contexts that the BSUs are dealt to; one for each hundred BSUs unless given
    #[arg(long)]
    pub(super) contexts: Option<u64>,
    /// How the simulated cache makes room
    #[arg(long, value_enum, default_value_t = CacheModelName::Original)]
    pub(super) cache_model: CacheModelName,
    /// Seconds of load before the run that are not counted
    #[arg(long, default_value_t = 0)]
    #[arg(value_parser = clap::value_parser!(u64).range(0..=SECONDS_MAX))]
    pub(super) ramp: u64,
    /// Write every block once before the run, so that no read finds a hole
    #[arg(long, conflicts_with = "simulate")]
    pub(super) fill: bool,
    /// Check what is read against what was written
    #[arg(long)]
    pub(super) verify: bool,
    /// Find the most BSUs whose mean latency stays below the limit, a run for each try
    #[arg(long, conflicts_with_all = ["simulate", "trace_in", "trace_out"])]
    pub(super) search: bool,
    /// The limit of --search, ms
    #[arg(long, default_value_t = 30.0, value_name = "MS")]
    pub(super) latency_limit: f64,
    /// Overwrite files and devices even if they hold something of somebody else's
    #[arg(long)]
    pub(super) force: bool,
    /// Write the requests to a file, one a line
    #[arg(long, value_name = "FILE")]
    pub(super) trace_out: Option<String>,
    /// Write this many requests, however long the run
    #[arg(long, requires = "trace_out", value_name = "N")]
    pub(super) trace_limit: Option<u64>,
    /// Write the requests that this context makes when it is asked alone, counted from 0
    #[arg(long, requires = "trace_out", value_name = "K")]
    pub(super) context: Option<u64>,
    /// Take the requests from a file, as --trace-out writes it
    #[arg(long, value_name = "FILE", conflicts_with_all = ["trace_out", "seed"])]
    pub(super) trace_in: Option<String>,
    /// Add percentiles to the report, from enqueueing and from the intended start
    #[arg(long)]
    pub(super) percentiles: bool,
    /// Write the run, or the search, as one HTML page with charts
    #[arg(long, value_name = "FILE")]
    pub(super) html: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    pub(super) json: bool,
}

/// How hot regions are walked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum StyleName {
    /// The oldest
    Classic,
    /// Leaves at the same places for all
    Fixed,
    /// The newest
    V2,
}

/// How many requests read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum MixName {
    /// 55 %
    Pblio,
    /// 39 %
    Original,
}

/// How the simulated cache makes room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CacheModelName {
    /// A clock over the slots of a log
    Original,
}

impl PblioArgs {
    /// What was given for the three units, in their order.
    pub(super) fn units(&self) -> [&str; 3] {
        [&self.asu1, &self.asu2, &self.asu3].map(|asu| asu.as_deref().unwrap_or_default())
    }

    /// Refuses what is well-formed and cannot be done.
    pub(super) fn check(&self) -> Outcome<()> {
        let refuse = |sentence: &str| Err(Failure::CannotRun(sentence.to_owned()));
        if self.blocksize != 4 {
            let found = self.blocksize;
            return Err(Failure::CannotRun(format!(
                "-blocksize is {found} KB; expected 4: requests come in blocks of 4 KiB, and the \
                 cache holds whole ones; leave it out"
            )));
        }
        if self.cpuprofile {
            return refuse("-cpuprofile is not offered; use `perf record -g entresol pblio ...`");
        }
        if !self.simulate && self.cache.is_some() && (self.mock_reads || self.mock_writes) {
            return refuse(
                "-mock_reads and -mock_writes answer for the units, and a cache before them would \
                 hold what nobody wrote; leave out one or the other",
            );
        }
        if self.simulate && self.verify {
            return refuse("--verify checks what is read, and --simulate reads nothing; drop one");
        }
        if self.latency_limit.is_nan() || self.latency_limit <= 0.0 {
            return refuse("--latency-limit is not above 0; expected milliseconds such as 30");
        }
        Ok(())
    }

    /// Whether `--force` was given.
    pub(super) fn force(&self) -> Force {
        if self.force { Force::Yes } else { Force::No }
    }

    /// The stream that the options describe, on units of these sizes, with `bsus`.
    pub(super) fn configuration(&self, layout: Layout, bsus: u64) -> Outcome<Configuration> {
        let mut contexts = self.contexts.unwrap_or(Configuration::contexts_for(bsus));
        if self.search {
            // It tries fewer BSUs than contexts were asked for, too.
            contexts = contexts.min(bsus);
        }
        if !(1..=bsus).contains(&contexts) {
            let sentence = format!("--contexts is {contexts}; expected 1 to {bsus}, the BSUs");
            return Err(Failure::CannotRun(sentence));
        }
        if let Some(context) = self.context.filter(|context| *context >= contexts) {
            let last = contexts - 1;
            let sentence = format!("--context is {context}; expected 0 to {last}");
            return Err(Failure::CannotRun(sentence));
        }
        let style = match self.style {
            StyleName::Classic => Style::Classic,
            StyleName::Fixed => Style::Fixed,
            StyleName::V2 => Style::V2,
        };
        let mix = match self.mix {
            MixName::Pblio => Mix::Pblio,
            MixName::Original => Mix::Original,
        };
        Ok(Configuration { layout, bsus, contexts, style, mix, seed: self.seed })
    }
}

/// The size that `text`, given for `option`, says, or that of the file of this name.
pub(super) fn size_of(option: &str, text: &str) -> Outcome<u64> {
    if let Ok(status) = std::fs::metadata(text)
        && status.is_file()
    {
        return Ok(status.len());
    }
    units::parse_size(text).map_err(|error| {
        let sentence = format!(
            "--{option} is `{text}`; with --simulate expected a size such as 45MiB or a file \
             whose size is taken: {error}"
        );
        Failure::CannotRun(sentence)
    })
}

/// The arguments with long options of one dash (`-asu1=f`) given the second one.
pub(crate) fn respelled(arguments: Vec<OsString>, longs: &[String]) -> Vec<OsString> {
    if arguments.get(1).map(OsString::as_os_str) != Some(OsStr::new("pblio")) {
        return arguments;
    }
    let respell = |argument: OsString| {
        let Some(text) = argument.to_str() else { return argument };
        let Some(name) = text.strip_prefix('-') else { return argument };
        let name = name.split('=').next().unwrap_or_default();
        let is_long = longs.iter().any(|long| long == name);
        if is_long { OsString::from(format!("-{text}")) } else { argument }
    };
    arguments.into_iter().map(respell).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_options_may_have_one_dash_and_everything_else_stays() {
        let longs = ["asu1", "bsu", "help"].map(str::to_owned);
        let respell = |words: &[&str]| {
            respelled(words.iter().map(OsString::from).collect(), &longs)
                .into_iter()
                .map(|word| word.into_string().unwrap())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            respell(&["entresol", "pblio", "-asu1=a,b", "--bsu", "2", "-bsu", "-2", "-h"]),
            ["entresol", "pblio", "--asu1=a,b", "--bsu", "2", "--bsu", "-2", "-h"]
        );
        assert_eq!(respell(&["entresol", "bench", "-bsu"]), ["entresol", "bench", "-bsu"]);
    }
}
