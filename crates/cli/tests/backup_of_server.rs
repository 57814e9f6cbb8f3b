//! `entresol backup` of a server that runs, and `entresol restore`.

#[path = "support/interruptible.rs"]
mod interruptible;
#[path = "support/served.rs"]
mod served;
#[expect(dead_code, reason = "a server is started by what has a socket for it")]
mod support;

use std::fs;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use served::{Client, Served};
use support::{Directory, entresol, json};

const KEYS: u32 = 2_000;

fn set(client: &mut Client, key: u32, round: u32) {
    let (key, value) = (format!("k{key}"), format!("{round}:{}", "x".repeat(4_000)));
    assert_eq!(client.call(&[b"SET", key.as_bytes(), value.as_bytes()]), "+OK");
}

fn options(data: &str) -> [&str; 6] {
    ["--dir", data, "--capacity", "160MiB", "--durability", "memory"]
}

/// Rounds of the keys in a place, by their values as a restored server has them. A writer sets key
/// after key to one round after another, so that they are as of one moment if they fall once.
fn restored_rounds(directory: &Directory, place: &str) -> Vec<u32> {
    let data = directory.path("restored");
    json(&entresol(&["restore", "--from", place, "--dir", &data, "--json"]));
    let beside = Directory::new(&format!("{}-restored", directory.0.display()).replace('/', "-"));
    let served = Served::start(&beside, &options(&data));
    let mut client = served.client();
    let mut round = |key: u32| {
        let value = client.call(&[b"GET", format!("k{key}").as_bytes()]);
        value.split(':').next().and_then(|round| round.parse().ok()).expect("a round")
    };
    let rounds = (0..KEYS).map(&mut round).collect();
    served.stop();
    fs::remove_dir_all(&data).expect("it is there");
    rounds
}

/// Scheduling policies of a process's threads, by their names.
fn policies(process: u32) -> Vec<(String, String)> {
    let threads = fs::read_dir(format!("/proc/{process}/task")).expect("it runs");
    let policy = |folder: std::path::PathBuf| {
        let stat = fs::read_to_string(folder.join("stat")).expect("figures of a thread");
        let (name, fields) = stat.rsplit_once(") ").expect("a name");
        let name = name.split_once('(').expect("a name").1;
        // The policy is the 41st field, the first of these the third.
        (name.to_owned(), fields.split(' ').nth(41 - 3).expect("a policy").to_owned())
    };
    threads.map(|thread| policy(thread.expect("a thread").path())).collect()
}

#[test]
fn a_backup_of_idle_time_runs_only_while_nothing_else_wants_a_processor() {
    const SCHED_IDLE: &str = "5";
    let directory = Directory::new("backup-when-idle");
    let served = Served::start(&directory, &options(&directory.path("data")));
    // Once it has read a part of a snapshot, the thread that did so runs as it always will.
    let (from, place) = (format!("unix:{}", directory.path("socket")), directory.path("place"));
    json(&entresol(&["backup", "--from", &from, "--to", &place, "--idle", "--json"]));
    let of_server = policies(served.pid());
    assert!(of_server.contains(&("backup-reads".to_owned(), SCHED_IDLE.to_owned())));
    // What takes locks that clients wait for is not kept from running.
    let idle = of_server.iter().filter(|(_, policy)| policy == SCHED_IDLE).count();
    assert_eq!(idle, 1, "{of_server:?}");
    served.stop();
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let from = format!("redis://{}", silent.local_addr().expect("an address"));
    let mut waits = Command::new(env!("CARGO_BIN_EXE_entresol"))
        .args(["backup", "--from", &from, "--to", &place, "--idle"])
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    let connection = silent.accept().expect("it connects");
    let of_client = policies(waits.id());
    waits.kill().expect("it runs");
    waits.wait().expect("it ends");
    drop(connection);
    assert!(of_client.iter().all(|(_, policy)| policy == SCHED_IDLE), "{of_client:?}");
}

#[test]
fn a_backup_under_writes_is_of_one_moment_and_a_killed_one_is_none() {
    let directory = Directory::new("backup-of-server");
    let (data, place) = (directory.path("data"), directory.path("place"));
    let served = Served::start(&directory, &options(&data));
    let mut client = served.client();
    (0..KEYS).for_each(|key| set(&mut client, key, 1));
    let from = format!("unix:{}", directory.path("socket"));
    let ends = Arc::new(AtomicBool::new(false));
    let writer = {
        let ends = Arc::clone(&ends);
        std::thread::spawn(move || {
            for round in 2.. {
                for key in 0..KEYS {
                    if ends.load(Ordering::Relaxed) {
                        return round;
                    }
                    set(&mut client, key, round);
                }
            }
            0
        })
    };
    let mut before = 0;
    for _ in 0..3 {
        // One is killed at some moment: it is no backup, and holds nothing any more.
        let mut killed = Command::new(env!("CARGO_BIN_EXE_entresol"))
            .args(["backup", "--from", &from, "--to", &place])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        killed.kill().expect("it runs");
        killed.wait().expect("it ends");
        // Its snapshot ends once the server has seen that it is gone.
        let mut backup = entresol(&["backup", "--from", &from, "--to", &place, "--json"]);
        while String::from_utf8_lossy(&backup.stderr).contains("another snapshot") {
            backup = entresol(&["backup", "--from", &from, "--to", &place, "--json"]);
        }
        json(&backup);
        let rounds = restored_rounds(&directory, &place);
        let falls = rounds.windows(2).filter(|two| two[0] != two[1]).count();
        assert!(falls <= 1 && rounds[0] - rounds[rounds.len() - 1] <= 1, "{rounds:?}");
        assert!(rounds[0] >= before, "{before}, then {}", rounds[0]);
        before = rounds[0];
    }
    ends.store(true, Ordering::Relaxed);
    assert!(writer.join().expect("it wrote") > 1);
    let verified = json(&entresol(&["backup", "--verify", &place, "--json"]));
    assert_eq!(verified["backups"], 3, "{verified}");
    served.stop();
}
