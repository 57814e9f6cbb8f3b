//! The common part of `act certify` and `act search`: read a configuration, open its targets, show
//! progress, write the report.

use std::collections::HashMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args;
use entresol_certify::load::{Durability, Manner, TargetOptions};
use entresol_certify::machine::Machine;
use entresol_certify::prepare::{Pass, PassProgress};
use entresol_certify::report::Subject;
use entresol_certify::search::Try;
use entresol_certify::verdict::{Span, Verdict};
use entresol_certify::{
    Configured, DeviceRig, Doors, Index, Observer, Phase, RigError, Storage, TROUBLES_MAX,
};
use indicatif::{MultiProgress, ProgressBar};
use serde_json::Value;

use super::{tester, unread};
use crate::failure::{Failure, Outcome};
use crate::progress;

/// Which configuration, and where the results go.
#[derive(Debug, Args)]
pub(crate) struct SubjectArgs {
    /// Configuration file
    #[arg(value_name = "CONFIG")]
    pub(crate) config: PathBuf,
    /// It configures a test of index devices, not of data devices
    #[arg(long)]
    index: bool,
    /// Print one JSON object instead of tables
    #[arg(long)]
    pub(crate) json: bool,
    /// Write a report with charts, as one HTML file
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// All on the target with this serial number (or path, where it has none) may be lost, whatever
    /// it is
    #[arg(long, value_name = "SERIAL")]
    pub(crate) destroy: Vec<String>,
}

impl SubjectArgs {
    /// Reads the configuration.
    pub(crate) fn configured(&self) -> Outcome<Configured> {
        let file = fs::read(&self.config).map_err(|error| unread(&self.config, &error))?;
        let cannot = |error: &dyn std::fmt::Display| {
            Failure::CannotRun(format!("{}: {error}", self.config.display()))
        };
        if self.index {
            let parsed = Index::parse(&file).map_err(|error| cannot(&error))?;
            tester::warn(&parsed.warnings);
            let rates = parsed.configuration.derive().map_err(|error| cannot(&error))?;
            return Ok(Configured::Index(Box::new(parsed.configuration), rates));
        }
        let parsed = Storage::parse(&file).map_err(|error| cannot(&error))?;
        tester::warn(&parsed.warnings);
        let rates = parsed.configuration.derive().map_err(|error| cannot(&error))?;
        Ok(Configured::Storage(Box::new(parsed.configuration), rates))
    }

    /// The targets of `configured`, to be loaded until `stop` is set.
    pub(crate) fn rig(&self, configured: &Configured, stop: &Arc<AtomicBool>) -> DeviceRig {
        let names = configured.devices().to_vec();
        let (file_mbytes, disables_odsync) = match configured {
            Configured::Storage(it, _) => (it.file_size_mbytes, it.disable_odsync),
            Configured::Index(it, _) => (it.file_size_mbytes, it.disable_odsync),
        };
        let durability = if disables_odsync { Durability::Flushed } else { Durability::Durable };
        let destroy = self.destroy.clone();
        let options = TargetOptions { manner: Manner::Strict, file_mbytes, durability, destroy };
        let open = move || {
            tester::open_all(&names, &options).map_err(|failure| RigError(failure.to_string()))
        };
        let mut bars = FillingBars::new();
        let filling = move |name: &str, so_far| bars.show(name, so_far);
        let doors = Doors { open: Box::new(open), filling: Box::new(filling) };
        DeviceRig::new(configured.clone(), doors, Arc::clone(stop))
    }

    /// The head of a report on `configured`.
    pub(crate) fn subject(&self, configured: &Configured, rig: &DeviceRig) -> Subject {
        let mut configuration = configured.items();
        if !configuration.iter().any(|(name, _)| name == "seed") {
            configuration.push(("seed".to_owned(), rig.seed().to_string()));
        }
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let name = self.config.file_name().unwrap_or(self.config.as_os_str());
        Subject {
            name: name.to_string_lossy().into_owned(),
            started_unix: since_1970.as_secs(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            machine: Machine::look(configured.devices()),
            configuration,
            derived: configured.derived().to_vec(),
            errors: Vec::new(),
        }
    }

    /// Makes sure that the report can be written, before a load that takes hours.
    pub(crate) fn check_report(&self) -> Outcome<()> {
        self.report.as_deref().map_or(Ok(()), check_writable)
    }

    /// Writes the report where that was asked for, and prints JSON or text. A report that cannot be
    /// written does not keep the rest back.
    pub(crate) fn deliver(
        &self,
        page: impl FnOnce() -> String,
        json: impl FnOnce() -> Value,
        text: impl FnOnce() -> String,
    ) -> Outcome<()> {
        let written = self.report.as_ref().map_or(Ok(()), |path| write_whole(path, &page()));
        let text = if self.json { format!("{}\n", json()) } else { text() };
        let mut out = io::stdout().lock();
        let printed = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        written.and(printed.map_err(|error| Failure::doing("cannot print the results", error)))
    }
}

/// Exit status of what a signal stopped before there was a verdict.
pub(crate) const STOPPED: u8 = 130;

/// How a verdict ends the command.
pub(crate) fn ended(verdict: Verdict) -> Outcome<()> {
    match verdict {
        Verdict::Pass => Ok(()),
        Verdict::Fail => Err(Failure::Told(1)),
        Verdict::Undecided => Err(Failure::Told(STOPPED)),
    }
}

/// The first of what went wrong, as the system said it.
pub(crate) fn first_errors(errors: &[String]) -> Vec<String> {
    const SHOWN: usize = 3;
    let mut lines: Vec<String> =
        errors.iter().take(SHOWN).map(|text| format!("! {text}")).collect();
    if errors.len() > SHOWN {
        lines.push(format!("! and more: --json and --report list up to {TROUBLES_MAX} of them"));
    }
    lines
}

/// Writes a file so that it is there whole or not at all. A link stays one, and what is no file,
/// as a device or a pipe, takes the text as it comes.
pub(crate) fn write_whole(path: &Path, text: &str) -> Outcome<()> {
    let written = match OutputPath::of(path) {
        OutputPath::Other => fs::write(path, text),
        OutputPath::File(file) => {
            let partial = partial(&file);
            let written = fs::write(&partial, text).and_then(|()| fs::rename(&partial, &file));
            if written.is_err() {
                // A half would take up room on a disk that is full.
                let _nothing_left = fs::remove_file(&partial);
            }
            written
        }
    };
    written.map_err(|error| Failure::doing(format!("cannot write {}", path.display()), error))
}

/// Whether [`write_whole`] will be able to make `path`, as far as one can tell beforehand.
pub(crate) fn check_writable(path: &Path) -> Outcome<()> {
    let cannot = |error: &dyn std::fmt::Display| {
        Failure::doing(format!("cannot write {}", path.display()), error)
    };
    if path.is_dir() {
        return Err(cannot(&"it is a directory; give the name of a file"));
    }
    let OutputPath::File(file) = OutputPath::of(path) else { return Ok(()) };
    let partial = partial(&file);
    fs::write(&partial, "").and_then(|()| fs::remove_file(&partial)).map_err(|error| cannot(&error))
}

/// What a path to write to stands for.
enum OutputPath {
    /// A file at this path, which is no link, or nothing yet.
    File(PathBuf),
    /// A device, a pipe, or a link to nothing: nothing may take its place.
    Other,
}

impl OutputPath {
    fn of(path: &Path) -> OutputPath {
        match fs::metadata(path) {
            Ok(there) if there.is_file() => {
                OutputPath::File(fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()))
            }
            Ok(_) => OutputPath::Other,
            Err(_) if path.is_symlink() => OutputPath::Other,
            Err(_) => OutputPath::File(path.to_owned()),
        }
    }
}

/// Beside `path`, and nobody else's.
fn partial(path: &Path) -> PathBuf {
    let mut partial = path.as_os_str().to_owned();
    partial.push(format!(".{}.partial", std::process::id()));
    PathBuf::from(partial)
}

/// A bar for each target, anew for each pass.
struct FillingBars {
    all: MultiProgress,
    shown: HashMap<String, (Pass, ProgressBar)>,
}

impl FillingBars {
    fn new() -> FillingBars {
        FillingBars { all: MultiProgress::new(), shown: HashMap::new() }
    }

    fn show(&mut self, name: &str, so_far: PassProgress) {
        let known = self.shown.get(name).filter(|(pass, _)| *pass == so_far.pass);
        let bar = match known {
            Some((_, bar)) => bar.clone(),
            None => self.begin(name, so_far),
        };
        bar.set_position(so_far.done_bytes);
        if so_far.done_bytes >= so_far.total_bytes {
            bar.finish_and_clear();
        }
    }

    fn begin(&mut self, name: &str, so_far: PassProgress) -> ProgressBar {
        let doing = match so_far.pass {
            Pass::Zeros => "filling with zeros",
            Pass::Random => "filling with random data",
            Pass::Verify => "reading",
        };
        let bar = progress::bytes_bar(&format!("{name}: {doing}"), so_far.total_bytes);
        let bar = if bar.is_hidden() { bar } else { self.all.add(bar) };
        bar.set_position(so_far.done_bytes);
        bar.reset_eta();
        self.shown.insert(name.to_owned(), (so_far.pass, bar.clone()));
        bar
    }
}

/// Shows on standard error what is going on.
#[derive(Debug)]
pub(crate) struct Live {
    bar: Option<ProgressBar>,
    phase: Option<Phase>,
    factor: f64,
    rounds: u32,
}

impl Live {
    /// Nothing yet.
    pub(crate) fn new() -> Live {
        Live { bar: None, phase: None, factor: 1.0, rounds: 0 }
    }

    fn say(&self, line: &str) {
        match &self.bar {
            Some(bar) if !bar.is_hidden() => bar.println(line),
            _ => tester::tell(line),
        }
    }
}

impl Observer for Live {
    fn begin(&mut self, phase: Phase, seconds: Option<u32>, factor: f64) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
        let title = match phase {
            Phase::Prepare => "preparing the devices".to_owned(),
            Phase::Settle => {
                self.rounds += 1;
                format!("waiting for the steady state, round {}", self.rounds)
            }
            Phase::Test => format!("testing at {factor}x"),
            Phase::Stress => format!("stress at {factor}x"),
            Phase::Rest => "leaving the devices alone".to_owned(),
        };
        let length = seconds.map(|seconds| format!(" for {seconds} s")).unwrap_or_default();
        tester::tell(&format!("{title}{length}"));
        self.phase = Some(phase);
        if phase != Phase::Rest {
            self.factor = factor;
        }
        // Preparation shows bars of its own.
        if let Some(seconds) = seconds.filter(|seconds| *seconds > 0 && phase != Phase::Rest) {
            self.bar = Some(progress::seconds(&title, u64::from(seconds)));
        }
    }

    fn advance(&mut self, seconds: f64) {
        if let Some(bar) = &self.bar {
            bar.set_position(seconds as u64);
        }
    }

    fn slice(&mut self, slice: &Span) {
        let worst = slice.series.first().map(|figures| {
            let summary = &figures.response.summary;
            format!("99 % within {} µs, longest {} µs", summary.p99 / 1000, summary.max / 1000)
        });
        if self.phase != Some(Phase::Settle) {
            self.say(&format!("  slice {}: {}", slice.number, worst.unwrap_or_default()));
        }
    }

    fn tried(&mut self, tries: &[Try]) {
        if let Some(last) = tries.last() {
            self.say(&format!("  {}x: {}", self.factor, last.judgement.verdict.word()));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{FileTypeExt, symlink};

    use super::*;

    #[test]
    fn a_report_is_written_through_links_and_takes_no_pipes_or_devices_place() {
        let folder = std::env::temp_dir().join(format!("entresol-report-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (link, file) = (folder.join("latest"), folder.join("report"));
        fs::write(&file, "older").unwrap();
        symlink(&file, &link).unwrap();
        check_writable(&link).unwrap();
        write_whole(&link, "newer").unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs::read_to_string(&file).unwrap(), "newer");
        let (dangling, target) = (folder.join("dangling"), folder.join("target"));
        symlink(&target, &dangling).unwrap();
        write_whole(&dangling, "first").unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "first");
        let pipe = folder.join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        check_writable(&pipe).unwrap();
        let reads = std::thread::spawn({
            let pipe = pipe.clone();
            move || fs::read_to_string(pipe).unwrap()
        });
        write_whole(&pipe, "as it comes").unwrap();
        assert_eq!(reads.join().unwrap(), "as it comes");
        assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo());
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 5, "nothing else is left");
        fs::remove_dir_all(&folder).unwrap();
    }
}
