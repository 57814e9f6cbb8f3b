//! `bench` as people and scripts call it: fields of record, options, interruptions.

#[path = "support/interruptible.rs"]
mod interruptible;
#[expect(dead_code, reason = "other tests use the rest of it")]
mod support;

use std::process::Stdio;

use interruptible::interruptible;
use support::{Directory, entresol, json, refused_with};

fn refused(arguments: &[&str], expected: &str) {
    refused_with(arguments, &[expected]);
}

#[test]
fn benches_print_the_fields_of_record_and_leave_nothing_behind() {
    let directory = Directory::new("bench");
    let recovery = [
        "seconds_to_first_answer",
        "clean_seconds_to_first_answer",
        "store_seconds",
        "replay_seconds",
        "journal_bytes",
    ];
    let cases: [(&str, &[&str]); 10] = [
        ("flash-get", &["device_reads_per_get", "fraction_of_device", "ops_per_second"]),
        ("load", &["records_per_second", "write_amplification", "cpu_us_per_op"]),
        ("ram-per-record", &["bytes_per_record", "worst_bytes_per_record", "lost_keys"]),
        ("recovery", &["records_per_second", "clean_records_per_second", "lost_keys"]),
        ("ordered-get", &["reads_per_get", "ram_bytes_per_row", "cpu_us_per_op"]),
        ("ordered-scan", &["reads_per_scan", "ops_per_second", "cpu_us_per_op"]),
        ("ordered-put", &["reads_per_put", "write_amplification", "ops_per_second"]),
        ("ordered-overwrite", &["reads_per_put", "write_amplification", "cpu_us_per_op"]),
        ("ordered-load", &["reads_per_put", "write_amplification", "ram_bytes_per_row"]),
        ("ordered-recovery", &recovery),
    ];
    for (bench, fields) in cases {
        let arguments =
            ["bench", bench, "--keys", "20000", "--seconds", "0.3", "--rounds", "1", "--json"];
        let where_to = ["--dir", directory.0.to_str().unwrap()];
        let report = json(&entresol(&[&arguments[..], &where_to[..]].concat()));
        for field in fields {
            assert!(report[field].is_number(), "{bench}: no {field} in {report}");
        }
        assert_eq!(report["lost_keys"], 0, "{bench}: {report}");
        if !report["latency_us"].is_null() {
            for percentile in ["p50", "p99", "p999", "max"] {
                assert!(report["latency_us"][percentile].is_number(), "{bench}: {percentile}");
            }
        }
    }
    let left: Vec<_> = std::fs::read_dir(&directory.0).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

/// Reads by reclaim counted as those of gets: `ycsb-a` on a small store took 394 for each.
#[test]
fn reads_of_the_device_are_held_against_gets_only_where_nothing_else_reads() {
    let directory = Directory::new("mixed");
    let options = ["--keys", "20000", "--seconds", "0.3", "--rounds", "1", "--json"];
    let where_to = ["--memory", "64MiB", "--dir", directory.0.to_str().unwrap()];
    for (bench, is_pure) in [("ycsb-c", true), ("ycsb-a", false), ("bigmemory", false)] {
        let report = json(&entresol(&[&["bench", bench], &options[..], &where_to[..]].concat()));
        assert_eq!(report["device_reads_per_get"].is_number(), is_pure, "{report}");
        assert_eq!(report["device_bytes_per_get"].is_number(), is_pure, "{report}");
        assert_eq!(report["write_amplification"].is_number(), !is_pure, "{report}");
        assert!(report["memory_hit_ratio"].is_number(), "{report}");
    }
}

/// Whatever was measured, it spoke of 1,700 bytes on a device three quarters full.
#[test]
fn bigmemory_extrapolates_from_the_records_and_the_share_that_it_measured() {
    let directory = Directory::new("far");
    let options = ["--keys", "20000", "--seconds", "0.3", "--rounds", "1", "--json"];
    let small = ["--value-size", "300", "--capacity", "128MiB"];
    let where_to = ["--dir", directory.0.to_str().unwrap()];
    let report =
        json(&entresol(&[&["bench", "bigmemory"], &options[..], &small, &where_to[..]].concat()));
    let far = &report["extrapolation"];
    assert_eq!(far["value_bytes"], 300.0);
    // 20,000 records of about 400 bytes on 128 MiB.
    let fill = far["fill"].as_f64().unwrap();
    assert!((0.03..0.12).contains(&fill), "{report}");
    let sentence = "values of 300 bytes would take";
    let notes = report["notes"].as_array().unwrap();
    let note = notes.iter().find_map(|note| note.as_str().filter(|text| text.contains(sentence)));
    assert!(note.unwrap().contains(&format!("filled to {:.1} %", fill * 100.0)), "{report}");
}

/// It was called `periodic(500)`, which no option takes.
#[test]
fn a_bench_names_the_durability_as_its_option_does() {
    let directory = Directory::new("named");
    let where_to = ["--dir", directory.0.to_str().unwrap(), "--durability", "periodic:500"];
    let load = ["bench", "load", "--keys", "1000", "--rounds", "1", "--json"];
    let report = json(&entresol(&[&load[..], &where_to[..]].concat()));
    assert_eq!(report["durability"], "periodic:500");
}

#[test]
fn figures_that_no_bench_can_take_are_refused() {
    refused(&["bench", "load", "--keys", "18446744073709551615"], "found '18446744073709551615'");
    refused(&["bench", "load", "--keys", "0"], "found '0'");
    refused(&["bench", "grid", "--iterations", "1e3"], "unknown unit 'e3'");
    refused(&["bench", "flash-get", "--seconds", "inf"], "found 'inf'");
    refused(&["bench", "flash-get", "--seconds=-1"], "found '-1'");
    refused(&["bench", "ycsb-a", "--rate", "NaN"], "found 'NaN'");
    refused(&["bench", "ycsb-a", "--threads", "0"], "found '0'");
    refused(&["bench", "ycsb-a", "--distribution", "zipf:inf"], "up to 100");
    refused(&["bench", "ycsb-a", "--value-size", "lognormal:9:NaN:99"], "lognormal:MEDIAN");
    refused(&["bench", "load", "--shards", "99"], "1..=64");
    // The bench's own processor time was given for that of a process that there is not.
    refused(&["bench", "load", "--target", "unix:/x", "--server-pid", "0"], "found '0'");
    refused(&["demo", "--times", "0"], "1..=1000");
}

/// They were taken without a word, and what was printed was believed to be of them.
#[test]
fn options_that_change_nothing_of_a_bench_are_named() {
    let directory = Directory::new("idle");
    let small = ["bench", "load", "--keys", "500", "--rounds", "1", "--json", "--dir"];
    let idle = ["--iterations", "20", "--seconds", "0.2", "--verify-all"];
    let path = directory.0.to_str().unwrap();
    let output = entresol(&[&small[..], &[path], &idle].concat());
    let said = String::from_utf8_lossy(&output.stderr);
    let expected = "no effect on this bench: --iterations, --seconds, --verify-all";
    assert!(said.contains(expected), "{said}");
    let output = entresol(&[&small[..], &[path]].concat());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !said.contains("no effect"), "{said}");
}

/// Files in a directory of the caller's stayed behind.
#[test]
fn an_interrupted_bench_leaves_nothing_behind() {
    let directory = Directory::new("interrupted");
    let mut child = interruptible()
        .args(["bench", "load", "--keys", "100000", "--rounds", "1000", "--dir"])
        .arg(&directory.0)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    while !directory.0.join("bench.probe").exists() {
        assert!(child.try_wait().expect("it is ours").is_none(), "it ended too early");
        std::thread::yield_now();
    }
    let pid = nix::unistd::Pid::from_raw(child.id() as i32);
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).expect("it runs");
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    let left: Vec<_> = std::fs::read_dir(&directory.0).expect("a directory").flatten().collect();
    assert!(left.is_empty(), "{left:?}");
}

/// That its child was gone was told now and then, with another status, by a bench that had killed
/// it itself.
#[test]
fn an_interrupted_bench_says_nothing_of_the_child_that_it_killed() {
    let directory = Directory::new("killed-child");
    for _ in 0..10 {
        let mut child = interruptible()
            .args(["bench", "recovery", "--keys", "300000", "--value-size", "1", "--dir"])
            .arg(&directory.0)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let children = format!("/proc/{0}/task/{0}/children", child.id());
        while std::fs::read_to_string(&children).expect("it is ours").is_empty() {
            assert!(child.try_wait().expect("it is ours").is_none(), "it ended too early");
            std::thread::yield_now();
        }
        let pid = nix::unistd::Pid::from_raw(child.id() as i32);
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).expect("it runs");
        let output = child.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), &*said), (Some(130), ""));
    }
}
