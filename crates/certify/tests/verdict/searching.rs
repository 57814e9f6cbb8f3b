//! The search for the largest load, on devices whose limit is known.

use crate::simulated::{Fault, Simulated};
use entresol_certify::report::search_line;
use entresol_certify::search::{
    Found, Next, Outcome, Purpose, Search, Try, search, tries_json, tries_of,
};
use entresol_certify::verdict::{Judgement, Rules, Span, Verdict};
use entresol_certify::{Observer, Phase, Unobserved};

fn how() -> Search {
    Search {
        rules: Rules::default(),
        step: 1.0,
        first: 1,
        most: 1000,
        seconds: 120,
        confirm_seconds: 0,
        rest_seconds: 30,
        tries_max: 64,
        seconds_max: 1 << 30,
    }
}

fn found(rig: &mut Simulated, how: &Search) -> Found {
    search(rig, how, Vec::new(), &mut Unobserved).expect("simulated rigs do what they are told")
}

#[test]
fn the_known_knee_is_found_within_one_step() {
    for capacity in [3.0, 8.0, 20.0, 55.0, 140.0, 301.0] {
        for idle_ns in [80_000.0, 150_000.0, 200_000.0] {
            let mut rig = Simulated::new(10.0, 10.0 * capacity);
            rig.idle_ns = idle_ns;
            let knee = rig.knee(5.0, 1.0);
            let found = found(&mut rig, &how());
            let largest = f64::from(found.largest.unwrap_or(0));
            // A histogram's tenth of a percent may decide for a load that is just at the knee.
            assert!(
                (largest - knee).abs() <= 1.0 + 0.002 * capacity,
                "capacity {capacity}: {largest}, knee {knee}"
            );
        }
    }
}

#[test]
fn every_load_below_the_answer_passed_and_every_one_above_failed() {
    let mut rig = Simulated::new(10.0, 400.0);
    let found = found(&mut rig, &how());
    let largest = found.largest.unwrap();
    for tried in &found.tries {
        let passed = tried.judgement.verdict == Verdict::Pass;
        assert_eq!(passed, tried.steps <= largest, "{} steps", tried.steps);
    }
    assert_eq!(found.smallest_failed, Some(largest + 1));
    assert_eq!(rig.rests.len(), found.tries.len() - 1);
    assert_eq!(found.outcome, Outcome::Found);
}

#[test]
fn fractions_of_the_configured_load_are_tried() {
    let mut rig = Simulated::new(100.0, 60.0);
    let mut how = how();
    (how.step, how.first, how.most) = (0.05, 20, 100);
    let knee = rig.knee(5.0, 1.0);
    let factor = found(&mut rig, &how).largest_factor().unwrap();
    assert!(knee < 1.0 && (factor - knee).abs() <= 0.05, "{factor}, knee {knee}");
}

#[test]
fn limits_end_a_search() {
    let outcome = |rig: Simulated, change: &dyn Fn(&mut Search)| {
        let mut how = how();
        change(&mut how);
        let found = found(&mut rig.clone(), &how);
        (found.outcome, found.largest, found.tries.len())
    };
    let large = Simulated::new(1.0, 1000.0);
    assert_eq!(outcome(large.clone(), &|how| how.most = 5), (Outcome::AllPass, Some(5), 4));
    assert_eq!(outcome(large.clone(), &|how| how.tries_max = 3), (Outcome::TriesUsed, Some(4), 3));
    let two = outcome(large.clone(), &|how| how.seconds_max = 250);
    assert_eq!(two, (Outcome::TimeUsed, Some(2), 2));
    let slow = Simulated::new(90.0, 100.0);
    assert_eq!(outcome(slow, &|_| ()), (Outcome::NonePasses, None, 1));
    for fault in [Fault::Interrupt(50.0), Fault::SlowThenInterrupt(50.0)] {
        let stopped = large.clone().with(fault);
        assert_eq!(outcome(stopped, &|_| ()), (Outcome::Interrupted, None, 0), "{fault:?}");
    }
}

#[test]
fn a_device_that_is_gone_ends_a_search_without_taking_its_tries_along() {
    let mut rig = Simulated::new(1.0, 1000.0).with(Fault::Gone(2));
    let found = found(&mut rig, &how());
    assert_eq!((found.outcome, found.largest), (Outcome::Broken, Some(2)));
    assert_eq!(found.verdict(), Verdict::Fail);
    assert!(found.tries[2].judgement.reasons[0].to_string().contains("No such device"));
    let mut absent = Simulated::new(1.0, 1000.0).with(Fault::Gone(0));
    assert!(search(&mut absent, &how(), Vec::new(), &mut Unobserved).is_err());
}

#[test]
fn a_load_during_which_a_device_vanished_is_tried_again() {
    struct Kept(Vec<Try>);
    impl Observer for Kept {
        fn begin(&mut self, _: Phase, _: Option<u32>, _: f64) {}
        fn advance(&mut self, _: f64) {}
        fn slice(&mut self, _: &Span) {}
        fn tried(&mut self, tries: &[Try]) {
            self.0 = tries.to_vec();
        }
    }
    let whole = found(&mut Simulated::new(1.0, 100.0), &how());
    for after in 1..whole.tries.len() {
        let mut kept = Kept(Vec::new());
        let mut rig = Simulated::new(1.0, 100.0).with(Fault::Gone(after));
        let broken = search(&mut rig, &how(), Vec::new(), &mut kept).unwrap();
        assert_eq!((broken.outcome, broken.tries.len()), (Outcome::Broken, after + 1));
        let mut repaired = Simulated::new(1.0, 100.0);
        let found = search(&mut repaired, &how(), kept.0, &mut Unobserved).unwrap();
        assert_eq!(found.largest, whole.largest, "after {after} loads");
    }
}

#[test]
fn a_load_that_passes_ran_to_its_end_also_where_devices_get_uneven_shares() {
    let mut rig = Simulated::new(600.0, 100_000.0).with(Fault::Uneven(0.05));
    let mut how = how();
    how.most = 4;
    let found = found(&mut rig, &how);
    assert_eq!((found.outcome, found.largest), (Outcome::AllPass, Some(4)));
    for tried in &found.tries {
        let run = tried.run.as_ref().unwrap();
        assert!(!run.cut_short);
        assert_eq!(run.slices.len() as u32, run.slicing.count, "{} steps", tried.steps);
    }
}

#[test]
fn a_load_that_met_failing_transfers_is_named_a_fault() {
    let mut rig = Simulated::new(10.0, 100.0).with(Fault::ErrorEvery(100));
    let found = found(&mut rig, &how());
    assert_eq!((found.faulty_tries(), found.verdict()), (1, Verdict::Fail));
    assert!(search_line(&found).contains("a fault and no limit"));
}

#[test]
fn a_failing_load_is_given_up_after_its_first_bad_slice() {
    let mut rig = Simulated::new(90.0, 100.0);
    let found = found(&mut rig, &how());
    assert!(found.tries[0].seconds <= 30.0, "{} s", found.tries[0].seconds);
    let words: Vec<_> = found.tries[0].judgement.reasons.iter().map(|r| r.word()).collect();
    assert_eq!(words.iter().filter(|word| **word != "too-slow").count(), 0, "{words:?}");
}

#[test]
fn an_endless_stall_fails_every_load_and_the_search_ends() {
    let mut rig = Simulated::new(10.0, 100.0).with(Fault::StallForEver);
    assert_eq!(found(&mut rig, &how()).outcome, Outcome::NonePasses);
}

#[test]
fn the_answer_is_confirmed_and_lowered_where_that_fails() {
    let mut how = how();
    (how.confirm_seconds, how.first) = (600, 8);
    // Passes for two minutes at a load that it cannot bear for ten.
    let mut rig = Simulated::new(1.0, 100.0).with(Fault::SlowDown(0.001));
    let found = found(&mut rig, &how);
    let confirmed = found.tries.last().unwrap();
    assert_eq!(confirmed.purpose, Purpose::Confirm);
    assert_eq!(Some(confirmed.steps), found.largest);
    assert_eq!(confirmed.judgement.verdict, Verdict::Pass);
    let refused = found.tries.iter().filter(|tried| {
        tried.purpose == Purpose::Confirm && tried.judgement.verdict == Verdict::Fail
    });
    assert!(refused.count() > 0);
}

#[test]
fn an_interrupted_search_goes_on_where_it_was() {
    let mut how = how();
    how.confirm_seconds = 240;
    let whole = found(&mut Simulated::new(1.0, 100.0), &how);
    for kept in 0..whole.tries.len() {
        let tries = whole.tries[..kept].to_vec();
        let mut rig = Simulated::new(1.0, 100.0);
        let rest = search(&mut rig, &how, tries, &mut Unobserved).unwrap();
        assert_eq!(rest.largest, whole.largest);
        assert_eq!(rest.tries.len(), whole.tries.len());
        assert_eq!(rig.loads.len(), whole.tries.len() - kept);
    }
}

#[test]
fn tries_survive_being_written_down_and_belong_to_their_search() {
    let how = how();
    let tries = found(&mut Simulated::new(10.0, 200.0), &how).tries;
    let kept = tries_json(&how, "a: 1", &tries);
    let text: serde_json::Value = serde_json::from_str(&kept.to_string()).unwrap();
    let back = tries_of(&how, "a: 1", &text).unwrap();
    let verdicts = |tries: &[Try]| {
        tries.iter().map(|t| (t.steps, t.purpose, t.judgement.verdict)).collect::<Vec<_>>()
    };
    assert_eq!(verdicts(&back), verdicts(&tries));
    // The curve of a search that was interrupted is whole.
    let points = |tries: &[Try]| tries.iter().map(|t| t.point.clone()).collect::<Vec<_>>();
    assert_eq!(points(&back), points(&tries));
    assert!(points(&tries).iter().all(Option::is_some));
    assert_eq!(how.next(&back), how.next(&tries));
    assert!(tries_of(&how, "a: 2", &text).is_err());
    assert!(tries_of(&Search { step: 2.0, ..how.clone() }, "a: 1", &text).is_err());
    for damaged in ["{}", "[]", "3", &kept.to_string().replace("\"fail\"", "\"perhaps\"")] {
        let damaged = serde_json::from_str(damaged).unwrap();
        assert!(tries_of(&how, "a: 1", &damaged).is_err(), "{damaged}");
    }
}

#[test]
fn every_order_of_verdicts_comes_to_an_end() {
    // A device that answers by chance must not keep a search going.
    for seed in 0..200u64 {
        let mut random = entresol_workload::Random::new(seed);
        let mut how = how();
        how.confirm_seconds = 60;
        let mut tries: Vec<Try> = Vec::new();
        while let Next::Try(steps, purpose) = how.next(&tries) {
            assert!(tries.len() < 100 && (1..=1000).contains(&steps), "seed {seed}");
            let verdict = if random.below(2) == 0 { Verdict::Pass } else { Verdict::Fail };
            let judgement = Judgement { verdict, reasons: Vec::new(), notes: Vec::new() };
            tries.push(Try { steps, purpose, seconds: 1.0, judgement, point: None, run: None });
        }
    }
}
