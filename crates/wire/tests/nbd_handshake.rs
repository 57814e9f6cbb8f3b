//! The handshake of NBD: both sides fed with each other's bytes, in pieces of any size, and each
//! side with what the other should not send.

#![expect(clippy::unwrap_used, reason = "a test stops where something fails")]

use entresol_random::SplitMix;
use entresol_wire::nbd::{
    Agreement, Availability, BlockSizes, ClientGoal, ClientHandshake, ClientOptions, ClientStep,
    Error, ErrorKind, Export, ExportFlags, ListedExport, Offer, Refusal, ReplyStyle, Security,
    ServerHandshake, ServerStep, TlsRule, TlsWish,
};

const CONTEXTS: [&str; 2] = ["base:allocation", "x-entresol:residency"];

fn export(name: &str) -> Export {
    Export {
        name: name.to_owned(),
        description: format!("about {name}"),
        bytes: 4096 * name.len() as u64,
        flags: ExportFlags::FLUSH.with(ExportFlags::FUA),
        sizes: BlockSizes::default(),
    }
}

fn offer<'a>(exports: &'a [Export], tls: TlsRule) -> Offer<'a> {
    Offer { exports, contexts: &CONTEXTS, tls, availability: Availability::Serving }
}

/// How a handshake ended on the client's side, and on the server's.
#[derive(Debug, PartialEq, Eq)]
enum End {
    Agreed(Box<Agreement>, Box<Agreement>),
    Listed(Vec<ListedExport>),
}

/// Lets both sides talk; bytes travel in pieces of at most `piece`.
fn talk(options: ClientOptions, offer: Offer<'_>, random: &mut SplitMix) -> Result<End, Error> {
    let (mut to_client, mut to_server) = (Vec::new(), Vec::new());
    let mut server = ServerHandshake::begin(&mut to_client);
    let mut client = ClientHandshake::new(options);
    let (mut seen_by_client, mut seen_by_server) = (Vec::new(), Vec::new());
    let mut server_agreed = None;
    for _ in 0..100_000 {
        let piece = to_client.len().min(1 + random.index(40));
        seen_by_client.extend(to_client.drain(..piece));
        match client.step(&seen_by_client, &mut to_server)? {
            ClientStep::Incomplete { needed } => assert!(needed > seen_by_client.len()),
            ClientStep::Continue { consumed } => drop(seen_by_client.drain(..consumed)),
            ClientStep::StartTls { consumed } => {
                seen_by_client.drain(..consumed);
                client.secured(&mut to_server)?;
                server.secured();
            }
            ClientStep::Ready { consumed, agreement } => {
                seen_by_client.drain(..consumed);
                assert!(seen_by_client.is_empty() && to_client.is_empty());
                return Ok(End::Agreed(Box::new(agreement), server_agreed.unwrap()));
            }
            ClientStep::Listed { exports, .. } => return Ok(End::Listed(exports)),
        }
        let piece = to_server.len().min(1 + random.index(40));
        seen_by_server.extend(to_server.drain(..piece));
        match server.step(&seen_by_server, offer, &mut to_client)? {
            ServerStep::Incomplete { needed } => assert!(needed > seen_by_server.len()),
            ServerStep::Continue { consumed } | ServerStep::StartTls { consumed } => {
                seen_by_server.drain(..consumed);
            }
            ServerStep::Ready { consumed, agreement } => {
                seen_by_server.drain(..consumed);
                server_agreed = Some(Box::new(agreement));
            }
            ServerStep::End => {}
        }
    }
    panic!("the two sides wait for each other");
}

fn wishes(name: &str, style: ReplyStyle, contexts: &[&str], tls: TlsWish) -> ClientOptions {
    let contexts = contexts.iter().map(|context| (*context).to_owned()).collect();
    ClientOptions { goal: ClientGoal::Export(name.to_owned()), tls, style, contexts }
}

#[test]
fn both_sides_agree_on_the_same_whatever_is_wished_for() {
    let exports = [export("a"), export("bb")];
    for seed in 0..3000 {
        println!("seed {seed}");
        let mut random = SplitMix::new(seed);
        let style =
            [ReplyStyle::Simple, ReplyStyle::Structured, ReplyStyle::Extended][random.index(3)];
        let name = ["a", "bb"][random.index(2)];
        let contexts: &[&str] =
            [&["x-entresol:residency", "qemu:other"][..], &CONTEXTS, &[]][random.index(3)];
        let tls = [TlsWish::Never, TlsWish::IfOffered, TlsWish::Required][random.index(3)];
        let rule = [TlsRule::Off, TlsRule::Offered, TlsRule::Required][random.index(3)];
        let result = talk(wishes(name, style, contexts, tls), offer(&exports, rule), &mut random);
        match (tls, rule) {
            (TlsWish::Required, TlsRule::Off) => {
                let kind = result.unwrap_err().kind();
                assert_eq!(kind, ErrorKind::Refused(Refusal::Policy));
                continue;
            }
            (TlsWish::Never, TlsRule::Required) => {
                let kind = result.unwrap_err().kind();
                assert_eq!(kind, ErrorKind::Refused(Refusal::TlsRequired));
                continue;
            }
            _ => {}
        }
        let End::Agreed(client, server) = result.unwrap() else { panic!("a list") };
        assert_eq!(client, server);
        assert_eq!((client.name.as_str(), client.style), (name, style));
        let encrypted = tls != TlsWish::Never && rule != TlsRule::Off;
        assert_eq!(client.security == Security::Encrypted, encrypted);
        let known = contexts.iter().filter(|context| CONTEXTS.contains(context)).count();
        let expected = if style == ReplyStyle::Simple { 0 } else { known };
        assert_eq!(client.contexts.len(), expected);
        let has_df = client.flags.contains(ExportFlags::DF);
        assert_eq!(has_df, style != ReplyStyle::Simple);
        let filters = client.flags.contains(ExportFlags::BLOCK_STATUS_PAYLOAD);
        assert_eq!(filters, style == ReplyStyle::Extended && expected > 0);
    }
}

#[test]
fn the_only_export_is_the_default_and_several_are_named_to_who_asks_for_one() {
    let random = &mut SplitMix::new(1);
    let alone = [export("only")];
    let options = wishes("", ReplyStyle::Structured, &CONTEXTS, TlsWish::Never);
    let end = talk(options.clone(), offer(&alone, TlsRule::Off), random).unwrap();
    let End::Agreed(client, _) = end else { panic!("a list") };
    assert_eq!((client.name.as_str(), client.contexts.len()), ("only", 2));

    let several = [export("first"), export("second")];
    let error = talk(options, offer(&several, TlsRule::Off), random).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused(Refusal::Unknown));
    assert!(error.to_string().contains("first, second"), "{error}");
}

#[test]
fn a_list_names_and_describes_all_exports() {
    let exports = [export("first"), export("second")];
    let options = ClientOptions { goal: ClientGoal::List, ..ClientOptions::export("") };
    let end = talk(options, offer(&exports, TlsRule::Off), &mut SplitMix::new(2)).unwrap();
    let entry =
        |name: &str| ListedExport { name: name.to_owned(), description: format!("about {name}") };
    assert_eq!(end, End::Listed(vec![entry("first"), entry("second")]));
}

#[test]
fn a_server_about_to_stop_says_so() {
    let exports = [export("a")];
    let stopping = Offer { availability: Availability::Stopping, ..offer(&exports, TlsRule::Off) };
    let options = ClientOptions::export("a");
    let error = talk(options, stopping, &mut SplitMix::new(3)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused(Refusal::Shutdown));
}

/// A server that was sent flags and then options as raw bytes.
struct Raw {
    server: ServerHandshake,
    exports: Vec<Export>,
}

impl Raw {
    fn new() -> Raw {
        let mut server = ServerHandshake::begin(&mut Vec::new());
        let exports = vec![export("a")];
        let step = server.step(&3u32.to_be_bytes(), offer(&exports, TlsRule::Offered), &mut vec![]);
        assert_eq!(step, Ok(ServerStep::Continue { consumed: 4 }));
        Raw { server, exports }
    }

    /// The step an option leads to, and the types of its answers.
    fn ask(&mut self, option: u32, data: &[u8]) -> (Result<ServerStep, Error>, Vec<u32>) {
        let mut bytes = b"IHAVEOPT".to_vec();
        bytes.extend_from_slice(&option.to_be_bytes());
        bytes.extend_from_slice(&(data.len() as u32).to_be_bytes());
        bytes.extend_from_slice(data);
        let mut out = Vec::new();
        let step = self.server.step(&bytes, offer(&self.exports, TlsRule::Offered), &mut out);
        let (mut kinds, mut rest) = (Vec::new(), out.as_slice());
        while !rest.is_empty() {
            assert_eq!(rest[..8], 0x0003_e889_0455_65a9_u64.to_be_bytes());
            assert_eq!(rest[8..12], option.to_be_bytes());
            kinds.push(u32::from_be_bytes(rest[12..16].try_into().unwrap()));
            let length = u32::from_be_bytes(rest[16..20].try_into().unwrap()) as usize;
            rest = &rest[20 + length..];
        }
        (step, kinds)
    }
}

const ERROR: u32 = 1 << 31;

fn name_and(name: &str, rest: &[u8]) -> Vec<u8> {
    [&(name.len() as u32).to_be_bytes(), name.as_bytes(), rest].concat()
}

#[test]
fn malformed_options_are_refused_and_the_handshake_goes_on() {
    let long = "n".repeat(4097);
    let cases: [(u32, Vec<u8>, u32); 14] = [
        (3, b"x".to_vec(), 3),
        (5, b"x".to_vec(), 3),
        (8, b"x".to_vec(), 3),
        (11, b"x".to_vec(), 3),
        (4, vec![], 1),
        (99, vec![7; 300], 1),
        (6, vec![], 3),
        (6, name_and("a", &[0, 1]), 3),
        (7, name_and("a", &[0, 0, 9]), 3),
        (7, name_and("missing", &[0, 0]), 6),
        (7, name_and(&long, &[0, 0]), 3),
        (7, vec![255; 8], 3),
        (10, name_and("a", &[0, 0, 0, 0]), 3),
        (9, name_and("a", &[0, 0, 0, 1, 0, 0, 0, 4, b'n', b'o', b'n', b'e']), 3),
    ];
    for (option, data, refusal) in cases {
        let mut raw = Raw::new();
        let (step, kinds) = raw.ask(option, &data);
        assert!(matches!(step, Ok(ServerStep::Continue { .. })), "{option}: {step:?}");
        assert_eq!(kinds, [ERROR | refusal], "{option} {data:?}");
        let (step, kinds) = raw.ask(3, &[]);
        assert!(matches!(step, Ok(ServerStep::Continue { .. })));
        assert_eq!(kinds, [2, 1]);
    }
}

#[test]
fn data_of_any_announced_length_are_skipped_without_being_kept() {
    let mut raw = Raw::new();
    let mut head = b"IHAVEOPT".to_vec();
    head.extend_from_slice(&7u32.to_be_bytes());
    head.extend_from_slice(&u32::MAX.to_be_bytes());
    let mut out = Vec::new();
    let offered = offer(&raw.exports, TlsRule::Off);
    let step = raw.server.step(&head, offered, &mut out).unwrap();
    assert_eq!(step, ServerStep::Continue { consumed: 16 });
    assert_eq!(out[12..16], (ERROR | 9).to_be_bytes());
    let piece = vec![0; 1 << 20];
    for _ in 0..4095 {
        let step = raw.server.step(&piece, offered, &mut out).unwrap();
        assert_eq!(step, ServerStep::Continue { consumed: piece.len() });
    }
    let step = raw.server.step(&piece, offered, &mut out).unwrap();
    assert_eq!(step, ServerStep::Continue { consumed: piece.len() - 1 });
    assert_eq!(raw.ask(3, &[]).1, [2, 1]);
}

#[test]
fn contexts_hold_for_the_export_they_were_chosen_for_and_until_tls_begins() {
    let mut raw = Raw::new();
    let mut query = vec![0, 0, 0, 1, 0, 0, 0, 15];
    query.extend_from_slice(b"base:allocation");
    assert_eq!(raw.ask(8, &[]).1, [1]);
    assert_eq!(raw.ask(10, &name_and("a", &query)).1, [4, 1]);
    // A choice that fails leaves none chosen.
    assert_eq!(raw.ask(10, &name_and("b", &query)).1, [ERROR | 6]);
    let chosen = |raw: &mut Raw| match raw.ask(7, &name_and("a", &[0, 0])).0.unwrap() {
        ServerStep::Ready { agreement, .. } => (agreement.style, agreement.contexts.len()),
        other => panic!("{other:?}"),
    };
    assert_eq!(chosen(&mut raw), (ReplyStyle::Structured, 0));

    let mut raw = Raw::new();
    assert_eq!(raw.ask(8, &[]).1, [1]);
    assert_eq!(raw.ask(10, &name_and("a", &query)).1, [4, 1]);
    let (step, _) = raw.ask(5, &[]);
    assert!(matches!(step, Ok(ServerStep::StartTls { .. })));
    raw.server.secured();
    assert_eq!(chosen(&mut raw), (ReplyStyle::Simple, 0));

    let mut raw = Raw::new();
    assert_eq!(raw.ask(11, &[]).1, [1]);
    assert_eq!(raw.ask(8, &[]).1, [ERROR | 10]);
    assert_eq!(raw.ask(10, &name_and("a", &query)).1, [4, 1]);
    assert_eq!(chosen(&mut raw), (ReplyStyle::Extended, 1));
}

#[test]
fn wildcards_list_contexts_and_choose_none() {
    let mut raw = Raw::new();
    assert_eq!(raw.ask(8, &[]).1, [1]);
    let query =
        |text: &str| [&[0, 0, 0, 1], &(text.len() as u32).to_be_bytes(), text.as_bytes()].concat();
    assert_eq!(raw.ask(9, &name_and("a", &[0, 0, 0, 0])).1, [4, 4, 1]);
    assert_eq!(raw.ask(9, &name_and("a", &query("base:"))).1, [4, 1]);
    assert_eq!(raw.ask(9, &name_and("a", &query("x-entresol:"))).1, [4, 1]);
    assert_eq!(raw.ask(9, &name_and("a", &query("qemu:"))).1, [1]);
    assert_eq!(raw.ask(10, &name_and("a", &query("base:"))).1, [1]);
    assert_eq!(raw.ask(10, &name_and("a", &query("base:missing"))).1, [1]);
}

#[test]
fn strangers_are_told_apart_from_servers() {
    let step = |bytes: &[u8]| {
        let mut client = ClientHandshake::new(ClientOptions::export(""));
        client.step(bytes, &mut Vec::new()).unwrap_err()
    };
    let error = step(b"HTTP/1.1 400 Bad Request\r\n");
    assert_eq!((error.kind(), error.field()), (ErrorKind::Foreign, "greeting"));
    let oldstyle = [&b"NBDMAGIC"[..], &0x0000_4202_8186_1253_u64.to_be_bytes(), &[0; 140]].concat();
    let error = step(&oldstyle);
    assert!(error.to_string().contains("oldstyle"), "{error}");
    let error = ServerHandshake::begin(&mut Vec::new())
        .step(b"GET / HTTP/1.1", offer(&[], TlsRule::Off), &mut Vec::new())
        .unwrap_err();
    assert_eq!(error.field(), "client flags");
}

#[test]
fn a_server_of_the_first_newstyle_is_asked_by_name() {
    let mut client = ClientHandshake::new(ClientOptions::export("x"));
    let mut out = Vec::new();
    client.step(b"NBDMAGICIHAVEOPT\0\0", &mut out).unwrap();
    assert_eq!(out, b"\0\0\0\0IHAVEOPT\0\0\0\x01\0\0\0\x01x");
    let answer = [&4096u64.to_be_bytes()[..], &[0, 5], &[0; 124]].concat();
    assert_eq!(client.step(&answer[..133], &mut out), Ok(ClientStep::Incomplete { needed: 134 }));
    let step = client.step(&answer, &mut out).unwrap();
    let ClientStep::Ready { agreement, .. } = step else { panic!("{step:?}") };
    assert_eq!((agreement.bytes, agreement.flags.0), (4096, 5));
}

/// Extended headers asked for twice were granted twice.
#[test]
fn what_is_agreed_on_already_is_refused_and_holds() {
    let exports = [export("disk")];
    let ask = |server: &mut ServerHandshake, option: u32| {
        let mut bytes = b"IHAVEOPT".to_vec();
        bytes.extend_from_slice(&option.to_be_bytes());
        bytes.extend_from_slice(&0u32.to_be_bytes());
        let mut out = Vec::new();
        server.step(&bytes, offer(&exports, TlsRule::Off), &mut out).unwrap();
        u32::from_be_bytes(out[12..16].try_into().unwrap())
    };
    const STRUCTURED_REPLY: u32 = 8;
    const EXTENDED_HEADERS: u32 = 11;
    const ACKNOWLEDGED: u32 = 1;
    const INVALID: u32 = (1 << 31) + 3;
    const EXTENDED_HEADERS_REQUIRED: u32 = (1 << 31) + 10;
    let mut server = ServerHandshake::begin(&mut Vec::new());
    server.step(&3u32.to_be_bytes(), offer(&exports, TlsRule::Off), &mut Vec::new()).unwrap();
    assert_eq!(ask(&mut server, STRUCTURED_REPLY), ACKNOWLEDGED);
    assert_eq!(ask(&mut server, STRUCTURED_REPLY), INVALID);
    assert_eq!(ask(&mut server, EXTENDED_HEADERS), ACKNOWLEDGED);
    assert_eq!(ask(&mut server, EXTENDED_HEADERS), INVALID);
    assert_eq!(ask(&mut server, STRUCTURED_REPLY), EXTENDED_HEADERS_REQUIRED);
}
