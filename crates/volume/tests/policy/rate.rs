//! The cleaner keeps dirty data where it should be, at every load and on every backing.

use entresol_volume::Moment;
use entresol_volume::policy::rate::{Allowance, Marks, Pace};

const MIB: u64 = 1 << 20;
const ROOM: u64 = 1000 * MIB;
/// Nanoseconds of one step.
const STEP: u64 = 10_000_000;

struct Run {
    pace: Pace,
    dirty: u64,
    now: u64,
    written_back: u64,
}

impl Run {
    fn new() -> Run {
        let pace = Pace::new(Marks::default(), Moment(77));
        Run { pace, dirty: 0, now: 77, written_back: 0 }
    }

    /// Writers write and the backing takes so many MiB a second, for some seconds.
    fn go(&mut self, seconds: u64, writers: u64, backing: u64) -> &mut Run {
        for _ in 0..seconds * 100 {
            self.now += STEP;
            self.dirty = (self.dirty + writers * MIB / 100).min(ROOM);
            let mut takes = backing * MIB / 100;
            loop {
                let most = match self.pace.on_turn(self.dirty, ROOM, Moment(self.now)) {
                    Allowance::Unlimited => u64::MAX,
                    Allowance::Bytes(bytes) => bytes,
                    Allowance::Wait(until) => {
                        assert!(until > Moment(self.now));
                        break;
                    }
                    Allowance::Clean => break,
                };
                let bytes = most.min(takes).min(self.dirty);
                if bytes == 0 {
                    break;
                }
                self.pace.on_written_back(bytes);
                self.dirty -= bytes;
                takes -= bytes;
                self.written_back += bytes;
            }
        }
        self
    }

    fn share(&self) -> f64 {
        self.dirty as f64 / ROOM as f64
    }
}

#[test]
fn steady_writers_are_matched_and_the_dirty_share_settles_at_the_low_mark() {
    for writers in [5, 40, 150] {
        let mut run = Run::new();
        let mut shares = Vec::new();
        for _ in 0..60 {
            shares.push(run.go(20, writers, 1000).share());
        }
        let late = &shares[40..];
        assert!(late.iter().all(|share| (share - 0.1).abs() < 0.02), "{writers}: {late:?}");
        assert!(shares.iter().all(|&share| share < 0.75), "{writers}: {shares:?}");
        let before = run.written_back;
        run.go(10, writers, 1000);
        let rate = (run.written_back - before) / MIB / 10;
        assert!(rate.abs_diff(writers) <= 1 + writers / 10, "{rate} for {writers}");
    }
}

#[test]
fn what_is_idle_ends_up_clean() {
    let mut run = Run::new();
    run.go(60, 50, 1000);
    assert!(run.dirty > 0);
    run.go(600, 0, 1000);
    assert_eq!(run.dirty, 0);
    assert_eq!(run.pace.on_turn(0, ROOM, Moment(run.now)), Allowance::Clean);
}

#[test]
fn nothing_holds_the_cleaner_back_above_the_high_mark() {
    let mut run = Run::new();
    run.dirty = ROOM * 8 / 10;
    assert_eq!(run.pace.on_turn(run.dirty, ROOM, Moment(run.now)), Allowance::Unlimited);
    run.go(60, 300, 250);
    assert!(run.share() > 0.7);
    let before = run.written_back;
    run.go(10, 300, 250);
    assert_eq!((run.written_back - before) / MIB, 2500);
}

#[test]
fn a_backing_that_could_not_keep_up_leaves_no_debt_behind() {
    let mut run = Run::new();
    run.go(600, 60, 10);
    run.go(200, 0, 1000);
    let settled = run.pace.rate();
    assert!(settled < 20 * MIB, "still {settled} bytes a second");
}

#[test]
fn work_comes_in_portions_and_a_long_pause_saves_none_up() {
    let mut run = Run::new();
    run.go(30, 20, 1000);
    let rate = run.pace.rate();
    run.now += 3_600_000_000_000;
    match run.pace.on_turn(run.dirty, ROOM, Moment(run.now)) {
        Allowance::Bytes(bytes) => assert!(bytes <= rate, "{bytes} at once, at {rate} a second"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn marks_that_make_no_sense_are_taken_for_the_nearest_that_do() {
    let marks = Marks { low: f64::NAN, high: -1.0, trickle: 0, most: 0 };
    let mut pace = Pace::new(marks, Moment(0));
    assert_eq!(pace.on_turn(1, 0, Moment(u64::MAX)), Allowance::Unlimited);
    assert_eq!(pace.on_turn(0, 0, Moment(0)), Allowance::Clean);
}
