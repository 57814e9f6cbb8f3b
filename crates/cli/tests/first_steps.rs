//! What somebody meets who tries the program for the first time, and by habits from elsewhere.

#[path = "support/interruptible.rs"]
mod interruptible;
#[path = "support/served.rs"]
#[expect(dead_code, reason = "other tests use the rest of it")]
mod served;
#[expect(dead_code, reason = "other tests use the rest of it")]
mod support;

use std::io::{Read, Write};
use std::process::{Command, Stdio};

use interruptible::interruptible;
use served::Served;
use support::{Directory, entresol, refused_with};

const PROGRAM: &str = env!("CARGO_BIN_EXE_entresol");

#[test]
fn serve_tells_its_version_and_help_lists_its_options() {
    let version = entresol(&["serve", "--version"]);
    assert!(version.status.success());
    assert_eq!(version.stdout, b"entresol-serve 0.1.0\n");
    for help in [&["help", "serve"][..], &["serve", "--help"]] {
        let output = entresol(help);
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("--memory <SIZE>"), "{help:?}: {text}");
        assert!(text.contains("[env: ENTRESOL_MEMORY]"), "{help:?}: {text}");
    }
}

#[test]
fn options_of_redis_server_lead_to_those_that_serve_here() {
    for (option, instead) in [
        ("--requirepass", "`users`"),
        ("--maxmemory", "`memory`"),
        ("--maxmemory-policy", "`reclaim` = `cache`"),
        ("--appendonly", "`durability`"),
    ] {
        refused_with(&["serve", option, "x"], &["unexpected argument", option, instead]);
    }
}

#[test]
fn the_command_line_wins_over_the_environment_and_both_over_the_file() {
    let directory = Directory::new("environment");
    let text = "timeout = '1s'\nstall-timeout = '2s'\nmaxclients = 3\n";
    let file = directory.file("entresol.conf", text).display().to_string();
    let data = directory.path("data");
    let mut program = interruptible();
    program.envs([
        ("ENTRESOL_CONFIG", file.as_str()),
        ("ENTRESOL_TIMEOUT", "4s"),
        ("ENTRESOL_STALL_TIMEOUT", "5s"),
        // What Kubernetes says of a service of this name.
        ("ENTRESOL_PORT", "tcp://10.0.0.1:6379"),
    ]);
    let options = ["--dir", &data, "--capacity", "64MiB", "--timeout", "6s"];
    let served = Served::start_by(program, &directory, &options);
    let mut client = served.client();
    for (key, value) in [("timeout", "6"), ("stall-timeout", "5s"), ("maxclients", "3")] {
        assert_eq!(client.call(&[b"CONFIG", b"GET", key.as_bytes()]), "*2");
        assert_eq!([client.reply(), client.reply()], [key, value]);
    }
    served.stop();
}

#[test]
fn a_wrong_value_in_the_environment_is_told_with_its_variable() {
    let output = Command::new(PROGRAM)
        .args(["serve", "--dir", "/nowhere"])
        .env("ENTRESOL_MEMORY", "12GG")
        .output()
        .expect("the program starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    for part in ["environment variable ENTRESOL_MEMORY", "'--memory <SIZE>'", "found `12GG`"] {
        assert!(said.contains(part), "expected {part} in: {said}");
    }
}

#[test]
fn shells_complete_options_of_serve_and_each_command_has_a_page() {
    for shell in ["bash", "zsh", "fish"] {
        let output = entresol(&["completions", shell]);
        let script = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && script.contains("admin-port"), "{shell}");
    }
    for (command, title) in [
        (&["man"][..], ".TH entresol 1"),
        (&["man", "serve"], ".TH entresol-serve 1"),
        (&["man", "store", "info"], ".TH entresol-store-info 1"),
    ] {
        let output = entresol(command);
        let page = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && page.contains(title), "{command:?}: {page}");
    }
    let directory = Directory::new("pages");
    let pages = directory.path("man1");
    assert!(entresol(&["man", "--dir", &pages]).status.success());
    for page in ["entresol.1", "entresol-serve.1", "entresol-user-add.1"] {
        assert!(directory.0.join("man1").join(page).exists(), "{page}");
    }
    refused_with(&["man", "store", "inform"], &["`store inform`", "info", "found `inform`"]);
    refused_with(&["completions", "csh"], &["'csh'", "possible values", "bash"]);
}

/// The option was ignored without a word.
#[test]
fn shards_that_a_store_cannot_take_on_are_said() {
    let directory = Directory::new("vain-shards");
    let data = directory.path("data");
    let own = ["--dir", &data, "--capacity", "64MiB"];
    Served::start(&directory, &[&own[..], &["--shards", "2"]].concat()).stop();
    let said = |shards: &str| {
        let mut program = interruptible();
        program.args(["serve", "--memory", "64MiB", "--port", ""]);
        program.args(["--unix", &directory.path("socket"), "--buffer-directory"]);
        program.arg(&directory.0).args(own).args(["--shards", shards]);
        let mut child =
            program.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        let mut first = [0; 9];
        let output = child.stdout.as_mut().expect("it is piped");
        output.read_exact(&mut first).expect("it listens");
        let pid = nix::unistd::Pid::from_raw(child.id() as i32);
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).expect("it runs");
        let output = child.wait_with_output().expect("it ends");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let text = said("4");
    assert!(text.contains("`shards` = 4 has no effect: the store was made with 2"), "{text}");
    let text = said("2");
    assert!(!text.contains("no effect"), "{text}");
}

/// A bench left its keys in the database that people use, and drove the server out of memory.
#[test]
fn a_bench_takes_an_empty_database_of_a_server_and_leaves_it_empty() {
    let directory = Directory::new("own-database");
    let data = directory.path("data");
    let server = Served::start(&directory, &["--dir", &data, "--capacity", "64MiB"]);
    let mut client = server.client();
    assert_eq!(client.call(&[b"SET", b"mine", b"1"]), "+OK");
    let socket = format!("unix:{}", directory.path("socket"));
    let bench = ["bench", "load", "--keys", "100", "--value-size", "10", "--rounds", "1"];
    let output = entresol(&[&bench[..], &["--target", &socket]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(client.call(&[b"DBSIZE"]), ":1");
    assert_eq!(client.call(&[b"SELECT", b"15"]), "+OK");
    assert_eq!(client.call(&[b"DBSIZE"]), ":0");

    assert_eq!(client.call(&[b"SET", b"mine", b"1"]), "+OK");
    let taken = [&bench[..], &["--target", &socket]].concat();
    refused_with(&taken, &["expected an empty database", "found keys in it: 1"]);
    let named = format!("{socket}?db=16");
    refused_with(&[&bench[..], &["--target", &named]].concat(), &["refuses database 16"]);
    assert_eq!(client.call(&[b"GET", b"mine"]), "1");
}

#[test]
fn an_interrupted_bench_empties_its_database() {
    let directory = Directory::new("interrupted-database");
    let data = directory.path("data");
    let server = Served::start(&directory, &["--dir", &data, "--capacity", "64MiB"]);
    let mut client = server.client();
    assert_eq!(client.call(&[b"SELECT", b"15"]), "+OK");
    let socket = format!("unix:{}", directory.path("socket"));
    let mut child = interruptible()
        .args(["bench", "ycsb-a", "--keys", "1000", "--value-size", "10", "--seconds", "1000"])
        .args(["--rounds", "1", "--target", &socket])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    while client.call(&[b"DBSIZE"]) == ":0" {
        assert!(child.try_wait().expect("it is ours").is_none(), "it ended too early");
        std::thread::yield_now();
    }
    let pid = nix::unistd::Pid::from_raw(child.id() as i32);
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).expect("it runs");
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    assert_eq!(client.call(&[b"DBSIZE"]), ":0");
}

#[test]
fn a_database_is_named_by_the_address_or_by_the_space() {
    let directory = Directory::new("named-database");
    let data = directory.path("data");
    let server = Served::start(&directory, &["--dir", &data, "--capacity", "64MiB"]);
    let mut client = server.client();
    let csv = directory.file("a.csv", "k,v\nx,1\n").display().to_string();
    let socket = format!("unix:{}?db=3", directory.path("socket"));
    let load = ["load", &csv, "--key", "k", "--target", &socket];
    assert!(entresol(&load).status.success());
    assert_eq!(client.call(&[b"SELECT", b"3"]), "+OK");
    assert_eq!(client.call(&[b"DBSIZE"]), ":1");
    assert!(entresol(&[&load[..], &["--space", "3"]].concat()).status.success());
    let differ = ["names database 3", "--space names 4"];
    refused_with(&[&load[..], &["--space", "4"]].concat(), &differ);
}

/// The command waited for the end of the input without a word, and the terminal showed the
/// password.
#[test]
fn a_terminal_is_asked_for_a_password_twice_and_does_not_show_it() {
    let run = |typed: &str| {
        let mut child = Command::new("script")
            .args(["--quiet", "--return", "--command"])
            .arg(format!("'{PROGRAM}' user add ann"))
            .arg("/dev/null")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a terminal can be had");
        let mut input = child.stdin.take().expect("it is piped");
        input.write_all(typed.as_bytes()).expect("it takes the password");
        let output = child.wait_with_output().expect("it ends");
        (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let (made, shown) = run("s3cret\ns3cret\n");
    assert!(made && shown.contains("Password of ann: "), "{shown}");
    assert!(shown.lines().any(|line| line.starts_with("ann ")), "{shown}");
    let (made, shown) = run("s3cret\nother\n");
    assert!(!made && shown.contains("the two passwords differ"), "{shown}");
}
