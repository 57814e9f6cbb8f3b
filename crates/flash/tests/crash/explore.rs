//! Every prefix of calls, every choice of what became of the unsynced writes.

use entresol_flash::{Opened, Reclaim, SpaceId};
use entresol_sim::{CrashChoice, Random, SimDevice};

use crate::model::{Put, SPACES};
use crate::setup::{Ending, Setup};
use crate::world::World;

/// Choices tried per prefix, at most, besides keeping and dropping all.
const CHOICES_MAX: u64 = 14;
/// Turns of maintenance after which there is room in any setup for what waits for some.
const MAINTAINED: usize = 40;
/// Steps of a store's second life.
const LIFE_STEPS: usize = 25;

/// Crashes the workload of `setup` everywhere, for each seed.
pub(crate) fn explore(setup: &Setup) {
    for seed in seeds() {
        let mut whole = World::new(setup, seed);
        if let Err(why) = whole.run() {
            panic!("{} seed {seed}: a run without a crash stopped: {why}", setup.name);
        }
        let calls = whole.device.calls();
        drop(whole);
        let only: Option<u64> = number_of("ENTRESOL_PREFIX");
        for prefix in (0..=calls).filter(|prefix| only.is_none_or(|only| only == *prefix)) {
            explore_prefix(setup, seed, prefix);
        }
    }
}

/// The seeds of this run.
pub(crate) fn seeds() -> std::ops::Range<u64> {
    match (number_of("ENTRESOL_SEED"), number_of("ENTRESOL_SEEDS")) {
        (Some(seed), _) => seed..seed + 1,
        (None, count) => 0..count.unwrap_or(1),
    }
}

pub(crate) fn number_of(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is a whole number")))
}

/// A run up to call `prefix`.
fn crashed(setup: &Setup, seed: u64, prefix: u64) -> World {
    let mut world = World::new(setup, seed);
    world.device.crash_after(prefix);
    let _stopped = world.run();
    world.open = None;
    world.device.crash_now();
    world
}

/// Crashes the workload of `setup` and `seed` at call `prefix`.
pub(crate) fn explore_prefix(setup: &Setup, seed: u64, prefix: u64) {
    let world = crashed(setup, seed, prefix);
    let mut random = Random::new(seed ^ prefix << 20);
    let context = Context { setup, seed, prefix };
    for choice in choices(&world.device, &mut random) {
        let context = (&context, choice, "power loss");
        let device = world.device.reopened(choice);
        let mut after = world.after(device, Ending::PowerLoss);
        context.check(&mut after, Ending::PowerLoss);
        if random.one_in(8) {
            live_and_crash_again(&context, after, &mut random);
        }
    }
    let again =
        [CrashChoice::KeepAll, CrashChoice::DropAll, CrashChoice::Random(random.next_u64())];
    let choice = again[random.below(3) as usize];
    crash_recovery(&context, &world, (choice, Ending::PowerLoss), &mut random);
    let killed = world.device.reopened(CrashChoice::KeepAll);
    let mut after = world.after(killed, Ending::Kill);
    let label = (&context, CrashChoice::KeepAll, "kill");
    label.check(&mut after, Ending::Kill);
    if random.one_in(4) {
        live_and_crash_again(&label, after, &mut random);
    }
    if setup.shares_memory() {
        if prefix.is_multiple_of(4) {
            beside_a_copy(&context, &world);
        }
        let kept = (CrashChoice::KeepAll, Ending::Kill);
        crash_recovery(&context, &world, kept, &mut random);
    }
}

/// A copy of the killed store, which has its identity, is opened before it.
fn beside_a_copy(context: &Context<'_>, world: &World) {
    let mut beside = world.after(world.device.reopened(CrashChoice::KeepAll), Ending::Kill);
    let label = (context, CrashChoice::KeepAll, "a kill, and a copy that was opened first");
    if let Err(why) = beside.live_as_a_copy() {
        label.fail(&why);
    }
    label.check(&mut beside, Ending::Kill);
}

pub(crate) fn choices(device: &SimDevice, random: &mut Random) -> Vec<CrashChoice> {
    let mut all = device.crash_choices();
    let mut chosen: Vec<CrashChoice> = all.drain(..all.len().min(2)).collect();
    while !all.is_empty() && (chosen.len() as u64) < CHOICES_MAX {
        chosen.push(all.swap_remove(random.below(all.len() as u64) as usize));
    }
    chosen.extend((0..3).map(|_| CrashChoice::Random(random.next_u64())));
    chosen
}

/// Recovery is itself crashed at each of its calls.
fn crash_recovery(
    context: &Context<'_>,
    world: &World,
    (choice, ending): (CrashChoice, Ending),
    random: &mut Random,
) {
    let mut sound = world.after(world.device.reopened(choice), ending);
    if sound.open().is_err() {
        return;
    }
    let calls = sound.device.calls();
    for call in 0..calls {
        if calls > 6 && !random.one_in(calls / 3) {
            continue;
        }
        let mut first = world.after(world.device.reopened(choice), ending);
        first.device.crash_after(call);
        let _stopped = first.open();
        first.open = None;
        first.device.crash_now();
        let second = match (ending, random.below(3)) {
            (Ending::Kill, _) | (_, 0) => CrashChoice::KeepAll,
            (_, 1) => CrashChoice::DropAll,
            _ => CrashChoice::Random(random.next_u64()),
        };
        let mut after = first.after(first.device.reopened(second), ending);
        let what = format!("{choice:?}, recovery crashed at its call {call}, then");
        (context, second, what.as_str()).check(&mut after, ending);
    }
}

/// A store that recovered works on, and crashes again.
fn live_and_crash_again(
    context: &(&Context<'_>, CrashChoice, &str),
    mut world: World,
    random: &mut Random,
) {
    // Recovery has synced what it found, so all of it is certain now.
    if let Err(why) = world.live_on(LIFE_STEPS) {
        context.fail(&format!("in its second life: {why}"));
    }
    if random.one_in(2) && world.sync().is_err() {
        context.fail("cannot sync in its second life");
    }
    world.open = None;
    world.device.crash_now();
    for _ in 0..2 {
        let choice = CrashChoice::Random(random.next_u64());
        let mut after = world.after(world.device.reopened(choice), Ending::PowerLoss);
        let what = format!("{} {:?}, second life, then {choice:?}", context.2, context.1);
        (context.0, choice, what.as_str()).check(&mut after, Ending::PowerLoss);
    }
}

/// Where a failure happened.
pub(crate) struct Context<'a> {
    pub setup: &'a Setup,
    pub seed: u64,
    pub prefix: u64,
}

/// A context, a choice, and words for how it came about.
trait Checked {
    fn check(&self, world: &mut World, ending: Ending);
    fn fail(&self, why: &str) -> !;
}

impl Checked for (&Context<'_>, CrashChoice, &str) {
    fn check(&self, world: &mut World, ending: Ending) {
        if let Err(why) = recover(world, ending) {
            self.fail(&why);
        }
    }

    fn fail(&self, why: &str) -> ! {
        let Context { setup, seed, prefix } = self.0;
        panic!(
            "{why}\nafter {} with {:?} at call {prefix} of setup {}; replay: \
             ENTRESOL_SEED={seed} ENTRESOL_PREFIX={prefix} \
             cargo test -p entresol-flash --test crash",
            self.2, self.1, setup.name
        )
    }
}

/// Opens the store of `world` after a crash and compares all of it with the model, which then holds
/// what was found.
pub(crate) fn recover(world: &mut World, ending: Ending) -> Result<(), String> {
    world.open()?;
    let evicts = world.setup.reclaim == Reclaim::Evict;
    let counts: Vec<u64> = SPACES.iter().map(|s| world.parts().0.count(SpaceId(*s))).collect();
    let mut live = [0; SPACES.len()];
    for name in world.model.names() {
        let allowed = world.model.allowed(name, ending, world.now_ms);
        let found = world.get(name)?;
        let state = match &found {
            None if evicts || allowed.contains(&None) => None,
            None => return Err(format!("lost: {name:?}; allowed {allowed:?}")),
            Some(value) => {
                let fits = |state: &&Option<Put>| state.is_some_and(|put| value.is_of(name, put));
                let Some(state) = allowed.iter().find(fits) else {
                    return Err(format!("wrong: {name:?} is {value:?}; allowed {allowed:?}"));
                };
                *state
            }
        };
        if found.is_some() {
            live[usize::from(name.0 != SPACES[0])] += 1;
        }
        // What a cache misses now may be found after the next crash: its eviction was not durable.
        if !(evicts && found.is_none()) {
            world.model.settle(name, state);
        }
    }
    let opened = world.parts().0.statistics().opened;
    // A checkpoint counts entries whose end nobody has noticed yet; a recovery counts such large
    // values, as they leave tombstones when they go. The reads above have noticed all; where a
    // tombstone found no room, it goes once maintenance has made some.
    let recount = |world: &mut World| SPACES.map(|s| world.parts().0.count(SpaceId(s)));
    if opened != Opened::Checkpoint && !evicts && recount(world) != live {
        (0..MAINTAINED).try_for_each(|_| world.maintain())?;
    }
    let recounts = recount(world);
    let counted = counts.iter().zip(&live).zip(recounts).all(|((counted, live), recounted)| {
        let noticed = opened == Opened::Checkpoint || recounted == *live;
        counted == live || (counted > live && noticed)
    });
    if !(counted || evicts) {
        return Err(format!("{counts:?} entries counted, {live:?} found"));
    }
    if opened == Opened::DamagedCheckpoint {
        return Err("the root names a checkpoint that is not whole".to_owned());
    }
    if evicts {
        // The header of an evicted segment may have been torn: what it held is missed, not damaged.
        return Ok(());
    }
    let verified = world.parts().0.verify().map_err(|error| error.to_string())?;
    if !verified.damaged.is_empty() {
        return Err(format!("verify found damage: {:?}", verified.damaged));
    }
    Ok(())
}
