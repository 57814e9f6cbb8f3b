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
use serde_json::Value;

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

    /// The answer of its HTTP interface.
    fn get(&self, path: &str, headers: &str) -> String {
        let mut stream = self.admin();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\n{headers}\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// The body of that.
    fn body(&self, path: &str) -> String {
        self.get(path, "").split_once("\r\n\r\n").unwrap().1.to_owned()
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
    let known = "Authorization: Bearer 0123456789abcdef\r\n";
    let shown = served.get("/metrics", known);
    assert!(shown.starts_with("HTTP/1.1 200"), "{shown}");
    assert!(served.get("/health/live", "").starts_with("HTTP/1.1 200"));
    // The console asks strangers for the token, and lets a browser keep it.
    let form = served.get("/", "");
    assert!(form.starts_with("HTTP/1.1 401") && form.contains("<code>--admin-token</code>"));
    assert!(
        figures(&form).is_empty() && served.get("/console/now", "").starts_with("HTTP/1.1 401")
    );
    assert!(served.get("/console/style.css", "").starts_with("HTTP/1.1 200"));
    assert!(served.get("/console/sign-in", known).contains("\r\nSet-Cookie: "));
    let page = served.get("/", known);
    assert!(page.starts_with("HTTP/1.1 200") && page.contains("Sign out"));
    served.stop();
}

/// The figures that a page has, by their paths in `/stats`.
fn figures(page: &str) -> Vec<(String, String)> {
    let pieces = page.split("<data data-stat=\"").skip(1);
    let pair = pieces.map(|piece| {
        let (path, rest) = piece.split_once("\" value=\"").unwrap();
        (path.to_owned(), rest.split_once('"').unwrap().0.to_owned())
    });
    pair.collect()
}

#[test]
fn every_figure_of_the_console_is_that_of_the_statistics_and_of_the_metrics() {
    let directory = Directory::new("console");
    for name in ["vm1", "vm2"] {
        let (said, made) = directory.create(name);
        assert!(made, "{said}");
    }
    let served = directory.serve_by(interruptible(), &["--admin-port", "0"]);
    for block in 0..20 {
        let write = Request::new(Asked::Write, 1, block * 4096, 4096);
        ask(&served.socket, "vm1", &write, &[7; 4096]);
        let read = Request::new(Asked::Read, 2, block * 8192, 4096);
        ask(&served.socket, "vm1", &read, b"");
        ask(&served.socket, "vm2", &read, b"");
    }
    let stats = || -> Value { serde_json::from_str(&served.body("/stats")).unwrap() };
    // The event loop shows its figures once a second.
    while stats()["server"]["requests"]["read"] != 40 {
        std::thread::yield_now();
    }
    let (before, page, after) = (stats(), served.body("/"), stats());
    let shown = figures(&page);
    assert!(shown.len() > 80, "{}", shown.len());
    for (path, value) in &shown {
        let of = |all: &Value| all.pointer(path).unwrap_or_else(|| panic!("{path}")).to_string();
        // What changes by itself, such as memory, may have done so in between.
        let found = [of(&before), of(&after)];
        assert!(found.contains(value) || found[0] != found[1], "{path}: {value} {found:?}");
    }
    let of = |path: &str| {
        let found = shown.iter().find(|(found, _)| found == path);
        found.unwrap_or_else(|| panic!("{path}")).1.parse::<u64>().unwrap()
    };
    let read_by = ["read_hits", "read_partial_misses", "read_full_misses", "pass_through_reads"];
    assert_eq!(read_by.map(|by| of(&format!("/total/requests/{by}"))).iter().sum::<u64>(), 40);
    assert_eq!((of("/volumes/0/requests/writes"), of("/volumes/1/requests/writes")), (20, 0));
    assert_eq!((of("/total/blocks/from_clients"), of("/server/requests/write")), (20, 20));
    let metrics = served.body("/metrics");
    for (line, figure) in [
        (
            "entresol_volume_backing_bytes_total{request=\"read\",volume=\"vm2\"} ",
            4096 * of("/volumes/1/blocks/from_backing"),
        ),
        ("entresol_volume_commands_total{command=\"read\"} ", of("/server/requests/read")),
        ("entresol_volume_exports{state=\"served\"} ", of("/total/volumes")),
    ] {
        let found = metrics.lines().find_map(|found| found.strip_prefix(line));
        assert_eq!(found, Some(figure.to_string().as_str()), "{line}");
    }
    served.stop();
}

#[test]
fn the_console_has_all_sections_tells_of_an_absent_backing_and_runs_nothing_of_anybody() {
    let directory = Directory::new("sections <b>&");
    for name in ["vm1", "gone"] {
        let (said, made) = directory.create(name);
        assert!(made, "{said}");
    }
    std::fs::rename(directory.path("gone.img"), directory.path("elsewhere.img")).unwrap();
    let served = directory.serve_by(interruptible(), &["--admin-port", "0"]);
    for path in ["/", "/?span=day", "/console/now"] {
        let mut page = served.get(path, "");
        // The event loop shows its first figures once it runs.
        while !page.contains("Volume gone is not exported") {
            page = served.get(path, "");
        }
        assert!(page.starts_with("HTTP/1.1 200") && page.contains("script-src 'self'"), "{page}");
        for text in [
            "Failing",
            "put its backing back",
            "Cache in use",
            "Latency of reads",
            "Where reads are answered",
            "Writing and writing back",
            "Connections",
            "sections &lt;b&gt;&amp;/vm1.img",
        ] {
            assert!(page.contains(text), "{path}: {text}");
        }
        let page = page.replace("http://www.w3.org/2000/svg", "");
        for unwanted in ["<b>&", " style=", "<style", "http://", "https://", "Sign out"] {
            assert!(!page.contains(unwanted), "{path}: {unwanted}");
        }
        assert_eq!(page.matches("<script").count(), usize::from(path != "/console/now"));
    }
    assert!(served.get("/console/key", "").starts_with("HTTP/1.1 404"));
    assert!(served.get("/console/sign-in", "").starts_with("HTTP/1.1 404"));
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
    let opens = |word: &str| {
        let shown = format!("Authorization: Bearer {word}\r\n");
        served.get("/stats", &shown).starts_with("HTTP/1.1 200")
    };
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
    assert!(metrics.contains("entresol_volume_certificate_end_timestamp_seconds{use=\"http\"} "));
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

/// Nothing said when they end: guests and Prometheus were refused on the day.
#[test]
fn the_ends_of_both_certificates_are_told_and_the_console_warns_of_one_that_has_ended() {
    let directory = Directory::new("ends");
    let (said, made) = directory.create("vm1");
    assert!(made, "{said}");
    let path = |name: &str| directory.path(name);
    let certify = |year: i32, cert: &str, key: &str| {
        let mut parameters = rcgen::CertificateParams::new(["localhost".to_owned()]).unwrap();
        parameters.not_after = rcgen::date_time_ymd(year, 1, 1);
        let pair = rcgen::KeyPair::generate().unwrap();
        std::fs::write(cert, parameters.self_signed(&pair).unwrap().pem()).unwrap();
        std::fs::write(key, pair.serialize_pem()).unwrap();
    };
    certify(2040, &path("cert"), &path("key"));
    let manager = ServiceWatch::new(&directory);
    let mut program = interruptible();
    program.env("NOTIFY_SOCKET", &manager.path);
    let tls = ["--admin-port", "0", "--tls-cert", &path("cert"), "--tls-key", &path("key")];
    let served = directory.serve_by(program, &tls);
    assert_eq!(manager.other_word(), "READY=1");
    let end = "entresol_volume_certificate_end_timestamp_seconds{use=";
    // The event loop shows its figures once a second.
    let shown = |line: &str| while !served.body("/metrics").contains(line) {};
    shown(&format!("{end}\"clients\"}} 2208988800\n"));
    let metrics = served.body("/metrics");
    assert!(!metrics.contains(&format!("{end}\"http\"")), "HTTP is in plain: {metrics}");
    assert!(!served.body("/").contains("ended"), "the end is far away");
    certify(2001, &path("cert"), &path("key"));
    kill(Pid::from_raw(served.child.id().cast_signed()), Signal::SIGHUP).unwrap();
    assert!(manager.other_word().starts_with("RELOADING=1"));
    assert_eq!(manager.other_word(), "READY=1");
    shown(&format!("{end}\"clients\"}} 978307200\n"));
    let page = served.body("/");
    assert!(page.contains("The certificate that clients are shown ended "), "{page}");
    let stats: Value = serde_json::from_str(&served.body("/stats")).unwrap();
    assert_eq!(stats.pointer("/server/certificate_end_seconds"), Some(&Value::from(978_307_200)));
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
