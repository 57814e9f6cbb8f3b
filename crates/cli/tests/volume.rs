//! `entresol volume` as people and scripts call it, with and without a server that has the cache.

mod support;

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::process::{Child, Command, Stdio};

use entresol_volume::Durable;
use entresol_volume::backing::nbd::{NbdBacking, NbdOptions};
use entresol_volume::backing::{Backing, BackingRequest};
use serde_json::Value;
use support::{Directory, entresol, json, refused_with};

const BACKING_BYTES: u64 = 8 << 20;

/// A cache with one volume, `vm1`.
struct Setting {
    directory: Directory,
    cache: String,
    backing: String,
}

impl Setting {
    fn new(name: &str, mode: &str) -> Setting {
        let directory = Directory::new(name);
        let cache = directory.path("cache");
        let backing = directory.file("backing", "").display().to_string();
        let file = File::options().write(true).open(&backing).expect("it was made just now");
        file.set_len(BACKING_BYTES).expect("a file can be sized");
        let setting = Setting { directory, cache, backing };
        let made = setting.run(&[
            "create",
            "vm1",
            "--capacity",
            "24MiB",
            "--backing",
            &setting.backing,
            "--mode",
            mode,
        ]);
        assert!(made.contains("volume vm1"), "{made}");
        setting
    }

    fn arguments<'a>(&'a self, arguments: &[&'a str]) -> Vec<&'a str> {
        [&["volume"], arguments, &["--cache", &self.cache]].concat()
    }

    /// What a command that succeeds prints.
    fn run(&self, arguments: &[&str]) -> String {
        let output = entresol(&self.arguments(arguments));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {said}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn json(&self, arguments: &[&str]) -> Value {
        json(&entresol(&self.arguments(&[arguments, &["--json"]].concat())))
    }

    /// Has a server killed before it has written back all that it was given, which it begins half a
    /// second later; whether it was.
    fn becomes_dirty(&self) -> bool {
        (0..10).any(|_| {
            let server = self.serve();
            server.perform(write(0, 7, 1 << 20));
            drop(server);
            self.json(&["stat"])["volumes"]
                .as_array()
                .is_some_and(|all| all.iter().any(|one| one["usage"]["dirty"].as_u64() > Some(0)))
        })
    }

    fn serve(&self) -> Server {
        let socket = self.directory.path("nbd");
        let mut child = Command::new(env!("CARGO_BIN_EXE_entresol"))
            .args(self.arguments(&["serve", "--unix", &socket]))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        let mut line = String::new();
        let mut output = BufReader::new(child.stdout.take().expect("it was asked for"));
        output.read_line(&mut line).expect("it says where it listens");
        assert!(line.starts_with("listening"), "{line}");
        Server { child, socket }
    }
}

/// A running server; it is stopped with the value.
struct Server {
    child: Child,
    socket: String,
}

impl Server {
    fn perform(&self, request: BackingRequest) {
        self.perform_on("vm1", request);
    }

    fn perform_on(&self, volume: &str, request: BackingRequest) {
        let options = NbdOptions::default();
        let uri = format!("nbd+unix:///{volume}?socket={}", self.socket);
        let mut client = NbdBacking::open(&uri, &options).expect("the server answers");
        client.begin(0, request);
        let mut completions = Vec::new();
        client.wait(&mut completions);
        completions.remove(0).result.expect("the request succeeds");
    }

    fn stop(mut self) {
        let pid = nix::unistd::Pid::from_raw(self.child.id() as i32);
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).expect("it runs");
        assert!(self.child.wait().expect("it ends").success());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _either_way = self.child.kill();
        let _ended = self.child.wait();
    }
}

fn write(offset: u64, byte: u8, length: usize) -> BackingRequest {
    let bytes = vec![byte; length].into();
    BackingRequest::Write { offset, bytes, durable: Durable::AtFlush }
}

#[test]
fn every_volume_command_has_help_with_examples() {
    for command in
        ["create", "serve", "stat", "flush", "mode", "check", "resize", "adopt", "remove"]
    {
        let output = entresol(&["volume", command, "--help"]);
        let help = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{command}");
        assert!(help.contains("Examples:"), "{command}: {help}");
    }
}

#[test]
fn a_stopped_cache_is_told_of_and_changed_by_the_commands_themselves() {
    let setting = Setting::new("volume-stopped", "wb");
    let figures = setting.json(&["stat"]);
    assert_eq!(figures["volumes"][0]["name"], "vm1");
    assert_eq!(figures["volumes"][0]["mode"], "wb");
    assert_eq!(figures["volumes"][0]["bytes"], BACKING_BYTES);
    let table = setting.run(&["stat", "vm1"]);
    for row in ["Occupancy", "Read full misses", "Writes to backing", "Total errors"] {
        assert!(table.contains(row), "expected a row '{row}' in\n{table}");
    }
    let metrics = setting.run(&["stat", "--prometheus"]);
    let labels = "request=\"read\",outcome=\"hit\",volume=\"vm1\"";
    let metric = format!("entresol_volume_requests_total{{{labels}}} 0");
    assert!(metrics.lines().any(|line| line == metric), "{metrics}");
    assert!(setting.run(&["flush"]).contains("vm1"));
    setting.run(&["mode", "vm1", "pt"]);
    assert_eq!(setting.json(&["stat", "vm1"])["volumes"][0]["mode"], "pt");
    assert_eq!(setting.json(&["check"])["volumes"][0]["wrong"], 0);
    setting.run(&["remove", "vm1"]);
    assert_eq!(setting.json(&["stat"])["volumes"].as_array().map(Vec::len), Some(0));
    assert!(fs::metadata(&setting.backing).is_ok());
}

#[test]
fn what_cannot_be_done_is_refused_with_what_there_is() {
    let setting = Setting::new("volume-refused", "wt");
    let refused = |arguments: &[&str], expected: &[&str]| {
        refused_with(&setting.arguments(arguments), expected);
    };
    for arguments in
        [&["flush", "vm2"][..], &["mode", "vm2", "wb"], &["stat", "vm2"], &["check", "vm2"]]
    {
        refused(arguments, &["no volume vm2", "vm1"]);
    }
    refused(&["mode", "vm1", "quick"], &["wt, wb, wa, wo or pt", "'quick'"]);
    let create = ["create", "vm2", "--backing", &setting.backing];
    let rates = ["--reservation", "500", "--limit", "200"];
    refused(&[&create[..], &rates].concat(), &["reservation 500", "limit, which is 200"]);
    let hits = ["--admission-hits", "16"];
    refused(&[&create[..], &hits].concat(), &["admission hits", "at most 15", "found 16"]);
    refused(&["adopt", "vm1"], &["--keep-dirty", "--lose-dirty"]);
    let nowhere = setting.directory.path("nowhere");
    let unnamed = ["volume", "create", "", "--backing", &setting.backing, "--cache", &nowhere];
    refused_with(&unnamed, &["1 to 255 bytes"]);
    refused_with(&["volume", "stat", "--cache", &nowhere], &["no cache at", "volume create"]);
}

/// It was said to be in use by this process, which is to be stopped first.
#[test]
fn a_backing_of_another_volume_is_refused_with_the_name_of_that_volume() {
    let setting = Setting::new("taken", "wt");
    let link = setting.directory.path("link");
    std::os::unix::fs::symlink(&setting.backing, &link).expect("a link can be made");
    let expected = ["is the backing of volume vm1 already", "`entresol volume remove vm1`"];
    for backing in [&setting.backing, &link] {
        let create = setting.arguments(&["create", "vm2", "--backing", backing]);
        refused_with(&create, &expected);
    }
    let server = setting.serve();
    refused_with(&setting.arguments(&["create", "vm2", "--backing", &link]), &expected[..1]);
    drop(server);
    let figures = setting.json(&["stat"]);
    assert_eq!(figures["volumes"].as_array().map(Vec::len), Some(1));
}

#[test]
fn a_running_server_is_asked_and_its_cache_checked_once_it_has_stopped() {
    let setting = Setting::new("volume-served", "wb");
    let server = setting.serve();
    server.perform(write(0, 7, 1 << 20));
    server.perform(BackingRequest::Flush);
    assert!(setting.run(&["flush", "vm1"]).contains("vm1"));
    let figures = setting.json(&["stat"]);
    assert_eq!(figures["volumes"][0]["usage"]["dirty"], 0);
    assert_eq!(figures["volumes"][0]["blocks"]["from_clients"], 256);
    assert!(fs::read(&setting.backing).expect("it is a file")[..1 << 20] == [7; 1 << 20]);
    let check = setting.arguments(&["check"]);
    refused_with(&check, &["a server has", "stop it"]);
    // The server opened the backing without force, and nobody was told.
    let create = ["create", "vm2", "--backing", &setting.backing, "--force"];
    refused_with(&setting.arguments(&create), &["--force: a server has", "stop the server"]);
    setting.run(&["mode", "vm1", "wt"]);
    assert_eq!(setting.json(&["stat"])["volumes"][0]["mode"], "wt");
    server.perform(BackingRequest::Read { offset: 0, length: 2 << 20 });
    server.stop();
    let checked = setting.json(&["check"]);
    let found = &checked["volumes"][0];
    assert!(found["clean"].as_u64().expect("a number") >= 256, "{checked}");
    for wrong in ["dirty", "wrong", "unreadable", "lost"] {
        assert_eq!(found[wrong], 0, "{checked}");
    }
}

#[test]
fn a_backing_that_somebody_else_changed_is_found_by_a_check() {
    let setting = Setting::new("volume-differs", "wt");
    let server = setting.serve();
    server.perform(write(0, 7, 1 << 20));
    server.perform(BackingRequest::Read { offset: 0, length: 1 << 20 });
    let file = File::options().write(true).open(&setting.backing).expect("it is a file");
    // Behind the server's back, so that nothing tells of it but the contents.
    file.write_all_at(&[1], 8192 + 77).expect("it is written");
    server.stop();
    let output = entresol(&setting.arguments(&["check"]));
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("the first is at offset 8192"), "{said}");
}

#[test]
fn a_volume_takes_the_size_of_its_backing_when_it_is_told_to_and_keeps_its_contents() {
    let setting = Setting::new("volume-grows", "wb");
    let server = setting.serve();
    server.perform(write(0, 7, 1 << 20));
    server.perform(BackingRequest::Flush);
    setting.run(&["flush", "vm1"]);
    server.stop();
    let file = File::options().write(true).open(&setting.backing).expect("it is a file");
    file.set_len(2 * BACKING_BYTES).expect("a file can be sized");
    let figures = setting.json(&["stat"]);
    assert_eq!(figures["volumes"].as_array().map(Vec::len), Some(0), "{figures}");
    let resized = setting.run(&["resize", "vm1"]);
    assert!(resized.contains("16,777,216 bytes"), "{resized}");
    assert_eq!(setting.json(&["stat"])["volumes"][0]["bytes"], 2 * BACKING_BYTES);
    let server = setting.serve();
    server.perform(write(BACKING_BYTES, 9, 1 << 20));
    setting.run(&["flush", "vm1"]);
    server.stop();
    let bytes = fs::read(&setting.backing).expect("it is a file");
    assert!(
        bytes[..1 << 20] == [7; 1 << 20] && bytes[BACKING_BYTES as usize..][..4096] == [9; 4096]
    );
    setting.run(&["check"]);
}

/// It could not be removed for as long as its backing was not there, which was for ever.
#[test]
fn a_volume_whose_backing_is_gone_is_named_and_can_be_removed() {
    let setting = Setting::new("volume-gone", "wb");
    let other = setting.directory.file("other", "").display().to_string();
    let file = File::options().write(true).open(&other).expect("it was made just now");
    file.set_len(BACKING_BYTES).expect("a file can be sized");
    let create = ["create", "clean", "--backing", &other];
    for (capacity, why) in [("64MiB", "leave the option out"), ("1MiB", "there already")] {
        let arguments = [&create[..], &["--capacity", capacity]].concat();
        refused_with(&setting.arguments(&arguments), &["--capacity", why]);
    }
    setting.run(&create);
    let is_dirty = setting.becomes_dirty();
    fs::remove_file(&setting.backing).expect("it is there");
    fs::remove_file(&other).expect("it is there");
    let output = entresol(&setting.arguments(&["check"]));
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("volume vm1 is absent") && said.contains("volume clean"), "{said}");
    assert!(setting.run(&["remove", "clean"]).contains("volume clean is removed"));
    assert!(is_dirty, "nothing is dirty");
    // It was said that all that was dirty was written back.
    let output = entresol(&setting.arguments(&["flush"]));
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("were not written back: vm1 ("), "{said}");
    refused_with(&setting.arguments(&["remove", "vm1"]), &["--lose-dirty"]);
    setting.run(&["remove", "vm1", "--lose-dirty"]);
    assert_eq!(setting.json(&["stat"])["absent"], Value::Array(Vec::new()));
    setting.run(&["check"]);
}

/// A copy in the place of a backing was another file, and what was dirty could not get there.
#[test]
fn dirty_blocks_arrive_on_a_backing_that_was_copied_once_it_is_adopted() {
    let setting = Setting::new("volume-adopted", "wb");
    assert!(setting.becomes_dirty(), "nothing is dirty");
    let (copy, moved) = (setting.directory.path("copy"), setting.directory.path("moved"));
    fs::copy(&setting.backing, &copy).expect("it is a file");
    fs::rename(&copy, &setting.backing).expect("it is in the same directory");
    let check = entresol(&setting.arguments(&["check"]));
    let said = String::from_utf8_lossy(&check.stderr);
    assert!(said.contains("`entresol volume adopt vm1`"), "{said}");
    setting.run(&["adopt", "vm1", "--keep-dirty"]);
    assert!(setting.json(&["stat"])["volumes"][0]["usage"]["dirty"].as_u64() > Some(0));
    // The same once more, at another place.
    fs::rename(&setting.backing, &moved).expect("it is in the same directory");
    setting.run(&["adopt", "vm1", "--keep-dirty", "--backing", &moved]);
    setting.run(&["flush", "vm1"]);
    let bytes = fs::read(&moved).expect("it is a file");
    assert!(bytes[..1 << 20] == [7; 1 << 20]);
    assert_eq!(setting.json(&["check"])["volumes"][0]["dirty"], 0);
}

/// Whether a backing was written to after a kill is not known, and nothing said so.
#[test]
fn a_command_that_opens_a_cache_after_a_kill_names_what_was_not_verified() {
    let setting = Setting::new("volume-killed", "wt");
    let said = |arguments: &[&str]| {
        let output = entresol(&setting.arguments(arguments));
        assert!(output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(!said(&["flush"]).contains("not closed in order"));
    drop(setting.serve());
    let first = said(&["flush"]);
    assert!(first.contains("not closed in order") && first.contains(": vm1"), "{first}");
    assert!(!said(&["flush"]).contains("not closed in order"));
}

/// The first volume whose backing failed kept all others from being written back.
#[test]
fn a_flush_of_all_volumes_writes_back_those_whose_backing_can_be_written() {
    let setting = Setting::new("volume-flushed", "wb");
    setting.run(&["remove", "vm1"]);
    let backing = |name: &str| {
        let path = setting.directory.file(name, "").display().to_string();
        let file = File::options().write(true).open(&path).expect("it was made just now");
        file.set_len(64 << 20).expect("a file can be sized");
        path
    };
    let backings = ["first", "second"].map(backing);
    for (name, backing) in ["first", "second"].iter().zip(&backings) {
        setting.run(&["create", name, "--mode", "wb", "--backing", backing]);
    }
    let are_dirty = (0..10).any(|_| {
        let server = setting.serve();
        server.perform_on("first", write(48 << 20, 7, 1 << 20));
        server.perform_on("second", write(0, 7, 1 << 20));
        drop(server);
        let figures = setting.json(&["stat"]);
        let volumes = figures["volumes"].as_array().expect("there are volumes");
        volumes.iter().all(|one| one["usage"]["dirty"].as_u64() > Some(0))
    });
    assert!(are_dirty, "nothing is dirty");
    // No file may grow to where the first one is to be written.
    let limited = "trap '' XFSZ; ulimit -f 65536; exec \"$@\"";
    let output = Command::new("sh")
        .args(["-c", limited, "sh", env!("CARGO_BIN_EXE_entresol")])
        .args(setting.arguments(&["flush"]))
        .output()
        .expect("there is a shell");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    let bytes = fs::read(&backings[1]).expect("it is a file");
    assert!(bytes[..1 << 20] == [7; 1 << 20], "{said}");
    assert!(said.contains("volume first is not written back"), "{said}");
    assert!(!said.contains("second"), "{said}");
    setting.run(&["flush"]);
    let bytes = fs::read(&backings[0]).expect("it is a file");
    assert!(bytes[48 << 20..49 << 20] == [7; 1 << 20]);
}
