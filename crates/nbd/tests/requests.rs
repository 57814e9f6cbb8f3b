//! The NBD server as clients see it: every error as the protocol has it, no request that ends a
//! connection, and bounded memory whatever a client does.

#![expect(clippy::unwrap_used, reason = "a test stops where something fails")]

mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering;

use entresol_wire::nbd::{
    ClientOptions, Command, CommandFlags, ErrorCode, ErrorKind, ExportFlags, Refusal, ReplyStyle,
    Request, StatusExtent, StatusFilter,
};
use entresol_workload::Random;
use support::client::{Answered, NbdClient, Served};
use support::memory_volumes::Volume;

const STYLES: [ReplyStyle; 3] = [ReplyStyle::Simple, ReplyStyle::Structured, ReplyStyle::Extended];
const MIB: u64 = 1 << 20;

fn request(command: Command, offset: u64, length: u64) -> Request {
    Request::new(command, 0x0123_4567_89ab_cdef, offset, length)
}

/// Fails unless the connection still reads what is there.
fn assert_alive(client: &mut NbdClient, context: &str) {
    let answered = client.call(&request(Command::Read, 0, 1), &[]);
    assert_eq!(answered, Answered::Bytes(vec![0]), "after {context}");
}

#[test]
fn every_illegal_request_has_its_error_and_ends_no_connection() {
    use Command::{BlockStatus, Cache, Flush, Read, Trim, Write, WriteZeroes};
    use CommandFlags as Flag;
    use ErrorCode::{Invalid, NoSpace, NotPermitted, NotSupported, Overflow};
    let mut slow = Volume::new("slow", MIB);
    slow.zeroes_fast = false;
    let mut locked = Volume::new("locked", MIB);
    locked.info.read_only = true;
    let mut rigid = Volume::new("rigid", MIB);
    rigid.info.can_trim = false;
    let served = Served::start(vec![Volume::new("plain", MIB), slow, locked, rigid]);
    let ok = Answered::DONE;
    let cases = [
        ("plain", request(Read, MIB - 1, 2), Answered::Failed(Invalid)),
        ("plain", request(Read, u64::MAX, 2), Answered::Failed(Invalid)),
        ("plain", request(Read, 0, (64 << 20) + 1), Answered::Failed(Overflow)),
        ("plain", request(Write, MIB - 1, 2), Answered::Failed(NoSpace)),
        ("plain", request(Write, 0, 65 << 20), Answered::Failed(Invalid)),
        ("plain", request(WriteZeroes, MIB, 1), Answered::Failed(NoSpace)),
        ("plain", request(Trim, MIB, 1), Answered::Failed(Invalid)),
        ("plain", request(Cache, MIB, 1), Answered::Failed(Invalid)),
        ("plain", request(Flush, 0, 1), Answered::Failed(Invalid)),
        ("plain", request(Flush, 1, 0), Answered::Failed(Invalid)),
        ("plain", request(Read, 0, 0), ok.clone()),
        ("plain", request(Write, MIB, 0), ok.clone()),
        ("plain", request(Trim, 0, 0), ok.clone()),
        ("plain", request(WriteZeroes, 0, 0), ok.clone()),
        ("plain", request(Cache, 0, 0), ok.clone()),
        ("plain", request(BlockStatus, 0, 0), Answered::Failed(Invalid)),
        ("plain", request(BlockStatus, MIB - 1, 2), Answered::Failed(Invalid)),
        ("plain", request(Write, 0, 9).with_flags(Flag::NO_HOLE), Answered::Failed(Invalid)),
        ("plain", request(Read, 0, 9).with_flags(Flag::REQ_ONE), Answered::Failed(Invalid)),
        ("plain", request(Read, 0, 9).with_flags(Flag(1 << 9)), Answered::Failed(Invalid)),
        ("plain", request(Flush, 0, 0).with_flags(Flag::FUA), ok.clone()),
        ("plain", request(Cache, 0, 9).with_flags(Flag::FUA), ok.clone()),
        ("plain", request(WriteZeroes, 0, 9).with_flags(Flag::FAST_ZERO), ok.clone()),
        (
            "slow",
            request(WriteZeroes, 0, 9).with_flags(Flag::FAST_ZERO),
            Answered::Failed(NotSupported),
        ),
        ("slow", request(WriteZeroes, 0, 9), ok.clone()),
        ("locked", request(Write, 0, 9), Answered::Failed(NotPermitted)),
        ("locked", request(Trim, 0, 9), Answered::Failed(NotPermitted)),
        ("locked", request(WriteZeroes, 0, 9), Answered::Failed(NotPermitted)),
        (
            "locked",
            request(WriteZeroes, 0, 9).with_flags(Flag::FAST_ZERO),
            Answered::Failed(Invalid),
        ),
        ("locked", request(Flush, 0, 0), ok.clone()),
        ("rigid", request(Trim, 0, 9), Answered::Failed(Invalid)),
    ];
    for style in STYLES {
        for (name, asked, expected) in &cases {
            let mut client = served.client(name, style);
            let payload = match asked.command {
                1 => vec![0; asked.length as usize],
                _ => Vec::new(),
            };
            let context = format!("{style:?} {name} {asked:?}");
            assert_eq!(&client.call(asked, &payload), expected, "{context}");
            assert_alive(&mut client, &context);
        }
    }
}

/// A client that came before the mode was changed was answered by the one before, for ever.
#[test]
fn fast_zeros_are_ruled_by_the_mode_that_the_volume_has_when_they_are_asked_for() {
    let mut slow = Volume::new("slow", MIB);
    slow.zeroes_fast = false;
    let served = Served::start(vec![slow]);
    let mut client = served.client("slow", ReplyStyle::Simple);
    let fast = request(Command::WriteZeroes, 0, 9).with_flags(CommandFlags::FAST_ZERO);
    let not_fast = Answered::Failed(ErrorCode::NotSupported);
    assert_eq!(client.call(&fast, &[]), not_fast);
    for (mode, expected) in [("wb", Answered::DONE), ("wt", not_fast)] {
        let line = format!(r#"{{"command":"mode","volume":"slow","mode":"{mode}"}}"#);
        let said = administer(&served, &line);
        assert!(said.contains(r#""ok":true"#), "{said}");
        assert_eq!(client.call(&fast, &[]), expected, "{mode}");
    }
}

#[test]
fn unknown_commands_and_unoffered_flags_are_invalid_in_every_style() {
    use ErrorCode::Invalid;
    let served = Served::start(vec![Volume::new("plain", MIB)]);
    for style in STYLES {
        for command in [8, 77, u16::MAX] {
            let mut client = served.client("plain", style);
            let asked = Request { command, ..request(Command::Read, 0, 9) };
            assert_eq!(client.call(&asked, &[]), Answered::Failed(Invalid));
            assert_alive(&mut client, "an unknown command");
        }
        let mut client = served.client("plain", style);
        let has_df = client.agreement.flags.contains(ExportFlags::DF);
        assert_eq!(has_df, style != ReplyStyle::Simple);
        let expected = if has_df { Answered::Bytes(vec![0; 9]) } else { Answered::Failed(Invalid) };
        let unbroken = request(Command::Read, 0, 9).with_flags(CommandFlags::DF);
        assert_eq!(client.call(&unbroken, &[]), expected);
    }
}

#[test]
fn payloads_that_nobody_expects_are_taken_and_refused() {
    let served = Served::start(vec![Volume::new("plain", MIB)]);
    let mut client = served.client("plain", ReplyStyle::Extended);
    for command in [Command::Read, Command::Trim, Command::Flush] {
        let asked = request(command, 0, 100).with_flags(CommandFlags::PAYLOAD_LENGTH);
        assert_eq!(client.call(&asked, &[1; 100]), Answered::Failed(ErrorCode::Invalid));
        assert_alive(&mut client, "an unexpected payload");
    }
    // A write that forgets to say that it has a payload has none.
    let mut head = Vec::new();
    request(Command::Write, 0, 4096).encode(ReplyStyle::Extended, &mut head).unwrap();
    head[4..6].fill(0);
    client.stream.write_all(&head).unwrap();
    let answered = client.receive(&|_| request(Command::Write, 0, 0)).unwrap().1;
    assert_eq!(answered, Answered::Failed(ErrorCode::Invalid));
    assert_alive(&mut client, "a write without a payload");
}

#[test]
fn volumes_errors_reach_the_client_with_the_codes_of_the_protocol() {
    let mut volume = Volume::new("plain", MIB);
    volume.bad = 8192..8193;
    let served = Served::start(vec![volume]);
    for style in STYLES {
        let mut client = served.client("plain", style);
        let io = Answered::Failed(ErrorCode::Io);
        assert_eq!(client.call(&request(Command::Read, 8000, 300), &[]), io);
        assert_eq!(client.call(&request(Command::Write, 8192, 1), &[1]), io);
        assert_alive(&mut client, "an error of the medium");
    }
}

#[test]
fn what_clients_write_they_read_in_any_style_and_order() {
    const SIZE: usize = 1 << 16;
    for seed in 1..=6 {
        println!("seed {seed}");
        let served = Served::start(vec![Volume::new("plain", SIZE as u64)]);
        let mut random = Random::new(seed);
        let mut below = |limit: usize| random.below(limit as u64) as usize;
        let mut model = vec![0_u8; SIZE];
        let mut clients = STYLES.map(|style| served.client("", style));
        for _ in 0..60 {
            let client = &mut clients[below(3)];
            let mut expected = Vec::new();
            for cookie in 0..1 + below(12) as u64 {
                let offset = below(SIZE);
                let length = 1 + below((SIZE - offset).min(20_000));
                let range = offset..offset + length;
                let (command, payload) = match below(4) {
                    0 => (Command::Write, vec![below(256) as u8; length]),
                    1 => (Command::WriteZeroes, Vec::new()),
                    _ => (Command::Read, Vec::new()),
                };
                let answer = match command {
                    Command::Read => model[range].to_vec(),
                    Command::Write => {
                        model[range].copy_from_slice(&payload);
                        Vec::new()
                    }
                    _ => {
                        model[range].fill(0);
                        Vec::new()
                    }
                };
                let asked = Request::new(command, cookie, offset as u64, length as u64);
                client.send(&asked, &payload);
                expected.push((asked, Answered::Bytes(answer)));
            }
            let asked: Vec<Request> = expected.iter().map(|(asked, _)| *asked).collect();
            let mut open: Vec<bool> = vec![true; expected.len()];
            for _ in 0..expected.len() {
                let (cookie, found) = client.receive(&|cookie| asked[cookie as usize]).unwrap();
                assert!(std::mem::take(&mut open[cookie as usize]), "answered twice: {cookie}");
                assert_eq!(found, expected[cookie as usize].1, "{:?}", asked[cookie as usize]);
            }
        }
    }
}

#[test]
fn block_status_tells_allocation_and_residency_and_keeps_to_what_was_asked() {
    let served = Served::start(vec![Volume::new("plain", MIB)]);
    let extent = |length, flags| StatusExtent { length, flags };
    for style in [ReplyStyle::Structured, ReplyStyle::Extended] {
        let mut client = served.client("plain", style);
        let written = request(Command::Write, 65536, 4096);
        assert_eq!(client.call(&written, &[1; 4096]), Answered::DONE);
        let asked = request(Command::BlockStatus, 0, 131_072);
        let allocation = vec![extent(65536, 3), extent(4096, 0), extent(61440, 3)];
        let residency = vec![extent(65536, 0), extent(4096, 1), extent(61440, 0)];
        let both = Answered::Status(vec![(1, allocation), (2, residency.clone())]);
        assert_eq!(client.call(&asked, &[]), both);
        let one = asked.with_flags(CommandFlags::REQ_ONE);
        let first =
            Answered::Status(vec![(1, vec![extent(65536, 3)]), (2, vec![extent(65536, 0)])]);
        assert_eq!(client.call(&one, &[]), first);
        if style == ReplyStyle::Extended {
            let mut filtered = |contexts: &[u32]| {
                let mut payload = Vec::new();
                let filter = StatusFilter { length: 131_072, contexts: contexts.to_vec() };
                filter.encode(&mut payload);
                let asked = request(Command::BlockStatus, 0, payload.len() as u64)
                    .with_flags(CommandFlags::PAYLOAD_LENGTH);
                client.call(&asked, &payload)
            };
            assert_eq!(filtered(&[2]), Answered::Status(vec![(2, residency)]));
            for wrong in [&[3][..], &[1, 1], &[1, 2, 1]] {
                assert_eq!(filtered(wrong), Answered::Failed(ErrorCode::Invalid), "{wrong:?}");
            }
        }
        client.call(&request(Command::Trim, 65536, 4096), &[]);
    }
    let options = ClientOptions { style: ReplyStyle::Structured, ..ClientOptions::export("") };
    let mut client = NbdClient::connect(&served.socket(), options).unwrap();
    let asked = request(Command::BlockStatus, 0, 4096);
    assert_eq!(client.call(&asked, &[]), Answered::Failed(ErrorCode::Invalid));
}

#[test]
fn durability_that_is_asked_for_reaches_the_volume() {
    let served = Served::start(vec![Volume::new("plain", MIB)]);
    let mut client = served.client("", ReplyStyle::Structured);
    let fua = CommandFlags::FUA;
    client.call(&request(Command::Write, 0, 1).with_flags(fua), &[0]);
    client.call(&request(Command::WriteZeroes, 0, 1).with_flags(fua), &[]);
    client.call(&request(Command::Trim, 0, 1).with_flags(fua), &[]);
    client.call(&request(Command::Write, 0, 1), &[0]);
    assert_eq!(served.gate.durable.load(Ordering::SeqCst), 3);
    assert_eq!(served.gate.flushes.load(Ordering::SeqCst), 0);
    client.call(&request(Command::Flush, 0, 0), &[]);
    assert_eq!(served.gate.flushes.load(Ordering::SeqCst), 1);
}

#[test]
fn a_client_has_a_bounded_number_of_requests_and_bytes_in_flight() {
    let served = Served::start(vec![Volume::new("plain", 64 * MIB)]);
    for (length, in_flight_max, requests) in [(4096, 256, 400_u64), (16 * MIB, 4, 12)] {
        let before = served.gate.submitted.load(Ordering::SeqCst);
        served.gate.holds.store(true, Ordering::SeqCst);
        let mut client = served.client("", ReplyStyle::Simple);
        for cookie in 0..requests {
            client.send(&Request::new(Command::Read, cookie, 0, length), &[]);
        }
        let mut other = served.client("", ReplyStyle::Simple);
        other.send(&request(Command::Read, 0, 1), &[]);
        let begun = || served.gate.submitted.load(Ordering::SeqCst) - before;
        while begun() < in_flight_max + 1 {
            std::thread::yield_now();
        }
        // Turns of the event loop in which it could begin too many.
        for _ in 0..20 {
            administer(&served, r#"{"command":"list"}"#);
        }
        assert_eq!(begun(), in_flight_max + 1);
        served.gate.holds.store(false, Ordering::SeqCst);
        let first = other.receive(&|_| request(Command::Read, 0, 1)).unwrap().1;
        assert_eq!(first, Answered::Bytes(vec![0]));
        let mut seen = vec![false; requests as usize];
        for _ in 0..requests {
            let asked = |cookie| Request::new(Command::Read, cookie, 0, length);
            let (cookie, _) = client.receive(&asked).unwrap();
            assert!(!std::mem::replace(&mut seen[cookie as usize], true));
        }
    }
}

/// The answer to an administrator's line.
fn administer(served: &Served, line: &str) -> String {
    let mut stream = UnixStream::connect(served.ports.control.as_ref().unwrap()).unwrap();
    stream.write_all(format!("{line}\n").as_bytes()).unwrap();
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).unwrap();
    answer
}

#[test]
fn a_client_that_takes_no_answers_stops_no_other() {
    let served = Served::start(vec![Volume::new("plain", 64 * MIB)]);
    let mut deaf = served.client("", ReplyStyle::Simple);
    deaf.call(&request(Command::Write, 0, 4096), &[1; 4096]);
    for cookie in 0..100 {
        deaf.send(&Request::new(Command::Read, cookie, 0, 16 * MIB), &[]);
    }
    let mut other = served.client("", ReplyStyle::Structured);
    for _ in 0..1000 {
        let answered = other.call(&request(Command::Read, 4095, 2), &[]);
        assert_eq!(answered, Answered::Bytes(vec![1, 0]));
    }
}

/// A figure of the server, by its name.
fn figure(served: &Served, name: &str) -> u64 {
    let stat = administer(served, r#"{"command":"stat"}"#);
    let stat: serde_json::Value = serde_json::from_str(&stat).unwrap();
    stat["server"][name].as_u64().unwrap()
}

/// Asks for figures until they are what is expected; each asking is a turn of the event loop.
fn await_figure(served: &Served, name: &str, is_expected: impl Fn(u64) -> bool) {
    const TURNS_MAX: u32 = 20_000;
    let met = (0..TURNS_MAX).any(|_| is_expected(figure(served, name)));
    assert!(met, "{name} is {}", figure(served, name));
}

/// Those who had gone counted among the 64 that are heard at a time until it was their turn, so
/// that who came again and again was dropped.
#[test]
fn administrators_that_have_gone_keep_no_others_out() {
    let served = Served::start(vec![Volume::new("plain", MIB)]);
    let connect = || {
        let mut stream = UnixStream::connect(served.ports.control.as_ref().unwrap()).unwrap();
        stream.write_all(b"{\"command\":\"list\"}\n").unwrap();
        BufReader::new(stream)
    };
    let hear = |stream: &mut BufReader<UnixStream>| {
        let mut answer = String::new();
        stream.read_line(&mut answer).unwrap();
        assert!(answer.contains("\"ok\":true"), "{answer}");
    };
    let mut all: Vec<_> = (0..64).map(|_| connect()).collect();
    all.iter_mut().for_each(hear);
    let no_turn = served.gate.turns.lock();
    while !served.gate.waits.load(Ordering::SeqCst) {
        std::thread::yield_now();
    }
    let mut last = connect();
    drop(all);
    drop(no_turn);
    hear(&mut last);
}

/// Whoever asked for the list again and again, and took no answer, made the server hold them all:
/// a list for each sixteen bytes, before anybody knew who it was.
#[test]
fn answers_of_a_handshake_are_bounded_as_those_of_requests_are() {
    const LISTS: usize = 200;
    let name = |number: usize| format!("{number:04000}");
    let served = Served::start((0..100).map(|at| Volume::new(&name(at), MIB)).collect());
    let mut deaf = UnixStream::connect(served.socket()).unwrap();
    let mut asked = vec![0, 0, 0, 3];
    for _ in 0..LISTS {
        asked.extend_from_slice(b"IHAVEOPT\0\0\0\x03\0\0\0\0");
    }
    deaf.write_all(&asked).unwrap();
    await_figure(&served, "held_bytes", |held| held >= 60 * MIB);
    let held = figure(&served, "held_bytes");
    assert!(held < 65 * MIB, "{held}");
    // Once it takes them, it gets all.
    let greeting = 18;
    let entry = 20 + 4 + 4000 + "cached volume, mode wt".len();
    let mut lists = vec![0; greeting + LISTS * (100 * entry + 20)];
    deaf.read_exact(&mut lists).unwrap();
    assert!(lists.ends_with(&[0, 0, 0, 3, 0, 0, 0, 1, 0, 0, 0, 0]), "an acknowledgement");
}

/// Payloads on their way were not counted, and what a client had asked for before it broke off was
/// forgotten while its volume still held it.
#[test]
fn the_total_counts_payloads_on_their_way_and_requests_of_clients_that_have_gone() {
    let served = Served::start(vec![Volume::new("plain", 64 * MIB)]);
    let mut client = served.client("", ReplyStyle::Simple);
    client.send(&request(Command::Write, 0, 8 * MIB), &vec![1; 5 << 20]);
    await_figure(&served, "held_bytes", |held| held == 5 * MIB);
    client.stream.write_all(&vec![1; 3 << 20]).unwrap();
    assert_eq!(client.receive(&|_| request(Command::Write, 0, 8 * MIB)).unwrap().1, Answered::DONE);
    await_figure(&served, "held_bytes", |held| held == 0);
    served.gate.holds.store(true, Ordering::SeqCst);
    client.send(&request(Command::Read, 0, 16 * MIB), &[]);
    await_figure(&served, "held_bytes", |held| held == 16 * MIB);
    // Bytes that were not read reset the connection, so that it is broken at once.
    client.send(&Request { command: 77, ..request(Command::Flush, 0, 0) }, &[]);
    await_figure(&served, "request_errors", |errors| errors == 1);
    drop(client);
    await_figure(&served, "connections", |connections| connections == 0);
    assert_eq!(figure(&served, "held_bytes"), 16 * MIB);
    served.gate.holds.store(false, Ordering::SeqCst);
    await_figure(&served, "held_bytes", |held| held == 0);
}

#[test]
fn a_stop_answers_what_is_in_flight_and_refuses_what_comes_after() {
    let served = Served::start(vec![Volume::new("plain", MIB)]);
    let mut client = served.client("", ReplyStyle::Structured);
    served.gate.holds.store(true, Ordering::SeqCst);
    client.send(&Request::new(Command::Write, 1, 0, 4), b"kept");
    while served.gate.submitted.load(Ordering::SeqCst) == 0 {
        std::thread::yield_now();
    }
    served.ask_to_stop();
    // The listening socket goes when the stop has begun.
    while served.socket().exists() {
        std::thread::yield_now();
    }
    client.send(&Request::new(Command::Read, 2, 0, 4), &[]);
    let asked = |cookie| match cookie {
        1 => Request::new(Command::Write, 1, 0, 4),
        _ => Request::new(Command::Read, 2, 0, 4),
    };
    assert_eq!(client.receive(&asked), Some((2, Answered::Failed(ErrorCode::Shutdown))));
    served.gate.holds.store(false, Ordering::SeqCst);
    assert_eq!(client.receive(&asked), Some((1, Answered::DONE)));
    assert_eq!(client.receive(&asked), None);
    served.join();
}

#[test]
fn replies_are_sent_after_a_disconnect_and_after_the_end_of_a_stream() {
    let served = Served::start(vec![Volume::new("plain", MIB)]);
    for style in STYLES {
        for disconnects in [false, true] {
            let mut client = served.client("", style);
            served.gate.holds.store(true, Ordering::SeqCst);
            let read = Request::new(Command::Read, 5, 0, 600);
            client.send(&read, &[]);
            if disconnects {
                client.send(&Request::new(Command::Disconnect, 6, 0, 0), &[]);
            } else {
                client.stream.shutdown(std::net::Shutdown::Write).unwrap();
            }
            served.gate.holds.store(false, Ordering::SeqCst);
            let answered = client.receive(&|_| read);
            assert_eq!(answered, Some((5, Answered::Bytes(vec![0; 600]))), "{style:?}");
            assert_eq!(client.receive(&|_| read), None);
        }
    }
}

#[test]
fn strangers_are_dropped_and_exports_that_are_not_there_refused() {
    let served = Served::start(vec![Volume::new("one", MIB), Volume::new("two", MIB)]);
    let mut stranger = UnixStream::connect(served.socket()).unwrap();
    stranger.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let mut seen = Vec::new();
    // A socket closed with unread bytes may end in a reset.
    let _ = stranger.read_to_end(&mut seen);
    assert_eq!(&seen[..8], b"NBDMAGIC");
    for (name, message) in [("", "no default export"), ("three", "one, two")] {
        let options = ClientOptions::export(name);
        let error = NbdClient::connect(&served.socket(), options).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Refused(Refusal::Unknown));
        assert!(error.to_string().contains(message), "{error}");
    }
    let mut client = served.client("two", ReplyStyle::Extended);
    assert_alive(&mut client, "strangers");
}

/// A server that waited for its cache device said nothing of it, to administrators neither: they
/// waited with it.
#[test]
fn administrators_are_told_of_a_device_that_does_not_answer_while_the_server_waits_for_it() {
    let served = Served::start(vec![Volume::new("plain", MIB)]);
    let stat = r#"{"command":"stat"}"#;
    let answers = "\"oldest_pending_io_seconds\":0";
    let answer = administer(&served, stat);
    assert!(answer.contains(&format!("\"cache\":{{{answers}}}")), "{answer}");
    let no_turn = served.gate.turns.lock();
    served.gate.sticks.store(true, Ordering::SeqCst);
    // Whom the server took just before waits with it.
    while !served.gate.waits.load(Ordering::SeqCst) {
        std::thread::yield_now();
    }
    let answer = administer(&served, stat);
    assert!(answer.contains("\"cache\":{\"oldest_pending_io_seconds\":45}"), "{answer}");
    assert!(answer.contains("\"name\":\"plain\"") && answer.contains(answers), "{answer}");
    let refused = administer(&served, r#"{"command":"flush","volume":"plain"}"#);
    assert!(refused.contains("the server waits for /ssd/cache (the cache), 45 s"), "{refused}");
    // A watchdog that ended it would have the next one wait for the same device.
    let before = served.alive.load(Ordering::SeqCst);
    while served.alive.load(Ordering::SeqCst) == before {
        std::thread::yield_now();
    }
    let health = get(&served, "/health");
    assert!(health.starts_with("HTTP/1.1 503") && health.contains("\"stalled\""), "{health}");
    assert!(health.contains("\"device\":\"/ssd/cache (the cache)\""), "{health}");
    assert!(get(&served, "/health/ready").starts_with("HTTP/1.1 503"));
    assert!(get(&served, "/health/live").starts_with("HTTP/1.1 200"));
    let metrics = get(&served, "/metrics");
    assert!(
        metrics.contains("\nentresol_volume_cache_oldest_pending_io_seconds 45\n"),
        "{metrics}"
    );
    served.gate.sticks.store(false, Ordering::SeqCst);
    drop(no_turn);
    let mut client = served.client("plain", ReplyStyle::Simple);
    assert_alive(&mut client, "a device that did not answer");
    let listed = administer(&served, r#"{"command":"list"}"#);
    assert!(listed.contains("\"number\":0"), "{listed}");
}

#[test]
fn an_event_loop_that_stands_still_for_no_device_is_not_said_to_live() {
    let served = Served::start(vec![Volume::new("plain", MIB)]);
    while served.alive.load(Ordering::SeqCst) == 0 {
        std::thread::yield_now();
    }
    let no_turn = served.gate.turns.lock();
    while !served.gate.waits.load(Ordering::SeqCst) {
        std::thread::yield_now();
    }
    let before = served.alive.load(Ordering::SeqCst);
    // They are answered by what would speak for the loop, round by round.
    for _ in 0..3 {
        let answer = administer(&served, r#"{"command":"stat"}"#);
        assert!(answer.contains("\"ok\":true"), "{answer}");
    }
    assert_eq!(served.alive.load(Ordering::SeqCst), before);
    drop(no_turn);
    while served.alive.load(Ordering::SeqCst) == before {
        std::thread::yield_now();
    }
}

/// The answer to a request of the HTTP interface.
fn get(served: &Served, path: &str) -> String {
    let mut stream = TcpStream::connect(served.ports.admin.unwrap()).unwrap();
    stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn administrators_see_and_change_volumes_line_by_line() {
    let served = Served::start(vec![Volume::new("one", MIB)]);
    let stream = UnixStream::connect(served.ports.control.as_ref().unwrap()).unwrap();
    let mut lines = BufReader::new(stream.try_clone().unwrap());
    let mut ask = |line: &str| {
        (&stream).write_all(format!("{line}\n").as_bytes()).unwrap();
        let mut answer = String::new();
        lines.read_line(&mut answer).unwrap();
        answer
    };
    for (line, expected) in [
        (r#"{"command":"mode","volume":"one","mode":"wb"}"#, r#"{"ok":true}"#),
        (r#"{"command":"list"}"#, r#""mode":"wb""#),
        (r#"{"command":"flush","volume":"one"}"#, r#"{"ok":true}"#),
        (r#"{"command":"create","volume":"two","backing":"/x","mode":"wa"}"#, r#""number":1"#),
        (r#"{"command":"create","volume":"two","backing":"/x"}"#, r#""kind":"Name""#),
        (r#"{"command":"stat"}"#, r#""name":"two""#),
        (r#"{"command":"mode","volume":"one","mode":"xx"}"#, "expected wt, wb, wa, wo or pt"),
        (r#"{"command":"flush","volume":"none"}"#, "no volume none that is served"),
        (r#"{"command":"create","volume":"x","backing":"/x","limit":-1}"#, "limit: expected"),
        (r#"{"command":"list","volum":"x"}"#, "found 'volum'"),
        (r#"{"command":"dance"}"#, "found 'dance'"),
        ("[1]", "expected a JSON object"),
        ("nonsense", "expected a JSON object"),
    ] {
        let answer = ask(line);
        assert!(answer.contains(expected), "{line}: {answer}");
    }
    assert_alive(&mut served.client("two", ReplyStyle::Simple), "its creation");
    assert_eq!(ask(r#"{"command":"stop"}"#).trim(), r#"{"ok":true}"#);
    served.join();
}
