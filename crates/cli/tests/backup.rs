//! `entresol backup` and `entresol restore`, against a server in the test that answers `BACKUP`
//! with an image in memory.

#[expect(dead_code, reason = "these tests need none of the files and refusals")]
mod support;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};

use support::{Directory, entresol, json};

const SEGMENT_BYTES: usize = 1 << 20;
const SUPERBLOCK_BYTES: usize = 1 << 16;
const SEGMENTS: usize = 6;

/// What the server is to do when so many commands of a kind came.
type Ends = Box<dyn FnMut() + Send>;

/// A server of one image. Every connection is served by a thread.
#[derive(Clone)]
struct Fake {
    device: Arc<Vec<u8>>,
    /// Lines of the commands that came.
    said: Arc<Mutex<Vec<String>>>,
    /// Replies that the image is given up from this command on.
    broken_at: Option<&'static str>,
    /// Called before the first command that begins so is answered.
    at: Option<(&'static str, Arc<Mutex<Ends>>)>,
    address: String,
}

impl Fake {
    fn start(broken_at: Option<&'static str>, at: Option<(&'static str, Ends)>) -> Fake {
        let mut device = vec![0; 2 * SUPERBLOCK_BYTES + SEGMENTS * SEGMENT_BYTES];
        for (index, byte) in device[2 * SUPERBLOCK_BYTES..].iter_mut().enumerate() {
            *byte = ((index as u64 / 8).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8;
        }
        // The last one is open, and half full.
        let half = device.len() - SEGMENT_BYTES / 2;
        device[half..].fill(0);
        for at in [0, SUPERBLOCK_BYTES] {
            device[at..at + 5].copy_from_slice(b"super");
        }
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = format!("redis://{}", listener.local_addr().expect("it has an address"));
        let at = at.map(|(command, ends)| (command, Arc::new(Mutex::new(ends))));
        let said = Arc::default();
        let fake = Fake { device: Arc::new(device), said, broken_at, at, address };
        let server = fake.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // A client that is killed ends its connection.
                drop(server.serve(stream));
            }
        });
        fake
    }

    fn serve(&self, stream: TcpStream) -> std::io::Result<()> {
        let mut input = BufReader::new(stream.try_clone()?);
        let mut output = stream;
        loop {
            let words = command(&mut input)?;
            let line = words.join(" ");
            if let Some((command, ends)) = &self.at
                && line.starts_with(command)
            {
                (ends.lock().expect("nobody failed"))();
            }
            self.said.lock().expect("nobody failed").push(line.clone());
            let is_broken = self.broken_at.is_some_and(|from| line.starts_with(from));
            if is_broken {
                output.write_all(b"-BACKUPBROKEN no segment is free\r\n")?;
                continue;
            }
            let number = |index: usize| words[index].parse::<usize>().expect("it is a number");
            match words[1].as_str() {
                "BEGIN" => bulk(&mut output, self.description().as_bytes())?,
                "READ" => {
                    let from = number(3) + number(4);
                    bulk(&mut output, &self.device[from..from + number(5)])?;
                }
                _ => output.write_all(b"+OK\r\n")?,
            }
        }
    }

    fn description(&self) -> String {
        let mut superblock = "00".repeat(SUPERBLOCK_BYTES);
        superblock.replace_range(..10, "7375706572");
        let segments: Vec<serde_json::Value> = (0..SEGMENTS)
            .map(|number| {
                let (at, sealed) = (2 * SUPERBLOCK_BYTES + number * SEGMENT_BYTES, number + 1);
                let sealed = sealed < SEGMENTS;
                let bytes = if sealed { SEGMENT_BYTES } else { SEGMENT_BYTES / 2 };
                serde_json::json!({"at": at, "sequence": 7 + number, "bytes": bytes,
                                   "sealed": sealed})
            })
            .collect();
        serde_json::json!({
            "snapshot": 1, "store": "00000000000057f0", "device_bytes": self.device.len(),
            "segment_bytes": SEGMENT_BYTES, "superblock": superblock,
            "superblock_bytes": SUPERBLOCK_BYTES, "segments": segments,
        })
        .to_string()
    }

    /// How many segments were read, each from its beginning on.
    fn reads(&self) -> usize {
        let said = self.said.lock().expect("nobody failed");
        let begins =
            |line: &&String| line.starts_with("BACKUP READ") && line.split(' ').nth(4) == Some("0");
        said.iter().filter(begins).count()
    }
}

fn command(input: &mut dyn BufRead) -> std::io::Result<Vec<String>> {
    let length = |input: &mut dyn BufRead| -> std::io::Result<usize> {
        let mut line = String::new();
        if input.read_line(&mut line)? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        Ok(line.trim_end()[1..].parse::<usize>().expect("it is a length"))
    };
    let mut words = Vec::new();
    for _ in 0..length(input)? {
        let mut word = vec![0; length(input)? + 2];
        input.read_exact(&mut word)?;
        word.truncate(word.len() - 2);
        words.push(String::from_utf8(word).expect("it is text"));
    }
    Ok(words)
}

fn bulk(output: &mut TcpStream, bytes: &[u8]) -> std::io::Result<()> {
    write!(output, "${}\r\n", bytes.len())?;
    output.write_all(bytes)?;
    output.write_all(b"\r\n")
}

fn back_up(fake: &Fake, place: &str) -> Output {
    entresol(&["backup", "--from", &fake.address, "--to", place, "--json"])
}

/// Demands that the newest backup of `place` is the fake's device.
fn demand_restores(fake: &Fake, directory: &Directory, place: &str) {
    let target = directory.path("restored");
    json(&entresol(&["restore", "--from", place, "--dir", &target, "--json"]));
    let file = directory.0.join("restored/entresol.data");
    assert!(fs::read(&file).expect("it is there") == *fake.device, "the bytes differ");
    fs::remove_dir_all(target).expect("it can be removed");
}

fn backups(place: &str) -> usize {
    json(&entresol(&["backup", "--list", place, "--json"]))["backups"]
        .as_array()
        .expect("a list")
        .len()
}

#[test]
fn a_restored_file_equals_the_servers_image_and_a_second_backup_reads_what_is_open() {
    let directory = Directory::new("backup-trip");
    let place = directory.path("place");
    let fake = Fake::start(None, None);
    let made = json(&back_up(&fake, &place));
    assert_eq!((made["segments"].as_u64(), made["segments_new"].as_u64()), (Some(6), Some(6)));
    assert_eq!(fake.reads(), 6);
    demand_restores(&fake, &directory, &place);
    let made = json(&back_up(&fake, &place));
    assert_eq!(made["segments_there"].as_u64(), Some(5));
    // The open segment, and the newest sealed one, to see that the store is the same.
    assert_eq!(fake.reads(), 6 + 2);
    let kept = json(&entresol(&["backup", "--to", &place, "--keep", "1", "--json"]));
    assert_eq!(kept["backups_removed"].as_array().map(Vec::len), Some(1));
    demand_restores(&fake, &directory, &place);
    let verified = json(&entresol(&["backup", "--verify", &place, "--json"]));
    assert_eq!((verified["backups"].as_u64(), verified["objects"].as_u64()), (Some(1), Some(6)));
}

#[test]
fn an_image_that_the_server_gives_up_ends_with_1_and_leaves_no_backup() {
    for command in ["BACKUP BEGIN", "BACKUP READ", "BACKUP DONE", "BACKUP END"] {
        let directory = Directory::new("backup-broken");
        let place = directory.path("place");
        let output = back_up(&Fake::start(Some(command), None), &place);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{command}: {said}");
        assert!(said.contains("Try again") && said.contains("no segment is free"), "{said}");
        assert_eq!(backups(&place), 0);
    }
}

#[test]
fn damage_is_named_and_nothing_is_put_in_place() {
    let directory = Directory::new("backup-damage");
    let place = directory.path("place");
    json(&back_up(&Fake::start(None, None), &place));
    let segments = directory.0.join("place/segments/00000000000057f0");
    let file = fs::read_dir(segments).expect("it is there").next().expect("it has files");
    let path = file.expect("it can be read").path();
    let mut bytes = fs::read(&path).expect("it can be read");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x10;
    fs::write(&path, bytes).expect("it can be written");
    let name = path.file_name().expect("it has a name").to_string_lossy().into_owned();
    let target = directory.path("restored");
    for words in
        [&["backup", "--verify", &place][..], &["restore", "--from", &place, "--dir", &target]]
    {
        let output = entresol(words);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{words:?}: {said}");
        assert!(said.contains(&name), "{words:?}: {said}");
    }
    assert_eq!(fs::read_dir(&target).expect("it was made").count(), 0);
}

/// The client is killed as the server hears a command, so the moment is the same every time.
#[test]
fn a_client_that_is_killed_in_any_phase_leaves_whole_backups_and_the_next_goes_on() {
    for command in ["BACKUP BEGIN", "BACKUP READ", "BACKUP DONE", "BACKUP END"] {
        let directory = Directory::new("backup-kill");
        let place = directory.path("place");
        json(&back_up(&Fake::start(None, None), &place));
        let child: Arc<Mutex<Option<Child>>> = Arc::default();
        let killed = Arc::clone(&child);
        let ends: Ends = Box::new(move || {
            if let Some(mut child) = killed.lock().expect("nobody failed").take() {
                child.kill().expect("it runs");
                child.wait().expect("it ends");
            }
        });
        let fake = Fake::start(None, Some((command, ends)));
        {
            // Held while it starts, so that the server finds whom to kill.
            let mut child = child.lock().expect("nobody failed");
            let program = Command::new(env!("CARGO_BIN_EXE_entresol"))
                .args(["backup", "--from", &fake.address, "--to", &place])
                .stderr(Stdio::null())
                .stdout(Stdio::null())
                .spawn();
            *child = Some(program.expect("it starts"));
        }
        while child.lock().expect("nobody failed").is_some() {
            std::thread::yield_now();
        }
        assert_eq!(backups(&place), 1, "killed at {command}");
        json(&entresol(&["backup", "--verify", &place, "--json"]));
        json(&back_up(&fake, &place));
        assert_eq!(backups(&place), 2);
        demand_restores(&fake, &directory, &place);
    }
}
