//! `entresol act latency` and `entresol act config` as their users call them.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn vectors() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../certify/tests/vectors")
}

/// Runs `entresol act` with `words` where the recorded logs are.
fn act(words: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_entresol"))
        .arg("act")
        .args(words.split(' '))
        .current_dir(vectors())
        .stdin(Stdio::null())
        .output()
        .expect("the program can be started")
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn recorded_commands_of_the_analyser_print_the_same_bytes() {
    let samples = std::fs::read_to_string(vectors().join("act_latency_samples.txt")).unwrap();
    let mut compared = 0;
    for sample in samples.split("$ act_latency.py ").skip(1) {
        let (words, rest) = sample.split_once('\n').unwrap();
        let foreign = ["#", "-s 17", "rec8m"].iter().any(|sign| words.contains(sign));
        let Some((expected, status)) = rest.split_once("[exit status ") else { continue };
        if foreign {
            continue;
        }
        // A name that the log lacks is an error of ours before any table.
        let lacks_name = ["nope", "updonly"].iter().any(|sign| words.contains(sign));
        let as_act = if lacks_name { " --compat" } else { "" };
        let output = act(&format!("latency {words}{as_act}"));
        assert_eq!(out(&output), expected, "{words}");
        assert_eq!(output.status.success(), status.starts_with('0'), "{words}");
        compared += 1;
    }
    assert_eq!(compared, 11);
}

#[test]
fn a_mistyped_histogram_ends_without_a_table() {
    let single = act("latency -l storage_basic.out -t 10 -h nope");
    assert_eq!(single.status.code(), Some(2));
    let output = act("latency -l storage_basic.out -t 10 -h reads -h nope");
    assert_eq!(output.status.code(), Some(2));
    for output in [&single, &output] {
        assert_eq!(out(output).lines().count(), 1, "{}", out(output));
    }
    assert!(told(&output).contains("has no histogram `nope`"), "{}", told(&output));
    let output = act("latency -l storage_basic.out -t 10 -h reads -h nope --compat");
    assert_eq!(output.status.code(), Some(255));
}

/// Called by a link it repeated no arguments.
#[test]
fn the_analyser_called_by_a_link_prints_the_recorded_bytes() {
    let samples = std::fs::read_to_string(vectors().join("act_latency_samples.txt")).unwrap();
    let words = "-l storage_basic.out -t 5";
    let (_, rest) = samples.split_once(&format!("$ act_latency.py {words}\n")).unwrap();
    let (expected, _) = rest.split_once("[exit status ").unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_entresol"))
        .arg0("act_latency.py")
        .args(words.split(' '))
        .current_dir(vectors())
        .output()
        .expect("the program can be started");
    assert_eq!(out(&output), expected);
}

#[test]
fn a_log_cut_short_gives_its_table_and_fails() {
    let log = std::fs::read_to_string(vectors().join("storage_basic.out")).unwrap();
    let folder = std::env::temp_dir().join(format!("entresol-act-text-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let cut = folder.join("cut.out");
    std::fs::write(&cut, &log[..log.len() / 2]).unwrap();
    let output = act(&format!("latency -l {} -t 1 --json", cut.display()));
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(output.status.code(), Some(1));
    let object: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(object["unit"], "ms");
    assert_eq!(object["histograms"]["reads"][0]["total"], 200);
    assert!(!object["faults"].as_array().unwrap().is_empty());
}

#[test]
fn csv_has_a_line_for_each_slice_and_histogram() {
    let output =
        act("latency -l storage_basic.out -t 10 -n 2 -h reads -h large-block-writes --csv");
    assert_eq!(
        out(&output),
        "slice,histogram,total,percent_over_1ms,percent_over_2ms,ops_per_sec\n\
         1,reads,2010,21.54,13.78,201.0\n1,large-block-writes,24,58.33,54.17,2.4\n\
         2,reads,1990,28.44,16.83,199.0\n2,large-block-writes,24,37.50,20.83,2.4\n"
    );
}

#[test]
fn the_papers_configuration_is_explained_with_its_figures() {
    let output = act("config --explain storage_histogram.conf");
    assert!(output.status.success(), "{}", told(&output));
    for figure in ["1702.00 blocks/s", "1582.86 blocks/s", "1230.86", "18475.11", "16948.02"] {
        assert!(out(&output).contains(figure), "{figure}: {}", out(&output));
    }
}

#[test]
fn a_load_becomes_a_configuration() {
    let output = act("config --device /dev/a,/dev/b --load 30 --set record-bytes=4096");
    assert!(out(&output).contains("\ndevice-names: /dev/a,/dev/b\n"), "{}", told(&output));
    assert!(out(&output).contains("\nread-reqs-per-sec: 120000\nwrite-reqs-per-sec: 60000\n"));
    assert!(out(&output).contains("\nrecord-bytes: 4096\n"));
    let wrong = act("config --device /dev/a --load 1 --set record-bytes=4K");
    assert_eq!(wrong.status.code(), Some(2));
    assert!(told(&wrong).contains("`record-bytes` is `4K`; expected"), "{}", told(&wrong));
}

/// What `--set` makes odd was said of a file that has it, and of nothing else.
#[test]
fn items_that_are_set_and_have_no_effect_are_remarked_upon_once() {
    let output = act("config --device /dev/a --load 30 --set direct-frees=5");
    assert!(output.status.success(), "{}", told(&output));
    let notes = "note: `direct-frees` has no effect without `total-lbw-per-sec`\n";
    assert_eq!(told(&output), notes);
    let again = act("config legacy_v4.0.conf --set record-bytes=2048");
    assert_eq!(told(&again).matches("num-queues").count(), 1, "{}", told(&again));
}

#[test]
fn a_servers_log_becomes_a_configuration() {
    let output = act("config --device /dev/a --from server_log.txt --writes 100");
    assert!(out(&output).contains("\nread-reqs-per-sec: 10\n"), "{}", told(&output));
    assert!(out(&output).contains("\ndirect-frees: 369\ntotal-lbw-per-sec: 1543\n"));
}

#[test]
fn nothing_is_asked_where_nobody_can_answer() {
    let output = act("config");
    assert_eq!(output.status.code(), Some(2));
    assert!(told(&output).contains("call it from a terminal"), "{}", told(&output));
}

/// A file of index devices without items of their own was tested as one of data devices.
#[test]
fn a_configuration_of_index_devices_says_so_and_is_not_taken_for_one_of_data_devices() {
    let folder = std::env::temp_dir().join(format!("entresol-act-index-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let made = folder.join("index.conf").display().to_string();
    let output = act(&format!(
        "config --index --device {made}.target --load 1 --set file-size-mbytes=16 -o {made}"
    ));
    assert!(output.status.success(), "{}", told(&output));
    let text = std::fs::read_to_string(&made).unwrap();
    let refused: Vec<Output> = ["storage", "certify", "search", "config --explain"]
        .map(|name| act(&format!("{name} {made}")))
        .into();
    let explained = act(&format!("config --index --explain {made}"));
    let left = std::fs::read_dir(&folder).unwrap().count();
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(text.lines().next().unwrap().contains("config --index"), "{text}");
    assert!(explained.status.success(), "{}", told(&explained));
    for output in refused {
        assert_eq!(output.status.code(), Some(2), "{}", told(&output));
        assert!(told(&output).contains("configuration of index devices"), "{}", told(&output));
    }
    assert_eq!(left, 1, "no target was made");
}

#[test]
fn configurations_of_index_devices_follow_their_options() {
    let text = out(&act("config --index --device /dev/a,/dev/b --load 3 --set cache-threads=4"));
    for line in ["device-names: /dev/a,/dev/b", "read-reqs-per-sec: 12000", "cache-threads: 4"] {
        assert!(text.lines().any(|found| found == line), "{line}: {text}");
    }
    let explained = out(&act("config --index --device /dev/a --reads 600 --writes 300 --explain"));
    assert!(explained.contains("600.0 reads + 300.0 writes"), "{explained}");
    assert!(explained.contains("cache-thread-reads-and-writes-per-sec"), "{explained}");
    for (words, part) in [
        ("config --index", "no device is named"),
        ("config --index --device /dev/a", "no load is known"),
        // It was said that no load was known.
        ("config --device /dev/a --load 0", "less than one request a second"),
        ("config --device /dev/a --reads 0.2", "less than one request a second"),
        // It was said with 300 digits.
        ("config --device /dev/a --load 1e300", "`--load` gives 2e303 requests a second"),
        ("config --index --device /dev/a --load 1 --set record-bytes=1", "record-bytes"),
        ("config --index --device /dev/a --from x", "cannot be used with"),
        // From a terminal it asked, and where the answer went was not what was given.
        ("config --output x", "no device is named"),
        ("config --duration 5", "no device is named"),
        ("config /nowhere/a --load 1", "`entresol act config"),
        ("config --device /dev/a --from /nowhere/a", "act config --help"),
        ("latency -l /nowhere/log", "`entresol act storage"),
    ] {
        let output = act(words);
        assert_eq!(output.status.code(), Some(2), "{words}");
        assert!(told(&output).contains(part), "{words}: {}", told(&output));
    }
}
