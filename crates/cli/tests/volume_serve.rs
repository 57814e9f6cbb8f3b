//! Volumes as scripts make and serve them: the first line, what survives a restart, refusals.

#![expect(clippy::unwrap_used, reason = "a test stops where something fails")]

#[path = "support/interruptible.rs"]
mod interruptible;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use entresol_wire::nbd::{
    ClientHandshake, ClientOptions, ClientStep, Command as Asked, ReplyHeader, ReplyStyle, Request,
};
use interruptible::interruptible;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

const PROGRAM: &str = env!("CARGO_BIN_EXE_entresol");

struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Directory {
        let name = format!("entresol-volume-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Directory(path)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    /// Makes a volume of 8 MiB; what the command says, and whether it succeeded.
    fn create(&self, name: &str) -> (String, bool) {
        let backing = self.path(&format!("{name}.img"));
        std::fs::File::create(&backing).unwrap().set_len(8 << 20).unwrap();
        let words = [
            "volume",
            "create",
            name,
            "--cache",
            &self.path("cache"),
            "--capacity",
            "64MiB",
            "--backing",
            &backing,
            "--mode",
            "wb",
        ];
        let done = Command::new(PROGRAM).args(words).output().unwrap();
        let said = [done.stdout, done.stderr].concat();
        (String::from_utf8(said).unwrap(), done.status.success())
    }

    fn serve(&self) -> Served {
        self.serve_by(interruptible(), &[])
    }

    /// Serves by `program`, which is given its arguments and these options.
    fn serve_by(&self, mut program: Command, options: &[&str]) -> Served {
        let words = ["volume", "serve", "--cache", &self.path("cache"), "--unix"];
        let mut child = program
            .args(words)
            .args([&self.path("nbd"), "--port", "0"])
            .args(options)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Served { child, line, socket: self.0.join("nbd") }
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

struct Served {
    child: Child,
    line: String,
    socket: PathBuf,
}

impl Served {
    fn admin(&self) -> TcpStream {
        let port = self.line.split("admin=").nth(1).unwrap().trim();
        TcpStream::connect(format!("127.0.0.1:{port}")).unwrap()
    }

    /// What the HTTP interface answers by TLS to a client that trusts as `config` says.
    fn get_by_tls(&self, path: &str, config: &Arc<ClientConfig>) -> std::io::Result<String> {
        let name = ServerName::try_from("localhost").unwrap();
        let connection = ClientConnection::new(Arc::clone(config), name).unwrap();
        let mut stream = StreamOwned::new(connection, self.admin());
        write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    }

    /// What the HTTP interface answers to whoever shows `token`.
    fn get(&self, path: &str, token: &str) -> String {
        let mut stream = self.admin();
        let shown = format!("Authorization: Bearer {token}");
        write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\n{shown}\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn stop(mut self) {
        kill(Pid::from_raw(self.child.id().cast_signed()), Signal::SIGTERM).unwrap();
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A service manager that hears of a server.
struct ServiceWatch {
    socket: UnixDatagram,
    path: String,
}

impl ServiceWatch {
    fn new(directory: &Directory) -> ServiceWatch {
        let path = directory.path("manager");
        let socket = UnixDatagram::bind(&path).unwrap();
        // A word that never comes fails the test.
        socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        ServiceWatch { socket, path }
    }

    fn word(&self) -> String {
        let mut word = [0; 200];
        let length = self.socket.recv(&mut word).unwrap();
        String::from_utf8_lossy(&word[..length]).trim_end().to_owned()
    }

    /// The next word that says something else than that the server lives.
    fn other_word(&self) -> String {
        std::iter::repeat_with(|| self.word()).find(|word| word != "WATCHDOG=1").unwrap()
    }
}

/// Sends one request on a connection of its own; the bytes of a read.
fn ask(socket: &Path, export: &str, request: &Request, payload: &[u8]) -> Vec<u8> {
    call(&mut connect(socket, export), request, payload)
}

/// A client that agreed on simple replies.
fn connect(socket: &Path, export: &str) -> UnixStream {
    let mut stream = UnixStream::connect(socket).unwrap();
    let options = ClientOptions { style: ReplyStyle::Simple, ..ClientOptions::export(export) };
    let mut handshake = ClientHandshake::new(options);
    let (mut input, mut out) = (Vec::new(), Vec::new());
    loop {
        let step = handshake.step(&input, &mut out).unwrap();
        stream.write_all(&out).unwrap();
        out.clear();
        match step {
            ClientStep::Incomplete { .. } => {
                let mut piece = [0; 512];
                let length = stream.read(&mut piece).unwrap();
                assert!(length > 0, "the server hung up");
                input.extend_from_slice(&piece[..length]);
            }
            ClientStep::Continue { consumed } => drop(input.drain(..consumed)),
            ClientStep::Ready { .. } => return stream,
            other => panic!("{other:?}"),
        }
    }
}

/// Sends one request; the bytes of a read.
fn call(stream: &mut UnixStream, request: &Request, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    request.encode(ReplyStyle::Simple, &mut out).unwrap();
    out.extend_from_slice(payload);
    stream.write_all(&out).unwrap();
    let mut head = [0; 16];
    stream.read_exact(&mut head).unwrap();
    let found = ReplyHeader::decode(&head, ReplyStyle::Simple, 0).unwrap().unwrap().0;
    assert_eq!(found, ReplyHeader::Simple { cookie: request.cookie, error: None });
    let length = if request.command == Asked::Read.number() { request.length } else { 0 };
    let mut bytes = vec![0; length as usize];
    stream.read_exact(&mut bytes).unwrap();
    bytes
}

#[test]
fn volumes_are_served_and_found_again_after_a_restart() {
    let directory = Directory::new("restart");
    let (said, made) = directory.create("first");
    assert!(made && said.contains("first"), "{said}");
    let served = directory.serve();
    let has = |word: &str| served.line.split(' ').any(|found| found.starts_with(word));
    assert!(served.line.starts_with("listening ") && has("port=") && has("unix="));
    ask(&served.socket, "first", &Request::new(Asked::Write, 1, 5000, 4), b"kept");
    // The running server makes further volumes.
    let (said, made) = directory.create("second");
    assert!(made && said.contains("running server"), "{said}");
    ask(&served.socket, "second", &Request::new(Asked::Read, 2, 0, 4), b"");
    // Another server on the same cache is refused.
    let words = ["volume", "serve", "--unix", "/nowhere", "--cache"];
    let other = Command::new(PROGRAM).args(words).arg(directory.path("cache")).output().unwrap();
    let said = String::from_utf8_lossy(&other.stderr).into_owned();
    assert!(other.status.code() == Some(2) && said.contains("a server runs on"), "{said}");
    served.stop();
    let served = directory.serve();
    let read = Request::new(Asked::Read, 3, 4999, 6);
    assert_eq!(ask(&served.socket, "first", &read, b""), b"\0kept\0");
    served.stop();
    let (said, made) = directory.create("first");
    assert!(!made && said.contains("there is a volume named first already"), "{said}");
}

/// Where a shell lets programs have 64 files open, some fifty clients were taken and the next ones
/// left waiting; volumes of a cache with many were not exported.
#[test]
fn clients_are_taken_however_few_files_a_shell_lets_programs_open() {
    let directory = Directory::new("files");
    let (said, made) = directory.create("vm1");
    assert!(made, "{said}");
    let mut shell = Command::new("sh");
    shell.args(["-c", "ulimit -S -n 64 && exec \"$0\" \"$@\"", PROGRAM]);
    let served = directory.serve_by(shell, &[]);
    let connect = |_| UnixStream::connect(&served.socket).unwrap();
    let mut clients: Vec<UnixStream> = (0..100).map(connect).collect();
    for client in &mut clients {
        // A greeting that never comes fails the test.
        client.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let mut greeting = [0; 18];
        client.read_exact(&mut greeting).unwrap();
        assert_eq!(&greeting[..8], b"NBDMAGIC");
    }
    drop(clients);
    served.stop();
}

#[test]
fn figures_of_volumes_are_shown_to_whoever_shows_the_token() {
    let directory = Directory::new("token");
    let (said, made) = directory.create("vm1");
    assert!(made, "{said}");
    let file = directory.path("token");
    std::fs::write(&file, "0123456789abcdef\n").unwrap();
    let served =
        directory.serve_by(interruptible(), &["--admin-port", "0", "--admin-token", &file]);
    assert!(served.get("/metrics", "").starts_with("HTTP/1.1 401"));
    let shown = served.get("/metrics", "0123456789abcdef");
    assert!(shown.starts_with("HTTP/1.1 200"), "{shown}");
    assert!(served.get("/health/live", "").starts_with("HTTP/1.1 200"));
    served.stop();
}

/// It took a restart, which guests noticed.
#[test]
fn token_and_level_of_the_log_are_read_again_and_no_client_is_lost() {
    let directory = Directory::new("reload");
    let (said, made) = directory.create("vm1");
    assert!(made, "{said}");
    let (token, level, log) =
        (directory.path("token"), directory.path("level"), directory.path("log"));
    std::fs::write(&token, "0123456789abcdef\n").unwrap();
    std::fs::write(&level, "warn\n").unwrap();
    let manager = ServiceWatch::new(&directory);
    let mut shell = Command::new("sh");
    let redirected = "log=$1; shift; exec \"$0\" \"$@\" 2> \"$log\"";
    shell.args(["-c", redirected, PROGRAM, &log]).env("NOTIFY_SOCKET", &manager.path);
    let options = ["--admin-port", "0", "--admin-token", &token, "--log-level-file", &level];
    let served = directory.serve_by(shell, &options);
    assert_eq!(manager.other_word(), "READY=1");
    let mut client = connect(&served.socket, "vm1");
    call(&mut client, &Request::new(Asked::Write, 1, 0, 4), b"kept");
    let reload = || {
        kill(Pid::from_raw(served.child.id().cast_signed()), Signal::SIGHUP).unwrap();
        assert!(manager.other_word().starts_with("RELOADING=1"));
        assert_eq!(manager.other_word(), "READY=1");
        std::fs::read_to_string(&log).unwrap()
    };
    let opens = |word: &str| served.get("/stats", word).starts_with("HTTP/1.1 200");
    assert!(opens("0123456789abcdef") && !opens("fedcba9876543210"));
    // What cannot be used changes nothing.
    std::fs::write(&token, "short\n").unwrap();
    std::fs::write(&level, "loud\n").unwrap();
    let said = reload();
    assert!(opens("0123456789abcdef"));
    assert!(said.contains("`admin-token`") && said.contains("log level `loud` found"), "{said}");
    assert!(!said.contains("INFO"), "the level is warn: {said}");
    std::fs::write(&token, "fedcba9876543210\n").unwrap();
    std::fs::write(&level, "debug\n").unwrap();
    let said = reload();
    assert!(opens("fedcba9876543210") && !opens("0123456789abcdef"));
    assert!(said.contains("INFO entresol::volume::serve: the token of the HTTP"), "{said}");
    drop(connect(&served.socket, "vm1"));
    let read = Request::new(Asked::Read, 2, 0, 4);
    assert_eq!(call(&mut client, &read, b""), b"kept", "the client is still there");
    // An administrator changes the level, and the file takes it back.
    let set = ["volume", "log-level", "error", "--cache", &directory.path("cache")];
    let done = Command::new(PROGRAM).args(set).output().unwrap();
    assert!(done.status.success(), "{done:?}");
    drop(client);
    served.stop();
    let said = std::fs::read_to_string(&log).unwrap();
    assert_eq!(said.matches(" is served").count(), 1, "{said}");
    assert!(!said.contains("stopped"), "the level is error: {said}");
}

#[test]
fn figures_are_shown_by_tls_and_its_certificate_is_read_again() {
    let directory = Directory::new("admin-tls");
    let (said, made) = directory.create("vm1");
    assert!(made, "{said}");
    let (cert, key) = (directory.path("cert"), directory.path("key"));
    let first = certify(&cert, &key);
    let manager = ServiceWatch::new(&directory);
    let mut program = interruptible();
    program.env("NOTIFY_SOCKET", &manager.path);
    let options = ["--admin-port", "0", "--admin-tls-cert", &cert, "--admin-tls-key", &key];
    let served = directory.serve_by(program, &options);
    assert_eq!(manager.other_word(), "READY=1");
    let mut client = connect(&served.socket, "vm1");
    assert!(served.get_by_tls("/health/ready", &first).unwrap().starts_with("HTTP/1.1 200"));
    let metrics = served.get_by_tls("/metrics", &first).unwrap();
    assert!(metrics.contains("entresol_volume_exports{state=\"served\"} 1"), "{metrics}");
    let second = certify(&cert, &key);
    assert!(served.get_by_tls("/health", &first).is_ok(), "it is not read yet");
    kill(Pid::from_raw(served.child.id().cast_signed()), Signal::SIGHUP).unwrap();
    assert!(manager.other_word().starts_with("RELOADING=1"));
    assert_eq!(manager.other_word(), "READY=1");
    assert!(served.get_by_tls("/health", &first).is_err(), "the old one is shown");
    assert!(served.get_by_tls("/health", &second).unwrap().starts_with("HTTP/1.1 200"));
    call(&mut client, &Request::new(Asked::Read, 1, 0, 4), b"");
    served.stop();
}

/// Writes a new certificate and its key; how a client that trusts it speaks TLS.
fn certify(cert: &str, key: &str) -> Arc<ClientConfig> {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    std::fs::write(cert, made.cert.pem()).unwrap();
    std::fs::write(key, made.signing_key.serialize_pem()).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions().unwrap();
    Arc::new(builder.with_root_certificates(roots).with_no_client_auth())
}

#[test]
fn the_level_of_a_log_that_nobody_writes_is_not_changed() {
    let directory = Directory::new("no-log");
    let set = ["volume", "log-level", "error", "--cache", &directory.path("cache")];
    let done = Command::new(PROGRAM).args(set).output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.code() == Some(2) && said.contains("no server answers at"), "{said}");
}

/// Whoever renews certificates sends it; without certificates it changes nothing.
#[test]
fn a_hangup_ends_nothing_and_a_stop_after_it_is_clean() {
    let directory = Directory::new("hangup");
    let (said, made) = directory.create("vm1");
    assert!(made, "{said}");
    let mut served = directory.serve();
    let pid = Pid::from_raw(served.child.id().cast_signed());
    kill(pid, Signal::SIGHUP).unwrap();
    kill(pid, Signal::SIGTERM).unwrap();
    let status = served.child.wait().unwrap();
    assert!(status.success(), "{status}");
    assert!(!Path::new(&directory.path("nbd")).exists());
}

#[test]
fn a_service_manager_hears_that_it_serves_lives_reloads_and_stops() {
    let directory = Directory::new("notified");
    let (said, made) = directory.create("vm1");
    assert!(made, "{said}");
    let manager = ServiceWatch::new(&directory);
    let mut program = interruptible();
    program.env("NOTIFY_SOCKET", &manager.path).env("WATCHDOG_USEC", "100000");
    let served = directory.serve_by(program, &[]);
    assert_eq!(manager.word(), "READY=1");
    for _ in 0..2 {
        assert_eq!(manager.word(), "WATCHDOG=1");
    }
    kill(Pid::from_raw(served.child.id().cast_signed()), Signal::SIGHUP).unwrap();
    let reloading = manager.other_word();
    assert!(reloading.starts_with("RELOADING=1\nMONOTONIC_USEC="), "{reloading}");
    assert_eq!(manager.other_word(), "READY=1");
    served.stop();
    assert_eq!(manager.other_word(), "STOPPING=1");
}

#[test]
fn a_cache_that_is_not_there_is_not_served() {
    let directory = Directory::new("absent");
    let words = ["volume", "serve", "--unix", &directory.path("nbd"), "--cache"];
    let done = Command::new(PROGRAM).args(words).arg(directory.path("cache")).output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.code() == Some(2) && said.contains("volume create"), "{said}");
    assert!(!Path::new(&directory.path("nbd")).exists(), "the socket stays behind");
}
