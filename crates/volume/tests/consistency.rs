//! Volumes under random requests, kills and power failures, against a model of every write to every
//! sector. Each failure names its seed (`ENTRESOL_SEED` replays it; `ENTRESOL_MORE` tries so many
//! times as many).
#![expect(clippy::unwrap_used, reason = "a test stops where something fails")]

mod world;

use entresol_volume::Mode;
use world::{Ending, World};

fn seeds(default: std::ops::Range<u64>) -> Vec<u64> {
    match std::env::var("ENTRESOL_SEED") {
        Ok(seed) => vec![seed.parse().unwrap()],
        Err(_) => {
            let more = std::env::var("ENTRESOL_MORE").map_or(1, |times| times.parse().unwrap());
            (default.start..default.start + (default.end - default.start) * more).collect()
        }
    }
}

fn run(mode: Mode, endings: &[Ending], seed: u64) {
    eprintln!("mode {mode}, ENTRESOL_SEED={seed}");
    let mut world = World::new(mode, seed);
    for (round, ending) in endings.iter().cycle().take(4).enumerate() {
        world.steps(60 + seed % 40 * round as u64);
        world.end(*ending);
        world.check_after(*ending);
    }
}

#[test]
fn what_was_acknowledged_survives_a_kill_in_every_mode() {
    for mode in Mode::ALL {
        seeds(0..16).into_iter().for_each(|seed| run(mode, &[Ending::Kill], seed));
    }
}

#[test]
fn what_was_flushed_survives_power_loss_in_every_mode() {
    for mode in Mode::ALL {
        seeds(1000..1024).into_iter().for_each(|seed| run(mode, &[Ending::PowerLoss], seed));
    }
}

#[test]
fn a_closed_cache_comes_back_as_it_was() {
    for mode in Mode::ALL {
        let endings = [Ending::Close, Ending::Kill, Ending::Close, Ending::PowerLoss];
        seeds(2000..2008).into_iter().for_each(|seed| run(mode, &endings, seed));
    }
}
