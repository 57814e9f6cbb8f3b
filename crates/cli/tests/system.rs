//! Trouble around a running server, with the real program: a second process, a full device, a
//! directory that cannot be written, flipped bits, mistakes of people.

#[path = "support/interruptible.rs"]
mod interruptible;
#[path = "support/served.rs"]
mod served;
mod support;

use std::fs;
use std::io::{BufRead, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use served::{Client, Served};
use support::{Directory, entresol, json, refused_with};

const OK: &str = "+OK";

fn set(client: &mut Client, key: &str, value: &[u8]) -> String {
    client.call(&[b"SET", key.as_bytes(), value])
}

fn get(client: &mut Client, key: &str) -> String {
    client.call(&[b"GET", key.as_bytes()])
}

#[test]
fn a_second_process_on_a_store_is_refused_and_told_who_has_it() {
    let directory = Directory::new("two");
    let data = directory.path("data");
    let csv = directory.file("a.csv", "k,v\n1,2\n").display().to_string();
    let served = Served::start(&directory, &["--dir", &data, "--capacity", "64MiB"]);
    let mut client = served.client();
    assert_eq!(set(&mut client, "a", b"1"), OK);
    let owner = format!("process {}", served.pid());
    let expected = ["entresol.data", "in use", owner.as_str(), "stop that first"];
    for arguments in [
        &["serve", "--dir", &data, "--port", "0"][..],
        &["store", "info", "--dir", &data],
        &["store", "verify", "--devices", &format!("{data}/entresol.data")],
        &["export", "--dir", &data],
        &["load", &csv, "--key", "k", "--dir", &data],
    ] {
        refused_with(arguments, &expected);
    }
    assert_eq!(get(&mut client, "a"), "1", "the first one goes on");
    served.stop();
    let info = json(&entresol(&["store", "info", "--dir", &data, "--json"]));
    assert_eq!(info["entries"], 1);
}

/// The report gave the server the durability that an engine in the process would have had.
#[test]
fn a_bench_of_a_server_says_nothing_of_what_its_writes_survive() {
    let directory = Directory::new("target");
    let data = directory.path("data");
    let served = Served::start(&directory, &["--dir", &data, "--capacity", "64MiB"]);
    let target = format!("unix:{}", directory.path("socket"));
    for bench in ["load", "grid"] {
        let common = ["bench", bench, "--target", &target, "--durability", "synced", "--json"];
        let small = ["--keys", "500", "--iterations", "20", "--rounds", "1", "--seconds", "0.2"];
        let report = json(&entresol(&[&common[..], &small].concat()));
        assert!(report["durability"].is_null(), "{report}");
        assert!(report["ops_per_second"].is_number(), "{report}");
        assert_eq!(report["target"], format!("{target}?db=15"), "{report}");
    }
    // Where nobody says which process it is, its processor time was that of the bench.
    let grid = ["bench", "grid", "--target", &target, "--iterations", "20", "--json"];
    let pid = served.pid().to_string();
    let cpu = |report: serde_json::Value| report["tables"][0]["server_cpu_us_per_op"].clone();
    assert!(cpu(json(&entresol(&grid))).is_null());
    assert!(cpu(json(&entresol(&[&grid[..], &["--server-pid", &pid]].concat()))).is_number());
    served.stop();
}

#[test]
fn a_full_device_refuses_writes_reads_on_and_recovers_room_by_removals() {
    let directory = Directory::new("full");
    let data = directory.path("data");
    let served = Served::start(&directory, &["--dir", &data, "--capacity", "40MiB"]);
    let mut client = served.client();
    let value = vec![b'x'; 20_000];
    let name = |number: usize| format!("key:{number}");
    let mut count = 0;
    let refusal = loop {
        let reply = set(&mut client, &name(count), &value);
        if reply != OK {
            break reply;
        }
        count += 1;
    };
    assert!(refusal.starts_with("-OOM") && refusal.contains("is full"), "{refusal}");
    assert!(refusal.contains("remove entries or give the store more capacity"), "{refusal}");
    // Of nineteen segments a shard, ten are the reserve and what streams have open.
    assert!(count * value.len() > 14 << 20, "{count} values fit in 40 MiB");
    for number in 0..count {
        assert_eq!(get(&mut client, &name(number)).len(), value.len(), "{number}");
    }
    for number in 0..count / 3 {
        assert_eq!(client.call(&[b"DEL", name(number).as_bytes()]), ":1", "{number}");
    }
    for number in 0..count / 10 {
        assert_eq!(set(&mut client, &name(number), &value), OK, "{number}");
    }
    served.stop();
    let served = Served::start(&directory, &["--dir", &data]);
    let mut client = served.client();
    for number in 0..count {
        let lost = (count / 10..count / 3).contains(&number);
        let length = if lost { "(nil)".len() } else { value.len() };
        assert_eq!(get(&mut client, &name(number)).len(), length, "{number}");
    }
}

/// The program as a user who may not write everywhere; tests may run as one who may.
fn unprivileged(directory: &Directory) -> Command {
    let program = Path::new(env!("CARGO_BIN_EXE_entresol"));
    let nobody = 65_534;
    let is_root = fs::metadata("/proc/self").is_ok_and(|me| {
        use std::os::unix::fs::MetadataExt;
        me.uid() == 0
    });
    if !is_root {
        return Command::new(program);
    }
    // Where this program stands, that user may not even look.
    let copy = directory.0.join("entresol");
    if !copy.exists() && fs::hard_link(program, &copy).is_err() {
        fs::copy(program, &copy).expect("the program can be copied");
    }
    let mut command = Command::new(copy);
    command.uid(nobody).gid(nobody);
    command
}

#[test]
fn what_cannot_be_written_is_named_and_left_as_it_is() {
    let directory = Directory::new("readonly");
    let data = directory.path("data");
    let served = Served::start(&directory, &["--dir", &data, "--capacity", "64MiB"]);
    assert_eq!(set(&mut served.client(), "a", b"1"), OK);
    served.stop();
    let file = format!("{data}/entresol.data");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o444)).unwrap();
    fs::set_permissions(&data, fs::Permissions::from_mode(0o555)).unwrap();
    fs::set_permissions(&directory.0, fs::Permissions::from_mode(0o755)).unwrap();
    let inside = format!("{data}/new");
    for (arguments, named) in [
        (&["serve", "--port", "0", "--dir", &data][..], &file),
        (&["serve", "--port", "0", "--dir", &inside, "--capacity", "64MiB"], &inside),
        (&["store", "info", "--dir", &data], &file),
    ] {
        let output = unprivileged(&directory).args(arguments).output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
        let told = message.contains(named.as_str()) && message.contains("Permission denied");
        assert!(told, "{arguments:?}: {message}");
    }
    fs::set_permissions(&data, fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let served = Served::start(&directory, &["--dir", &data]);
    assert_eq!(get(&mut served.client(), "a"), "1");
}

/// An export demanded that another file could be made beside the one that it replaces.
#[test]
fn an_export_replaces_a_file_that_may_be_written_and_no_other() {
    let directory = Directory::new("replaced");
    let mode = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    mode(&directory.0, 0o777);
    let csv = directory.file("a.csv", "key,value\na,b\n").display().to_string();
    let store = directory.path("store");
    let run = |arguments: &[&str]| unprivileged(&directory).args(arguments).output().unwrap();
    let to = ["--key", "key", "--value", "value", "--capacity", "64MiB", "--dir", &store];
    assert!(run(&[&["load", &csv], &to[..]].concat()).status.success());
    let before = "longer than what comes in its place, and not to be seen there afterwards\n";
    let places = [("closed", 0o555, 0o666), ("sticky", 0o1777, 0o666), ("open", 0o777, 0o444)];
    for (name, of_directory, of_file) in places {
        let inner = directory.0.join(name);
        fs::create_dir(&inner).unwrap();
        let out = directory.file(&format!("{name}/out.jsonl"), before);
        mode(&out, of_file);
        mode(&inner, of_directory);
        let output = run(&["export", "--dir", &store, "--output", &out.display().to_string()]);
        mode(&inner, 0o755);
        let (said, text) = (String::from_utf8_lossy(&output.stderr), fs::read_to_string(&out));
        let may = of_file == 0o666;
        assert_eq!(output.status.code(), Some(if may { 0 } else { 2 }), "{name}: {said}");
        let expected = if may { "{\"key\":\"a\",\"value\":\"b\"}\n" } else { before };
        assert_eq!(text.unwrap(), expected, "{name}");
        assert_eq!(fs::read_dir(&inner).unwrap().count(), 1, "{name}: nothing else is left");
    }
}

/// Nobody could be told how many entries there were, and the program was aborted.
#[test]
fn an_export_whose_messages_cannot_be_written_is_done() {
    let directory = Directory::new("unheard");
    let data = directory.path("data");
    let csv = directory.file("a.csv", "k,v\n1,2\n").display().to_string();
    let load = ["load", &csv, "--dir", &data, "--capacity", "64MiB", "--key", "k"];
    assert!(entresol(&load).status.success());
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let mut export = Command::new(env!("CARGO_BIN_EXE_entresol"));
    let output = export.args(["export", "--dir", &data]).stderr(full).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 1);
}

#[test]
fn a_flipped_bit_costs_one_record_which_verify_names() {
    let directory = Directory::new("flip");
    let data = directory.path("data");
    let served = Served::start(&directory, &["--dir", &data, "--capacity", "64MiB"]);
    let mut client = served.client();
    let value = |number: usize| format!("value {number} {}", "z".repeat(1_700));
    for number in 0..100 {
        assert_eq!(set(&mut client, &format!("key:{number}"), value(number).as_bytes()), OK);
    }
    served.stop();
    let file = format!("{data}/entresol.data");
    let mut bytes = fs::read(&file).unwrap();
    let place = bytes.windows(9).position(|window| window == b"value 42 ").expect("it is there");
    bytes[place + 1_000] ^= 0x10;
    fs::write(&file, bytes).unwrap();

    let served = Served::start(&directory, &["--dir", &data]);
    let mut client = served.client();
    for number in (0..100).filter(|number| *number != 42) {
        assert_eq!(get(&mut client, &format!("key:{number}")), value(number), "{number}");
    }
    let refusal = get(&mut client, "key:42");
    assert!(refusal.starts_with("-ERR record at byte"), "{refusal}");
    assert!(refusal.contains("does not verify") && refusal.contains(&file), "{refusal}");
    assert_eq!(set(&mut client, "key:new", b"1"), OK, "writes go on");
    served.stop();

    let output = entresol(&["store", "verify", "--dir", &data]);
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}");
    // The header stands in front of key and value.
    let named = (place - 100..place).any(|at| message.contains(&format!("record at byte {at} ")));
    assert!(named && message.contains("1 damaged records"), "{message}");
    let output = entresol(&["export", "--dir", &data]);
    assert_eq!(output.status.code(), Some(1), "what is left out is told");
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 100);

    let served = Served::start(&directory, &["--dir", &data]);
    let mut client = served.client();
    assert_eq!(set(&mut client, "key:42", b"anew"), OK);
    assert_eq!(get(&mut client, "key:42"), "anew");
    served.stop();
    // The damaged record itself goes once its segment is reclaimed.
    let output = entresol(&["export", "--dir", &data]);
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 101);
}

/// Bytes of hashes that are no text were replaced, and hashes that were there were added to.
#[test]
fn what_one_server_exports_another_one_loads_as_it_was() {
    let directory = Directory::new("servers");
    let (first, second) = (directory.path("first"), directory.path("second"));
    let [out, again] = ["out.jsonl", "again.jsonl"].map(|name| directory.path(name));
    let target = format!("unix:{}", directory.path("socket"));
    let sorted = |path: &str| {
        let text = fs::read_to_string(path).unwrap();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let served = Served::start(&directory, &["--dir", &first, "--capacity", "64MiB"]);
    let mut client = served.client();
    let commands: [&[&[u8]]; 4] = [
        &[b"HSET", b"hash", b"text", b"x", b"\xFE", b"\xFF\0", b"n", b"\xC0"],
        &[b"SET", b"\xFFkey", b"\xC1", b"PXAT", b"9999999999999"],
        &[b"SET", b"plain", b"\"a\",\n"],
        &[b"PEXPIREAT", b"hash", b"9999999999998"],
    ];
    for command in commands {
        let reply = client.call(command);
        assert!(!reply.starts_with('-'), "{reply}");
    }
    let output = entresol(&["export", "--target", &target, "--output", &out]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    served.stop();
    let served = Served::start(&directory, &["--dir", &second, "--capacity", "64MiB"]);
    let mut client = served.client();
    assert_eq!(client.call(&[b"HSET", b"hash", b"old", b"1"]), ":1");
    assert_eq!(client.call(&[b"HSET", b"plain", b"was", b"a hash"]), ":1");
    let fields = ["--key", "key", "--value", "value", "--target", &target];
    let output = entresol(&[&["load", &out], &fields[..]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let output = entresol(&["export", "--target", &target, "--output", &again]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(sorted(&out), sorted(&again));
    assert_eq!(sorted(&out).len(), 3);
}

/// The line was named that the reader had come to when the server's answer came.
#[test]
fn a_record_that_the_server_refuses_is_named_by_its_key() {
    let directory = Directory::new("refused-record");
    let data = directory.path("data");
    let served = Served::start(&directory, &["--dir", &data, "--capacity", "64MiB"]);
    let end = |number| if number == 3 { "0" } else { "" };
    let records = (0..1000).map(|number| format!("k{number},v,{}\n", end(number)));
    let text = format!("key,value,expires_at_ms\n{}", records.collect::<String>());
    let csv = directory.file("a.csv", &text).display().to_string();
    let target = format!("unix:{}", directory.path("socket"));
    let load = ["load", &csv, "--key", "key", "--value", "value", "--target", &target];
    refused_with(&load, &["a.csv", "key 'k3', sent by then", "invalid expire time"]);
    served.stop();
}

#[test]
fn mistakes_on_the_command_line_are_told_with_key_expectation_and_next_step() {
    let directory = Directory::new("mistakes");
    let data = directory.path("data");
    let serve = |options: &[&str], expected: &[&str]| {
        let port = ["serve", "--dir", &data, "--port", "0"];
        refused_with(&[&port[..], options].concat(), expected);
    };
    refused_with(&["serve"], &["`dir`", "--dir ./data"]);
    refused_with(&["serve", "data"], &["unexpected argument 'data'", "entresol serve [OPTIONS]"]);
    refused_with(&["store", "info"], &["--dir DIR", "--devices A,B"]);
    refused_with(&["export"], &["--dir", "--target"]);
    serve(&["--memroy", "1GiB"], &["'--memroy'", "similar", "'--memory'", "--help"]);
    serve(&["--memory", "12GG"], &["'--memory <SIZE>'", "512MB or 1GiB", "`12GG`"]);
    serve(&["--memory", "1MiB"], &["at least 32MiB", "`1MiB`"]);
    serve(&["--port"], &["a value is required for '--port <PORT>'"]);
    serve(&["--segment", "3MiB"], &["'--segment <SIZE>'", "a power of two", "`3MiB`"]);
    serve(&["--durability", "never"], &["'--durability", "periodic:MILLISECONDS", "`never`"]);
    serve(&["--bind", "0.0.0.0"], &["`bind`", "other machines", "entresol user add", "127.0.0.1"]);
    serve(&["--encryption-key", "/nowhere/key"], &["`encryption-key`", "/nowhere/key"]);
    serve(&["--buffer-directory", "/nowhere"], &["`buffer-directory`", "/nowhere", "`flushed`"]);
    serve(&["--buffer-directory", ""], &["`buffer-directory`", "found nothing", "`synced`"]);
    serve(&["--memory", "100TiB"], &["`memory`", "more than this machine has", "`100TiB`"]);
    serve(&["--slowlog-log-slower-than", "slow"], &["'--slowlog-log-slower-than", "found `slow`"]);
    serve(&["--users", "/nowhere/users"], &["`users`", "/nowhere/users", "entresol user add"]);
    serve(&["--tls-cert", "/nowhere/cert"], &["`tls-key`", "`tls-cert` is given"]);
    serve(&["--devices", "/nowhere"], &["`devices`", "not both"]);
    // The file was made first, which takes minutes where it is large, and then removed.
    let many = ["--memory", "32MiB", "--shards", "32", "--capacity", "512MiB"];
    serve(&many, &["`memory`", "at least", "32 shards", "fewer `shards`"]);
    let output = entresol(&[&["serve", "--dir", &data, "--port", "0"], &many[..]].concat());
    assert!(!String::from_utf8_lossy(&output.stderr).contains("making"), "nothing is made");
    serve(&["--capacity", "1MiB"], &["1048576 bytes", "need at least", "fewer `shards`"]);
    assert!(!Path::new(&data).join("entresol.data").exists(), "what was made for nothing is gone");
    let file = directory.file("file", "x").display().to_string();
    refused_with(
        &["serve", "--dir", &file],
        &["`dir`", "expected a directory", &file, "`devices`"],
    );
    let somebodys =
        directory.file("entresol.data", &"somebody's notes".repeat(10_000)).display().to_string();
    let its_folder = directory.0.display().to_string();
    let refused = ["serve", "--dir", &its_folder, "--port", "0"];
    refused_with(&refused, &[&somebodys, "force it", "`--force yes` does"]);
    refused_with(&["serve", "--dir", "/proc/no/such"], &["`dir`", "/proc/no/such", "may write"]);
    refused_with(&["serve", "--devices", "/nowhere/a"], &["/nowhere/a", "capacity"]);
    // It named a command that lists TCP ports, and told to choose another of those.
    refused_with(
        &["serve", "--dir", &data, "--port", "", "--unix", &file],
        &["`unix`", &file, "what is there is no socket", "another path"],
    );
    assert_eq!(fs::read(&file).expect("it is left alone"), b"x");
    refused_with(&["export", "--target", "unix:/nowhere"], &["/nowhere", "entresol serve"]);
}

#[test]
fn mistakes_in_a_configuration_are_told_with_file_and_line() {
    let directory = Directory::new("config");
    let cases = [
        ("dir = x\n# fine\nmemroy = 1GiB\n", &["line 3", "`memroy`", "`memory`"][..]),
        ("dir = x\nport 99\n", &["line 2", "`key = value`", "`port 99`"]),
        ("port = 99999\n", &["line 1", "`port`", "65535", "`99999`"]),
        ("[store]\ndurability = \"none\"\n", &["line 2", "`durability`", "`none`"]),
        ("\u{FEFF}port = 99999\n", &["line 1", "`port`", "65535"]),
        ("port = 'many'\n", &["line 1", "`port`", "65535", "`many`"]),
        ("dir = 'x'\nmemory = 1GiB\n", &["line 1", "`dir`", "only TOML has", "line 2: "]),
        ("config = more.conf\n", &["line 1", "`config`", "a file cannot name another"]),
        // What only the use of a value shows was told without its line.
        ("dir = x\n\nbind = 0.0.0.0\n", &["line 3: key `bind`", "other machines"]),
        ("dir = x\nusers = /nowhere/users\n", &["line 2: key `users`", "/nowhere/users"]),
        ("memory = 100TiB\ndir = x\n", &["line 1: key `memory`", "than this machine has"]),
        ("# \nunix = /dev/null\nport =\ndir = x\n", &["line 2: key `unix`", "no socket"]),
        ("dir = /dev/null/x\nport = 0\n", &["line 1: key `dir`", "/dev/null/x"]),
    ];
    for (text, expected) in cases {
        let file = directory.file("entresol.conf", text).display().to_string();
        refused_with(&["serve", "--config", &file], &[&[file.as_str()], expected].concat());
    }
    refused_with(&["serve", "--config", "/nowhere.conf"], &["/nowhere.conf", "cannot be read"]);
    let file = directory.file("entresol.conf", "users = /nowhere/1\n").display().to_string();
    let both = ["serve", "--dir", "x", "--users", "/nowhere/2", "--config", &file];
    refused_with(&both, &["command line: key `users`", "/nowhere/2"]);
}

#[test]
fn an_address_in_use_is_told_and_the_store_stays_clean() {
    let directory = Directory::new("port");
    let data = directory.path("data");
    let held = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = held.local_addr().unwrap().port().to_string();
    let address = format!("127.0.0.1:{port}");
    let expected = [address.as_str(), "Address already in use", "0 for any free one"];
    let serve = ["serve", "--dir", &data, "--capacity", "64MiB"];
    let with_port = [&serve[..], &["--port", &port]].concat();
    refused_with(&with_port, &[&expected[..], &["`port`"]].concat());
    let admin = [&serve[..], &["--port", "0", "--admin-port", &port]].concat();
    refused_with(&admin, &[&expected[..], &["`admin-port`"]].concat());
    let served = Served::start(&directory, &["--dir", &data]);
    let socket = directory.path("socket");
    let unix = ["serve", "--dir", &directory.path("b"), "--capacity", "64MiB", "--port", ""];
    let unix = [&unix[..], &["--unix", &socket]].concat();
    refused_with(&unix, &["`unix`", &socket, "another process listens", "choose another path"]);
    let nowhere = ["serve", "--dir", &directory.path("b"), "--unix", "/nowhere/s", "--port", "0"];
    refused_with(&nowhere, &["`unix`", "/nowhere/s", "make its directory"]);
    served.stop();
    let info = json(&entresol(&["store", "info", "--dir", &data, "--json"]));
    assert_eq!(info["entries"], 0);
    let quiet = Command::new(env!("CARGO_BIN_EXE_entresol")).stdin(Stdio::null()).output().unwrap();
    assert_eq!(quiet.status.code(), Some(2), "without a command there is help");
}

#[test]
fn sockets_of_the_service_manager_are_served_in_place_of_the_configured_ones() {
    let directory = Directory::new("activated");
    let data = directory.path("data");
    let held = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = held.local_addr().unwrap();
    // The shell hands its standard input on as descriptor 3, as systemd does with its sockets.
    let script = "LISTEN_PID=$$ LISTEN_FDS=1 exec \"$0\" \"$@\" 3<&0 0</dev/null";
    let mut child = Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_entresol"), "serve", "--dir", &data])
        .args(["--capacity", "64MiB", "--memory", "64MiB"])
        .stdin(std::os::fd::OwnedFd::from(held))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    let mut replies = std::io::BufReader::new(stream.try_clone().unwrap());
    let mut reply = "-LOADING".to_string();
    while reply.starts_with("-LOADING") {
        stream.write_all(b"PING\r\n").unwrap();
        reply.clear();
        replies.read_line(&mut reply).unwrap();
    }
    assert_eq!(reply, "+PONG\r\n");
    stream.write_all(b"SHUTDOWN\r\n").unwrap();
    let mut said = String::new();
    child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(said, format!("listening port={}\n", address.port()));
    assert!(child.wait().unwrap().success());
}
