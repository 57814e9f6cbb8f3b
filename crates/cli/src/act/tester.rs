//! The common part of `act storage` and `act index`: read a configuration, open the targets, run
//! the load, write the log.
//!
//! Under `--compat` the output and the exit status are ACT's: everything on standard output, 255 if
//! the load cannot run, else 0. Otherwise the log also has the response times, messages go to
//! standard error, and a load that the devices did not sustain is a failure. A signal stops the
//! load with a last report and status 130; a second signal ends the process at once.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use entresol_certify::BucketUnit;
use entresol_certify::config::{Finding, TestOptions};
use entresol_certify::load::{
    self, Durability, Ending, Interval, Kind, Manner, Observer, Plan, Series, Target,
    TargetOptions, Trouble,
};
use entresol_certify::text::{self, ReportText, Tester};
use signal_hook::flag;

use super::outcome::{Sums, lagging};
use super::unread;
use crate::cleanup::stop_signals;
use crate::failure::{Failure, Outcome};
use crate::progress;

/// Options of `entresol act storage` and `entresol act index`.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit status: 0 the load ran, 1 the devices did not sustain it, 2 could not run, 130 stopped.
With --compat as ACT: 255 could not run, else 0.

Example:
  entresol act storage act_storage.conf > log; entresol act latency -l log")]
pub(crate) struct TesterArgs {
    /// Configuration file
    #[arg(value_name = "CONFIG")]
    config: Vec<PathBuf>,
    /// Read, pace, print and exit as ACT 6 does
    #[arg(long)]
    compat: bool,
    /// All on the target with this serial number (or path, where it has none) may be lost, whatever
    /// it is
    #[arg(long, value_name = "SERIAL")]
    destroy: Vec<String>,
    /// Issue nothing: check after a power cut that every acknowledged write of the last run with
    /// `journal` is there
    #[arg(long, conflicts_with = "compat")]
    check_journal: bool,
}

/// A configuration of a load.
pub(crate) trait Subject: Sized {
    /// Which of ACT's testers runs it.
    const TESTER: Tester;

    /// Reads a configuration with care.
    fn read(file: &[u8]) -> Outcome<(Self, Plan)>;

    /// Reads it as ACT does: what that prints, and the configuration if it gets so far. A load that
    /// would crash ACT is an error only after the devices are open, as ACT opens them first.
    fn read_compat(file: &[u8]) -> (Vec<u8>, Option<(Self, load::Result<Plan>)>);

    /// The blocks of configuration and derived rates.
    fn echo(&self) -> Outcome<String>;

    /// Devices by name.
    fn devices(&self) -> &[String];

    /// Not 0: targets are files of so many MiB.
    fn file_mbytes(&self) -> u32;

    /// Whether writes may stay in the device's memory.
    fn disables_odsync(&self) -> bool;

    /// Whether buckets are in µs, and seconds between reports.
    fn reports(&self) -> (bool, u32);

    /// How the load is issued and judged.
    fn test(&self) -> &TestOptions;

    /// The line of discovery; `None` if the target is too small.
    fn describe(&self, target: &Target) -> Option<String>;
}

/// The exit status of a load that a signal stopped.
const STOPPED: u8 = 130;
/// ACT's exit status for whatever could not run.
const COMPAT_ERROR: u8 = 255;

/// Runs the load of a configuration.
pub(crate) fn run<S: Subject>(args: &TesterArgs) -> Outcome<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    let ended =
        if args.compat { run_compat::<S>(args, &mut out) } else { run_strict::<S>(args, &mut out) };
    out.flush().map_err(log_failed)?;
    ended
}

fn run_compat<S: Subject>(args: &TesterArgs, out: &mut dyn Write) -> Outcome<()> {
    let given_up = Err(Failure::Told(COMPAT_ERROR));
    say(out, &text::banner(S::TESTER))?;
    let [config] = args.config.as_slice() else {
        say(out, &format!("usage: {} [config filename]\n", S::TESTER.program()))?;
        return given_up;
    };
    let file = match read_file(config) {
        Ok(file) => file,
        Err(error) => {
            let number = error.raw_os_error().unwrap_or_default();
            let words = load::errno_text(number);
            let path = config.display();
            let line = format!("ERROR: couldn't open config file {path} errno {number} '{words}'");
            say(out, &format!("{line}\n"))?;
            return given_up;
        }
    };
    let (printed, reading) = S::read_compat(&file);
    out.write_all(&printed).map_err(log_failed)?;
    let Some((it, plan)) = reading else { return given_up };
    let options = target_options(&it, Manner::Compatible, &args.destroy);
    let mut targets = Vec::new();
    for name in it.devices() {
        let opened = Target::open(name, &options, &mut |_| {}).and_then(|target| {
            let error = load::Error::Size { device: name.clone() };
            it.describe(&target).ok_or(error).map(|line| (target, line))
        });
        match opened {
            Ok((target, line)) => {
                say(out, &format!("{line}\n"))?;
                targets.push(target);
            }
            Err(error) => {
                say(out, &format!("{}\n", error.compat_line()))?;
                return given_up;
            }
        }
    }
    say(out, "\n")?;
    let plan = match plan {
        Ok(plan) => plan,
        Err(error) => {
            say(out, &format!("{}\n", error.compat_line()))?;
            return given_up;
        }
    };
    say(out, &text::histogram_names(&plan.series))?;
    let stop = stop_on_signals()?;
    let mut log = Log::new::<S>(&it, &plan.series, Manner::Compatible, (out, &stop));
    let ended = load::run(plan, &targets.into(), &stop, &mut log);
    log.written?;
    match ended {
        Ok(Ending::Completed | Ending::Lagged { .. }) => Ok(()),
        Ok(Ending::Interrupted) => Err(Failure::Told(STOPPED)),
        Ok(Ending::Broken(why)) => {
            say(out, &format!("ERROR: {why}\n"))?;
            given_up
        }
        Err(error) => {
            say(out, &format!("{}\n", error.compat_line()))?;
            given_up
        }
    }
}

fn run_strict<S: Subject>(args: &TesterArgs, out: &mut dyn Write) -> Outcome<()> {
    let [config] = args.config.as_slice() else {
        return Err(Failure::CannotRun(
            "expected the path of one configuration file; `entresol act config` makes such files"
                .to_owned(),
        ));
    };
    let file = std::fs::read(config).map_err(|error| unread(config, &error))?;
    let (it, plan) = S::read(&file).map_err(|failure| match failure {
        Failure::CannotRun(why) => {
            Failure::doing(format_args!("configuration {}", config.display()), why)
        }
        other => other,
    })?;
    let options = target_options(&it, Manner::Strict, &args.destroy);
    if args.check_journal {
        // What is gone is not made anew.
        let targets = open_all(it.devices(), &TargetOptions { file_mbytes: 0, ..options })?;
        return check_journal(&it, &targets, out);
    }
    let targets = open_all(it.devices(), &options)?;
    say(out, &text::banner(S::TESTER))?;
    say(out, &it.echo()?)?;
    for target in targets.iter() {
        let line = it.describe(target).ok_or_else(|| {
            let device = target.name().to_owned();
            Failure::CannotRun(load::Error::Size { device }.to_string())
        })?;
        say(out, &format!("{line}\n"))?;
    }
    let mut series = plan.series.clone();
    series.extend(plan.series.iter().map(response_of));
    say(out, "\n")?;
    say(out, &text::histogram_names(&series))?;
    out.flush().map_err(log_failed)?;
    let stop = stop_on_signals()?;
    let seed = plan.seed;
    let mut log = Log::new::<S>(&it, &series, Manner::Strict, (out, &stop));
    log.sums = Sums::of(&plan.series);
    let ended = load::run(plan, &targets, &stop, &mut log)
        .map_err(|error| Failure::CannotRun(error.to_string()))?;
    let (sums, written) = (log.sums, log.written);
    written?;
    tell(sums.table().trim_end());
    if it.test().seed.is_none() {
        tell(&format!("`seed: {seed}` in the configuration makes the same random choices again"));
    }
    match ended {
        Ending::Interrupted => {
            tell("entresol: stopped; the last report covers what was done until then");
            Err(Failure::Told(STOPPED))
        }
        ended => sums.judge(&ended, it.test().shortfall_pct),
    }
}

/// Compares the targets with the journal of the last run.
fn check_journal<S: Subject>(it: &S, targets: &[Target], out: &mut dyn Write) -> Outcome<()> {
    let Some(directory) = &it.test().journal else {
        return Err(Failure::CannotRun(
            "the configuration has no `journal: DIRECTORY`, in which the load wrote down its \
             writes"
                .to_owned(),
        ));
    };
    let report = load::check_journal(directory, targets)
        .map_err(|error| Failure::CannotRun(error.to_string()))?;
    let text = format!(
        "{}: {} acknowledged writes, {} of them lost; {} under way at the end\n",
        report.path.display(),
        report.acknowledged,
        report.lost,
        report.unsettled
    );
    say(out, &text)?;
    match report.first {
        None => Ok(()),
        Some(first) => Err(Failure::Failed(format!("acknowledged writes are lost: {first}"))),
    }
}

/// Opens all targets, with a bar where files are made.
pub(crate) fn open_all(names: &[String], options: &TargetOptions) -> Outcome<Arc<[Target]>> {
    let open = |name: &String| {
        let mut bar = None;
        let mut report = |progress: entresol_device::Progress| {
            let title = format!("making {name}");
            bar.get_or_insert_with(|| progress::bytes_bar(&title, progress.total_bytes))
                .set_position(progress.done_bytes);
        };
        let opened = Target::open(name, options, &mut report);
        if let Some(bar) = bar {
            bar.finish_and_clear();
        }
        opened.map_err(|error| Failure::CannotRun(error.to_string()))
    };
    names.iter().map(open).collect()
}

/// A flag that the first signal to stop sets; the second ends the process at once.
pub(crate) fn stop_on_signals() -> Outcome<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in stop_signals() {
        // In this order: the first signal finds the flag not yet set.
        flag::register_conditional_shutdown(signal, i32::from(STOPPED), Arc::clone(&stop))
            .and_then(|_| flag::register(signal, Arc::clone(&stop)))
            .map_err(|error| Failure::doing("cannot catch signals", error))?;
    }
    Ok(stop)
}

/// Processors that are online, counted from the first as ACT counts them.
pub(crate) fn processors() -> u32 {
    const SYSTEM: &str = "/sys/devices/system/cpu";
    let online = std::fs::read_to_string(format!("{SYSTEM}/online")).unwrap_or_default();
    let is_online = |number: u32| {
        online.trim().split(',').any(|range| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let within = |first: u32, last: u32| (first..=last).contains(&number);
            matches!((first.parse(), last.parse()), (Ok(first), Ok(last)) if within(first, last))
        })
    };
    let known = |number: u32| {
        let package = format!("{SYSTEM}/cpu{number}/topology/physical_package_id");
        Path::new(&package).exists()
    };
    (0..)
        .take_while(|&number| !is_online(number) || known(number))
        .take(4096)
        .filter(|&number| is_online(number))
        .count() as u32
}

/// Prints what is odd in a configuration.
pub(crate) fn warn(warnings: &[Finding]) {
    for warning in warnings {
        match warning.line {
            Some(line) => tell(&format!("entresol: warning: line {line}: {}", warning.text)),
            None => tell(&format!("entresol: warning: {}", warning.text)),
        }
    }
}

/// Says something on standard error. Where nobody reads that any more, a load of hours goes on.
pub(crate) fn tell(line: &str) {
    let _nobody_reads = writeln!(io::stderr(), "{line}");
}

/// Writes reports and messages.
struct Log<'a> {
    out: &'a mut dyn Write,
    report: ReportText,
    manner: Manner,
    tester: Tester,
    sums: Sums,
    written: Outcome<()>,
    stop: Arc<AtomicBool>,
}

impl<'a> Log<'a> {
    fn new<S: Subject>(
        it: &S,
        series: &[Series],
        manner: Manner,
        (out, stop): (&'a mut dyn Write, &Arc<AtomicBool>),
    ) -> Log<'a> {
        let (microseconds, interval) = it.reports();
        let unit = if microseconds { BucketUnit::Microseconds } else { BucketUnit::Milliseconds };
        let report = ReportText::new(series, unit, interval);
        let sums = Sums::of(&[]);
        let stop = Arc::clone(stop);
        Log { out, report, manner, tester: S::TESTER, sums, written: Ok(()), stop }
    }

    fn write(&mut self, text: &str) {
        if self.written.is_ok() {
            self.written = say(self.out, text);
        }
    }
}

impl Observer for Log<'_> {
    fn interval(&mut self, interval: &Interval) {
        let text = match self.manner {
            Manner::Compatible => self.report.report(interval),
            Manner::Strict => {
                self.sums.add(interval);
                let mut both = interval.clone();
                both.series.extend(interval.series.iter().map(|one| load::SeriesInterval {
                    service: one.response.clone(),
                    ..one.clone()
                }));
                self.report.report(&both)
            }
        };
        self.write(&text);
        if self.written.is_ok() {
            self.written = self.out.flush().map_err(log_failed);
        }
        if self.written.is_err() {
            // What nobody can read afterwards need not go on.
            self.stop.store(true, Ordering::Relaxed);
        }
    }

    fn trouble(&mut self, trouble: &Trouble) {
        match self.manner {
            Manner::Compatible => {
                let lines = compat_lines(self.tester, trouble);
                self.write(&lines);
            }
            Manner::Strict => {
                self.sums.trouble(trouble);
                self.write(&strict_lines(self.tester, trouble));
            }
        }
    }
}

/// What ACT prints when something goes wrong.
fn compat_lines(tester: Tester, trouble: &Trouble) -> String {
    const DRIVES: &str = "drive(s) can't keep up - test stopped\n";
    const LOAD: &str = "ACT can't do requested load - test stopped\n\
                        try configuring more 'service-threads'\n";
    match trouble {
        Trouble::Failed { kind, device, errno, .. } => {
            let (call, doing) =
                if kind.writes() { ("pwrite", "writing") } else { ("pread", "reading") };
            let nothing =
                if *errno == 0 { format!("ERROR: {call}() returned 0\n") } else { String::new() };
            let words = load::errno_text(*errno);
            format!("{nothing}ERROR: {doing} {device}: {errno} '{words}'\n")
        }
        Trouble::Wrong { text, .. } => format!("ERROR: wrong contents: {text}\n"),
        Trouble::Lagged { kind: Kind::LargeRead | Kind::Raid, .. } => {
            format!("ERROR: large block reads can't keep up\n{DRIVES}")
        }
        Trouble::Lagged { kind: Kind::LargeWrite, .. } => {
            format!("ERROR: large block writes can't keep up\n{DRIVES}")
        }
        Trouble::Lagged { kind, .. } => match (tester, kind) {
            (Tester::Storage, _) => format!("ERROR: service thread can't keep up\n{LOAD}"),
            (Tester::Index, Kind::Write) => {
                format!("ERROR: cache thread device IO can't keep up\n{DRIVES}")
            }
            (Tester::Index, _) => {
                format!("ERROR: read request generator can't keep up\n{LOAD}")
            }
        },
        Trouble::Unlisted { count } => format!("ERROR: {count} more errors are not listed\n"),
    }
}

/// What a log of ours says of it, so that a table of the log alone does not look sound.
fn strict_lines(tester: Tester, trouble: &Trouble) -> String {
    match trouble {
        Trouble::Lagged { kind, .. } => {
            let what = lagging(*kind);
            format!("ERROR: {what} can't keep up\ndrive(s) can't keep up - test stopped\n")
        }
        other => compat_lines(tester, other),
    }
}

/// The histogram of response times that goes with one of service times. Its name begins
/// differently: analysers look for names by how they begin.
fn response_of(series: &Series) -> Series {
    Series { name: format!("response-{}", series.name), ..series.clone() }
}

fn target_options<S: Subject>(it: &S, manner: Manner, destroy: &[String]) -> TargetOptions {
    let durability = if it.disables_odsync() { Durability::Flushed } else { Durability::Durable };
    TargetOptions { manner, file_mbytes: it.file_mbytes(), durability, destroy: destroy.to_vec() }
}

/// A directory reads as an empty file, as it does for ACT.
fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    if path.is_dir() { Ok(Vec::new()) } else { std::fs::read(path) }
}

fn say(out: &mut dyn Write, text: &str) -> Outcome<()> {
    out.write_all(text.as_bytes()).map_err(log_failed)
}

fn log_failed(error: io::Error) -> Failure {
    Failure::doing("cannot write the log", error)
}
