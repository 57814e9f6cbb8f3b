//! The binary as people and scripts call it: exit statuses, messages, JSON fields, round trips.

mod support;

use std::path::Path;
use std::process::{Command, Stdio};

use support::{Directory, entresol, json, refused_with};

fn refused(arguments: &[&str], expected: &str) {
    refused_with(arguments, &[expected]);
}

#[test]
fn every_command_has_help_with_examples() {
    let commands = [
        &["bench"][..],
        &["load"],
        &["export"],
        &["store", "info"],
        &["store", "dump"],
        &["demo"],
        &["serve"],
        &["pblio"],
    ];
    for command in commands {
        let output = entresol(&[command, &["--help"]].concat());
        let help = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{command:?}");
        assert!(help.contains("Examples:") && help.contains("entresol"), "{command:?}: {help}");
    }
}

#[test]
fn what_cannot_run_says_why_and_exits_with_two() {
    refused(&["bench", "nonsense"], "nonsense");
    refused(&["bench", "load", "--keys", "5MB"], "unknown unit 'MB'");
    refused(&["bench", "load", "--memory", "5XB"], "unknown unit 'XB'");
    refused(&["bench", "load", "--durability", "never"], "found 'never'");
    refused(&["bench", "load", "--distribution", "gauss"], "found 'gauss'");
    refused(&["bench", "load", "--target", "ftp://x"], "redis://HOST:PORT");
    refused(&["bench", "recovery", "--target", "redis://127.0.0.1:1"], "--target embedded");
    refused(&["bench", "load", "--target", "unix:/nowhere/s"], "cannot connect");
    refused(&["export", "--dir", "/nowhere"], "does not exist");
    refused(&["store", "info", "--dir", "/nowhere"], "does not exist");
    refused(&["load", "x.csv", "--key", "a"], "--dir");
    refused(&["serve", "--no-such-key", "1"], "no-such-key");
}

#[test]
fn loading_names_the_line_that_is_wrong() {
    let directory = Directory::new("lines");
    let file = directory.file("a.jsonl", "{\"id\":1}\n{\"id\":2}\n{broken\n");
    let store = directory.path("store");
    let file = file.display().to_string();
    let arguments = ["load", &file, "--key", "id", "--dir", &store, "--capacity", "64MiB"];
    refused(&arguments, "line 3");
    refused(&["load", &file, "--key", "name", "--dir", &store], "no field 'name'");
}

#[test]
fn what_is_loaded_is_verified_dumped_and_exported_unchanged() {
    let directory = Directory::new("trip");
    let mut text = String::from("name,version,text\n");
    for i in 0..2_000 {
        text.push_str(&format!("p{i},{},\"line {i}, \"\"quoted\"\"\nand more\"\n", i % 7));
    }
    let file = directory.file("in.csv", &text).display().to_string();
    let (first, second) = (directory.path("first"), directory.path("second"));
    let load = json(&entresol(&[
        "load",
        &file,
        "--key",
        "name,version",
        "--separator",
        "=",
        "--value",
        "text",
        "--dir",
        &first,
        "--capacity",
        "64MiB",
        "--json",
    ]));
    assert_eq!(load["records"], 2_000);
    let verify = json(&entresol(&["store", "verify", "--dir", &first, "--json"]));
    assert_eq!(verify["entries_verified"], 2_000);
    let info = json(&entresol(&["store", "info", "--dir", &first, "--json"]));
    assert_eq!(info["spaces"]["0"], 2_000);
    let dump = entresol(&["store", "dump", "--dir", &first, "--limit", "3"]);
    assert_eq!(String::from_utf8_lossy(&dump.stdout).lines().count(), 3);
    let out = directory.path("out.jsonl");
    assert!(entresol(&["export", "--dir", &first, "--output", &out]).status.success());
    json(&entresol(&[
        "load",
        &out,
        "--key",
        "key",
        "--value",
        "value",
        "--dir",
        &second,
        "--capacity",
        "64MiB",
        "--json",
    ]));
    assert_eq!(sorted_export(&first), sorted_export(&second));
    assert_eq!(sorted_export(&first).len(), 2_000);
}

/// Flips a bit in the middle of each of `texts` where they stand in the store's file.
fn damage(directory: &str, texts: &[&str]) {
    let files = std::fs::read_dir(directory).expect("the store's directory can be read");
    let files = files.filter_map(|entry| Some(entry.ok()?.path()));
    let path = files.max_by_key(|path| path.metadata().map_or(0, |m| m.len())).expect("a file");
    let mut bytes = std::fs::read(&path).expect("the store's file can be read");
    for text in texts {
        let places: Vec<usize> = (0..bytes.len() - text.len())
            .filter(|at| bytes[*at..].starts_with(text.as_bytes()))
            .collect();
        assert!(!places.is_empty(), "{text} stands in the file");
        places.iter().for_each(|at| bytes[at + text.len() / 2] ^= 1);
    }
    std::fs::write(&path, bytes).expect("the store's file can be written");
}

#[test]
fn damaged_records_are_named_and_all_others_are_verified_dumped_and_exported() {
    let directory = Directory::new("damaged");
    let mut text = String::from("name,text\n");
    for i in 0..800 {
        text.push_str(&format!("p{i},this is line {i} of many\n"));
    }
    let file = directory.file("in.csv", &text).display().to_string();
    let store = directory.path("store");
    let dir = ["--dir", store.as_str()];
    let to = ["--key", "name", "--value", "text", "--capacity", "64MiB"];
    let load = entresol(&[&["load", file.as_str()], &to[..], &dir].concat());
    assert!(load.status.success(), "{}", String::from_utf8_lossy(&load.stderr));
    damage(&store, &["this is line 17 of many", "this is line 555 of many"]);
    let cases: [(&[&str], Option<usize>); 4] = [
        (&["store", "verify"], None),
        (&["store", "verify", "--json"], None),
        (&["store", "dump"], Some(798)),
        (&["export"], Some(798)),
    ];
    for (command, lines) in cases {
        let output = entresol(&[command, &dir].concat());
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{command:?}: {said}");
        assert_eq!(said.matches("damaged: record at byte ").count(), 2, "{command:?}: {said}");
        assert!(said.contains("2 damaged records, named above"), "{command:?}: {said}");
        let printed = String::from_utf8_lossy(&output.stdout);
        if let Some(lines) = lines {
            assert_eq!(printed.lines().count(), lines, "{command:?}");
            assert!(!printed.contains("line 17 of") && !printed.contains("line 555 of"));
        }
    }
    let verified = entresol(&["store", "verify", "--dir", &store, "--json"]);
    let report: serde_json::Value =
        serde_json::from_slice(&verified.stdout).expect("the output is JSON");
    assert_eq!(report["entries_verified"], 798);
    assert_eq!(report["damaged"].as_array().map(Vec::len), Some(2));
}

#[test]
fn a_store_that_lost_its_superblocks_is_refused_by_every_command() {
    let directory = Directory::new("rootless");
    let file = directory.file("in.csv", "name,text\na,b\n").display().to_string();
    let store = directory.path("store");
    let dir = ["--dir", store.as_str()];
    let load = [
        &["load", file.as_str(), "--key", "name", "--value", "text", "--capacity", "64MiB"],
        &dir[..],
    ]
    .concat();
    assert!(entresol(&load).status.success());
    let data = Path::new(&store).join("entresol.data");
    let mut bytes = std::fs::read(&data).expect("the store's file can be read");
    bytes[..128 << 10].fill(0);
    std::fs::write(&data, &bytes).expect("the store's file can be written");
    let commands: [&[&str]; 4] =
        [&["serve", "--port", "0"], &["export"], &["store", "verify"], &["load"]];
    for command in commands {
        let arguments = match command {
            ["load"] => load.clone(),
            _ => [command, &dir].concat(),
        };
        let output = entresol(&arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{command:?}: {said}");
        assert!(said.contains("holds a segment of store"), "{command:?}: {said}");
        assert!(said.contains("force a new store"), "{command:?}: {said}");
    }
    assert!(std::fs::read(&data).expect("it is still there") == bytes, "nothing was changed");
}

fn sorted_export(directory: &str) -> Vec<String> {
    let output = entresol(&["export", "--dir", directory]);
    let mut lines: Vec<String> =
        String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

#[test]
fn benches_print_the_fields_of_record_and_leave_nothing_behind() {
    let directory = Directory::new("bench");
    let cases: [(&str, &[&str]); 4] = [
        ("flash-get", &["device_reads_per_get", "fraction_of_device", "ops_per_second"]),
        ("load", &["records_per_second", "write_amplification", "cpu_us_per_op"]),
        ("ram-per-record", &["bytes_per_record", "worst_bytes_per_record", "lost_keys"]),
        ("recovery", &["records_per_second", "clean_records_per_second", "lost_keys"]),
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

#[test]
fn a_store_in_use_is_refused() {
    let directory = Directory::new("busy");
    let path = directory.path("store");
    let file = directory.file("a.csv", "k,v\n1,2\n").display().to_string();
    let arguments = ["load", &file, "--key", "k", "--dir", &path, "--capacity", "64MiB"];
    assert!(entresol(&arguments).status.success());
    let held = std::fs::File::open(Path::new(&path).join("entresol.data")).unwrap();
    held.try_lock().unwrap();
    refused(&["store", "info", "--dir", &path], "entresol.data");
}

#[test]
fn a_reader_that_has_enough_is_no_defect() {
    let (reader, writer) = std::io::pipe().expect("a pipe can be made");
    drop(reader);
    let output = Command::new(env!("CARGO_BIN_EXE_entresol"))
        .args(["pblio", "--simulate", "--asu1", "45MiB", "--asu2", "45MiB", "--asu3", "10MiB"])
        .stdout(writer)
        .stderr(Stdio::piped())
        .output()
        .expect("the program starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), &*said), (Some(141), ""));
}
