//! `entresol volume create`.

use clap::Args;
use entresol_device::Force;
use entresol_volume::{Mode, Qos, VolumeOptions, Volumes, backing};
use serde_json::json;

use super::cache::{CAPACITY_MIN, CAPACITY_UNIT, CacheArgs, absolute_backing, now};
use super::control::Control;
use crate::failure::{Failure, Outcome};
use crate::units::{bytes, parse_size};

/// Options of `entresol volume create`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  entresol volume create vm1 --cache /ssd/cache --capacity 20GiB --backing /hdd/vm1.img
  entresol volume create vm2 --cache /ssd/cache --backing /dev/vg0/vm2 --mode wb")]
pub(crate) struct CreateArgs {
    /// The volume's name, and its export's
    name: String,
    #[command(flatten)]
    cache: CacheArgs,
    /// Size of the cache where it has to be made [default: a tenth of the backing, at least 64 MiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    capacity: Option<u64>,
    /// What is cached: a file, a block device, or an export of an NBD server (nbd://HOST/NAME)
    #[arg(long, value_name = "PLACE")]
    backing: String,
    /// wt write-through, wb write-back, wa write-around, wo write-only, pt pass-through
    #[arg(long, value_name = "MODE", default_value = "wt")]
    mode: String,
    /// Most of the cache that its clean blocks take [default: all]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    #[arg(default_value = "0", hide_default_value = true)]
    share: u64,
    /// I/Os a second that it gets whatever the others ask
    #[arg(long, value_name = "IOPS", default_value_t = 0.0, hide_default_value = true)]
    reservation: f64,
    /// I/Os a second that it never exceeds
    #[arg(long, value_name = "IOPS", default_value_t = 0.0, hide_default_value = true)]
    limit: f64,
    /// Its part of what is left, relative to the others'
    #[arg(long, value_name = "W", default_value_t = 1.0)]
    weight: f64,
    /// Streams longer than this go around the cache, and what shorter ones read is cached at its
    /// second miss; 0: streams are cached as everything is
    #[arg(long, value_name = "SIZE", value_parser = parse_size, default_value = "4MiB")]
    sequential_cutoff: u64,
    /// A block is cached at its n-th miss, up to the 15th
    #[arg(long, value_name = "N", default_value_t = 1)]
    admission_hits: u8,
    /// Read ahead of sequential readers, into memory; 0: not at all
    #[arg(long, value_name = "SIZE", value_parser = parse_size, default_value = "256KiB")]
    read_ahead: u64,
    /// What clients are told of it beside its name [default: that it is cached, and its mode]
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    description: String,
    /// Use a backing that is in use elsewhere, and make the cache over whatever is there
    #[arg(long)]
    force: bool,
}

/// Makes the volume: by the server that has the cache, or on the cache itself.
pub(crate) fn run(args: &CreateArgs) -> Outcome<()> {
    let options = args.options()?;
    args.demand_fitting_capacity()?;
    if let Some(mut server) = Control::connect(&args.cache.control_path()) {
        args.demand_unforced()?;
        server.ask(&json!({
            "command": "create",
            "volume": options.name,
            "backing": options.backing,
            "mode": options.mode.name(),
            "share_bytes": options.share_bytes,
            "reservation": options.qos.reservation,
            "limit": options.qos.limit,
            "weight": options.qos.weight,
            "sequential_cutoff_bytes": options.sequential_cutoff_bytes,
            "admission_hits": options.admission_hits,
            "read_ahead_bytes": options.read_ahead_bytes,
            "description": options.description,
        }))?;
        println!("volume {} made; the running server exports it", options.name);
        return Ok(());
    }
    let force = if args.force { Force::Yes } else { Force::No };
    // First what is quick to refuse: a new cache may take minutes to make.
    let found = backing::open(&options.backing, force)?;
    let size = found.description().bytes;
    drop(found);
    const LEAST: u64 = 64 << 20;
    let capacity = args.capacity.unwrap_or_else(|| (size / 10).max(LEAST));
    let mut cache = args.cache.open(Some(capacity), force)?;
    let made = cache.create(&options, now()).map_err(Failure::from);
    cache.close(now())?;
    made?;
    println!("volume {} of {}, mode {}", options.name, bytes(size as f64), options.mode);
    Ok(())
}

impl CreateArgs {
    /// Refuses a size of the cache that it will not have.
    fn demand_fitting_capacity(&self) -> Outcome<()> {
        let Some(asked) = self.capacity else { return Ok(()) };
        let has = self.cache.file_bytes();
        let cache = self.cache.cache.display();
        let detail = match has {
            None if self.cache.exists() => format!("{cache} is a device; leave the option out"),
            None if asked < CAPACITY_MIN => format!("at least {}", bytes(CAPACITY_MIN as f64)),
            Some(has) if has != asked.next_multiple_of(CAPACITY_UNIT) => format!(
                "{cache} is there already, with {}; leave the option out",
                bytes(has as f64)
            ),
            _ => return Ok(()),
        };
        let asked = bytes(asked as f64);
        Err(Failure::CannotRun(format!("--capacity {asked}: {detail}")))
    }

    /// Refuses `--force` for a cache that a server has.
    fn demand_unforced(&self) -> Outcome<()> {
        if !self.force {
            return Ok(());
        }
        Err(Failure::CannotRun(format!(
            "--force: a server has {} open, and opens backings without force; leave the option \
             out, or stop the server first",
            self.cache.cache.display()
        )))
    }

    fn options(&self) -> Outcome<VolumeOptions> {
        let mode: Mode = self.mode.parse()?;
        let read_ahead_bytes = u32::try_from(self.read_ahead).map_err(|_| {
            Failure::CannotRun(format!(
                "--read-ahead: expected less than 4 GiB, found {}",
                bytes(self.read_ahead as f64)
            ))
        })?;
        for (name, rate) in
            [("reservation", self.reservation), ("limit", self.limit), ("weight", self.weight)]
        {
            if !rate.is_finite() || rate < 0.0 {
                let sentence = format!("--{name}: expected a number from 0 on, found {rate}");
                return Err(Failure::CannotRun(sentence));
            }
        }
        let qos = Qos { reservation: self.reservation, limit: self.limit, weight: self.weight };
        let options = VolumeOptions {
            name: self.name.clone(),
            backing: absolute_backing(&self.backing),
            mode,
            share_bytes: self.share,
            qos,
            sequential_cutoff_bytes: self.sequential_cutoff,
            admission_hits: self.admission_hits,
            read_ahead_bytes,
            description: self.description.clone(),
        };
        options.check()?;
        Ok(options)
    }
}
