//! Reports as a log shows them.

use entresol_certify::load::{Interval, Kind, Series, SeriesInterval};
use entresol_certify::text::ReportText;
use entresol_certify::{BucketUnit, Buckets};

fn series(name: &str) -> Series {
    Series { name: name.to_owned(), kind: Kind::Read, device: None }
}

fn interval(number: u64, latencies_ns: &[u64]) -> Interval {
    let mut one = SeriesInterval::default();
    for latency in latencies_ns {
        one.service.record(*latency);
    }
    Interval {
        number,
        start_seconds: (number - 1) as f64 * 5.0,
        end_seconds: number as f64 * 5.0,
        series: vec![one, SeriesInterval::default()],
        lag_ns: 0,
        telemetry: Vec::new(),
    }
}

#[test]
fn reports_count_from_the_beginning_and_wrap_after_four_buckets() {
    let mut text =
        ReportText::new(&[series("reads"), series("/d-reads")], BucketUnit::Milliseconds, 5);
    let first = text.report(&interval(1, &[0, 999_000, 2_500_000, 5_000_000]));
    let expected = "after 5 sec:\nreads (4 total)\n (00: 0000000002) (02: 0000000001) \
                    (03: 0000000001)\n/d-reads (0 total)\n\n";
    assert_eq!(first, expected);
    let second = text.report(&interval(2, &[1_500_000, 9_000_000]));
    let expected = "after 10 sec:\nreads (6 total)\n (00: 0000000002) (01: 0000000001) \
                    (02: 0000000001) (03: 0000000001)\n (04: 0000000001)\n/d-reads (0 total)\n\n";
    assert_eq!(second, expected);
}

/// A load of 12 s with a report every 5 s said at its end that 15 s had gone by: its last rate was
/// less than half of what it had been.
#[test]
fn the_last_report_says_when_the_load_ended() {
    let mut text = ReportText::new(&[series("reads")], BucketUnit::Milliseconds, 5);
    let mut after = |number, end_seconds| {
        let report = text.report(&Interval { end_seconds, ..interval(number, &[]) });
        report.lines().next().unwrap().to_owned()
    };
    assert_eq!(after(1, 5.0), "after 5 sec:");
    assert_eq!(after(2, 10.0), "after 10 sec:");
    assert_eq!(after(3, 12.0), "after 12 sec:");
    assert_eq!(after(3, 10.0), "after 11 sec:", "no two are of the same time");
    assert_eq!(after(3, 14.2), "after 15 sec:");
}

#[test]
fn a_bucket_ends_where_the_next_one_begins() {
    let bucket = |ns| Buckets::of(ns, BucketUnit::Microseconds);
    assert_eq!(bucket(999), 0);
    assert_eq!(bucket(1_000), 1);
    assert_eq!(bucket(1_999), 1);
    assert_eq!(bucket(2_000), 2);
    assert_eq!(bucket(u64::MAX), 55);
    assert_eq!(Buckets::of(u64::MAX, BucketUnit::Milliseconds), 45);
}
