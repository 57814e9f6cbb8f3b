//! The binary as people and scripts call it: exit statuses, messages, JSON fields, round trips.

mod support;

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, Write};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use entresol_device::{FileDevice, FileOptions};
use entresol_flash::{JournalAppend, JournalRoom, SessionOptions, Store, StoreOptions, Timestamp};
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

/// The file stayed: whoever gave it more capacity then was refused for the bytes it had.
#[test]
fn a_load_that_can_make_no_store_leaves_no_file_to_refuse_the_next_one() {
    let directory = Directory::new("little");
    let csv = directory.file("a.csv", "id,v\n1,2\n").display().to_string();
    let store = directory.path("store");
    let file = format!("{store}/entresol.data");
    for place in [["--dir", &store], ["--devices", &file]] {
        let load = [&["load", &csv, "--key", "id"], &place[..], &["--capacity"]].concat();
        refused(&[&load[..], &["1MiB"]].concat(), "need at least");
        assert!(!Path::new(&file).exists(), "{place:?}");
        let output = entresol(&[&load[..], &["64MiB"]].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        // What was there before is nobody's leftover.
        refused(&["load", &csv, "--key", "no", place[0], place[1]], "no field 'no'");
        std::fs::remove_file(&file).expect("the store is there");
    }
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
fn a_journal_beside_the_entries_is_counted_verified_and_dumped() {
    let directory = Directory::new("journal");
    let store = directory.path("store");
    std::fs::create_dir_all(&store).expect("a directory can be made");
    let path = Path::new(&store).join("entresol.data");
    let on_file = FileOptions { capacity_bytes: Some(64 << 20), ..FileOptions::default() };
    let device = FileDevice::open(&path, &on_file).expect("a file can be made");
    let options = StoreOptions { journal_bytes: 4 << 20, ..StoreOptions::default() };
    let opened = Store::open(Arc::new(device), options, Timestamp(0)).expect("a store can be made");
    let mut session = opened.session(SessionOptions::default()).expect("a session opens");
    for owner in 0..5 {
        let lane = (owner % 2) as u16;
        // Owner 0 is that of ordered tables.
        let append = JournalAppend {
            lane,
            owner: owner + 1,
            bytes: b"a record",
            durability: None,
            continues: None,
            room: JournalRoom::Leaving(0),
        };
        session.submit_journal(owner, Timestamp(0), append, &mut |_, outcome| {
            outcome.expect("it is appended");
        });
        while session.in_flight() > 0 {
            let waited = session.poll(1, Timestamp(0), &mut |_, outcome| {
                outcome.expect("it is appended");
            });
            waited.expect("the device answers");
        }
    }
    opened.close(Timestamp(0)).expect("the store can be closed");
    drop((session, opened));
    let info = json(&entresol(&["store", "info", "--dir", &store, "--json"]));
    assert_eq!(info["journal"].as_array().map(Vec::len), Some(2), "{info}");
    let verify = json(&entresol(&["store", "verify", "--dir", &store, "--json"]));
    assert_eq!(verify["journal_records_verified"], 5);
    let dump = entresol(&["store", "dump", "--dir", &store]);
    let printed = String::from_utf8_lossy(&dump.stdout);
    assert_eq!(printed.matches("\towner ").count(), 5, "{printed}");
}

/// It said to force it, and has no such option.
#[test]
fn a_load_over_a_file_of_somebody_else_names_the_command_that_can_be_forced() {
    let directory = Directory::new("foreign");
    let file = directory.file("in.csv", "name,text\na,b\n").display().to_string();
    let store = directory.path("store");
    std::fs::create_dir_all(&store).expect("a directory can be made");
    let data = Path::new(&store).join("entresol.data");
    std::fs::write(&data, vec![b'x'; 64 << 20]).expect("a file can be written");
    let output = entresol(&["load", &file, "--key", "name", "--value", "text", "--dir", &store]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("overwrite what is there: `entresol serve` does"), "{said}");
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
        // They said to force it, which they cannot.
        let can = command[0] == "serve";
        assert_eq!(said.contains("`entresol serve` does, with `--force yes`"), !can, "{said}");
    }
    assert!(std::fs::read(&data).expect("it is still there") == bytes, "nothing was changed");
}

/// It ended with the words of a defect and its place in the source.
#[test]
fn output_to_a_full_device_is_an_error_with_a_sentence() {
    let directory = Directory::new("full");
    let file = directory.file("a.jsonl", "{\"id\":1}\n").display().to_string();
    let store = directory.path("store");
    let commands = [
        &["load", &file, "--key", "id", "--dir", &store, "--capacity", "64MiB"][..],
        &["store", "info", "--dir", &store],
        &["store", "info", "--dir", &store, "--json"],
        &["store", "dump", "--dir", &store],
        &["export", "--dir", &store],
        &["serve", "--help"],
    ];
    for command in commands {
        let full = File::options().write(true).open("/dev/full").expect("it is there");
        let mut program = Command::new(env!("CARGO_BIN_EXE_entresol"));
        let output = program.args(command).stdout(full).output().expect("the program starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{command:?}: {said}");
        assert!(!said.contains("panicked"), "{command:?}: {said}");
        assert!(said.contains("cannot write: No space left"), "{command:?}: {said}");
    }
}

/// They stayed for ever, and nobody knew whose they were.
#[test]
fn info_names_the_write_buffers_of_a_store_that_is_gone() {
    let directory = Directory::new("leftovers");
    let gone = directory.path("gone.data");
    let options = FileOptions { capacity_bytes: Some(64 << 20), ..FileOptions::default() };
    let device = FileDevice::open(&gone, &options).expect("a file can be made");
    let buffer_directory = Some(directory.0.clone());
    let options = StoreOptions { buffer_directory, ..StoreOptions::default() };
    // As a kill would, dropping it leaves its buffers behind.
    drop(Store::open(Arc::new(device), options, Timestamp(0)).expect("a store can be made"));
    let file = directory.file("a.jsonl", "{\"id\":1}\n").display().to_string();
    let (store, buffers) = (directory.path("store"), directory.path(""));
    let load = ["load", &file, "--key", "id", "--dir", &store, "--capacity", "64MiB"];
    assert!(entresol(&load).status.success());
    let info = || {
        let arguments = ["store", "info", "--dir", &store, "--buffer-directory", &buffers];
        String::from_utf8_lossy(&entresol(&arguments).stdout).into_owned()
    };
    assert!(!info().contains("`rm "), "the store is there: {}", info());
    std::fs::remove_file(&gone).expect("the file can be removed");
    let text = info();
    assert!(text.contains("gone.data, which is not there"), "{text}");
    assert!(text.contains(&format!("`rm {buffers}entresol-")), "{text}");
}

fn sorted_export(directory: &str) -> Vec<String> {
    let output = entresol(&["export", "--dir", directory]);
    let mut lines: Vec<String> =
        String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

/// They were taken without a word: a store of 2 GiB was asked for, and a server was loaded.
#[test]
fn options_that_a_server_has_no_use_for_are_refused() {
    let target = ["--target", "unix:/nowhere/s"];
    for option in ["--selection=stripe", "--encryption-key=k", "--instance=2"] {
        refused(&[&["export", option], &target[..]].concat(), "cannot be used with");
    }
    let directory = Directory::new("unused");
    let csv = directory.file("a.csv", "k,v\n1,2\n").display().to_string();
    let load = ["load", &csv, "--key", "k", "--capacity", "2GiB"];
    refused(&[&load[..], &target].concat(), "cannot be used with");
    refused(&["bench", "ycsb-a", "--arrivals", "even"], "--rate");
}

/// All that was said was how many entries were exported, and the status was 0.
#[test]
fn an_export_that_leaves_keys_out_says_so_and_exits_with_one() {
    let directory = Directory::new("others");
    let (out, socket) = (directory.path("out.jsonl"), directory.path("socket"));
    let listener = UnixListener::bind(&socket).expect("it can listen");
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("somebody comes");
        let mut commands = BufReader::new(stream.try_clone().expect("it can be shared")).lines();
        for (words, reply) in [
            (2, "+OK\r\n"),
            (4, "*2\r\n$1\r\n0\r\n*2\r\n$1\r\nl\r\n$1\r\ns\r\n"),
            (2, "-WRONGTYPE a list\r\n"),
            (2, ":-1\r\n"),
            (2, "$1\r\nv\r\n"),
            (2, ":-1\r\n"),
            (2, "-WRONGTYPE a list\r\n"),
        ] {
            assert_eq!(commands.next().unwrap().unwrap(), format!("*{words}"));
            (0..2 * words).for_each(|_| drop(commands.next().unwrap().unwrap()));
            stream.write_all(reply.as_bytes()).unwrap();
        }
    });
    let target = format!("unix:{socket}");
    let output = entresol(&["export", "--target", &target, "--output", &out]);
    server.join().expect("it was asked for what it answers");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("1 keys hold neither a string nor a hash"), "{said}");
    let text = std::fs::read_to_string(&out).expect("all others were exported");
    assert_eq!(text, "{\"key\":\"s\",\"value\":\"v\"}\n");
}

/// The file was emptied before anything else was looked at.
#[test]
fn an_export_that_fails_leaves_the_earlier_one_as_it_is() {
    let directory = Directory::new("earlier");
    let out = directory.file("out.jsonl", "precious\n").display().to_string();
    refused(&["export", "--dir", "/nowhere", "--output", &out], "does not exist");
    refused(&["export", "--target", "unix:/nowhere/s", "--output", &out], "cannot connect");
    let csv = directory.file("a.csv", "key,value\na,b\n").display().to_string();
    let store = directory.path("store");
    let to = ["--key", "key", "--value", "value", "--capacity", "64MiB", "--dir", &store];
    assert!(entresol(&[&["load", &csv], &to[..]].concat()).status.success());
    let missing = directory.path("no/such.jsonl");
    refused(&["export", "--dir", &store, "--output", &missing], "such.jsonl");
    assert_eq!(std::fs::read_to_string(&out).expect("it is there"), "precious\n");
    assert!(entresol(&["export", "--dir", &store, "--output", &out]).status.success());
    let text = std::fs::read_to_string(&out).expect("it is there");
    assert_eq!(text, "{\"key\":\"a\",\"value\":\"b\"}\n");
    let left: Vec<_> = std::fs::read_dir(&directory.0).expect("a directory").flatten().collect();
    assert_eq!(left.len(), 3, "{left:?}");
}

/// A link to nothing was replaced by the file, and of a standard output that was removed another
/// file was made.
/// The export took the place of the store that it was read from.
#[test]
fn an_export_to_the_file_of_an_open_store_is_refused() {
    let directory = Directory::new("itself");
    let csv = directory.file("a.csv", "key,value\na,b\n").display().to_string();
    let store = directory.path("store");
    let to = ["--key", "key", "--value", "value", "--capacity", "64MiB", "--dir", &store];
    assert!(entresol(&[&["load", &csv], &to[..]].concat()).status.success());
    let (file, link) = (format!("{store}/entresol.data"), directory.path("link"));
    std::fs::hard_link(&file, &link).expect("it can be linked");
    for output in [&file, &link] {
        refused(&["export", "--dir", &store, "--output", output], "is in use");
    }
    let verified = json(&entresol(&["store", "verify", "--dir", &store, "--json"]));
    assert_eq!(verified["entries_verified"], 1);
    let left = std::fs::read_dir(&store).expect("it is there").count();
    assert_eq!(left, 1, "nothing is beside the store");
}

/// All three said that nothing was wrong.
#[test]
fn a_lost_copy_of_the_superblock_is_told_by_whoever_opens_the_store() {
    let directory = Directory::new("superblock");
    let csv = directory.file("a.csv", "key,value\na,b\n").display().to_string();
    let store = directory.path("store");
    let to = ["--key", "key", "--value", "value", "--capacity", "64MiB", "--dir", &store];
    let load = [&["load", &csv], &to[..]].concat();
    assert!(entresol(&load).status.success());
    let mut file = File::options().write(true).open(format!("{store}/entresol.data")).unwrap();
    file.write_all(&[0; 64 << 10]).unwrap();
    drop(file);
    let lost = "superblock copy at bytes 0 to 65535";
    let said = |output: &std::process::Output| String::from_utf8_lossy(&output.stderr).into_owned();
    let info = entresol(&["store", "info", "--dir", &store, "--json"]);
    assert_eq!(json(&info)["superblock_copies"], 1);
    assert!(said(&info).contains(lost), "{}", said(&info));
    let verified = entresol(&["store", "verify", "--dir", &store]);
    assert_eq!(verified.status.code(), Some(1), "{}", said(&verified));
    assert!(said(&verified).contains("all entries are sound, but"), "{}", said(&verified));
    let loaded = said(&entresol(&load));
    assert!(loaded.contains(lost) && loaded.contains("it was written anew"), "{loaded}");
    let verified = entresol(&["store", "verify", "--dir", &store, "--json"]);
    assert_eq!(json(&verified)["superblock_copies"], 2);
    assert_eq!(said(&verified), "");
}

#[test]
fn an_export_goes_where_its_name_leads() {
    let directory = Directory::new("leads");
    let csv = directory.file("a.csv", "key,value\na,b\n").display().to_string();
    let store = directory.path("store");
    let to = ["--key", "key", "--value", "value", "--capacity", "64MiB", "--dir", &store];
    assert!(entresol(&[&["load", &csv], &to[..]].concat()).status.success());
    let [link, circle, target] = ["link", "circle", "target"].map(|name| directory.path(name));
    for (to, from) in [("other", &link), ("target", &directory.path("other")), ("circle", &circle)]
    {
        std::os::unix::fs::symlink(to, from).expect("a link can be made");
    }
    let expected = "{\"key\":\"a\",\"value\":\"b\"}\n";
    assert!(entresol(&["export", "--dir", &store, "--output", &link]).status.success());
    assert!(Path::new(&link).is_symlink());
    assert_eq!(std::fs::read_to_string(&target).expect("it was made"), expected);
    refused(&["export", "--dir", &store, "--output", &circle], "circle");
    assert!(Path::new(&circle).is_symlink());

    let path = directory.file("removed", "");
    let mut removed = File::options().read(true).write(true).open(&path).expect("it is there");
    std::fs::remove_file(&path).expect("it can be removed");
    let status = Command::new(env!("CARGO_BIN_EXE_entresol"))
        .args(["export", "--dir", &store, "--output", "/dev/stdout"])
        .stdout(removed.try_clone().expect("it is open"))
        .stderr(Stdio::null())
        .status();
    assert!(status.expect("the program starts").success());
    let mut text = String::new();
    removed.rewind().and_then(|()| removed.read_to_string(&mut text)).expect("it can be read");
    assert_eq!(text, expected);
    assert!(!path.exists());
}

/// They are among the entries that are counted, and were missed as if they had been lost.
#[test]
fn a_store_whose_entries_expired_is_sound() {
    let directory = Directory::new("expired");
    let text = "key,value,expires_at_ms\na,b,1000\nc,d,\n";
    let csv = directory.file("a.csv", text).display().to_string();
    let store = directory.path("store");
    let to = ["--key", "key", "--value", "value", "--capacity", "64MiB", "--dir", &store];
    assert!(entresol(&[&["load", &csv], &to[..]].concat()).status.success());
    let verify = json(&entresol(&["store", "verify", "--dir", &store, "--json"]));
    assert_eq!(verify["entries_verified"], verify["entries_indexed"]);
    assert_eq!(sorted_export(&store), ["{\"key\":\"c\",\"value\":\"d\"}"]);
}

#[test]
fn an_export_of_one_space_says_what_the_others_hold() {
    let directory = Directory::new("spaces");
    let csv = directory.file("a.csv", "key,value\na,b\n").display().to_string();
    let store = directory.path("store");
    for space in ["0", "3"] {
        let to = ["--key", "key", "--value", "value", "--capacity", "64MiB", "--dir", &store];
        let load = [&["load", &csv, "--space", space], &to[..]].concat();
        assert!(entresol(&load).status.success());
    }
    let output = entresol(&["export", "--dir", &store]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("1 entries are in space 3; --space 3"), "{said}");
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
    let directory = Directory::new("enough");
    let csv = directory.file("a.csv", "key,value\na,b\n").display().to_string();
    let store = directory.path("store");
    let to = ["--key", "key", "--value", "value", "--capacity", "64MiB", "--dir", &store];
    assert!(entresol(&[&["load", &csv], &to[..]].concat()).status.success());
    let commands: [&[&str]; 4] = [
        &["pblio", "--simulate", "--asu1", "45MiB", "--asu2", "45MiB", "--asu3", "10MiB"],
        &["export", "--dir", &store],
        &["export", "--dir", &store, "--format", "csv"],
        &["store", "dump", "--dir", &store],
    ];
    for command in commands {
        let (reader, writer) = std::io::pipe().expect("a pipe can be made");
        drop(reader);
        let output = Command::new(env!("CARGO_BIN_EXE_entresol"))
            .args(command)
            .stdout(writer)
            .stderr(Stdio::piped())
            .output()
            .expect("the program starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), &*said), (Some(141), ""), "{command:?}");
    }
}
