//! `entresol status` and `entresol top`: a server that runs, at a glance.

mod figures;

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::{Value, json};

use crate::address::{AccessArgs, Address, Unshown};
use crate::cleanup::stop_stream;
use crate::client::{Client, Reply, refusal};
use crate::failure::{Failure, Outcome};
use crate::report::{plain_table, rounded};
use crate::units;
use figures::{Figures, Rates};

/// Lines of `top` under one heading.
const LINES: u64 = 20;

/// Which server is looked at.
#[derive(Debug, Args)]
pub(crate) struct ServerArgs {
    /// Server, such as redis://127.0.0.1:6379 or unix:/run/entresol/socket
    #[arg(long, value_name = "ADDRESS", default_value = "redis://127.0.0.1:6379",
          value_parser = Unshown(str::parse::<Address>))]
    target: Address,
    #[command(flatten)]
    access: AccessArgs,
}

/// Options of `entresol status`.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit status: 0 the server takes writes, 1 it does not, 2 it cannot be reached.

Examples:
  entresol status
  entresol status --target rediss://operator@db1:6379 --password-file secret --json")]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Options of `entresol top`.
#[derive(Debug, Args)]
#[command(after_help = "\
Columns are of the time since the line before. Reads and writes are those of entries; `cache`,
`buffer` and `device` are the shares of reads that were answered there, `absent` of those that found
nothing.

Examples:
  entresol top
  entresol top --interval 10s --count 6 --json")]
pub(crate) struct TopArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// Time between lines
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = interval)]
    interval: Duration,
    /// End after so many lines
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// Print a JSON object a line
    #[arg(long)]
    json: bool,
}

fn interval(text: &str) -> Result<Duration, String> {
    entresol_server::parse_duration(text)
        .filter(|time| *time >= Duration::from_millis(100))
        .ok_or_else(|| format!("expected a time of 100ms or more, such as 1s, found '{text}'"))
}

impl ServerArgs {
    fn connect(&self) -> Outcome<Client> {
        Client::connect(&self.target.clone().with_access(&self.access)?)
    }
}

/// What the server says of itself now.
fn look(client: &mut Client) -> Outcome<Figures> {
    client.call(&[b"INFO", b"everything"], |reply| match reply {
        Reply::Bulk(text) => Ok(Figures::parse(&String::from_utf8_lossy(text))),
        Reply::Error(text) => Err(Failure::CannotRun(format!("INFO: {}", refusal(text)))),
        other => Err(Failure::CannotRun(format!("INFO: expected a text, found {other:?}"))),
    })?
}

/// Prints how a server is.
pub(crate) fn status(args: &StatusArgs) -> Outcome<()> {
    let figures = look(&mut args.server.connect()?)?;
    if args.json {
        println!("{}", figures.json());
    } else {
        let title = format!("{} {}", figures.title(), args.server.target);
        let mut table = plain_table(&["server", &title]);
        for (what, sentence) in figures.sentences() {
            table.add_row([what.to_owned(), sentence]);
        }
        if let Some(column) = table.column_mut(1) {
            column.set_cell_alignment(comfy_table::CellAlignment::Left);
        }
        println!("{table}");
    }
    match figures.is_poisoned() {
        false => Ok(()),
        true => Err(Failure::Failed(
            "it takes no writes, since one to the device failed: check the device, then restart"
                .to_owned(),
        )),
    }
}

/// Prints a line of rates for each interval.
pub(crate) fn top(args: &TopArgs) -> Outcome<()> {
    let mut client = args.server.connect()?;
    let stopped = stop_stream()?;
    stopped
        .set_read_timeout(Some(args.interval))
        .map_err(|error| Failure::doing("cannot wait", error))?;
    let (mut before, mut since) = (look(&mut client)?, Instant::now());
    let mut lines = 0;
    while args.count.is_none_or(|count| lines < count) {
        if has_stopped(&stopped) {
            return Ok(());
        }
        let (now, at) = (look(&mut client)?, Instant::now());
        let rates = Rates::between(&before, &now, (at - since).as_secs_f64());
        let mut out = std::io::stdout().lock();
        let written = if args.json {
            let object: serde_json::Map<String, Value> =
                rates.all().map(|(name, value)| (name.to_owned(), json!(rounded(value)))).collect();
            writeln!(out, "{}", Value::Object(object))
        } else {
            let begins = lines == 0 || lines.is_multiple_of(LINES) && out.is_terminal();
            let heading = if begins { rates.heading() } else { String::new() };
            writeln!(out, "{heading}{}", rates.line())
        };
        written.and_then(|()| out.flush()).map_err(|e| Failure::doing("cannot print", e))?;
        (before, since) = (now, at);
        lines += 1;
    }
    Ok(())
}

/// Waits for the interval; whether a signal to stop came meanwhile.
fn has_stopped(stopped: &std::os::unix::net::UnixStream) -> bool {
    use std::io::Read;
    let mut byte = [0];
    let mut stopped = stopped;
    matches!(stopped.read(&mut byte), Ok(1..))
}

/// `12.3 %`, of `whole`; of nothing nothing.
fn share(part: f64, whole: f64) -> String {
    let share = if whole > 0.0 { 100.0 * part / whole } else { 0.0 };
    format!("{share:.1} %")
}

/// A count of things, as people read it.
fn count(value: f64) -> String {
    units::number(value.round())
}
