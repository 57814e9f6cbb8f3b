//! The open engine in virtual time, on simulated drives.

use std::collections::BTreeMap;

use entresol_device::MemoryDevice;

use super::*;
use crate::load::interval::SeriesInterval;
use crate::load::plan::{Engine, Plan, Stream, Timing, Writing};
use crate::load::port::NoRoom;
use crate::load::shape::Shape;
use crate::load::target::{Manner, Target};
use crate::load::{Arrival, Marking, ModelOptions, NewBlocks, ReclaimRule, Series, tally};

const SECOND: u64 = 1_000_000_000;
const MILLISECOND: u64 = 1_000_000;

/// A drive that serves everything at once, each transfer in the same time, but for stalls.
struct Drive {
    now_ns: u64,
    service_ns: u64,
    /// From, to, and which kind stalls; `None`: all.
    stall: Option<(u64, u64, Option<Kind>)>,
    /// Completions to come: time and token.
    coming: BTreeMap<(u64, u64), ()>,
    in_flight_max: usize,
}

impl Drive {
    fn new(service_ns: u64) -> Drive {
        let coming = BTreeMap::new();
        Drive { now_ns: 0, service_ns, stall: None, coming, in_flight_max: 0 }
    }

    fn stalling(from_ns: u64, to_ns: u64, kind: Option<Kind>) -> Drive {
        Drive { stall: Some((from_ns, to_ns, kind)), ..Drive::new(100_000) }
    }
}

impl Port for &mut Drive {
    fn now_ns(&mut self) -> u64 {
        self.now_ns
    }

    fn begin(
        &mut self,
        request: &Request,
        fill: &mut dyn FnMut(&mut [u8]),
    ) -> std::result::Result<u64, NoRoom> {
        if request.kind.writes() {
            fill(&mut vec![0; request.length]);
        }
        let mut done_ns = self.now_ns + self.service_ns;
        if let Some((from_ns, to_ns, kind)) = self.stall
            && kind.is_none_or(|kind| kind == request.kind)
            && (from_ns..to_ns).contains(&done_ns)
        {
            done_ns = to_ns;
        }
        self.coming.insert((done_ns, request.token), ());
        self.in_flight_max = self.in_flight_max.max(self.coming.len());
        Ok(self.now_ns)
    }

    fn wait(&mut self, until_ns: u64, ended: &mut Vec<Ended>) -> Result<()> {
        let next_ns = self.coming.first_key_value().map_or(u64::MAX, |(&(at, _), ())| at);
        self.now_ns = self.now_ns.max(next_ns.min(until_ns));
        while let Some((&(at_ns, token), ())) = self.coming.first_key_value() {
            if at_ns > self.now_ns {
                break;
            }
            self.coming.pop_first();
            ended.push(Ended { token, at_ns, result: Ok(()), bytes: None });
        }
        Ok(())
    }
}

fn plan(streams: &[(Kind, f64)], seconds: u64) -> Plan {
    let stream = |&(kind, per_sec): &(Kind, f64)| Stream {
        kind,
        device: None,
        pacing: Pacing::Open(per_sec),
        shape: Shape::Blocks { bytes: 4096 },
    };
    let series =
        |&(kind, _): &(Kind, f64)| Series { name: format!("{kind:?}"), kind, device: None };
    Plan {
        streams: streams.iter().map(stream).collect(),
        loops: Vec::new(),
        series: streams.iter().map(series).collect(),
        block_bytes: 4096,
        timing: Timing {
            duration_ns: seconds * SECOND,
            interval_ns: seconds * SECOND,
            lag_ns_max: Some(10 * SECOND),
        },
        engine: Engine::Uring { threads: 1, depth: 32 },
        manner: Manner::Strict,
        arrival: Arrival::Even,
        writing: Writing {
            compress_pct: 100,
            marking: Marking::Plain,
            judging: Judging::Ignored,
            mode: entresol_device::WriteMode::Flushed,
            journal: None,
        },
        seed: 7,
    }
}

fn session(plan: Plan, devices: usize) -> Session {
    let target = |_| Target::of(Arc::new(MemoryDevice::new(1 << 20).unwrap()));
    Session::new(plan, &(0..devices).map(target).collect())
}

fn issue(session: &Session, drive: &mut Drive, number: usize, share: Share) {
    Issuer::new(session, drive, number, share).work();
}

fn taken(session: &Session) -> Vec<SeriesInterval> {
    tally::take(&session.tallies, &session.plan.series).0
}

const ALONE: Share = Share { count: 1, depth: 32 };

fn slow(recorder: &entresol_workload::Recorder) -> u64 {
    recorder.count_at_least(MILLISECOND)
}

#[test]
fn a_stall_shows_in_the_response_of_all_that_were_due_and_in_the_service_of_few() {
    for arrival in [Arrival::Even, Arrival::Poisson] {
        let mut plan = plan(&[(Kind::Read, 2000.0)], 5);
        plan.arrival = arrival;
        let session = session(plan, 1);
        let mut drive = Drive::stalling(2 * SECOND, 2 * SECOND + SECOND / 2, None);
        issue(&session, &mut drive, 0, ALONE);
        let reads = &taken(&session)[0];
        assert!((950..=1060).contains(&slow(&reads.response)), "{}", slow(&reads.response));
        assert!((1..=32).contains(&slow(&reads.service)), "{}", slow(&reads.service));
        assert_eq!(reads.due, reads.service.count(), "all that was due was done");
    }
}

#[test]
fn a_stream_that_stalls_delays_no_other() {
    let session = session(plan(&[(Kind::LargeWrite, 500.0), (Kind::Read, 2000.0)], 5), 1);
    let mut drive = Drive::stalling(SECOND, 4 * SECOND, Some(Kind::LargeWrite));
    issue(&session, &mut drive, 0, ALONE);
    let taken = taken(&session);
    assert!(slow(&taken[0].response) > 1000, "the writes stalled");
    assert_eq!(slow(&taken[1].response), 0, "{:?}", taken[1].response.summary());
    assert!((9_999..=10_001).contains(&taken[1].service.count()));
}

#[test]
fn a_stall_without_end_ends_the_load_as_one_that_lags() {
    let session = session(plan(&[(Kind::Read, 2000.0)], 3600), 1);
    let mut drive = Drive::stalling(SECOND, 100_000 * SECOND, None);
    issue(&session, &mut drive, 0, ALONE);
    assert!(session.has_ended());
    let reads = &taken(&session)[0];
    assert!(drive.now_ns < 15 * SECOND, "it noticed after {} ns", drive.now_ns);
    assert!(reads.due > reads.service.count() + 19_000, "what was due stays due");
    assert!(drive.in_flight_max <= 32);
}

/// With `max-lag-sec` above the session's grace, a load that was late within it ended as broken.
#[test]
fn a_load_that_is_late_within_its_limit_ends_within_the_grace_of_the_session() {
    let mut plan = plan(&[(Kind::Read, 200.0)], 60);
    plan.timing.lag_ns_max = Some(60 * SECOND);
    let session = session(plan, 1);
    // At 133 reads a second what is due in a minute takes half a minute more.
    let mut drive = Drive::new(240 * MILLISECOND);
    issue(&session, &mut drive, 0, ALONE);
    assert!(!session.has_ended(), "it is not too late");
    assert!(drive.now_ns <= 73 * SECOND, "{} ns", drive.now_ns);
    assert!(drive.coming.is_empty(), "what was begun is waited for");
    let reads = &taken(&session)[0];
    assert_eq!(reads.due, 12_000);
    assert!((9_200..=9_500).contains(&reads.service.count()), "{}", reads.service.count());
}

#[test]
fn threads_share_the_arrivals_and_the_counts_are_those_of_the_rate() {
    for count in [1, 2, 5] {
        let session = session(plan(&[(Kind::Read, 600.0), (Kind::LargeWrite, 23.53)], 10), 3);
        for number in 0..count {
            let share = Share { count, depth: 8 };
            issue(&session, &mut Drive::new(50_000), number, share);
        }
        let taken = taken(&session);
        let within = |found: u64, expected: f64| (found as f64 - expected).abs() <= count as f64;
        assert!(within(taken[0].service.count(), 6000.0), "{count} threads");
        assert!(within(taken[1].service.count(), 235.3), "{count} threads");
        assert_eq!((slow(&taken[0].response), taken[0].errors), (0, 0));
    }
}

#[test]
fn a_closed_stream_is_one_transfer_at_a_time_with_its_pause() {
    let mut plan = plan(&[(Kind::Raid, 0.0)], 1);
    plan.streams[0].pacing = Pacing::Closed { pause_ns: MILLISECOND };
    plan.streams[0].shape = Shape::InRow { bytes: 4096 };
    let session = session(plan, 1);
    let mut drive = Drive::new(MILLISECOND);
    issue(&session, &mut drive, 0, ALONE);
    let count = taken(&session)[0].service.count();
    assert!((490..=500).contains(&count), "{count} in 1 s of 2 ms each");
    assert_eq!(drive.in_flight_max, 1);
}

#[test]
fn a_modelled_engine_reads_and_writes_blocks_at_the_rates_that_emerge() {
    let mut plan = plan(&[(Kind::LargeWrite, 0.0), (Kind::LargeRead, 0.0)], 400);
    let options = ModelOptions {
        records_per_block: 8,
        writes_per_sec: 800.0,
        fill_pct: 45,
        rule: ReclaimRule::LowWater { pct: 50 },
        recent_blocks: 8,
        new_blocks: NewBlocks::Written,
    };
    plan.streams[0].pacing = Pacing::Modelled(options);
    plan.streams[1].pacing = Pacing::Fed;
    plan.streams.iter_mut().for_each(|stream| stream.device = Some(0));
    let session = session(plan, 1);
    issue(&session, &mut Drive::new(50_000), 0, ALONE);
    let taken = taken(&session);
    assert_eq!(taken[0].due, taken[0].service.count());
    // 100 blocks of records a second for 400 s. Below the mark is three of eight live at most, so
    // that a block read makes room for five.
    for (series, what) in taken.iter().zip(["writes", "reads"]) {
        let amplification = series.service.count() as f64 / 40_000.0;
        assert!((1.55..1.65).contains(&amplification), "{amplification} {what}");
    }
}
