//! Certification of a real file: phases, counts and endings, never times.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use entresol_certify::load::{Durability, Manner, Target, TargetOptions};
use entresol_certify::report::{Subject, certificate_json};
use entresol_certify::search::{Search, search};
use entresol_certify::verdict::{Rules, SteadyRule, Verdict};
use entresol_certify::{
    Configured, DeviceRig, Doors, Preparation, Procedure, RigError, Settling, Storage, Stress,
    Unobserved, certify,
};

/// A directory that goes with its test.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Directory {
        let path = std::env::temp_dir().join(format!("verdict-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a writable temporary directory");
        Directory(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _left_behind = std::fs::remove_dir_all(&self.0);
    }
}

fn configured(directory: &Directory) -> Configured {
    let name = |name| directory.0.join(name).display().to_string();
    let name = [name("a"), name("b")].join(" ");
    // A bound that a busy machine cannot break.
    let text = format!(
        "device-names: {name}\nfile-size-mbytes: 16\ntest-duration-sec: 2\nread-reqs-per-sec: 100\n\
         write-reqs-per-sec: 100\nrules: 100/60000\ndisable-odsync: yes\nrest-sec: 0\n"
    );
    let it = Storage::parse(text.as_bytes()).expect("a good configuration").configuration;
    let rates = it.derive().expect("a good configuration");
    Configured::Storage(Box::new(it), rates)
}

fn rig(configured: &Configured, stop: &Arc<AtomicBool>) -> DeviceRig {
    let names = configured.devices().to_vec();
    let open = move || {
        let options = TargetOptions {
            manner: Manner::Strict,
            file_mbytes: 16,
            durability: Durability::Flushed,
            destroy: Vec::new(),
        };
        let open = |name: &String| Target::open(name, &options, &mut |_| {});
        let targets: Result<Arc<[Target]>, _> = names.iter().map(open).collect();
        targets.map_err(|error| RigError(error.to_string()))
    };
    let doors = Doors { open: Box::new(open), filling: Box::new(|_, _| {}) };
    DeviceRig::new(configured.clone(), doors, Arc::clone(stop))
}

fn procedure(configured: &Configured) -> Procedure {
    let rule = SteadyRule { window: 2, range_percent: 1e9, slope_percent: 1e9 };
    Procedure {
        rules: configured.rules(),
        prepare: Some(Preparation::IfNeeded),
        settle: Some(Settling { rule, round_seconds: 1, rounds_max: 3 }),
        test_seconds: 2,
        stress: Some(Stress { factor: 2.0, seconds: 1 }),
        rest_seconds: 0,
    }
}

#[test]
fn files_are_prepared_once_and_certified_with_the_counts_of_its_rates() {
    let directory = Directory::new("file");
    let configured = configured(&directory);
    let stop = Arc::new(AtomicBool::new(false));
    let mut first = rig(&configured, &stop);
    let certificate = certify(&mut first, &procedure(&configured), &mut Unobserved).unwrap();
    assert_eq!(certificate.verdict, Verdict::Pass, "{:?}", certificate.reasons());
    let prepared = certificate.prepared.unwrap();
    assert_eq!((prepared.left, prepared.stopped), (0, false));
    // Two passes over two files.
    assert_eq!(prepared.bytes, 2 * 2 * (16 << 20));
    assert_eq!(certificate.steadiness.as_ref().unwrap().rounds.len(), 2);
    let json = certificate_json(&Subject::default(), &certificate);
    let reads = |run: &str| json[run]["total"]["series"]["reads"]["done"].as_u64().unwrap();
    assert!(reads("test").abs_diff(200) <= 1 && reads("stress").abs_diff(200) <= 1, "{json}");
    assert!(first.troubles().is_empty());
    drop(first);
    let mut second = rig(&configured, &stop);
    let again = Procedure { settle: None, stress: None, ..procedure(&configured) };
    let certificate = certify(&mut second, &again, &mut Unobserved).unwrap();
    assert_eq!(certificate.prepared.map(|prepared| (prepared.left, prepared.bytes)), Some((2, 0)));
}

#[test]
fn a_stop_ends_each_phase_without_a_verdict() {
    let directory = Directory::new("stop");
    let configured = configured(&directory);
    let stop = Arc::new(AtomicBool::new(true));
    let with = |change: &dyn Fn(&mut Procedure)| {
        let mut procedure = procedure(&configured);
        change(&mut procedure);
        let mut rig = rig(&configured, &stop);
        let certificate = certify(&mut rig, &procedure, &mut Unobserved).unwrap();
        assert_eq!(certificate.verdict, Verdict::Undecided);
        certificate
    };
    assert!(with(&|_| ()).prepared.unwrap().stopped);
    assert!(with(&|procedure| procedure.prepare = None).steadiness.is_none());
    let test = with(&|procedure| {
        procedure.prepare = None;
        procedure.settle = None;
    });
    assert_eq!(test.reasons()[0].word(), "interrupted");
    assert!(stop.load(Ordering::Relaxed), "the caller's flag is the caller's");
}

#[test]
fn a_search_stops_failing_loads_early_and_goes_on_with_the_next() {
    let directory = Directory::new("search");
    let configured = configured(&directory);
    let stop = Arc::new(AtomicBool::new(false));
    let mut how = Search {
        // No device answers within a microsecond.
        rules: Rules { bounds: Rules::bounds_of("1/0.001").unwrap(), ..configured.rules() },
        step: 1.0,
        first: 4,
        most: 8,
        seconds: 20,
        confirm_seconds: 0,
        rest_seconds: 0,
        tries_max: 9,
        seconds_max: 600,
    };
    how.rules.slice_seconds = 1;
    let found = search(&mut rig(&configured, &stop), &how, Vec::new(), &mut Unobserved).unwrap();
    assert_eq!((found.largest, found.smallest_failed), (None, Some(1)));
    assert_eq!(found.tries.len(), 3);
    assert!(found.tries.iter().all(|tried| tried.run.as_ref().unwrap().cut_short));
    assert!(!stop.load(Ordering::Relaxed));
}
