//! What a service manager hears from a server.

#[path = "support/interruptible.rs"]
mod interruptible;
#[expect(dead_code, reason = "these tests kill no server")]
#[path = "support/served.rs"]
mod served;
#[expect(dead_code, reason = "a server is started by what has a socket for it")]
mod support;

use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use served::Served;
use support::Directory;

/// The next word to the service manager that says something else than that the server lives.
fn heard(manager: &UnixDatagram) -> String {
    loop {
        let word = any_word(manager);
        if word != "WATCHDOG=1" {
            return word;
        }
    }
}

fn any_word(manager: &UnixDatagram) -> String {
    let mut word = [0; 200];
    let length = manager.recv(&mut word).expect("the server tells it");
    String::from_utf8_lossy(&word[..length]).trim_end().to_owned()
}

#[test]
fn it_hears_that_the_server_serves_lives_reloads_and_stops() {
    let directory = Directory::new("notified");
    let socket = directory.path("manager");
    let manager = UnixDatagram::bind(&socket).expect("it listens");
    manager.set_read_timeout(Some(Duration::from_secs(60))).expect("it is not zero");
    let mut program = interruptible::interruptible();
    program.env("NOTIFY_SOCKET", &socket).env("WATCHDOG_USEC", "100000");
    let data = directory.path("data");
    let options = ["--dir", &data, "--capacity", "160MiB", "--durability", "memory"];
    let served = Served::start_by(program, &directory, &options);
    assert_eq!(heard(&manager), "READY=1");
    assert_eq!(any_word(&manager), "WATCHDOG=1");
    kill(Pid::from_raw(served.pid().cast_signed()), Signal::SIGHUP).expect("it runs");
    let reloading = heard(&manager);
    assert!(reloading.starts_with("RELOADING=1\nMONOTONIC_USEC="), "{reloading}");
    assert_eq!(heard(&manager), "READY=1");
    served.stop();
    assert_eq!(heard(&manager), "STOPPING=1");
}
