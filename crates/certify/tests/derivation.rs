//! Derived rates: ACT's own, and the sizing paper's published figures.

use entresol_certify::{DeriveError, Index, Storage};

fn storage(items: &str) -> Storage {
    let file = format!("device-names: /dev/a\ntest-duration-sec: 10\n{items}");
    Storage::parse(file.as_bytes()).expect("the test writes good items").configuration
}

#[track_caller]
fn assert_near(found: f64, expected: f64, tolerance: f64) {
    assert!((found - expected).abs() <= tolerance, "found {found}, expected {expected}");
}

const PAPER: &str = include_str!("vectors/storage_histogram.conf");

#[test]
fn the_papers_final_configuration_gives_its_rates() {
    let rates = Storage::parse(PAPER.as_bytes()).unwrap().configuration.derive().unwrap();
    assert_near(rates.stored_bytes_mean, 18475.11, 0.005);
    assert_near(rates.read_bytes_mean, 16948.02, 0.005);
    assert_eq!(rates.records_per_block, 7);
    assert_near(rates.large_writes, 1582.86, 0.005);
    assert_near(rates.large_reads, 1230.86, 0.05);
    let base = rates.steps.iter().find(|step| step.name == "large blocks").unwrap();
    assert_near(base.value, 1702.0, 1e-9);
    assert_eq!(rates.internal_reads, 10470);
}

#[test]
fn the_papers_offsets_and_direct_frees_give_its_rates() {
    let mut it = Storage::parse(PAPER.as_bytes()).unwrap().configuration;
    it.paper.lbw_req_offset = 90;
    assert_near(it.derive().unwrap().large_writes, 1531.8, 1e-9);
    (it.paper.direct_frees, it.paper.total_lbw_per_sec) = (369, 1543);
    assert_near(it.derive().unwrap().large_reads, 1165.5, 0.05);
    it.paper.direct_frees = 1544;
    assert!(matches!(it.derive(), Err(DeriveError::Paper(_))));
}

#[test]
fn records_are_packed_whole_into_blocks() {
    let large = |items| storage(items).derive().unwrap().large_writes;
    assert_near(large("write-reqs-per-sec: 1000"), 23.53, 0.005);
    assert_near(large("write-reqs-per-sec: 1000\nrecord-bytes: 1500"), 22.99, 0.005);
    let range =
        storage("write-reqs-per-sec: 1000\nrecord-bytes: 1000\nrecord-bytes-range-max: 100000");
    assert_eq!(range.derive().unwrap().records_per_block, 2);
}

#[test]
fn committed_records_are_not_written_again_with_their_block() {
    let items = "write-reqs-per-sec: 1000\nreplication-factor: 2\ndefrag-lwm-pct: 60\n\
                 commit-to-device: yes";
    let rates = storage(items).derive().unwrap();
    assert_near(rates.large_reads, 58.82, 0.005);
    assert_near(rates.large_writes, 35.29, 0.005);
    assert_eq!(rates.internal_writes, 2000);
}

#[test]
fn index_load_grows_with_copies_and_defragmentation() {
    let file = "device-names: /dev/a\ntest-duration-sec: 1\nread-reqs-per-sec: 200\n\
                write-reqs-per-sec: 100\nreplication-factor: 2\ndefrag-lwm-pct: 60\n";
    let rates = Index::parse(file.as_bytes()).unwrap().configuration.derive().unwrap();
    assert_eq!((rates.service_reads, rates.cache_reads_and_writes), (400, 500));
}

#[test]
fn rates_that_act_wraps_around_are_refused() {
    let it = storage("write-reqs-per-sec: 3000000000\nreplication-factor: 2");
    assert_eq!(it.derive(), Err(DeriveError::TooLarge("writes with replicas")));
    assert!(it.derive_compat().is_ok());
}

/// ACT asks whether the sum of both rates is 0, and that wraps around too; under `--compat` such
/// a load was echoed and begun.
#[test]
fn rates_whose_sum_wraps_to_nothing_are_none_to_act() {
    let rates = "read-reqs-per-sec: 4294967295\nwrite-reqs-per-sec: 1\nservice-threads: 1";
    let it = storage(rates);
    assert_eq!(it.derive_compat(), Err(DeriveError::NoRequests));
    assert!(it.derive().is_ok());
    let file = format!("device-names: /dev/a\ntest-duration-sec: 1\n{rates}\n");
    let it = Index::parse(file.as_bytes()).unwrap().configuration;
    assert_eq!(it.derive_compat(), Err(DeriveError::NoRequests));
}

#[test]
fn a_block_smaller_than_a_record_is_refused() {
    let it = storage("write-reqs-per-sec: 10\nrecord-bytes: 200000");
    assert_eq!(it.derive(), Err(DeriveError::RecordExceedsBlock));
    assert_eq!(it.derive_compat().unwrap().large_writes, f64::INFINITY);
}
