//! Tables of latencies: those of ACT's analyser for sound logs, and faults for logs that it turned
//! into nonsense.

use entresol_certify::latency::{self, Extra, LatencyOptions, LatencyTable};
use entresol_certify::log::{Log, LogError};

const SAMPLES: &str = include_str!("vectors/act_latency_samples.txt");
const BASIC: &str = include_str!("vectors/storage_basic.out");
const LEGACY: &str = include_str!("vectors/legacy_v4.0.out");

const LOGS: [(&str, &str); 6] = [
    ("storage_basic.out", BASIC),
    ("storage_us.out", include_str!("vectors/storage_us.out")),
    ("updonly.out", include_str!("vectors/updonly.out")),
    ("lag_service.out", include_str!("vectors/lag_service.out")),
    ("index_basic.out", include_str!("vectors/index_basic.out")),
    ("rates.out", include_str!("vectors/rates.out")),
];

/// The log and the options of a command line of the analyser.
fn command(line: &str) -> Option<(&'static str, &'static str, LatencyOptions)> {
    let mut words = line.split(' ').skip(1);
    let mut options = LatencyOptions::default();
    let mut log = None;
    let mut histograms = Vec::new();
    while let Some(option) = words.next() {
        if option == "-x" {
            options.extra = Extra::Rates;
            continue;
        }
        let value = words.next()?;
        match option {
            "-l" => log = LOGS.iter().find(|(name, _)| *name == value),
            "-h" => histograms.push(value.to_owned()),
            "-t" => options.slice_sec = value.parse().ok()?,
            "-s" => options.start_bucket = value.parse().ok()?,
            "-n" => options.buckets = value.parse().ok()?,
            "-e" => options.every_nth = value.parse().ok()?,
            _ => return None,
        }
    }
    if !histograms.is_empty() {
        options.histograms = histograms;
    }
    let (name, text) = log?;
    Some((name, text, options))
}

/// What is printed below the arguments.
fn printed(name: &str, text: &str, options: &LatencyOptions) -> String {
    let log = Log::read(text).expect("recorded logs can be read");
    let table = LatencyTable::new(options, log.unit.expect("recorded logs say their unit"))
        .expect("the options are good");
    let mut printed = latency::heading(&log, name, options) + &table.header();
    match latency::analyse(&log, options) {
        Ok(analysis) if !analysis.slices.is_empty() => printed += &table.body(&analysis),
        _ => {
            let seconds = latency::slice_seconds(&log, options);
            printed += &format!("could not find {seconds} seconds of data\n");
        }
    }
    printed
}

fn faults(text: &str, options: &LatencyOptions) -> Vec<String> {
    let log = Log::read(text).expect("the header is whole");
    let analysis = latency::analyse(&log, options).expect("the histograms are there");
    analysis.faults.iter().map(ToString::to_string).collect()
}

fn each_second() -> LatencyOptions {
    LatencyOptions { slice_sec: 1, ..LatencyOptions::default() }
}

#[test]
fn recorded_tables_are_the_same_bytes() {
    let mut compared = 0;
    for sample in SAMPLES.split("$ ").skip(1) {
        let Some((line, rest)) = sample.split_once('\n') else { continue };
        let Some((name, text, options)) = command(line) else { continue };
        if options.thresholds().is_err() {
            continue;
        }
        let (_, rest) = rest.split_once('\n').unwrap();
        let (expected, _) = rest.split_once("[exit status").unwrap();
        assert_eq!(printed(name, text, &options), expected, "{line}");
        compared += 1;
    }
    assert_eq!(compared, 10);
}

#[test]
fn a_histogram_that_is_not_there_is_an_error_that_lists_those_that_are() {
    let log = Log::read(BASIC).unwrap();
    let of = |name: &str| LatencyOptions {
        histograms: vec!["reads".to_owned(), name.to_owned()],
        ..each_second()
    };
    let mistyped = latency::analyse(&log, &of("raeds")).expect_err("mistyped").to_string();
    assert_eq!(
        mistyped,
        "the log has no histogram `raeds`; it has `reads`, `/dev/loop0-reads`, \
         `large-block-reads`, `large-block-writes`"
    );
    let ambiguous = latency::analyse(&log, &of("large-block")).expect_err("ambiguous");
    assert!(ambiguous.to_string().starts_with("more than one histogram begins with"));
    assert_eq!(latency::analyse(&log, &of("/dev/l")).unwrap().histograms[1], "/dev/loop0-reads");
}

#[test]
fn a_sound_log_has_no_faults() {
    for (name, text) in LOGS {
        let options = match name {
            "updonly.out" => continue,
            _ => each_second(),
        };
        assert_eq!(faults(text, &options), Vec::<String>::new(), "{name}");
    }
}

#[test]
fn a_log_cut_anywhere_within_its_reports_is_incomplete() {
    let first = BASIC.find("after 1 sec").unwrap();
    for cut in (first..BASIC.len() - 1).step_by(7) {
        assert!(!faults(&BASIC[..cut], &each_second()).is_empty(), "cut at {cut}");
    }
}

#[test]
fn a_message_within_a_report_is_a_fault_and_changes_no_figure() {
    let at = BASIC.rfind("reads (").unwrap();
    let end = at + BASIC[at..].find('\n').unwrap() + 1;
    let torn = format!("{}ERROR: reading /dev/loop0: 5 'x'\n{}", &BASIC[..end], &BASIC[end..]);
    let found = faults(&torn, &each_second());
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("`ERROR: reading /dev/loop0: 5 'x'` stands inside"), "{found:?}");
    let options = each_second();
    let whole = latency::analyse(&Log::read(BASIC).unwrap(), &options).unwrap().slices;
    let torn_log = Log::read(&torn).unwrap();
    assert_eq!(latency::analyse(&torn_log, &options).unwrap().slices, whole);
}

#[test]
fn failed_transfers_are_a_fault_and_the_reason_of_an_end_is_not() {
    let failing = BASIC.replacen(
        "after 2 sec:",
        "ERROR: reading /dev/loop0: 5 'Input/output error'\nafter 2 sec:",
        1,
    );
    assert_eq!(faults(&failing, &each_second()), ["1 transfers failed, which no histogram shows"]);
    let wrong = failing.replace("reading /dev/loop0: 5 'Input/output error'", "wrong contents: x");
    assert_eq!(faults(&wrong, &each_second()), ["1 transfers brought wrong contents"]);
    let (_, stopped) = LOGS[3];
    let log = Log::read(stopped).unwrap();
    let analysis = latency::analyse(&log, &each_second()).unwrap();
    assert!(analysis.faults.is_empty());
    assert!(analysis.remarks.iter().any(|remark| remark.text.contains("test stopped")));
}

/// What failed in the first interval is said before any report, and was read past.
#[test]
fn transfers_that_fail_before_the_first_report_are_a_fault() {
    let failing = BASIC.replacen(
        "after 1 sec:",
        "ERROR: writing /dev/loop0: 5 'Input/output error'\nafter 1 sec:",
        1,
    );
    assert_eq!(faults(&failing, &each_second()), ["1 transfers failed, which no histogram shows"]);
    let log = Log::read(&failing).unwrap();
    let remarks = latency::analyse(&log, &each_second()).unwrap().remarks;
    let line = failing.lines().position(|line| line.starts_with("ERROR")).unwrap() + 1;
    assert_eq!(remarks[0].line, Some(line));
    for (log, place) in [(LEGACY, "After 1 sec:"), (BASIC, "HISTOGRAM NAMES")] {
        let failing = log.replacen(place, &format!("ERROR: reading /dev/x: 5 'x'\n{place}"), 1);
        let found = faults(&failing, &each_second());
        assert_eq!(found, ["1 transfers failed, which no histogram shows"], "before {place}");
    }
}

/// The last interval of a load of ours may be a shorter one.
#[test]
fn a_log_whose_last_report_is_of_a_shorter_interval_is_whole() {
    let begin = BASIC.find("after 4 sec:").unwrap();
    let odd = BASIC[..begin].replace("test-duration-sec: 20", "test-duration-sec: 3");
    assert_eq!(faults(&odd, &each_second()), Vec::<String>::new());
    let without = |seconds: u64| {
        let from = odd.find(&format!("after {seconds} sec:")).unwrap();
        let to = odd.find(&format!("after {} sec:", seconds + 1)).unwrap();
        format!("{}{}", &odd[..from], &odd[to..])
    };
    let odd = without(1).replace("report-interval-sec: 1", "report-interval-sec: 2");
    assert_eq!(faults(&odd, &each_second()), Vec::<String>::new());
    let cut = odd.replace("test-duration-sec: 3", "test-duration-sec: 4");
    assert_eq!(faults(&cut, &each_second()).len(), 1);
}

/// Of failures beyond those that are listed none was counted.
#[test]
fn every_failed_transfer_of_a_log_is_counted_and_the_reason_of_its_end_found() {
    let errors = "ERROR: reading /dev/loop0: 5 'Input/output error'\n".repeat(5000)
        + &"ERROR: wrong contents: x\n".repeat(1200)
        + "ERROR: 70 more errors are not listed\n";
    let failing = BASIC.replacen("after 2 sec:", &format!("{errors}after 2 sec:"), 1);
    let cut = failing.find("after 9 sec").unwrap();
    let stopped = format!("{}drive(s) can't keep up - test stopped\n", &failing[..cut]);
    assert_eq!(
        faults(&stopped, &each_second()),
        [
            "5000 transfers failed, which no histogram shows",
            "1200 transfers brought wrong contents",
            "70 more errors are not listed in the log",
        ]
    );
    let log = Log::read(&stopped).unwrap();
    assert_eq!(latency::analyse(&log, &each_second()).unwrap().remarks.len(), 1000);
}

/// A drive that was slow in the last minutes of a test looked as good as in the hours before.
#[test]
fn what_comes_after_the_last_slice_is_remarked() {
    let log = Log::read(BASIC).unwrap();
    let remarks = |slice_sec| {
        let options = LatencyOptions { slice_sec, ..LatencyOptions::default() };
        latency::analyse(&log, &options).unwrap().remarks
    };
    assert_eq!(remarks(5), []);
    let said: Vec<String> = remarks(7).iter().map(ToString::to_string).collect();
    assert_eq!(
        said,
        ["the last 6 sec, after 14 sec, are less than a slice of 7 sec and not in the table; \
          shorter slices show them"]
    );
}

#[test]
fn logs_of_act_4_are_read_in_the_words_of_today() {
    let log = Log::read(LEGACY).unwrap();
    assert_eq!(log.version, "4.0");
    let names =
        ["large-block-reads", "large-block-writes", "device-reads", "/dev/loop2-reads", "reads"];
    assert_eq!(log.names, names);
    let analysis = latency::analyse(&log, &each_second()).unwrap();
    let totals: Vec<u64> = analysis.slices.iter().map(|slice| slice.columns[0].total).collect();
    assert_eq!(totals, [200, 200, 200]);
    assert!(analysis.faults.is_empty(), "{:?}", analysis.faults);
    assert_eq!(analysis.slices[0].columns[0].percent_over[0], 11.5);
}

/// ACT 6.0 and 6.1 name histograms that they print in no report.
#[test]
fn logs_of_act_6_0_and_6_1_lack_nothing() {
    for version in ["6.0", "6.1"] {
        let log = BASIC.replacen("ACT version 6.6", &format!("ACT version {version}"), 1).replacen(
            "HISTOGRAM NAMES\nreads\n",
            "HISTOGRAM NAMES\nreads\ndevice-reads\n",
            1,
        );
        assert_ne!(log, BASIC);
        assert_eq!(faults(&log, &each_second()), Vec::<String>::new());
        let heading = latency::heading(&Log::read(&log).unwrap(), "a.out", &each_second());
        assert!(heading.contains("reads\ndevice-reads\n"), "{heading}");
        let later = log.replacen(&format!("ACT version {version}"), "ACT version 6.2", 1);
        assert!(!faults(&later, &each_second()).is_empty());
    }
}

/// The words of ACT 3 to 4, with and without the reason.
#[test]
fn failed_transfers_of_old_logs_are_a_fault() {
    let errors = "ERROR: seek & read\nERROR: seek & write errno 5 'Input/output error'\n";
    let failing = LEGACY.replacen("After 2 sec:", &format!("{errors}After 2 sec:"), 1);
    assert_eq!(faults(&failing, &each_second()), ["2 transfers failed, which no histogram shows"]);
}

#[test]
fn logs_of_act_5_are_read_with_the_names_they_give() {
    let log = Log::read(include_str!("vectors/legacy_v5.3.out")).unwrap();
    assert_eq!(log.names.len(), 8);
    let options = LatencyOptions { histograms: log.names.clone(), ..each_second() };
    let analysis = latency::analyse(&log, &options).unwrap();
    let totals: Vec<u64> = analysis.slices[0].columns.iter().map(|column| column.total).collect();
    assert_eq!(totals, [100, 100, 100, 2, 1, 50, 50, 50]);
    assert_eq!(analysis.faults, []);
}

#[test]
fn other_texts_are_no_logs() {
    assert_eq!(Log::read("").unwrap_err(), LogError::NoVersion);
    let old = BASIC.replace("ACT version 6.6", "ACT version 7.0");
    assert_eq!(Log::read(&old).unwrap_err(), LogError::Incompatible("7.0".to_owned()));
    let bad = BASIC.replace("report-interval-sec: 1", "report-interval-sec: 0");
    assert_eq!(Log::read(&bad).unwrap_err(), LogError::BadInterval);
}
