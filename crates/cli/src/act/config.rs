//! `entresol act config`: makes a configuration, or explains one.
//!
//! It begins with a file, with measurements of a running system, or with a standard load. Options
//! change it, and an `iostat` capture fits its offsets. Without any option it asks questions.

mod index;

use std::fs::{self, File};
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use entresol_certify::Storage;
use entresol_certify::config::{ConfigError, Finding};
use entresol_certify::derive::Step;
use entresol_certify::dialogue::{self, Destination};
use entresol_certify::import::{self, FirstTable, Profile, Selection, Source};
use entresol_certify::sizing::{self, Fit, Sizing};
use serde_json::{Map, Value, json};

use super::unread;
use crate::failure::{Failure, Outcome};

/// Options of `entresol act config`.
#[derive(Debug, Args)]
#[command(after_help = "\
Without options it asks, where standard input is a terminal.
Texts of --from are told apart by their contents: tables of asloglatency, a server's log, a capture
of `iostat -x`, logs of fio, /stats of `entresol serve`. Several complete each other.

Examples:
  entresol act config --device /dev/nvme0n1 --load 30 --output 30x.conf
  entresol act config --index --device /dev/nvme1n1 --load 30 --output index.conf
  entresol act config --explain 30x.conf
  entresol act config --device /dev/nvme0n1 --from reads.txt --from writes.txt --from server.log
  entresol act config --device /dev/nvme0n1 --reads 90000 --writes 30000 --nodes 3 \\
      --drives-per-namespace 2 --explain
  entresol act config baseline.conf --fit iostat.txt --output fitted.conf")]
pub(crate) struct ConfigArgs {
    /// Configuration to begin with
    #[arg(value_name = "CONFIG")]
    config: Option<PathBuf>,
    /// It is one of index devices
    #[arg(long, conflicts_with_all = ["from", "fit"])]
    index: bool,
    /// Print each derived rate with its formula instead of the configuration
    #[arg(long)]
    explain: bool,
    /// Print JSON: the configuration's text and the derived rates
    #[arg(long)]
    json: bool,
    /// Where to write the configuration; printed otherwise
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Device to test; may be given again
    #[arg(short, long, value_name = "PATH", value_delimiter = ',')]
    device: Vec<String>,
    /// Times 2000 reads and 1000 writes a second of each device, or times the load measured
    #[arg(long, value_name = "N")]
    load: Option<f64>,
    /// Reads a second of the namespace, all nodes together
    #[arg(long, value_name = "RATE")]
    reads: Option<f64>,
    /// Writes a second of the namespace, all nodes together
    #[arg(long, value_name = "RATE")]
    writes: Option<f64>,
    /// Nodes that the rates are of
    #[arg(long, default_value_t = 1, value_name = "N")]
    nodes: u32,
    /// Drives that the namespace is spread over on a node
    #[arg(long, default_value_t = 1, value_name = "N")]
    drives_per_namespace: u32,
    /// Namespaces with this load that share a drive
    #[arg(long, default_value_t = 1, value_name = "N")]
    namespaces_per_drive: u32,
    /// Seconds of the test
    #[arg(long, value_name = "SECONDS")]
    duration: Option<u32>,
    /// Any item of a configuration, such as `record-bytes=4096`; may be given again
    #[arg(long, value_name = "ITEM=VALUE")]
    set: Vec<String>,
    /// Text of what was measured; may be given again
    #[arg(long, value_name = "FILE")]
    from: Vec<String>,
    /// Namespace in those texts; the only one otherwise
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,
    /// Device in those texts; the only busy one otherwise
    #[arg(long, value_name = "NAME")]
    measured_device: Vec<String>,
    /// The captures of `iostat` were made with `-y`: their first table counts, too
    #[arg(long)]
    iostat_y: bool,
    /// Capture of `iostat -x` that the offsets are fitted to
    #[arg(long, value_name = "FILE")]
    fit: Option<PathBuf>,
}

const DAY_SECONDS: u32 = 86_400;

/// Makes or explains a configuration.
pub(crate) fn run(args: &ConfigArgs) -> Outcome<()> {
    if args.asks_for_nothing() {
        return converse();
    }
    if args.index {
        return index::run(args);
    }
    let mut steps = Vec::new();
    let mut it = args.base()?;
    args.measure(&mut it, &mut steps)?;
    it = args.change(it)?;
    let fitted = args.fit_offsets(&mut it)?;
    let rates = it
        .derive()
        .map_err(|error| Failure::doing("deriving the rates of the configuration", error))?;
    steps.extend(rates.steps);
    let text = checked(it.to_text(&args.comment()))?;
    if let Some(fit) = &fitted {
        show_fit(fit);
    }
    args.deliver(&text, &steps)
}

impl ConfigArgs {
    fn asks_for_nothing(&self) -> bool {
        let names_input = self.config.is_some() || self.fit.is_some() || !self.from.is_empty();
        let names_load = self.load.is_some() || self.reads.is_some() || self.writes.is_some();
        let names_more = !self.device.is_empty() || !self.set.is_empty() || self.index;
        let names_output = self.output.is_some() || self.json || self.explain;
        let names_rest = self.duration.is_some() || self.namespace.is_some();
        !names_input && !names_load && !names_more && !names_output && !names_rest
    }

    /// What everything else is put into.
    fn base(&self) -> Outcome<Storage> {
        let mut it = match &self.config {
            Some(path) => read_storage(path)?,
            None => Storage { test_duration_sec: DAY_SECONDS, ..Storage::default() },
        };
        self.name_devices(&mut it.device_names, &mut it.test_duration_sec)?;
        Ok(it)
    }

    fn name_devices(&self, names: &mut Vec<String>, seconds: &mut u32) -> Outcome<()> {
        if !self.device.is_empty() {
            names.clone_from(&self.device);
        }
        *seconds = self.duration.unwrap_or(*seconds);
        if names.is_empty() {
            let sentence = "no device is named; add `--device /dev/…`, or a configuration";
            return Err(Failure::CannotRun(sentence.to_owned()));
        }
        Ok(())
    }

    /// Takes over what was measured or asked for.
    fn measure(&self, it: &mut Storage, steps: &mut Vec<Step>) -> Outcome<()> {
        let mut profile = Profile::default();
        for name in &self.from {
            profile = profile.complete(self.import(name)?);
        }
        profile.apply(it);
        let devices = it.device_names.len() as u32;
        let measured = (self.reads.or(profile.reads), self.writes.or(profile.writes));
        if let Some((reads, writes)) = self.requests(devices, measured, steps)? {
            (it.read_reqs_per_sec, it.write_reqs_per_sec) = (reads, writes);
        }
        let open = it.read_reqs_per_sec == 0 && it.write_reqs_per_sec == 0;
        if it.large_block_ops_per_sec == 0 { self.check_load(open) } else { Ok(()) }
    }

    /// Reads and writes a second of all devices; `None`: nobody asks for any.
    fn requests(
        &self,
        devices: u32,
        (reads, writes): (Option<f64>, Option<f64>),
        steps: &mut Vec<Step>,
    ) -> Outcome<Option<(u32, u32)>> {
        if reads.is_none() && writes.is_none() {
            let Some(load) = self.load else { return Ok(None) };
            let scaled = |rate: u32| whole((f64::from(rate) * load * f64::from(devices)).round());
            return Ok(Some((scaled(sizing::STANDARD_READS)?, scaled(sizing::STANDARD_WRITES)?)));
        }
        let sizing = Sizing {
            reads: reads.unwrap_or(0.0),
            writes: writes.unwrap_or(0.0),
            nodes: self.nodes,
            drives_per_namespace: self.drives_per_namespace,
            namespaces_per_drive: self.namespaces_per_drive,
            load: self.load.unwrap_or(1.0),
            devices,
        };
        let requests =
            sizing.requests().map_err(|error| Failure::doing("spreading the load", error))?;
        steps.extend(requests.steps);
        Ok(Some((requests.reads, requests.writes)))
    }

    /// Whether there is a load, or one will be set.
    fn check_load(&self, open: bool) -> Outcome<()> {
        if !open || self.set.iter().any(|item| item.contains("reqs-per-sec")) {
            return Ok(());
        }
        if self.load.is_some() || self.reads.is_some() || self.writes.is_some() {
            let sentence = "the load asked for is less than one request a second; expected more: \
                            see `--load`, `--reads` and `--writes`";
            return Err(Failure::CannotRun(sentence.to_owned()));
        }
        let sentence = "no load is known; add `--load N`, `--reads` and `--writes`, or a text of \
                        `--from` that tells rates (a log needs two dumps)";
        Err(Failure::CannotRun(sentence.to_owned()))
    }

    fn import(&self, name: &str) -> Outcome<Profile> {
        let (source, path) = named_source(name);
        let text = read_text(Path::new(path))?;
        let source = source.or_else(|| import::detect(&text)).ok_or_else(|| {
            Failure::CannotRun(format!(
                "{path} is none of the texts that are known; put `asloglatency:`, `server-log:`, \
                 `iostat:`, `fio:` or `stats:` before its name to say which it is"
            ))
        })?;
        import::import(source, &text, &self.selection())
            .map_err(|error| Failure::doing(format_args!("{path}, as {source}"), error))
    }

    fn selection(&self) -> Selection {
        Selection {
            namespace: self.namespace.clone(),
            devices: self.measured_device.clone(),
            large_block_bytes: 128 * 1024,
            first_table: match self.iostat_y {
                true => FirstTable::Interval,
                false => FirstTable::SinceStart,
            },
        }
    }

    /// Sets items by name: as lines of a file, so that they are checked as such.
    fn change(&self, it: Storage) -> Outcome<Storage> {
        let before = it.to_text("");
        let Some(text) = self.changed(|| before.clone())? else { return Ok(it) };
        let known = Storage::parse(before.as_bytes()).map_or(Vec::new(), |parsed| parsed.warnings);
        let parsed =
            Storage::parse(text.as_bytes()).map_err(|error| doing("setting items", &error))?;
        note_new(&known, &parsed.warnings);
        Ok(parsed.configuration)
    }

    /// The text of a configuration with what `--set` sets; `None`: nothing.
    fn changed(&self, text: impl FnOnce() -> String) -> Outcome<Option<String>> {
        if self.set.is_empty() {
            return Ok(None);
        }
        let mut text = text();
        for item in &self.set {
            let (name, value) = item.split_once('=').ok_or_else(|| {
                Failure::CannotRun(format!("`--set {item}` has no `=`; write ITEM=VALUE"))
            })?;
            let (name, value) = (name.trim(), value.trim());
            let begin = format!("{name}:");
            let lines = text.lines().filter(|line| !line.starts_with(&begin));
            text = lines.map(|line| format!("{line}\n")).collect::<String>();
            text.push_str(&format!("{name}: {value}\n"));
        }
        Ok(Some(text))
    }

    fn fit_offsets(&self, it: &mut Storage) -> Outcome<Option<Fit>> {
        let Some(path) = &self.fit else { return Ok(None) };
        let doing = || format!("fitting offsets to {}", path.display());
        let text = read_text(path)?;
        let load = import::device_load(&text, &self.selection())
            .map_err(|error| Failure::doing(doing(), error))?;
        sizing::fit(it, &load).map(Some).map_err(|error| Failure::doing(doing(), error))
    }

    fn comment(&self) -> String {
        let mut comment = match self.index {
            true => "for index devices (`act index`, or `--index` of `act certify` and `search`), \
                     made by `entresol act config --index`"
                .to_owned(),
            false => "made by `entresol act config`".to_owned(),
        };
        if let Some(load) = self.load {
            comment.push_str(&format!(", {load}x"));
        }
        for name in &self.from {
            comment.push_str(&format!("\nfrom {}", name.replace(['\n', '\r'], " ")));
        }
        comment
    }

    fn deliver(&self, text: &str, steps: &[Step]) -> Outcome<()> {
        if let Some(path) = &self.output {
            create_new(path, text)?;
        }
        let printed = if self.json {
            let rates: Map<String, Value> = steps.iter().map(step_json).collect();
            format!("{:#}\n", json!({ "configuration": text, "rates": rates }))
        } else if self.explain {
            explanation(steps)
        } else if self.output.is_none() {
            text.to_owned()
        } else {
            return Ok(());
        };
        print(&printed)
    }
}

/// Asks on the terminal.
fn converse() -> Outcome<()> {
    if !io::stdin().is_terminal() {
        let sentence = "nothing says what is to be configured; name a configuration or options \
                        (see --help), or call it from a terminal to be asked";
        return Err(Failure::CannotRun(sentence.to_owned()));
    }
    let answers = dialogue::ask(&mut io::stdin().lock(), &mut io::stderr().lock())
        .map_err(|error| Failure::doing("asking for the configuration", error))?;
    let text = checked(answers.configuration.to_text(&answers.title))?;
    match answers.destination {
        Destination::Screen => print(&text),
        Destination::File => {
            create_new(Path::new(&answers.file_name), &text)?;
            say!("{} is written.", answers.file_name);
            Ok(())
        }
    }
}

fn read_storage(path: &Path) -> Outcome<Storage> {
    let parsed = Storage::parse(&read_bytes(path)?)
        .map_err(|error| Failure::doing(format_args!("configuration {}", path.display()), error))?;
    note(path, &parsed.warnings);
    Ok(parsed.configuration)
}

/// Shows what is odd in the file at `path`.
fn note(path: &Path, warnings: &[Finding]) {
    for warning in warnings {
        say!("note: {} {warning}", path.display());
    }
}

/// Shows what is odd in a text that was changed and was not before, without the lines of a text
/// that nobody has seen.
fn note_new(before: &[Finding], after: &[Finding]) {
    for warning in after.iter().filter(|new| !before.iter().any(|old| old.text == new.text)) {
        say!("note: {}", warning.text);
    }
}

/// A name may say what the text is: `iostat:capture.txt`.
fn named_source(name: &str) -> (Option<Source>, &str) {
    let sources =
        [Source::Asloglatency, Source::ServerLog, Source::Iostat, Source::Fio, Source::Stats];
    let found = name.split_once(':').and_then(|(kind, path)| {
        let source = sources.into_iter().find(|source| source.to_string() == kind)?;
        Some((Some(source), path))
    });
    found.unwrap_or((None, name))
}

/// What cannot be read back is not handed out.
fn checked(text: String) -> Outcome<String> {
    let parsed = Storage::parse(text.as_bytes());
    parsed.map(|_| text).map_err(|error| doing("the configuration that results", &error))
}

/// All that is wrong, without the lines of a text that nobody has seen.
fn doing(what: &str, error: &ConfigError) -> Failure {
    let texts: Vec<&str> = error.findings.iter().map(|finding| finding.text.as_str()).collect();
    Failure::doing(what, texts.join("; "))
}

fn explanation(steps: &[Step]) -> String {
    let width = steps.iter().map(|step| step.name.len()).max().unwrap_or(0);
    let lines = steps.iter().map(|step| {
        let Step { name, formula, value, unit } = step;
        let line = format!("{name:width$}  {value:>14.2} {unit:<8}  = {formula}");
        line + "\n"
    });
    lines.collect()
}

fn step_json(step: &Step) -> (String, Value) {
    let value = json!({ "value": step.value, "unit": step.unit, "formula": step.formula });
    (step.name.to_owned(), value)
}

fn show_fit(fit: &Fit) {
    let row = |title: &str, target: f64, before: f64, after: f64| {
        say!("{title:<8} {target:>12.1} {before:>12.1} {after:>12.1}");
    };
    say!("{:<8} {:>12} {:>12} {:>12}", "", "measured", "before", "fitted");
    let (target, before, after) = (&fit.target, &fit.before, &fit.after);
    row("r/s", target.reads, before.reads, after.reads);
    row("w/s", target.writes, before.writes, after.writes);
    let kib = 1024.0;
    row("rkB/s", target.read_bytes / kib, before.read_bytes / kib, after.read_bytes / kib);
    row("wkB/s", target.written_bytes / kib, before.written_bytes / kib, after.written_bytes / kib);
    for remark in &fit.remarks {
        say!("note: {remark}");
    }
}

fn whole(rate: f64) -> Outcome<u32> {
    if (0.0..=f64::from(u32::MAX)).contains(&rate) {
        return Ok(rate as u32);
    }
    Err(Failure::CannotRun(format!(
        "`--load` gives {rate:e} requests a second; expected 0 to 2^32 - 1"
    )))
}

fn create_new(path: &Path, text: &str) -> Outcome<()> {
    let doing = |error| {
        Failure::doing(format_args!("writing {} (which must not exist yet)", path.display()), error)
    };
    let mut file = File::create_new(path).map_err(doing)?;
    file.write_all(text.as_bytes()).map_err(doing)
}

fn read_bytes(path: &Path) -> Outcome<Vec<u8>> {
    fs::read(path).map_err(|error| unread(path, &error))
}

/// A text of what was measured.
fn read_text(path: &Path) -> Outcome<String> {
    let bytes = fs::read(path).map_err(|error| {
        Failure::CannotRun(format!(
            "cannot read {}: {error}; `entresol act config --help` says which texts are taken",
            path.display()
        ))
    })?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn print(text: &str) -> Outcome<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(|error| Failure::doing("writing the configuration", error))
}
