//! A rig of real devices or files.
//!
//! It opens its targets before the first load and keeps them. A flag of the caller's stops it: a
//! load then ends as interrupted, a rest ends early.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use entresol_workload::mix64;
use parking_lot::Mutex;

use crate::config::{Index, Storage};
use crate::derive::{IndexRates, Step, StorageRates};
use crate::load::{self, Ending, Interval, Manner, Observer, Plan, Series, Target, Trouble};
use crate::prepare::{self, Pass, PassProgress, Survey};
use crate::report::Subject;
use crate::rig::{Preparation, Prepared, Rig, RigError};
use crate::text;
use crate::verdict::{Bound, Rules};

/// A configured load on its targets.
pub struct DeviceRig {
    configured: Configured,
    doors: Doors,
    targets: Option<Arc<[Target]>>,
    stop: Arc<AtomicBool>,
    troubles: Vec<String>,
    waited_ns: Option<u64>,
    seed: u64,
    loads: u64,
}

/// A configuration with its rates.
#[derive(Debug, Clone)]
pub enum Configured {
    /// Data devices.
    Storage(Box<Storage>, StorageRates),
    /// Index devices.
    Index(Box<Index>, IndexRates),
}

/// How the targets are reached; the caller shows progress.
pub struct Doors {
    /// Opens them.
    pub open: Box<dyn FnMut() -> Result<Arc<[Target]>, RigError>>,
    /// Hears how far the filling of one is.
    pub filling: Filling,
}

/// Hears a target's name and how far a pass over it is.
pub type Filling = Box<dyn FnMut(&str, PassProgress) + Send>;

/// Sentences on what went wrong that are kept.
pub const TROUBLES_MAX: usize = 50;
/// How long a signal to stop may go unnoticed while resting.
const NAP: Duration = Duration::from_millis(100);

impl DeviceRig {
    /// The load of `configured`; `stop` ends what is going on.
    pub fn new(configured: Configured, doors: Doors, stop: Arc<AtomicBool>) -> DeviceRig {
        let seed = configured.test().seed.unwrap_or_else(load::fresh_number);
        let (troubles, waited_ns, loads) = (Vec::new(), None, 0);
        DeviceRig { configured, doors, targets: None, stop, troubles, waited_ns, seed, loads }
    }

    /// What all random choices come from: the configured seed, or one of its own.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// What went wrong so far, as the system said it; the first 50 sentences.
    pub fn troubles(&self) -> &[String] {
        &self.troubles
    }

    fn targets(&mut self) -> Result<Arc<[Target]>, RigError> {
        match &self.targets {
            Some(targets) => Ok(Arc::clone(targets)),
            None => Ok(Arc::clone(self.targets.insert((self.doors.open)()?))),
        }
    }
}

impl Rig for DeviceRig {
    fn series(&self) -> Vec<Series> {
        self.configured.series()
    }

    fn interval_seconds(&self) -> u32 {
        self.configured.seconds().1
    }

    fn prepare(&mut self, which: Preparation) -> Result<Prepared, RigError> {
        let begun = Instant::now();
        let mut prepared = Prepared::default();
        let targets = self.targets()?;
        // Before hours of filling, not after them.
        let plan = self.configured.plan(1.0, self.configured.seconds().0)?;
        load::check(&plan, &targets).map_err(cannot)?;
        let filling = Mutex::new(&mut self.doors.filling);
        let (filling, stop) = (&filling, &*self.stop);
        let fillings: Vec<_> = std::thread::scope(|scope| {
            let begin = |target| scope.spawn(move || fill(target, which, stop, filling));
            let threads: Vec<_> = targets.iter().map(begin).collect();
            threads.into_iter().map(std::thread::ScopedJoinHandle::join).collect()
        });
        for filled in fillings {
            let stopped = || RigError("a thread that filled a target stopped".to_owned());
            let filled = filled.map_err(|_| stopped())??;
            prepared.bytes += filled.bytes;
            prepared.left += filled.left;
            prepared.stopped |= filled.stopped;
        }
        prepared.seconds = begun.elapsed().as_secs();
        Ok(prepared)
    }

    fn load(
        &mut self,
        factor: f64,
        seconds: u32,
        visit: &mut dyn FnMut(&Interval) -> ControlFlow<()>,
    ) -> Result<Ending, RigError> {
        let mut plan = self.configured.plan(factor, seconds)?;
        // No load goes where the one before went: a device would have that in its memory.
        plan.seed = mix64(self.seed ^ mix64(self.loads));
        self.loads += 1;
        let targets = self.targets()?;
        let before_ns = run_delay_ns();
        let mut watch =
            Watch { visit, enough: false, troubles: &mut self.troubles, delay_ns: before_ns };
        let ending = load::run(plan, &targets, &self.stop, &mut watch).map_err(cannot)?;
        self.waited_ns =
            before_ns.zip(watch.delay_ns).map(|(before, after)| after.saturating_sub(before));
        Ok(ending)
    }

    fn processor_wait_seconds(&self) -> Option<f64> {
        self.waited_ns.map(|ns| ns as f64 / 1e9)
    }

    fn rest(&mut self, seconds: u32) -> ControlFlow<()> {
        let until = Instant::now() + Duration::from_secs(u64::from(seconds));
        loop {
            if self.stop.load(Ordering::Relaxed) {
                return ControlFlow::Break(());
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return ControlFlow::Continue(());
            }
            std::thread::sleep(left.min(NAP));
        }
    }
}

impl Configured {
    /// The names of the targets.
    pub fn devices(&self) -> &[String] {
        match self {
            Configured::Storage(it, _) => &it.device_names,
            Configured::Index(it, _) => &it.device_names,
        }
    }

    /// How long the test is, and how often it reports, in seconds.
    pub fn seconds(&self) -> (u32, u32) {
        match self {
            Configured::Storage(it, _) => (it.test_duration_sec, it.report_interval_sec),
            Configured::Index(it, _) => (it.test_duration_sec, it.report_interval_sec),
        }
    }

    /// How long devices rest between loads, in seconds.
    pub fn rest_seconds(&self) -> u32 {
        self.test().rest_sec
    }

    /// What the configuration asks of a device.
    pub fn rules(&self) -> Rules {
        let test = self.test();
        let bound = |rule: &crate::config::LatencyRule| Bound {
            percent: rule.percent,
            threshold_ns: (rule.threshold_ms * 1e6).round() as u64,
        };
        Rules {
            bounds: test.rules.iter().map(bound).collect(),
            slice_seconds: test.rule_slice_sec,
            shortfall_percent: test.shortfall_pct,
        }
    }

    /// The configuration and its rates as ACT echoes them.
    pub fn echo(&self) -> String {
        match self {
            Configured::Storage(it, rates) => text::echo_storage(it, rates),
            Configured::Index(it, rates) => text::echo_index(it, rates),
        }
    }

    /// A file that reads back as this configuration.
    pub fn text(&self) -> String {
        match self {
            Configured::Storage(it, _) => it.to_text(""),
            Configured::Index(it, _) => it.to_text(""),
        }
    }

    /// Items with their values: all of ACT's, and those of ours that differ from their defaults.
    pub fn items(&self) -> Vec<(String, String)> {
        let mut items = Subject::items_of(&self.echo());
        for (name, value) in Subject::items_of(&self.text()) {
            if !items.iter().any(|(known, _)| *known == name) {
                items.push((name, value));
            }
        }
        items
    }

    /// How the rates come about.
    pub fn derived(&self) -> &[Step] {
        match self {
            Configured::Storage(_, rates) => &rates.steps,
            Configured::Index(_, rates) => &rates.steps,
        }
    }

    fn test(&self) -> &crate::config::TestOptions {
        match self {
            Configured::Storage(it, _) => &it.test,
            Configured::Index(it, _) => &it.test,
        }
    }

    /// Those of its loads. What has no plan has none, and says why once it is loaded.
    fn series(&self) -> Vec<Series> {
        self.plan(1.0, self.seconds().0).map(|plan| plan.series).unwrap_or_default()
    }

    fn plan(&self, factor: f64, seconds: u32) -> Result<Plan, RigError> {
        let plan = match self {
            Configured::Storage(it, rates) => {
                let it = Storage { test_duration_sec: seconds, ..(**it).clone() };
                Plan::storage(&it, &rates.times(factor), Manner::Strict)
            }
            Configured::Index(it, rates) => {
                let it = Index { test_duration_sec: seconds, ..(**it).clone() };
                Plan::index(&it, &rates.times(factor), Manner::Strict)
            }
        };
        plan.map_err(cannot)
    }
}

/// Fills one target, unless it is to be left.
fn fill(
    target: &Target,
    which: Preparation,
    stop: &AtomicBool,
    filling: &Mutex<&mut Filling>,
) -> Result<Prepared, RigError> {
    let mut prepared = Prepared::default();
    let survey = prepare::survey(target).map_err(cannot)?;
    if which == Preparation::IfNeeded && matches!(survey, Survey::Prepared { .. }) {
        prepared.left = 1;
        return Ok(prepared);
    }
    let mut before = match survey {
        Survey::Zeroing { done_bytes, .. } => (Pass::Zeros, done_bytes),
        Survey::Randomizing { done_bytes, .. } => (Pass::Random, done_bytes),
        Survey::Unprepared | Survey::Prepared { .. } => (Pass::Zeros, 0),
    };
    let filled = prepare::prepare(target, stop, &mut |so_far| {
        let begun = if before.0 == so_far.pass { before.1 } else { 0 };
        prepared.bytes += so_far.done_bytes.saturating_sub(begun);
        before = (so_far.pass, so_far.done_bytes);
        (filling.lock())(target.name(), so_far);
    });
    prepared.stopped = filled.map_err(cannot)? == prepare::Prepared::Stopped;
    Ok(prepared)
}

/// Passes intervals on and stops the load where that is asked for.
struct Watch<'a> {
    visit: &'a mut dyn FnMut(&Interval) -> ControlFlow<()>,
    /// The load is to end; the flag of whoever stops all is not ours to set.
    enough: bool,
    troubles: &'a mut Vec<String>,
    /// The most so far: threads that ended no longer tell.
    delay_ns: Option<u64>,
}

impl Observer for Watch<'_> {
    fn interval(&mut self, interval: &Interval) {
        self.delay_ns = self.delay_ns.max(run_delay_ns());
        if !self.enough {
            self.enough = (self.visit)(interval).is_break();
        }
    }

    fn has_seen_enough(&self) -> bool {
        self.enough
    }

    fn trouble(&mut self, trouble: &Trouble) {
        let text = match trouble {
            Trouble::Failed { text, .. } | Trouble::Wrong { text, .. } => text.clone(),
            Trouble::Unlisted { count } => format!("{count} more are not listed"),
            Trouble::Lagged { .. } => return,
        };
        if self.troubles.len() < TROUBLES_MAX {
            self.troubles.push(text);
        }
    }
}

/// How long all threads of this process were ready to run and had no processor, by the second
/// number of the scheduler's statistics.
fn run_delay_ns() -> Option<u64> {
    let tasks = std::fs::read_dir("/proc/self/task").ok()?;
    let mut sum = None;
    for task in tasks.flatten() {
        let text = std::fs::read_to_string(task.path().join("schedstat")).ok();
        let delay = text.and_then(|text| text.split(' ').nth(1)?.parse::<u64>().ok());
        sum = match (sum, delay) {
            (None, delay) => delay,
            (sum, None) => sum,
            (Some(sum), Some(delay)) => Some(sum + delay),
        };
    }
    sum
}

fn cannot(error: load::Error) -> RigError {
    RigError(error.to_string())
}
