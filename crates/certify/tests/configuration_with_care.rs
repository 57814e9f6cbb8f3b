//! The strict reader: the same files, and an error wherever ACT would misread in silence.

use std::collections::BTreeSet;

use entresol_certify::config::{self, ArrivalKind, EngineKind, LoadModel};
use entresol_certify::{Index, Storage};

const BASE: &str = "device-names: /dev/a\ntest-duration-sec: 10\nread-reqs-per-sec: 2000\n";

/// The findings about `BASE` and `more`, one a line.
fn refusal(more: &str) -> String {
    let file = format!("{BASE}{more}");
    Storage::parse(file.as_bytes()).expect_err(more).to_string()
}

#[test]
fn rules_that_nothing_could_keep_to_are_refused() {
    for rules in ["0/1", "5/0", "5/0.0001", "101/1", "nan/1"] {
        let text = format!(
            "device-names: /dev/a\ntest-duration-sec: 5\nread-reqs-per-sec: 1\nrules: {rules}\n"
        );
        let error = Storage::parse(text.as_bytes()).unwrap_err().to_string();
        assert!(error.contains("line 4") && error.contains(rules), "{error}");
    }
}

/// Text from a page or a word processor has such blanks: ACT reads 0 behind them.
#[test]
fn blanks_that_are_none_for_act_are_refused() {
    for blank in ['\u{a0}', '\u{2009}', '\u{3000}'] {
        let error = refusal(&format!("write-reqs-per-sec:{blank}1000\n"));
        let named =
            format!("line 4: the line has a blank that is none for ACT (U+{:04X})", blank as u32);
        assert!(error.starts_with(&named), "{error}");
    }
    let commented = format!("{BASE}# as the\u{a0}guide says\n");
    assert!(Storage::parse(commented.as_bytes()).is_ok());
}

#[test]
fn recorded_configurations_are_accepted() {
    let files = [
        include_str!("vectors/storage_basic.conf"),
        include_str!("vectors/storage_us.conf"),
        include_str!("vectors/rates.conf"),
        include_str!("vectors/bigrec.conf"),
        include_str!("vectors/updonly.conf"),
        include_str!("vectors/lag_lb.conf"),
        include_str!("vectors/lag_service.conf"),
        include_str!("vectors/legacy_v4.0.conf"),
        include_str!("vectors/storage_histogram.conf"),
    ];
    for file in files {
        let parsed = Storage::parse(file.as_bytes());
        assert!(parsed.is_ok(), "{file}\n{parsed:?}");
    }
    assert!(Index::parse(include_bytes!("vectors/index_basic.conf")).is_ok());
}

#[test]
fn silent_misreadings_are_errors_that_name_line_item_and_expectation() {
    let cases = [
        ("write-reqs-per-sec : 5", "line 4: `write-reqs-per-sec` has a blank before its colon"),
        ("record-bytes: 128K", "line 4: `record-bytes` is `128K`; expected a whole number"),
        ("commit-to-device: Yes", "line 4: `commit-to-device` is `Yes`; expected `yes` or `no`"),
        ("max-lag-sec: 4294967296", "line 4: `max-lag-sec` is `4294967296`; expected a whole"),
        ("max-lag-sec: -1", "line 4: `max-lag-sec` is `-1`; expected a whole number"),
        ("max-lag-sec: abc", "line 4: `max-lag-sec` is `abc`; expected a whole number"),
        ("max-lag-sec: 5 6", "line 4: `max-lag-sec` is `5 6`; expected a whole number"),
        ("max-lag-sec:", "line 4: `max-lag-sec` has no value"),
        ("max-lag-sec: 1\nmax-lag-sec: 2", "line 5: `max-lag-sec` was given in line 4 already"),
        ("device-names: /dev/a", "line 4: `device-names` is `/dev/a`; expected every device once"),
        ("reads-per-sec: 1", "line 4: there is no item `reads-per-sec`"),
        ("read-req-per-sec: 1", "did you mean `read-reqs-per-sec`?"),
        (
            "large-block-op-kbytes: 4194304",
            "line 4: `large-block-op-kbytes` is `4194304`; expected a power of two",
        ),
        ("record-bytes: 0", "line 4: `record-bytes` is `0`; expected 1 to 8388608 bytes"),
        ("seed: \0", "line 4: the line holds a NUL byte"),
    ];
    for (more, expected) in cases {
        let found = refusal(more);
        assert!(found.contains(expected), "{more:?}: {found}");
    }
    let long = format!("# {}", "x".repeat(5000));
    assert!(refusal(&long).contains("line 4: the line is longer than the 4094 bytes"));
    let marked = Storage::parse(format!("\u{feff}{BASE}").as_bytes()).expect_err("marked");
    assert!(marked.to_string().contains("line 1: the file begins with a byte order mark"));
    let foreign = Storage::parse(b"device-names: \xff\n").expect_err("foreign");
    assert!(foreign.to_string().contains("line 1: the line is not UTF-8 text"));
}

#[test]
fn all_errors_of_a_file_are_found_at_once() {
    let found = refusal("record-bytes: 1K\nverify: maybe\n");
    assert_eq!(found.lines().count(), 2, "{found}");
}

#[test]
fn own_items_are_read() {
    let more = "arrivals: recorded /tmp/a b\nengine: psync\nmodel: entresol\nqueue-depth: 64\n\
                seed: 18446744073709551615\nverify: yes\njournal: /mnt/other\n\
                rules: 2.5/0.5 1/8\nrule-slice-sec: 600\nrest-sec: 0\nshortfall-pct: 0.5\n";
    let it = Storage::parse(format!("{BASE}{more}").as_bytes()).unwrap().configuration;
    let test = it.test;
    assert_eq!(test.arrivals, ArrivalKind::Recorded("/tmp/a b".into()));
    assert_eq!((test.engine, test.model), (EngineKind::Psync, LoadModel::Entresol));
    assert_eq!((test.queue_depth, test.seed, test.verify), (64, Some(u64::MAX), true));
    assert_eq!(test.rules.len(), 2);
    assert_eq!((test.rules[0].percent, test.rules[0].threshold_ms), (2.5, 0.5));
    assert_eq!((test.rule_slice_sec, test.rest_sec, test.shortfall_pct), (600, 0, 0.5));
    for wrong in ["rules: 5", "rules: 5/0", "rules: 101/1", "arrivals: odd", "queue-depth: 70000"] {
        assert!(refusal(wrong).contains("expected"), "{wrong}");
    }
}

#[test]
fn items_of_old_are_taken_for_what_they_mean_today() {
    let file = include_bytes!("vectors/legacy_v4.0.conf");
    let parsed = Storage::parse(file).unwrap();
    assert_eq!(parsed.configuration.service_threads, 8);
    assert!(parsed.warnings.iter().any(|warning| warning.text.contains("scheduler-mode")));
    let old = format!("{BASE}large-block-ops-per-sec: 24\nread-req-num-512-blocks: 3\n");
    let it = Storage::parse(old.as_bytes()).unwrap().configuration;
    assert_eq!(it.record_bytes, 1536);
    let rates = it.derive().unwrap();
    assert_eq!((rates.large_reads, rates.large_writes), (24.0, 24.0));
}

/// The rate of large blocks that an old file gives was lost, and the derived one took its place.
#[test]
fn items_of_old_are_written_so_that_the_same_rates_are_derived() {
    for old in [
        "large-block-ops-per-sec: 24\n",
        "large-block-ops-per-sec: 24\nread-req-num-512-blocks: 4\n",
        "num-queues: 2\nthreads-per-queue: 4\nwrite-reqs-per-sec: 1000\n",
    ] {
        let read = Storage::parse(format!("{BASE}{old}").as_bytes()).unwrap().configuration;
        let text = read.to_text("as it was");
        let again = Storage::parse(text.as_bytes()).unwrap().configuration;
        assert_eq!(again, read, "{text}");
        assert_eq!(again.derive().unwrap(), read.derive().unwrap(), "{text}");
    }
    let old = format!("{BASE}num-cache-threads: 3\n");
    let read = Index::parse(old.as_bytes()).unwrap().configuration;
    assert_eq!(Index::parse(read.to_text("").as_bytes()).unwrap().configuration, read);
}

#[test]
fn items_without_effect_are_remarked_upon() {
    let file = format!("{BASE}read-size-offset: 90\ndirect-frees: 5\n");
    let warnings = Storage::parse(file.as_bytes()).unwrap().warnings;
    let texts: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    assert!(texts[0].starts_with("line 4: `read-size-offset` has no effect"), "{texts:?}");
    assert!(texts[1].starts_with("line 5: `direct-frees` has no effect without"), "{texts:?}");
    let paper = include_str!("vectors/storage_histogram.conf").to_owned() + "update-pct: 10\n";
    let warnings = Storage::parse(paper.as_bytes()).unwrap().warnings;
    assert!(warnings.iter().any(|warning| warning.text.starts_with("`update-pct` has no effect")));
}

#[test]
fn own_items_without_effect_are_remarked_upon_in_both_kinds_of_configuration() {
    let own = "model: engine\narrivals: poisson\nqueue-depth: 8\n";
    let texts = |warnings: &[config::Finding]| -> Vec<String> {
        let texts = warnings.iter().map(|warning| warning.text.split(':').next().unwrap());
        texts.map(|text| text.replace(" has no effect", "")).collect()
    };
    let index = |more: &str| Index::parse(format!("{BASE}{own}{more}").as_bytes()).unwrap();
    assert_eq!(texts(&index("").warnings), ["`model`"]);
    let psync = index("engine: psync\n").warnings;
    assert_eq!(texts(&psync), ["`model`", "`arrivals`", "`queue-depth`"]);
    assert_eq!(psync[1].line, Some(5));
    let storage = |more: &str| Storage::parse(format!("{BASE}{own}{more}").as_bytes()).unwrap();
    assert_eq!(storage("").warnings, []);
    let psync = storage("engine: psync\n").warnings;
    assert_eq!(texts(&psync), ["`arrivals`", "`queue-depth`"]);
}

#[test]
fn a_missing_item_is_named() {
    let found = Storage::parse(b"device-names: /dev/a\n").expect_err("no duration").to_string();
    assert_eq!(found, "`test-duration-sec` is missing; expected 1 or more seconds");
}

#[test]
fn the_reference_names_every_item_and_no_other() {
    let reference = include_str!("../../../docs/reference/act-configuration.md");
    let rows = reference.lines().filter(|line| line.starts_with("| `"));
    let names = rows.filter_map(|row| row.split(" | ").next());
    let documented: BTreeSet<&str> =
        names.flat_map(|names| names.split('`').skip(1).step_by(2)).collect();
    let items = config::storage_item_names().into_iter().chain(config::index_item_names());
    let known: BTreeSet<&str> = items.map(|(name, _)| name).collect();
    assert_eq!(documented, known);
}
