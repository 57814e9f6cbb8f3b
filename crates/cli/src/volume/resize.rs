//! `entresol volume resize` and `entresol volume remove`.

use clap::Args;
use entresol_device::Force;
use entresol_volume::{Dirty, Volumes};
use serde_json::json;

use super::cache::{CacheArgs, now};
use super::control::Control;
use super::reach::find;
use crate::failure::{Failure, Outcome};
use crate::units::number;

/// Options of `entresol volume resize`.
#[derive(Debug, Args)]
#[command(after_help = "\
A file or a block device may grow while its volume is served: clients that connect from then on
see the new size. An NBD export, and whatever shrinks, need the server stopped, after a flush.

Examples:
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
The backing stays as it is, and is the device from then on. A running server removes a volume that
no client uses; the others go on.

Examples:
  entresol volume flush vm1 --cache /ssd/cache
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
    if let Some(mut server) = Control::connect(&args.cache.control_path()) {
        server.ask(&json!({"command": "resize", "volume": args.name}))?;
        let list = server.ask(&json!({"command": "list"}))?;
        let mut volumes = list["volumes"].as_array().into_iter().flatten();
        let found = volumes.find(|volume| volume["name"] == args.name.as_str());
        let bytes = found.and_then(|volume| volume["bytes"].as_f64()).unwrap_or_default();
        println!(
            "volume {}: {} bytes, as its backing; clients that connect from now on see it",
            args.name,
            number(bytes)
        );
        return Ok(());
    }
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
    if let Some(mut server) = Control::connect(&args.cache.control_path()) {
        let lose = args.lose_dirty;
        server.ask(&json!({"command": "remove", "volume": args.name, "lose_dirty": lose}))?;
        println!("volume {} is removed; its backing stays", args.name);
        return Ok(());
    }
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
