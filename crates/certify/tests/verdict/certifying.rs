//! Good and bad devices in virtual time, and the verdict on each.

use crate::simulated::{Fault, Simulated};
use entresol_certify::verdict::{Judgement, Plan, Rules, Tally, Verdict, judge};
use entresol_certify::{
    Certificate, Preparation, Procedure, Rig, Settling, Stress, Unobserved, certify,
};

const HOURS: u32 = 3 * 3600;
const NO_ERROR: &str = "simulated rigs do what they are told";

fn tried(mut rig: Simulated, factor: f64, seconds: u32) -> Judgement {
    let rules = Rules::default();
    let plan = Plan { factor, seconds, interval_seconds: rig.interval_seconds() };
    let mut tally = Tally::new(plan, &rules, rig.series());
    let ending = rig.load(factor, seconds, &mut |interval| tally.add(interval)).expect(NO_ERROR);
    judge(&rules, &tally.finish(ending))
}

fn device() -> Simulated {
    let mut device = Simulated::new(20.0, 100.0);
    device.interval = 60;
    device
}

fn procedure() -> Procedure {
    Procedure {
        rules: Rules::default(),
        prepare: Some(Preparation::IfNeeded),
        settle: Some(Settling::default()),
        test_seconds: HOURS,
        stress: Some(Stress { factor: 2.0, seconds: 3600 }),
        rest_seconds: 60,
    }
}

fn certified(rig: &mut Simulated) -> Certificate {
    certify(rig, &procedure(), &mut Unobserved).expect(NO_ERROR)
}

#[test]
fn each_fault_gets_its_verdict_and_its_reason() {
    let slow = Simulated { capacity: 30.0, ..device() };
    let overloaded = Simulated { capacity: 16.0, ..device() };
    let interrupted = device().with(Fault::Interrupt(5000.0));
    let table = [
        ("good", device(), Verdict::Pass, vec![]),
        ("too slow", slow, Verdict::Fail, vec!["too-slow"]),
        ("error in 1 %", device().with(Fault::ErrorEvery(100)), Verdict::Fail, vec!["errors"]),
        ("one error", device().with(Fault::OneWriteError), Verdict::Fail, vec!["errors"]),
        ("wrong block", device().with(Fault::WrongBlock), Verdict::Fail, vec!["wrong-blocks"]),
        ("2 % short", device().with(Fault::Shortfall(0.02)), Verdict::Fail, vec!["shortfall"]),
        ("0.5 % short", device().with(Fault::Shortfall(0.005)), Verdict::Pass, vec![]),
        ("one of two slow", device().with(Fault::SlowDevice), Verdict::Fail, vec!["too-slow"]),
        (
            "a slice missing",
            device().with(Fault::Gap(3600.0, 7200.0)),
            Verdict::Fail,
            vec!["missing-slices"],
        ),
        (
            "half a slice missing",
            device().with(Fault::Gap(3600.0, 5400.0)),
            Verdict::Fail,
            vec!["partial-slice"],
        ),
        ("interrupted", interrupted, Verdict::Undecided, vec!["interrupted", "missing", "partial"]),
        (
            "broken",
            device().with(Fault::Break(9000.0)),
            Verdict::Fail,
            vec!["broken", "partial-slice"],
        ),
        ("overloaded", overloaded, Verdict::Fail, vec!["lagged", "too-slow", "missing"]),
        (
            "stalled for good",
            device().with(Fault::StallFrom(4000.0)),
            Verdict::Fail,
            vec!["shortfall"],
        ),
    ];
    for (name, rig, verdict, words) in table {
        let judgement = tried(rig, 1.0, HOURS);
        assert_eq!(judgement.verdict, verdict, "{name}: {judgement:?}");
        assert_eq!(judgement.reasons.is_empty(), verdict == Verdict::Pass, "{name}");
        for word in words {
            let found = judgement.reasons.iter().any(|reason| reason.word().starts_with(word));
            assert!(found, "{name}: no {word} in {judgement:?}");
        }
        for reason in &judgement.reasons {
            assert!(reason.to_string().ends_with('.'), "{reason}");
        }
    }
}

/// A Ctrl-C a moment after a slice had begun failed the device, by the few operations in it.
#[test]
fn a_slice_that_an_interruption_cut_breaks_no_rule() {
    let device = |at| Simulated { interval: 10, ..device() }.with(Fault::SlowThenInterrupt(at));
    // Slices are of 20 s: the slow interval is the first half of the third.
    let judgement = tried(device(50.0), 1.0, 120);
    assert_eq!(judgement.verdict, Verdict::Undecided, "{:?}", judgement.reasons);
    let words: Vec<&str> = judgement.reasons.iter().map(|reason| reason.word()).collect();
    assert_eq!(words, ["interrupted", "missing-slices", "partial-slice"]);
    // As its second half it ends a slice, which it breaks.
    let judgement = tried(device(60.0), 1.0, 120);
    assert_eq!(judgement.verdict, Verdict::Fail);
}

#[test]
fn a_bound_is_broken_on_its_edge_and_not_below() {
    let knee = device().knee(5.0, 1.0);
    assert_eq!(tried(device(), knee * 0.99, HOURS).verdict, Verdict::Pass);
    assert_eq!(tried(device(), knee * 1.01, HOURS).verdict, Verdict::Fail);
}

#[test]
fn waiting_before_the_device_counts_against_it() {
    let judgement = tried(device().with(Fault::Waiting(2_000_000)), 1.0, HOURS);
    assert_eq!(judgement.verdict, Verdict::Fail);
    let text = judgement.reasons[0].to_string();
    assert!(text.contains("100.00 % took 1 ms") && text.contains("service time 0.50 %"), "{text}");
}

#[test]
fn a_short_test_is_cut_into_short_slices_and_says_so() {
    let judgement = tried(Simulated::new(20.0, 100.0), 1.0, 120);
    assert_eq!(judgement.verdict, Verdict::Pass);
    assert!(judgement.notes[0].contains("slices of 20 s"), "{:?}", judgement.notes);
    assert!(tried(device(), 1.0, HOURS).notes.is_empty());
}

#[test]
fn a_device_that_gets_slower_is_noted_before_it_fails() {
    let judgement = tried(device().with(Fault::SlowDown(0.5 / f64::from(HOURS))), 1.0, HOURS);
    assert_eq!(judgement.verdict, Verdict::Pass, "{judgement:?}");
    assert!(judgement.notes[0].contains("gets slower"), "{:?}", judgement.notes);
}

#[test]
fn an_endless_stall_ends_in_fail_and_not_in_a_hang() {
    let judgement = tried(device().with(Fault::StallForEver), 1.0, 600);
    let words: Vec<&str> = judgement.reasons.iter().map(|reason| reason.word()).collect();
    assert_eq!(judgement.verdict, Verdict::Fail);
    assert!(words.contains(&"overran") && words.contains(&"shortfall"), "{words:?}");
    assert!(words.contains(&"nothing-judged"), "{words:?}");
}

#[test]
fn a_certification_goes_through_all_its_phases() {
    let mut rig = device();
    let certificate = certified(&mut rig);
    assert_eq!(certificate.verdict, Verdict::Pass, "{:?}", certificate.reasons());
    assert_eq!(rig.preparations, 1);
    assert_eq!(rig.rests, [60]);
    assert!(certificate.steadiness.unwrap().steady);
    assert_eq!(rig.loads, [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 2.0]);
}

#[test]
fn a_stress_passes_whatever_the_latencies_and_fails_when_it_stops() {
    // At twice the load 95 % of the capacity: slow, yet it runs to its end.
    let mut slow = Simulated { idle_ns: 100_000.0, capacity: 42.0, ..device() };
    assert_eq!(certified(&mut slow).verdict, Verdict::Pass);
    // At twice the load more than the capacity.
    let mut stopped = Simulated { idle_ns: 100_000.0, capacity: 36.0, ..device() };
    let certificate = certified(&mut stopped);
    assert_eq!(certificate.test.as_ref().unwrap().judgement.verdict, Verdict::Pass);
    assert_eq!(certificate.verdict, Verdict::Fail);
    assert!(certificate.reasons().iter().any(|reason| reason.word() == "lagged"));
}

#[test]
fn a_busy_machine_is_told_apart_from_a_slow_device() {
    let note = "waited for a processor";
    let mut busy = device().with(Fault::BusyMachine);
    let procedure = Procedure { settle: None, ..procedure() };
    let certificate = certify(&mut busy, &procedure, &mut Unobserved).unwrap();
    assert!(certificate.notes[0].contains(note), "{:?}", certificate.notes);
    let idle = certify(&mut device(), &procedure, &mut Unobserved).unwrap();
    assert!(!idle.notes.iter().any(|text| text.contains(note)), "{:?}", idle.notes);
}

#[test]
fn a_fresh_device_is_waited_for() {
    let mut rig = device().with(Fault::Fresh(600.0));
    let certificate = certified(&mut rig);
    let steadiness = certificate.steadiness.unwrap();
    assert!(steadiness.steady && steadiness.rounds.len() > 6, "{}", steadiness.rounds.len());
    assert_eq!(certificate.verdict, Verdict::Pass);
}

#[test]
fn a_device_that_never_settles_is_tested_all_the_same_and_it_is_said() {
    let mut rig = device().with(Fault::Fresh(1e9));
    rig.idle_ns = 40_000.0;
    let mut procedure = procedure();
    let settling = procedure.settle.as_mut().unwrap();
    settling.rule.range_percent = 1e-9;
    let certificate = certify(&mut rig, &procedure, &mut Unobserved).unwrap();
    assert_eq!(certificate.steadiness.unwrap().rounds.len(), 25);
    assert!(certificate.notes[0].contains("not steady after 25 rounds"), "{:?}", certificate.notes);
}

#[test]
fn a_device_that_is_gone_before_the_stress_fails_and_keeps_what_the_test_found() {
    let mut rig = device().with(Fault::Gone(1));
    let procedure = Procedure { settle: None, ..procedure() };
    let certificate = certify(&mut rig, &procedure, &mut Unobserved).unwrap();
    assert_eq!(certificate.verdict, Verdict::Fail);
    assert_eq!(certificate.test.as_ref().unwrap().judgement.verdict, Verdict::Pass);
    let words: Vec<&str> = certificate.reasons().iter().map(|reason| reason.word()).collect();
    assert!(words.contains(&"broken"), "{words:?}");
}

#[test]
fn what_a_device_says_of_its_health_stands_beside_the_verdict() {
    let judgement = tried(device().with(Fault::Hot), 1.0, 600);
    assert_eq!(judgement.verdict, Verdict::Pass);
    let notes = judgement.notes.join("\n");
    for part in [
        "/dev/b counted 1 media errors",
        "/dev/b went slower for 20 s so as not to get too hot",
        "/dev/b warns: its temperature is outside what it bears.",
    ] {
        assert!(notes.contains(part), "{part}: {notes}");
    }
    assert!(!notes.contains("/dev/a"), "{notes}");
}
