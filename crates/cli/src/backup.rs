//! `entresol backup`: makes, lists, verifies and removes backups of a running server's store.

mod source;

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use clap::{ArgGroup, Args};
use entresol_backup::{
    CopyOptions, Error, ErrorKind, Kept, Made, Manifest, ManifestName, Opening, Progress,
    Repository, back_up, keep, verify,
};
use entresol_host::run_when_idle;
use serde_json::{Value, json};

use crate::address::{AccessArgs, Address, Unshown};
use crate::client::Client;
use crate::failure::{Failure, Outcome};
use crate::progress;
use crate::report::{Format, Report, rounded};
use crate::units::{self, parse_size};
use source::Server;

/// Options of `entresol backup`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("job").required(true).args(["to", "list", "verify"])))]
#[command(after_help = "\
PLACE is a folder, or s3://BUCKET/PREFIX. For S3 the environment has the keys, the region and the
endpoint: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION, AWS_ENDPOINT_URL.

A second backup into the same place reads only what changed. A backup that was killed leaves nothing
that counts as one.

Exit status: 0 done, 1 the server gave the backup up, or something is damaged, 2 could not run.

Examples:
  entresol backup --from redis://127.0.0.1:6379 --to /backups/orders
  entresol backup --from rediss://operator@db1:6379 --password-file secret --tls-ca ca.pem \\
    --to s3://backups/orders --rate 50MB --keep 14
  entresol backup --list /backups/orders
  entresol backup --verify /backups/orders --json")]
pub(crate) struct BackupArgs {
    /// Server to back up, such as redis://127.0.0.1:6379 or unix:/run/entresol/socket
    #[arg(long, value_name = "ADDRESS", requires = "to",
          required_unless_present_any = ["list", "verify", "keep"],
          value_parser = Unshown(str::parse::<Address>))]
    from: Option<Address>,
    #[command(flatten)]
    access: AccessArgs,
    /// Place of the backups; a folder that is not there is made
    #[arg(long, value_name = "PLACE")]
    to: Option<String>,
    /// Most bytes a second that are read from the server; no bound otherwise
    #[arg(long, value_name = "SIZE", value_parser = rate, requires = "from")]
    rate: Option<u64>,
    /// Run, here and in the server, only while nothing else wants a processor. Beside a load that
    /// takes all of it the server may need the room before the backup has ended, and give it up
    #[arg(long, requires = "from")]
    idle: bool,
    /// Then keep the newest N backups of each store, and remove what only older ones need
    #[arg(long, value_name = "N", requires = "to",
          value_parser = clap::value_parser!(u32).range(1..))]
    keep: Option<u32>,
    /// List the backups of a place
    #[arg(long, value_name = "PLACE")]
    list: Option<String>,
    /// Read everything in a place, and name what is damaged and the backups that need it
    #[arg(long, value_name = "PLACE")]
    verify: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

fn rate(text: &str) -> Result<u64, String> {
    match parse_size(text)? {
        0 => Err(format!("expected a size of 1 or more, such as 50MB, found '{text}'")),
        bytes => Ok(bytes),
    }
}

/// Does one of the jobs.
pub(crate) fn run(args: &BackupArgs) -> Outcome<()> {
    if args.idle {
        // Before any thread is started. It holds nothing that the server waits for.
        run_when_idle();
    }
    let format = if args.json { Format::Json } else { Format::Table };
    if let Some(place) = &args.list {
        return list(place, format);
    }
    if let Some(place) = &args.verify {
        return verify_all(place, format);
    }
    let place = args.to.as_deref().unwrap_or_default();
    let mut report = Report::default();
    report.set("place", place);
    if let Some(address) = &args.from {
        // A server that is not there makes no folder.
        let client = Client::connect(&address.clone().with_access(&args.access)?)?;
        let repository = Repository::open(place, Opening::Create)?;
        make(&repository, client, args, &mut report)?;
    } else {
        args.access.demand_none()?;
    }
    if let Some(count) = args.keep {
        let repository = Repository::open(place, Opening::Existing)?;
        let kept = keep(&repository, count as usize, now_seconds())?;
        report_kept(&kept, &mut report);
    }
    report.print(format);
    Ok(())
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        match error.kind() {
            ErrorKind::GivenUp | ErrorKind::Damaged => Failure::Failed(error.to_string()),
            ErrorKind::Busy | ErrorKind::Refused | ErrorKind::Failed => {
                Failure::CannotRun(error.to_string())
            }
        }
    }
}

fn make(
    repository: &Repository,
    client: Client,
    args: &BackupArgs,
    report: &mut Report,
) -> Outcome<()> {
    let began = Instant::now();
    let bar = progress::bytes_bar("copying", 0);
    let options = CopyOptions { bytes_per_second: args.rate, now_seconds: now_seconds() };
    let mut server = Server::new(client, args.idle);
    let made = back_up(repository, &mut server, options, &mut |progress| show(&bar, progress));
    bar.finish_and_clear();
    report_made(&made?, began.elapsed().as_secs_f64(), report);
    Ok(())
}

/// Moves a bar of bytes, which says the segments, too.
pub(crate) fn show(bar: &indicatif::ProgressBar, progress: Progress) {
    bar.set_length(progress.bytes_total);
    bar.set_position(progress.bytes);
    bar.set_message(format!("{} of {} segments", progress.segments, progress.segments_total));
}

fn report_made(made: &Made, seconds: f64, report: &mut Report) {
    let Made { manifest, read_bytes } = made;
    let new = manifest.rows.iter().filter(|row| row.is_new).count();
    report.set("backup", manifest.id.to_string());
    report.set("store", manifest.image.store.to_string());
    report.set("device_bytes", manifest.image.device_bytes);
    report.set("segments", manifest.rows.len());
    report.set("segments_new", new);
    report.set("segments_there", manifest.rows.len() - new);
    report.set("content_bytes", manifest.image.content_bytes());
    report.set("read_bytes", *read_bytes);
    report.set("written_bytes", manifest.new_object_bytes());
    report.figure("seconds", seconds);
    report.figure("mb_per_second", *read_bytes as f64 / seconds.max(1e-9) / 1e6);
}

fn report_kept(kept: &Kept, report: &mut Report) {
    let removed: Vec<String> = kept.removed.iter().map(ToString::to_string).collect();
    report.set("backups_kept", kept.backups);
    report.set("backups_removed", json!(removed));
    report.set("objects_removed", kept.objects_removed);
    report.set("removed_bytes", kept.bytes_removed);
}

/// Lists the backups; one whose manifest is damaged is told of, and is none.
fn list(place: &str, format: Format) -> Outcome<()> {
    let repository = Repository::open(place, Opening::Existing)?;
    let (mut rows, mut damaged) = (Vec::new(), Vec::new());
    for (name, manifest) in repository.manifests()? {
        match manifest {
            Ok(manifest) => rows.push(listed(&name, &manifest, format)),
            Err(error) if error.kind() == ErrorKind::Damaged => damaged.push(error.to_string()),
            Err(error) => return Err(error.into()),
        }
    }
    let mut report = Report::default();
    report.set("place", place);
    report.set("backups", rows);
    if !damaged.is_empty() {
        report.set("damaged", json!(damaged));
    }
    report.print(format);
    match damaged.as_slice() {
        [] => Ok(()),
        [first, ..] => Err(Failure::Failed(format!(
            "{} of the manifests cannot be used, the first: {first}",
            damaged.len()
        ))),
    }
}

fn listed(name: &ManifestName, manifest: &Manifest, format: Format) -> Value {
    let image = &manifest.image;
    let bytes = |count: u64| match format {
        Format::Json => json!(count),
        Format::Table => json!(units::bytes(count as f64)),
    };
    json!({
        "backup": name.id.to_string(),
        "store": name.store.to_string(),
        "device_bytes": bytes(image.device_bytes),
        "segments": manifest.rows.len(),
        "content_bytes": bytes(image.content_bytes()),
        "new_bytes": bytes(manifest.new_object_bytes()),
    })
}

fn verify_all(place: &str, format: Format) -> Outcome<()> {
    let repository = Repository::open(place, Opening::Existing)?;
    let began = Instant::now();
    let bar = progress::bar("verifying", 0);
    let verified = verify(&repository, &mut |objects, total| {
        bar.set_length(total);
        bar.set_position(objects);
    });
    bar.finish_and_clear();
    let verified = verified?;
    let damaged: Vec<Value> = (verified.damaged.iter())
        .map(|damage| {
            let backups: Vec<String> = damage.backups.iter().map(ToString::to_string).collect();
            json!({"name": damage.name, "what": damage.what, "backups": backups})
        })
        .collect();
    let mut report = Report::default();
    report.set("place", place);
    report.set("backups", verified.backups);
    report.set("objects", verified.objects);
    report.set("bytes", verified.bytes);
    report.set("damaged", Value::Array(damaged));
    let seconds = began.elapsed().as_secs_f64();
    report.set("seconds", rounded(seconds));
    report.print(format);
    match verified.damaged.as_slice() {
        [] => Ok(()),
        [first, ..] => Err(Failure::Failed(format!(
            "{} damaged, the first: {}. Remove what is damaged: the next backup of a running store \
             writes anew what it still has, and restore from a backup that needs none of it",
            verified.damaged.len(),
            first.what
        ))),
    }
}

fn now_seconds() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| now.as_secs())
}
