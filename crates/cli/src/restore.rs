//! `entresol restore`: writes the data file of a backup.

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use entresol_backup::{Id, Opening, Repository, find, restore};

use crate::backup::show;
use crate::engine::DATA_FILE;
use crate::failure::{Failure, Outcome};
use crate::progress;
use crate::report::{Format, Report};

/// Options of `entresol restore`.
#[derive(Debug, Args)]
#[command(after_help = "\
Every byte is verified before the file gets its name. What is restored is the store as it was when
the backup began; it opens as after a loss of power. Never let it serve beside the original.

Exit status: 0 done, 1 something is damaged and nothing was put in place, 2 could not run.

Examples:
  entresol restore --from /backups/orders --dir /var/lib/entresol
  entresol restore --from s3://backups/orders --backup 20261129T004500Z-0000 --dir ./data")]
pub(crate) struct RestoreArgs {
    /// Place of the backups: a folder, or s3://BUCKET/PREFIX
    #[arg(long, value_name = "PLACE")]
    from: String,
    /// Backup to restore; the newest otherwise
    #[arg(long, value_name = "ID", value_parser = id)]
    backup: Option<Id>,
    /// Directory in which the data file is made
    #[arg(long)]
    dir: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

fn id(text: &str) -> Result<Id, String> {
    let expected = || format!("expected a backup such as 20261129T004500Z-0000, found '{text}'");
    Id::parse(text).ok_or_else(expected)
}

/// Restores a backup.
pub(crate) fn run(args: &RestoreArgs) -> Outcome<()> {
    let repository = Repository::open(&args.from, Opening::Existing)?;
    let manifest = find(&repository, args.backup.as_ref())?;
    std::fs::create_dir_all(&args.dir).map_err(|error| {
        Failure::doing(format!("cannot make the directory {}", args.dir.display()), error)
    })?;
    let target = args.dir.join(DATA_FILE);
    let began = Instant::now();
    let bar = progress::bytes_bar("restoring", 0);
    let restored = restore(&repository, &manifest, &target, &mut |progress| show(&bar, progress));
    bar.finish_and_clear();
    let restored = restored?;
    let mut report = Report::default();
    report.set("backup", manifest.id.to_string());
    report.set("store", manifest.image.store.to_string());
    report.set("file", target.display().to_string());
    report.set("device_bytes", manifest.image.device_bytes);
    report.set("segments", restored.segments);
    report.set("bytes", restored.bytes);
    report.figure("seconds", began.elapsed().as_secs_f64());
    report.note(format!(
        "Start it by: entresol serve --dir {}; an encrypted store needs its --encryption-key, too. \
         Never let it serve beside the original",
        args.dir.display()
    ));
    report.print(if args.json { Format::Json } else { Format::Table });
    Ok(())
}
