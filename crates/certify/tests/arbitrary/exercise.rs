//! The properties that hold for any bytes read as a configuration, a log or a measurement.

use entresol_certify::import::{self, Selection, Source};
use entresol_certify::latency::{self, LatencyOptions};
use entresol_certify::log::Log;
use entresol_certify::{Index, Storage, config};

/// Both readers take `bytes`. What the strict one accepts without a remark, ACT reads the same,
/// and it survives being written and read again.
pub(crate) fn configuration(bytes: &[u8]) {
    let compat = Storage::parse_compat(bytes, || 2);
    if let Ok(parsed) = Storage::parse(bytes) {
        let it = parsed.configuration;
        let _ = it.derive();
        let text = it.to_text("any");
        let again = Storage::parse(text.as_bytes()).expect("what is written can be read");
        let sizes = it.paper.read_histogram.is_some() || it.paper.write_histogram.is_some();
        assert!(sizes || again.configuration == it, "{text}");
        if let Some((read, _)) = compat.outcome {
            // ACT counts the threads where the file does not.
            let service_threads = read.service_threads;
            assert_eq!(read, Storage { service_threads, ..it });
        }
    }
    let compat = Index::parse_compat(bytes, || 2);
    if let Ok(parsed) = Index::parse(bytes) {
        let it = parsed.configuration;
        let _ = it.derive();
        let again =
            Index::parse(it.to_text("any").as_bytes()).expect("what is written can be read");
        assert_eq!(again.configuration, it);
        if let Some((read, _)) = compat.outcome {
            let service_threads = read.service_threads;
            assert_eq!(read, Index { service_threads, ..it });
        }
    }
}

/// A log is read to its end, and every one of its histograms tabulated.
pub(crate) fn log(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let Ok(log) = Log::read(&text) else { return };
    let options = LatencyOptions {
        histograms: log.names.clone(),
        slice_sec: 1,
        buckets: 17,
        ..LatencyOptions::default()
    };
    let Ok(analysis) = latency::analyse(&log, &options) else { return };
    for slice in &analysis.slices {
        for column in &slice.columns {
            let in_range = |percent: &f64| (0.0..=100.0).contains(percent);
            assert!(column.percent_over.iter().all(in_range), "{column:?}");
            assert!(column.percent_over.is_sorted_by(|a, b| a >= b), "{column:?}");
        }
    }
}

/// Every importer takes `bytes`; what comes out can be put into a configuration.
pub(crate) fn measurement(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let selection = Selection { large_block_bytes: 128 * 1024, ..Selection::default() };
    let _ = import::detect(&text);
    let sources =
        [Source::Asloglatency, Source::ServerLog, Source::Iostat, Source::Fio, Source::Stats];
    for source in sources {
        let Ok(profile) = import::import(source, &text, &selection) else { continue };
        let mut it = Storage::default();
        profile.apply(&mut it);
        let sizes: [&Option<config::SizeHistogram>; 2] =
            [&it.paper.read_histogram, &it.paper.write_histogram];
        for histogram in sizes.into_iter().flatten() {
            assert_eq!(histogram.percent_above.last(), Some(&0.0), "{histogram}");
            assert!(histogram.percent_above.is_sorted_by(|a, b| a >= b), "{histogram}");
        }
    }
}
