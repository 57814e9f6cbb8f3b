//! The backing that is an NBD server, against nbdkit: its styles, its limits, its filters.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use entresol_sim::Random;
use entresol_volume::backing::nbd::{NbdBacking, NbdOptions};
use entresol_volume::backing::{Backing, BackingRequest};

use crate::model::{Model, Seed, perform, seeds};
use crate::scratch::Scratch;

const BYTES: usize = 2 << 20;

/// A running nbdkit. It ends with the value.
struct Nbdkit {
    scratch: Scratch,
    arguments: Vec<String>,
    child: Child,
}

impl Nbdkit {
    fn start(arguments: &[&str]) -> Nbdkit {
        let scratch = Scratch::new("nbdkit");
        fs::write(scratch.path().join("disk"), vec![0; BYTES]).unwrap();
        let folder = scratch.path().display().to_string();
        let arguments = arguments.iter().map(|text| text.replace("FOLDER", &folder));
        let arguments: Vec<String> = arguments.collect();
        let child = run(&scratch, &arguments);
        Nbdkit { scratch, arguments, child }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    fn uri(&self) -> String {
        format!("nbd+unix:///?socket={}", self.path("socket").display())
    }

    fn open(&self) -> NbdBacking {
        NbdBacking::open(&self.uri(), &NbdOptions::default()).unwrap()
    }

    /// `kill -9`, and another one in its place.
    fn kill_and_restart(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.child = run(&self.scratch, &self.arguments);
    }
}

impl Drop for Nbdkit {
    fn drop(&mut self) {
        let _either_way = self.child.kill();
        let _ended = self.child.wait();
    }
}

/// Starts nbdkit and waits until it listens.
fn run(scratch: &Scratch, arguments: &[String]) -> Child {
    let (socket, ready) = (scratch.path().join("socket"), scratch.path().join("ready"));
    let _left = (fs::remove_file(&socket), fs::remove_file(&ready));
    let mut child = Command::new("nbdkit")
        .args(["--foreground", "--exit-with-parent", "--log=null", "--unix"])
        .arg(&socket)
        .arg("--pidfile")
        .arg(&ready)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("nbdkit is installed (see Makefile)");
    // It writes its number once it listens.
    while fs::read(&ready).map_or(0, |text| text.len()) == 0 {
        assert!(child.try_wait().unwrap().is_none(), "nbdkit ended: {arguments:?}");
        std::thread::yield_now();
    }
    child
}

#[test]
fn every_style_and_limit_of_a_server_is_kept_to() {
    let file = "file=FOLDER/disk";
    let policy = ["--filter=blocksize-policy", "file", file, "blocksize-minimum=4096"];
    let mut strict = policy.to_vec();
    strict.extend([
        "blocksize-maximum=65536",
        "blocksize-preferred=4096",
        "blocksize-error-policy=error",
    ]);
    let servers: [&[&str]; 5] = [
        &["file", file],
        &["--no-sr", "file", file],
        &["--mask-handshake=0", "file", file],
        &["--filter=nozero", "--filter=fua", "file", file, "zeromode=none", "fuamode=emulate"],
        &strict,
    ];
    for arguments in servers {
        let nbdkit = Nbdkit::start(arguments);
        let mut backing = nbdkit.open();
        let unit = if arguments == strict { 4096 } else { 1 };
        assert_eq!(backing.description().alignment, unit, "{arguments:?}");
        let mut model = Model::new(vec![0; BYTES], 1);
        model.length_max = 60_000;
        model.exercise(&mut backing, 300);
        drop(backing);
        assert!(fs::read(nbdkit.path("disk")).unwrap() == model.bytes, "{arguments:?}");
    }
}

#[test]
fn requests_outlast_a_server_that_is_killed_and_started_again_under_load() {
    for seed in seeds().into_iter().take(4) {
        let _seed = Seed(seed);
        let mut nbdkit =
            Nbdkit::start(&["--filter=delay", "file", "file=FOLDER/disk", "wdelay=1ms"]);
        let mut backing = nbdkit.open();
        let mut model = Model::new(vec![0; BYTES], seed);
        for _ in 0..5 {
            model.exercise(&mut backing, 60);
            model.begin_apart(&mut backing, 40);
            nbdkit.kill_and_restart();
            model.drain(&mut backing);
        }
        perform(&mut backing, BackingRequest::Flush).unwrap();
        assert!(fs::read(nbdkit.path("disk")).unwrap() == model.bytes);
    }
}

#[test]
fn what_a_failing_server_does_answer_is_right() {
    let nbdkit = Nbdkit::start(&[
        "--filter=error",
        "file",
        "file=FOLDER/disk",
        "error-pread-rate=30%",
        "error-pread=EIO",
    ]);
    let mut bytes = vec![0; BYTES];
    Random::new(7).fill(&mut bytes);
    fs::write(nbdkit.path("disk"), &bytes).unwrap();
    let mut backing = nbdkit.open();
    let (mut failed, mut right) = (0, 0);
    for block in 0..(BYTES / 4096) {
        let offset = block * 4096;
        let read = BackingRequest::Read { offset: offset as u64, length: 4096 };
        match perform(&mut backing, read) {
            Ok(found) => {
                assert!(found == bytes[offset..offset + 4096]);
                right += 1;
            }
            Err(_) => failed += 1,
        }
    }
    assert!(failed > 50 && right > 200, "{failed} failed, {right} were right");
}

#[test]
fn a_server_that_hangs_fails_requests_in_time_and_serves_again_when_it_goes_on() {
    let nbdkit = Nbdkit::start(&[
        "--filter=pause",
        "file",
        "file=FOLDER/disk",
        "pause-control=FOLDER/pause",
    ]);
    let options = NbdOptions {
        connect_timeout: Duration::from_secs(5),
        request_timeout: Duration::from_millis(100),
        give_up_after: Duration::from_millis(400),
    };
    let mut backing = NbdBacking::open(&nbdkit.uri(), &options).unwrap();
    let read = BackingRequest::Read { offset: 0, length: 4096 };
    perform(&mut backing, read.clone()).unwrap();
    let mut control = UnixStream::connect(nbdkit.path("pause")).unwrap();
    let mut answer = [0];
    control.write_all(b"p").unwrap();
    control.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"P");
    let error = perform(&mut backing, read.clone()).unwrap_err();
    assert!(error.to_string().contains("no answer within"), "{error}");
    control.write_all(b"r").unwrap();
    control.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"R");
    while perform(&mut backing, read.clone()).is_err() {}
}
