//! `entresol pblio` as people and scripts call it, against recordings of the original.

mod support;

use std::fs::File;
use std::os::unix::fs::FileExt;

use support::{Directory, entresol, json, refused_with};

const FIXED: &str = include_str!("../../workload/tests/vectors/bsu2-45-45-10MiB-fixed.txt");
const STATISTICS: &str =
    include_str!("../../workload/tests/vectors/run2-cache10-new.pblio.data.jsonl");
const REPORT: &str = include_str!("vectors/run2-cache10-new-bsu2.txt");
const REPORT_WITHOUT_CACHE: &str = include_str!("vectors/run1-nocache-45-45-10-bsu2.txt");
const STATISTICS_WITHOUT_CACHE: &str = include_str!("vectors/run1-nocache.pblio.data.jsonl");

const SIZES: [&str; 6] = ["--asu1", "45MiB", "--asu2", "45MiB", "--asu3", "10MiB"];

fn simulated(arguments: &[&str]) -> Vec<String> {
    let words = [&["pblio", "--simulate"], &SIZES[..], arguments].concat();
    words.into_iter().map(str::to_owned).collect()
}

fn run(arguments: &[String]) -> std::process::Output {
    entresol(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
}

fn text_of(arguments: &[String]) -> String {
    let output = run(arguments);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{arguments:?}: {errors}");
    String::from_utf8(output.stdout).expect("the report is text")
}

/// Lines of a recorded report, without the commands around it.
fn recorded(report: &str) -> Vec<&str> {
    report.split('\n').filter(|line| !line.starts_with('$') && !line.starts_with("rc=")).collect()
}

/// A text with its numbers left out, so that what varies does not matter and every other byte does.
fn shape(text: &str) -> String {
    let mut shape = String::new();
    for character in text.chars() {
        if character.is_ascii_digit() {
            if !shape.ends_with('#') {
                shape.push('#');
            }
        } else {
            shape.push(character);
        }
    }
    shape
}

/// All numbers of a JSON text with their paths.
fn numbers(text: &str) -> Vec<(String, f64)> {
    fn gather(path: String, value: &serde_json::Value, into: &mut Vec<(String, f64)>) {
        match value {
            serde_json::Value::Object(fields) => fields
                .iter()
                .for_each(|(name, value)| gather(format!("{path}/{name}"), value, into)),
            serde_json::Value::Array(values) => values
                .iter()
                .enumerate()
                .for_each(|(index, value)| gather(format!("{path}/{index}"), value, into)),
            number => into.push((path, number.as_f64().expect("a number"))),
        }
    }
    let mut numbers = Vec::new();
    gather(String::new(), &serde_json::from_str(text).expect("JSON"), &mut numbers);
    numbers
}

/// Files of the sizes of the recorded runs, and the options that name them.
fn files(directory: &Directory) -> Vec<String> {
    let mut words = vec!["pblio".to_owned()];
    for (number, mib) in [(1, 45), (2, 45), (3, 10)] {
        let path = directory.path(&format!("file{number}"));
        let file = File::create(&path).and_then(|file| file.set_len(mib << 20));
        file.expect("a file can be made");
        words.push(format!("-asu{number}={path}"));
    }
    words.push(format!("-data={}", directory.path("data")));
    words
}

fn with(words: &[String], more: &[&str]) -> Vec<String> {
    let more = more.iter().map(|word| (*word).to_owned());
    words.iter().cloned().chain(more).collect()
}

#[test]
fn a_simulation_counts_what_the_slide_and_the_recorded_runs_show() {
    let rows = [
        ("fixed", [2513, 1120, 513, 347, 1906, 0], "0.4457", "0.6764"),
        ("v2", [2156, 912, 480, 325, 1724, 0], "0.4230", "0.6771"),
        ("classic", [2469, 1158, 532, 311, 1843, 0], "0.4690", "0.5846"),
    ];
    for (style, counters, reads, invalidations) in rows {
        let arguments =
            simulated(&["--style", style, "--bsu", "2", "--runlen", "30", "--cache", "10MiB"]);
        let found = json(&run(&with(&arguments, &["--json"])));
        let names =
            ["reads", "readhits", "invalidations", "invalidatehits", "insertions", "evictions"];
        assert_eq!(names.map(|name| found["cache"][name].as_i64().unwrap()), counters, "{style}");
        let report = text_of(&arguments);
        assert!(report.contains(&format!("\nRead Hit Rate: {reads}\n")), "{report}");
        let rate = format!("\nInvalidate Hit Rate: {invalidations}\n");
        assert!(report.contains(&rate), "{report}");
    }
}

#[test]
fn the_report_is_the_recorded_one_but_for_the_times() {
    let arguments =
        ["-bsu=2", "-runlen=30", "-dataperiod=10", "-cache=10MiB", "--cache-model=original"];
    let found = text_of(&simulated(&arguments));
    let expected = recorded(REPORT);
    let found: Vec<&str> = found.split('\n').collect();
    assert_eq!(found.len(), expected.len(), "{found:?}\n{expected:?}");
    for (found, expected) in found.into_iter().zip(expected) {
        if expected.starts_with("ios:") || expected.starts_with("Mean ") {
            assert_eq!(shape(found), shape(expected));
        } else {
            assert_eq!(found, expected.replace("mycache", "10MiB"));
        }
    }
}

#[test]
fn the_statistics_file_has_the_recorded_fields_in_the_recorded_order() {
    let directory = Directory::new("pblio-data");
    let data = directory.path("data");
    let options = ["--bsu", "2", "--runlen", "30", "--dataperiod", "10", "--cache", "10MiB"];
    text_of(&simulated(&[&options[..], &["--data", &data]].concat()));
    let found = std::fs::read_to_string(&data).unwrap();
    assert_eq!(shape(&found), shape(STATISTICS));
    // The recorded periods ended a few milliseconds late: counts are near, fields the same.
    for (found, recorded) in found.lines().zip(STATISTICS.lines()) {
        let (found, recorded) = (numbers(found), numbers(recorded));
        for ((name, found), (same, recorded)) in found.into_iter().zip(recorded) {
            assert_eq!(name, same);
            let is_measured = name.contains("duration") || name == "/time";
            let is_near = (found - recorded).abs() <= 1.0 + recorded / 100.0;
            assert!(is_measured || is_near, "{name}: {found}, recorded {recorded}");
        }
    }
    // A period that the run does not outlast is not written down.
    text_of(&simulated(&["--bsu", "2", "--runlen", "30", "--dataperiod", "30", "--data", &data]));
    assert_eq!(std::fs::read_to_string(&data).unwrap(), "");
}

#[test]
fn a_trace_is_the_recorded_one_and_a_run_of_it_counts_the_same() {
    let directory = Directory::new("pblio-trace");
    let trace = directory.path("trace");
    let options = ["--style", "fixed", "--bsu", "2", "--runlen", "30", "--cache", "10MiB"];
    let arguments = simulated(&options);
    let more = ["--trace-out", &trace, "--trace-limit", "3200", "--context", "0"];
    let report = text_of(&with(&arguments, &more));
    let requests: Vec<&str> = FIXED.lines().filter(|line| !line.starts_with('#')).collect();
    let written = std::fs::read_to_string(&trace).unwrap();
    assert_eq!(written.lines().collect::<Vec<_>>(), requests[..3200.min(requests.len())]);
    assert_eq!(text_of(&with(&arguments, &["--trace-in", &trace])), report);
}

#[test]
fn a_trace_that_ends_before_the_run_ends_the_run() {
    let directory = Directory::new("pblio-short");
    let trace = directory.file("trace", "1 R 1 2 3 4000\n1 W 1 2 20 5000\n").display().to_string();
    let options = ["--runlen", "60", "--json", "--trace-in", &trace];
    let virtual_run = json(&run(&simulated(&options)));
    assert_eq!((&virtual_run["ios"], &virtual_run["seconds"]), (&2.into(), &0.5.into()));
    let run = json(&run(&with(&files(&directory), &options)));
    assert_eq!(run["ios"], 2);
    assert_ne!(run["seconds"], 60.0, "{run}");
}

#[test]
fn a_ramp_warms_the_cache_and_is_not_counted() {
    let options = ["--bsu", "2", "--runlen", "30", "--cache", "10MiB", "--json"];
    let cold = json(&run(&simulated(&options)));
    let warm = json(&run(&simulated(&[&options[..], &["--ramp", "60"]].concat())));
    assert!(warm["cache"]["readhitrate"].as_f64() > cold["cache"]["readhitrate"].as_f64());
    let requests = |run: &serde_json::Value| run["ios"].as_f64().unwrap();
    assert!((requests(&warm) / requests(&cold) - 1.0).abs() < 0.1, "{warm}");
}

#[test]
fn what_cannot_run_says_what_where_and_what_next() {
    let refuse = |arguments: &[&str], expected: &[&str]| {
        let arguments = simulated(arguments);
        let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
        refused_with(&words, expected);
    };
    refuse(&["--asu3", "9MiB"], &["ASU3 size is too small: 9216 KB", "or 10240 KB"]);
    refuse(&["--asu1", "45MiX"], &["--asu1", "45MiX", "such as 45MiB"]);
    refuse(&["--cache", "500KiB"], &["--cache is 512000 bytes", "524288"]);
    refuse(&["-blocksize=8"], &["-blocksize is 8 KB", "expected 4"]);
    refuse(&["-bsu=0"], &["0", "1..="]);
    refuse(&["--context", "1", "--trace-out", "t"], &["--context is 1", "0 to 0"]);
    refuse(&["--verify"], &["--simulate reads nothing"]);
    refused_with(&["pblio", "-bsu=2"], &["--asu1"]);
    let mocked = ["pblio", "-asu1=a", "-asu2=b", "-asu3=c", "-cache=d", "-mock_reads"];
    refused_with(&mocked, &["-mock_reads", "leave out"]);
    refused_with(&["pblio", "-asu1=/nowhere", "-asu2=b", "-asu3=c"], &["--asu1", "/nowhere"]);
    let server = "-asu1=nbd+unix:///disk?socket=/nowhere";
    refused_with(&["pblio", server, "-asu2=b", "-asu3=c"], &["--asu1", "/nowhere"]);
    refused_with(&["pblio", "-asu1=http://h", "-asu2=b", "-asu3=c"], &["--asu1", "http://h"]);
    let directory = Directory::new("pblio-lines");
    let trace = directory.file("trace", "1 R 1 2 3 4\n1 R 1 2 20000 5\n").display().to_string();
    refuse(&["--trace-in", &trace], &["line 2", "20001", "11520"]);
}

#[test]
fn a_run_on_files_makes_the_requests_of_the_simulation_and_reports_like_the_original() {
    let directory = Directory::new("pblio-files");
    let options = ["-bsu=10", "-runlen=3", "-dataperiod=1"];
    let arguments = with(&files(&directory), &options);
    let found = json(&run(&with(&arguments, &["--json", "--verify"])));
    let simulated = json(&run(&simulated(&[&options[..], &["--json"]].concat())));
    for path in ["/ios", "/spc/read/blocks", "/spc/write/blocks", "/spc/asu/2/total/ios"] {
        assert_eq!(found.pointer(path), simulated.pointer(path), "{path}");
    }
    assert_eq!(found["verified_blocks"]["wrong"], 0);
    // The second run finds what the first one wrote, under names of single dashes.
    let report = text_of(&arguments);
    let expected = recorded(REPORT_WITHOUT_CACHE).join("\n");
    let expected = expected.replace("BSUs    : 2", "BSUs    : 10");
    assert_eq!(shape(&report), shape(&expected.replace("30 s", "3 s")));
    let data = std::fs::read_to_string(directory.path("data")).unwrap();
    assert_eq!(shape(&data), shape(STATISTICS_WITHOUT_CACHE));
}

/// The files, and a cache of 10 MiB before them.
fn files_with_cache(directory: &Directory) -> Vec<String> {
    let path = directory.path("cache");
    File::create(&path).and_then(|file| file.set_len(10 << 20)).expect("a file can be made");
    with(&files(directory), &[&format!("-cache={path}"), "-cachemeta=unused"])
}

/// A block that is asked for again while its first read is under way is missed twice in a run, and
/// once in the simulation, where a read takes no time: how often depends on the device.
#[test]
fn a_cached_run_on_files_counts_what_the_simulation_counts_but_for_reads_under_way() {
    let directory = Directory::new("pblio-cached");
    let arguments = files_with_cache(&directory);
    for style in ["fixed", "v2"] {
        let path = directory.path("cache");
        File::create(&path).and_then(|file| file.set_len(10 << 20)).unwrap();
        let options = ["--style", style, "-bsu=20", "-runlen=3", "--json"];
        let found = json(&run(&with(&arguments, &[&options[..], &["--verify"]].concat())));
        let simulated = json(&run(&simulated(&[&options[..], &["-cache=10MiB"]].concat())));
        let of = |run: &serde_json::Value, name: &str| run["cache"][name].as_f64().unwrap();
        // Such a block is a hit less, an insertion more, and takes its own place: an eviction more.
        let settled = |run: &serde_json::Value| {
            [
                of(run, "reads"),
                of(run, "readhits") + of(run, "insertions"),
                of(run, "insertions") - of(run, "evictions"),
                of(run, "invalidations"),
                of(run, "invalidatehits"),
            ]
        };
        for (found, simulated) in settled(&found).into_iter().zip(settled(&simulated)) {
            let is_near = (found - simulated).abs() <= (simulated / 1000.0).max(1.0);
            assert!(is_near, "{style}: {found}, simulated {simulated}");
        }
        let missed_twice = of(&simulated, "readhits") - of(&found, "readhits");
        assert!(missed_twice <= of(&simulated, "readhits") / 10.0, "{style}: {missed_twice}");
        assert_eq!(found["verified_blocks"]["wrong"], 0);
    }
}

#[test]
fn a_cache_is_warm_in_the_next_run_and_refused_before_other_units() {
    let directory = Directory::new("pblio-warm");
    let arguments = with(&files_with_cache(&directory), &["-bsu=10", "-runlen=2", "--verify"]);
    let cold = text_of(&arguments);
    assert!(cold.contains("/cache (New)\nC Size  : 0.01 GB\n"), "{cold}");
    // The same requests over a warm cache find everything in it.
    let warm = text_of(&arguments);
    assert!(warm.contains("/cache (Loaded)\n"), "{warm}");
    assert!(warm.contains("\nRead Hit Rate: 1.0000\n"), "{warm}");
    let other = directory.path("other");
    std::fs::copy(directory.path("file1"), &other).unwrap();
    let others = with(&arguments, &["--force", &format!("-asu1={other}")]);
    let others: Vec<&str> = others.iter().map(String::as_str).collect();
    refused_with(&others, &["-cache", "asu1.1", "an empty cache"]);
}

#[test]
fn the_page_shows_the_original_plots_and_asks_for_nothing_from_elsewhere() {
    let directory = Directory::new("pblio-page");
    let page = directory.path("page.html");
    let options = ["-bsu=10", "-runlen=2", "--html", &page];
    text_of(&with(&files_with_cache(&directory), &options));
    let live = std::fs::read_to_string(&page).unwrap();
    text_of(&simulated(&[&options[..], &["-cache=10MiB"]].concat()));
    let virtual_page = std::fs::read_to_string(&page).unwrap();
    let plots = ["I/Os a second", "Read percentage", "Hits of the cache", "I/O that the backing"];
    for plot in plots {
        assert!(live.contains(plot) && virtual_page.contains(plot), "{plot}");
    }
    let latencies = ["Mean latency, from enqueueing", "reads by unit", "writes by unit"];
    assert!(latencies.iter().all(|plot| live.contains(plot)));
    // Nothing takes time in a virtual clock.
    assert!(latencies.iter().all(|plot| !virtual_page.contains(plot)));
    assert_eq!(live.matches("<svg").count(), 16);
    for page in [&live, &virtual_page] {
        let sources = ["src=", "href=", "@import", "url("];
        assert!(sources.iter().all(|source| !page.contains(source)));
    }
}

#[test]
fn a_run_through_the_page_cache_finds_what_it_wrote() {
    let directory = Directory::new("pblio-buffered");
    let options = ["-directio=false", "-bsu=10", "-runlen=2", "--json", "--verify", "--fill"];
    let found = json(&run(&with(&files(&directory), &options)));
    let verified = &found["verified_blocks"];
    assert_eq!((&verified["wrong"], &verified["never_written"]), (&0.into(), &0.into()));
    assert!(verified["sound"].as_u64() > Some(500), "{verified}");
}

#[test]
fn a_filled_unit_has_no_block_that_was_never_written() {
    let directory = Directory::new("pblio-fill");
    let words = files(&directory);
    let found =
        json(&run(&with(&words, &["-bsu=10", "-runlen=2", "--json", "--verify", "--fill"])));
    let verified = &found["verified_blocks"];
    assert_eq!((&verified["wrong"], &verified["never_written"]), (&0.into(), &0.into()));
    assert!(verified["sound"].as_u64() > Some(500), "{verified}");
}

#[test]
fn a_unit_of_several_files_is_their_concatenation() {
    let directory = Directory::new("pblio-pieces");
    let mut words = files(&directory);
    let pieces = [1, 2, 3].map(|number| {
        let path = directory.path(&format!("piece{number}"));
        File::create(&path).unwrap().set_len((15 << 20) + 4096 * number).unwrap();
        path
    });
    words.push(format!("--asu1={}", pieces.join(",")));
    let found = json(&run(&with(&words, &["-bsu=10", "-runlen=2", "--json", "--verify"])));
    assert_eq!(found["asu_blocks"][0], 11_520);
    assert_eq!(found["verified_blocks"]["wrong"], 0);
    let is_written = |path: &String| std::fs::read(path).unwrap().iter().any(|byte| *byte != 0);
    assert!(pieces.iter().all(is_written));
}

#[test]
fn blocks_that_change_behind_a_run_are_found_by_the_next_reads() {
    // A trace writes blocks once and reads them twice, long after.
    let directory = Directory::new("pblio-changed");
    let words = files(&directory);
    let lines: Vec<String> = (0..200).map(|n| format!("1 W 1 1 {n} {n}")).collect();
    let reads = |at: u64| (0..200).map(move |n| format!("1 R 1 1 {n} {}", at + n));
    let requests: Vec<String> =
        lines.into_iter().chain(reads(15_000)).chain(reads(30_000)).collect();
    let trace = directory.file("trace", &requests.join("\n"));
    let trace = format!("--trace-in={}", trace.display());
    let arguments = with(&words, &["-runlen=9", "--verify", &trace]);
    assert!(run(&arguments).status.success());
    let path = directory.path("file1");
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_entresol"))
        .args(&arguments)
        .stderr(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    // Spoils the last block written for as long as the run lasts.
    let file = File::options().write(true).open(&path).unwrap();
    while child.try_wait().unwrap().is_none() {
        file.write_all_at(&[0xA5; 512], 199 * 4096 + 1024).unwrap();
        std::thread::yield_now();
    }
    let output = child.wait_with_output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("ASU1 block 199"), "{message}");
}

#[test]
fn foreign_contents_are_refused_unless_forced() {
    let directory = Directory::new("pblio-foreign");
    let words = files(&directory);
    let file = File::options().write(true).open(directory.path("file2")).unwrap();
    file.write_all_at(b"LUKS\xba\xbe", 0).unwrap();
    let arguments = with(&words, &["-bsu=1", "-runlen=1"]);
    let refused: Vec<&str> = arguments.iter().map(String::as_str).collect();
    refused_with(&refused, &["--asu2", "LUKS", "force"]);
    assert!(run(&with(&arguments, &["--force"])).status.success());
}

#[test]
fn a_search_reports_its_tries_and_fails_if_none_passes() {
    let directory = Directory::new("pblio-search");
    let words = files(&directory);
    let options = ["--search", "-runlen=1", "-bsu=1", "-mock_reads", "-mock_writes=true"];
    let output = run(&with(&words, &[&options[..], &["--latency-limit=0.000000001"]].concat()));
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        text.contains("bsu:1 asked:50") && text.ends_with("Most BSUs below 0.000000001 ms: 0\n")
    );
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("-data has no effect with --search"), "{said}");
    // Fewer BSUs than contexts are tried, too.
    let fewer = ["--latency-limit=0.000000001", "-bsu=2", "--contexts=2"];
    let output = run(&with(&words, &[&options[..], &fewer].concat()));
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("bsu:1 asked:50"), "{said}");
}
