//! `entresol volume adopt`: the way on for a backing that changed since the cache was used last.

use clap::Args;
use entresol_device::Force;
use entresol_volume::{Adoption, Dirty};

use super::cache::{CacheArgs, absolute_backing, now};
use super::reach::{find, refuse_served};
use crate::failure::{Failure, Outcome};
use crate::units::number;

/// Options of `entresol volume adopt`.
#[derive(Debug, Args)]
#[command(after_help = "\
For a backing that was copied, moved, restored, or written to by somebody else: the volume takes it
as it is now. Clean blocks are read from it again. Dirty ones are of the backing as it was: kept,
they are written over what is there now.

A volume whose dirty blocks are damaged in the cache is opened without them, by --lose-dirty.

Examples:
  entresol volume adopt vm1 --keep-dirty --cache /ssd/cache      (a copy of what it was)
  entresol volume adopt vm1 --backing /hdd2/vm1.img --keep-dirty --cache /ssd/cache
  entresol volume adopt vm1 --lose-dirty --cache /ssd/cache      (an older state, restored)")]
pub(crate) struct AdoptArgs {
    /// The volume
    name: String,
    #[command(flatten)]
    cache: CacheArgs,
    /// Where the backing is now: a file, a block device, or an export of an NBD server [default:
    /// where it was]
    #[arg(long, value_name = "PLACE")]
    backing: Option<String>,
    #[command(flatten)]
    dirty: DirtyArgs,
}

/// What becomes of dirty blocks.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct DirtyArgs {
    /// Write what was not written back over the backing later
    #[arg(long)]
    keep_dirty: bool,
    /// Lose what was not written back
    #[arg(long)]
    lose_dirty: bool,
}

/// Adopts.
pub(crate) fn run(args: &AdoptArgs) -> Outcome<()> {
    refuse_served(&args.cache)?;
    let dirty = if args.dirty.lose_dirty { Dirty::Lose } else { Dirty::Keep };
    let backing = args.backing.as_deref().map(absolute_backing);
    let adoption = Adoption { name: args.name.clone(), backing, dirty };
    let cache = args.cache.open_adopting(adoption, Force::No)?;
    let found = find(&cache, &args.name);
    let kept = found.as_ref().ok().and_then(|id| cache.dirty_blocks(*id)).unwrap_or_default();
    let closed = cache.close(now()).map_err(Failure::from);
    found.and(closed)?;
    let kept = number(kept as f64);
    println!("volume {} takes its backing as it is; {kept} blocks are dirty", args.name);
    Ok(())
}
