//! What strangers get of a server: its sockets are found from outside, everything that can be asked
//! is asked without credentials, and what answers is what the guide on security names.

#[path = "support/interruptible.rs"]
mod interruptible;
#[expect(dead_code, reason = "these tests run no command to its end")]
mod support;

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use interruptible::interruptible;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use support::Directory;

const GUIDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guides/security.md");
const COMMANDS: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/resp-commands.md");

/// A row of the guide's table.
#[derive(Debug)]
struct Row {
    port: String,
    reached_from: String,
    answers: BTreeSet<String>,
}

/// The rows of `program`.
fn rows(program: &str) -> Vec<Row> {
    let guide = fs::read_to_string(GUIDE).expect("the guide is there");
    let table = guide.lines().skip_while(|line| !line.starts_with("| port | speaks "));
    let rows = table.skip(2).take_while(|line| line.starts_with('|')).map(|line| {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        Row {
            port: words(cells[0]).remove(0),
            reached_from: cells[2].to_owned(),
            answers: words(cells[3]).into_iter().collect(),
        }
    });
    let of_program = rows.filter_map(|row| {
        let port = row.port.strip_prefix(program)?.strip_prefix(" --")?.to_owned();
        Some(Row { port, ..row })
    });
    of_program.collect()
}

/// The words in backticks.
fn words(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Door {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

/// A server that is killed when dropped.
struct Running {
    child: Child,
    /// The words of its first line: what each socket is, and where.
    said: Vec<(String, String)>,
}

impl Running {
    fn start(mut program: Command) -> Running {
        let child = program.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = child.spawn().expect("the server starts");
        let mut line = String::new();
        let output = child.stdout.as_mut().expect("it is piped");
        BufReader::new(output).read_line(&mut line).expect("it is text");
        assert!(line.starts_with("listening"), "{line:?}");
        let pairs = line.split_whitespace().filter_map(|word| word.split_once('='));
        let said = pairs.map(|(what, place)| (what.to_owned(), place.to_owned())).collect();
        Running { child, said }
    }

    /// The socket of the option `--what`, as the server itself says.
    fn door(&self, what: &str) -> Door {
        let key = what.strip_suffix("-port").unwrap_or(what);
        let found = self.said.iter().find(|(said, _)| said == key);
        let (_, place) = found.unwrap_or_else(|| panic!("no {what} in {:?}", self.said));
        match place.parse() {
            Ok(port) => Door::Tcp(SocketAddr::from(([127, 0, 0, 1], port))),
            Err(_) => Door::Unix(PathBuf::from(place)),
        }
    }

    /// Stops it cleanly, so that no write buffers stay behind.
    fn stop(mut self) {
        kill(Pid::from_raw(self.child.id().cast_signed()), Signal::SIGTERM).expect("it runs");
        assert!(self.child.wait().expect("it ends").success());
    }

    /// All that the system knows it to listen on.
    fn doors(&self) -> BTreeSet<Door> {
        let id = self.child.id();
        let inodes: BTreeSet<String> = fs::read_dir(format!("/proc/{id}/fd"))
            .expect("it runs")
            .filter_map(|entry| fs::read_link(entry.ok()?.path()).ok())
            .filter_map(|link| {
                let inode = link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?;
                Some(inode.to_owned())
            })
            .collect();
        let table = |name: &str| {
            let text = fs::read_to_string(format!("/proc/{id}/net/{name}")).unwrap_or_default();
            let rows = text.lines().skip(1).map(|row| row.split_whitespace());
            rows.map(|row| row.map(str::to_owned).collect::<Vec<_>>()).collect::<Vec<_>>()
        };
        for other in ["udp", "udp6", "raw", "raw6", "udplite", "packet"] {
            let found = table(other).into_iter().find(|row| row.iter().any(|w| inodes.contains(w)));
            assert!(found.is_none(), "{other}: {found:?}");
        }
        let listens = |row: &Vec<String>| row[3] == "0A" && inodes.contains(&row[9]);
        let ipv6 = table("tcp6").into_iter().find(listens);
        assert!(ipv6.is_none(), "{ipv6:?}");
        let tcp = table("tcp").into_iter().filter(listens).map(|row| Door::Tcp(address(&row[1])));
        // The flag says that it takes connections.
        let takes = |row: &Vec<String>| row[3] == "00010000" && inodes.contains(&row[6]);
        let unix = table("unix").into_iter().filter(takes);
        tcp.chain(unix.map(|row| Door::Unix(PathBuf::from(&row[7])))).collect()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// An address as the kernel writes it: a number of the machine's own order, which is little-endian
/// wherever this runs.
fn address(text: &str) -> SocketAddr {
    let (ip, port) = text.split_once(':').expect("an address has a port");
    let ip = u32::from_str_radix(ip, 16).expect("it is a number").to_le_bytes();
    SocketAddr::from((ip, u16::from_str_radix(port, 16).expect("it is a number")))
}

trait Wire: Read + Write {}
impl<T: Read + Write> Wire for T {}

fn connect(door: &Door) -> Box<dyn Wire> {
    // An answer that never comes fails the test.
    let patience = Some(Duration::from_secs(60));
    match door {
        Door::Tcp(address) => {
            let stream = TcpStream::connect(address).expect("it listens");
            stream.set_read_timeout(patience).expect("it is not zero");
            Box::new(stream)
        }
        Door::Unix(path) => {
            let stream = UnixStream::connect(path).expect("it listens");
            stream.set_read_timeout(patience).expect("it is not zero");
            Box::new(stream)
        }
    }
}

/// Holds the sockets of `running` against the table, and what `answered` finds at each.
fn hold_against_guide(
    program: &str,
    running: &Running,
    answered: impl Fn(&Row, &Door) -> BTreeSet<String>,
) {
    let rows = rows(program);
    let named: BTreeSet<Door> = rows.iter().map(|row| running.door(&row.port)).collect();
    assert_eq!(running.doors(), named, "{program}: sockets, and what the guide names");
    for row in &rows {
        let door = running.door(&row.port);
        match &door {
            Door::Tcp(address) => {
                assert!(address.ip().is_loopback(), "{row:?}");
                assert_eq!(row.reached_from, "loopback");
            }
            Door::Unix(path) => {
                let mode = fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
                assert_eq!(row.reached_from, format!("mode `{mode:o}`"), "{path:?}");
            }
        }
        assert_eq!(answered(row, &door), row.answers, "{program} --{}", row.port);
    }
}

/// The commands of RESP that are answered otherwise than by a demand for a password.
fn answered_commands(door: &Door) -> BTreeSet<String> {
    let text = fs::read_to_string(COMMANDS).expect("the reference is there");
    let rows = text.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` | "));
    let commands: Vec<(String, usize)> = rows
        .map(|(name, rest)| {
            let count = rest.split(' ').next().and_then(|count| count.parse().ok());
            (name.to_owned(), count.unwrap_or(0))
        })
        .collect();
    assert!(commands.len() > 100, "{commands:?}");
    let refused = |(name, count): &(String, usize)| {
        let mut stream = connect(door);
        // A number is as good as any argument that a command may look at first.
        let words: Vec<&str> = name.split(' ').chain(std::iter::repeat_n("1", *count)).collect();
        let mut out = format!("*{}\r\n", words.len());
        words.iter().for_each(|word| out.push_str(&format!("${}\r\n{word}\r\n", word.len())));
        stream.write_all(out.as_bytes()).expect("the server takes it");
        let mut reply = String::new();
        BufReader::new(stream).read_line(&mut reply).expect("it answers");
        const NOBODY: &str = "NOAUTH Authentication required.\r\n";
        // A transaction says why it is over; subcommands have rows of their own.
        reply.strip_prefix('-') == Some(NOBODY)
            || (reply.starts_with("-EXECABORT ") && reply.ends_with(NOBODY))
            || reply.starts_with("-ERR unknown subcommand '1'")
    };
    commands.into_iter().filter(|one| !refused(one)).map(|(name, _)| name).collect()
}

/// The paths of HTTP that are answered with something.
fn answered_paths(door: &Door) -> BTreeSet<String> {
    let paths = [
        "/",
        "/health",
        "/health/live",
        "/health/ready",
        "/health/",
        "/metrics",
        "/stats",
        "/console/now",
        "/console/style.css",
        "/console/script.js",
        "/console/key?space=0&key=k",
        "/console/sign-in",
        "/console/sign-out",
        "/?span=day",
        "//stats",
        "/stats/",
        "/STATS",
        "/%73tats",
        "/stats?x",
        "/health/../stats",
        "/health/..%2fstats",
        "/health?/stats",
        "/healthy",
        "http://x/stats",
        "https://x/metrics",
        "/nothing",
        "*",
    ];
    let answered = |path: &&str| {
        let mut stream = connect(door);
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("the server takes it");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it is whole");
        let is_refused = answer.starts_with("HTTP/1.1 4");
        assert!(is_refused || answer.starts_with("HTTP/1.1 200"), "{path}: {answer}");
        // A query changes nothing of health.
        !is_refused && !path.contains('?')
    };
    paths.into_iter().filter(answered).map(str::to_owned).collect()
}

/// Options of a handshake of NBD, and data that each takes.
fn options() -> Vec<(&'static str, u32, Vec<u8>)> {
    let name = [&3_u32.to_be_bytes()[..], b"vm1"].concat();
    let with = |count: &[u8]| [&name[..], count].concat();
    vec![
        ("EXPORT_NAME", 1, b"vm1".to_vec()),
        ("ABORT", 2, Vec::new()),
        ("LIST", 3, Vec::new()),
        ("PEEK_EXPORT", 4, b"vm1".to_vec()),
        ("STARTTLS", 5, Vec::new()),
        ("INFO", 6, with(&[0, 0])),
        ("GO", 7, with(&[0, 0])),
        ("STRUCTURED_REPLY", 8, Vec::new()),
        ("LIST_META_CONTEXT", 9, with(&[0; 4])),
        ("SET_META_CONTEXT", 10, with(&[0; 4])),
        ("EXTENDED_HEADERS", 11, Vec::new()),
        ("NONSENSE", 4711, Vec::new()),
    ]
}

/// The options that are answered with something else than that TLS comes first.
fn answered_options(door: &Door) -> BTreeSet<String> {
    const TLS_REQUIRED: u32 = 1 << 31 | 5;
    let answered = |(name, number, data): &(&str, u32, Vec<u8>)| {
        let mut stream = connect(door);
        let mut greeting = [0; 18];
        stream.read_exact(&mut greeting).expect("it greets");
        assert_eq!(&greeting[..8], b"NBDMAGIC");
        let mut out = 3_u32.to_be_bytes().to_vec();
        out.extend_from_slice(b"IHAVEOPT");
        out.extend_from_slice(&number.to_be_bytes());
        out.extend_from_slice(&(data.len() as u32).to_be_bytes());
        out.extend_from_slice(data);
        stream.write_all(&out).expect("the server takes it");
        let mut reply = [0; 20];
        match stream.read_exact(&mut reply) {
            Ok(()) => {}
            // It has no other way to refuse.
            Err(_) => {
                assert_eq!(*name, "EXPORT_NAME");
                return false;
            }
        }
        let kind = u32::from_be_bytes([reply[12], reply[13], reply[14], reply[15]]);
        if *name == "STARTTLS" {
            // What follows is TLS: who goes on in plain gets nothing.
            let go_on = [&b"IHAVEOPT"[..], &3_u32.to_be_bytes(), &[0; 4]].concat();
            drop(stream.write_all(&go_on));
            let mut rest = Vec::new();
            drop(stream.read_to_end(&mut rest));
            assert!(!rest.windows(3).any(|three| three == b"vm1"), "{rest:?}");
        }
        kind != TLS_REQUIRED
    };
    options().into_iter().filter(|one| answered(one)).map(|(name, ..)| name.to_owned()).collect()
}

/// A token, and a certificate that is its own authority, in files of `directory`.
fn credentials(directory: &Directory) -> (String, String, String) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("it is made");
    let file = |name: &str, text: &str| directory.file(name, text).display().to_string();
    let token = file("token", "0123456789abcdef\n");
    (token, file("cert", &made.cert.pem()), file("key", &made.signing_key.serialize_pem()))
}

#[test]
fn strangers_get_of_a_server_what_the_guide_names_and_nothing_else() {
    let directory = Directory::new("ports");
    let (token, ..) = credentials(&directory);
    let line = entresol_server::user_line("default", "secret", "+@all ~*").expect("a user");
    let users = directory.file("users", &line).display().to_string();
    let mut program = interruptible();
    program.args(["serve", "--memory", "64MiB", "--capacity", "160MiB", "--durability", "memory"]);
    program.args(["--dir", &directory.path("data"), "--port", "0", "--admin-port", "0"]);
    program.args(["--unix", &directory.path("resp"), "--users", &users, "--admin-token", &token]);
    let running = Running::start(program);
    hold_against_guide("serve", &running, |row, door| match row.port.as_str() {
        "admin-port" => answered_paths(door),
        _ => answered_commands(door),
    });
    running.stop();
}

#[test]
fn strangers_get_of_volumes_what_the_guide_names_and_nothing_else() {
    let directory = Directory::new("volume-ports");
    let (token, cert, key) = credentials(&directory);
    let (cache, backing) = (directory.path("cache"), directory.path("backing"));
    let file = fs::File::create(&backing).expect("a file can be made");
    file.set_len(8 << 20).expect("it has room");
    let create = ["volume", "create", "vm1", "--cache", &cache, "--capacity", "64MiB"];
    let mut made = Command::new(env!("CARGO_BIN_EXE_entresol"));
    let made = made.args(create).args(["--backing", &backing]).output().expect("it runs");
    assert!(made.status.success(), "{made:?}");
    let mut program = interruptible();
    program.args(["volume", "serve", "--cache", &cache, "--port", "0", "--admin-port", "0"]);
    program.args(["--unix", &directory.path("nbd"), "--admin-token", &token]);
    program.args(["--tls-cert", &cert, "--tls-key", &key, "--tls-client-ca", &cert]);
    let running = Running::start(program);
    hold_against_guide("volume serve", &running, |row, door| match row.port.as_str() {
        "admin-port" => answered_paths(door),
        "control" => {
            let Door::Unix(path) = door else { panic!("{door:?}") };
            assert!(answers_administrators(path));
            BTreeSet::new()
        }
        _ => answered_options(door),
    });
    running.stop();
}

fn answers_administrators(path: &Path) -> bool {
    let mut stream = UnixStream::connect(path).expect("it listens");
    stream.write_all(b"{\"command\":\"list\"}\n").expect("the server takes it");
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).expect("it answers");
    answer.contains("\"vm1\"")
}
