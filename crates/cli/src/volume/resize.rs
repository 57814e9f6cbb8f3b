//! `entresol volume resize` and `entresol volume remove`.

use clap::Args;
use entresol_device::Force;
use entresol_volume::{Dirty, Volumes};

use super::cache::{CacheArgs, now};
use super::reach::{find, refuse_served};
use crate::failure::{Failure, Outcome};
use crate::units::number;

/// Options of `entresol volume resize`.
#[derive(Debug, Args)]
#[command(after_help = "\
Write back what is dirty and stop the server, change the size of the backing, then resize.

Examples:
  entresol volume flush vm1 --cache /ssd/cache      (then stop the server)
  truncate -s 200G /hdd/vm1.img
  entresol volume resize vm1 --cache /ssd/cache")]
pub(crate) struct ResizeArgs {
    /// The volume
    name: String,
    #[command(flatten)]
    cache: CacheArgs,
}

/// Options of `entresol volume remove`.
#[derive(Debug, Args)]
#[command(after_help = "\
The backing stays as it is, and is the device from then on.

Examples:
  entresol volume flush vm1 --cache /ssd/cache      (then stop the server)
  entresol volume remove vm1 --cache /ssd/cache")]
pub(crate) struct RemoveArgs {
    /// The volume
    name: String,
    #[command(flatten)]
    cache: CacheArgs,
    /// Lose what was not written back
    #[arg(long)]
    lose_dirty: bool,
}

/// Resizes.
pub(crate) fn resize(args: &ResizeArgs) -> Outcome<()> {
    refuse_served(&args.cache)?;
    let cache = args.cache.open_resizing(&args.name, Force::No)?;
    let found = find(&cache, &args.name);
    let volumes = cache.list();
    cache.close(now())?;
    let id = found?;
    let bytes = volumes.iter().find(|volume| volume.id == id).map_or(0, |volume| volume.bytes);
    println!("volume {}: {} bytes, as its backing", args.name, number(bytes as f64));
    Ok(())
}

/// Removes.
pub(crate) fn remove(args: &RemoveArgs) -> Outcome<()> {
    refuse_served(&args.cache)?;
    let mut cache = args.cache.open(None, Force::No)?;
    let dirty = if args.lose_dirty { Dirty::Lose } else { Dirty::Keep };
    let removed = if cache.absent().iter().any(|(name, _)| *name == args.name) {
        cache.remove_absent(&args.name, dirty, now()).map_err(Failure::from)
    } else {
        let found = find(&cache, &args.name);
        found.and_then(|id| cache.remove(id, dirty, now()).map_err(Failure::from))
    };
    let closed = cache.close(now()).map_err(Failure::from);
    removed.and(closed)?;
    println!("volume {} is removed; its backing stays", args.name);
    Ok(())
}
