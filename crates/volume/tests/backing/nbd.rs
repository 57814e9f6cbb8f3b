//! The backing that is an NBD server: its promises, whatever happens to the server.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use entresol_sim::Random;
use entresol_volume::backing::memory::{Fault, Kind, Loss, MemoryMedium};
use entresol_volume::backing::nbd::{NbdBacking, NbdOptions};
use entresol_volume::backing::{Backing, BackingCompletion, BackingRequest, Extent, ExtentKind};
use entresol_volume::{Durable, ErrorKind, Hole};
use entresol_wire::nbd::{BlockSizes, ExportFlags};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::model::{Model, Seed, is_readable, perform, seeds, write};
use crate::scratch::Scratch;
use crate::server::{Plan, Server};

const BYTES: usize = 300_000;

fn open(server: &Server) -> NbdBacking {
    NbdBacking::open(&server.uri(), &NbdOptions::default()).unwrap()
}

fn read(offset: u64, length: u32) -> BackingRequest {
    BackingRequest::Read { offset, length }
}

#[test]
fn requests_in_any_order_leave_what_an_array_would_hold() {
    for seed in seeds() {
        let _seed = Seed(seed);
        let medium = MemoryMedium::new(BYTES);
        let server = Server::start(&medium, Plan::new(seed));
        let mut model = Model::new(vec![0; BYTES], seed);
        model.exercise(&mut open(&server), 500);
        assert!(medium.contents() == model.bytes);
        assert_eq!(server.connections(), 1);
    }
}

#[test]
fn a_server_that_dies_and_forgets_what_was_not_flushed_loses_nothing_for_its_client() {
    let (seeds, mut connections) = (seeds(), 0);
    for seed in seeds.iter().copied() {
        let _seed = Seed(seed);
        let medium = MemoryMedium::new(BYTES);
        let loss = |seed| if seed % 2 == 0 { Loss::All } else { Loss::Drawn(seed) };
        let plan = Plan { dies_one_in: 12, loss, ..Plan::new(seed) };
        let server = Server::start(&medium, plan);
        let mut model = Model::new(vec![0; BYTES], seed);
        let mut backing = open(&server);
        for _ in 0..4 {
            model.exercise(&mut backing, 150);
            perform(&mut backing, BackingRequest::Flush).unwrap();
            assert!(medium.durable_contents() == model.bytes, "a flush was not true");
        }
        connections += server.connections();
    }
    assert!(
        connections as usize > 5 * seeds.len(),
        "only {connections} connections: it hardly ever died"
    );
}

#[test]
fn a_server_that_babbles_is_left_and_asked_anew() {
    for seed in seeds() {
        let _seed = Seed(seed);
        let medium = MemoryMedium::new(BYTES);
        let server = Server::start(&medium, Plan { babbles_one_in: 20, ..Plan::new(seed) });
        let mut model = Model::new(vec![0; BYTES], seed);
        model.exercise(&mut open(&server), 300);
        assert!(medium.contents() == model.bytes);
    }
}

#[test]
fn a_failed_flush_is_reported_and_the_next_one_is_true() {
    let medium = MemoryMedium::new(BYTES);
    let server = Server::start(&medium, Plan::new(1));
    let mut backing = open(&server);
    perform(&mut backing, write(0, &[1; 4096])).unwrap();
    perform(&mut backing, write(4096, &[2; 4096])).unwrap();
    perform(&mut backing, write(0, &[3; 512])).unwrap();
    // The medium never makes durable what this flush should have covered, unless it is written
    // again.
    medium.add_fault(Fault::Calls { kind: Kind::Flush, from: 0, count: 1 });
    let error = perform(&mut backing, BackingRequest::Flush).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    perform(&mut backing, BackingRequest::Flush).unwrap();
    medium.crash(Loss::All);
    let contents = medium.contents();
    assert!(contents[..512] == [3; 512] && contents[512..4096] == [1; 3584]);
    assert!(contents[4096..8192] == [2; 4096]);
}

/// A server tells of a sync that failed once, here to a write with FUA: the flush, or the other
/// such write, that was under way beside it was taken for true, and what was lost never written
/// again.
#[test]
fn what_makes_durable_beside_a_durable_write_that_fails_is_true_or_fails_too() {
    for (seed, beside) in (0..8).flat_map(|seed| [(seed, false), (seed, true)]) {
        let medium = MemoryMedium::new(BYTES);
        let server = Server::start(&medium, Plan { syncs_for_fua: true, ..Plan::new(seed) });
        let mut backing = open(&server);
        perform(&mut backing, write(0, &[1; 4096])).unwrap();
        let durable = |offset, byte| {
            let bytes = Bytes::from(vec![byte; 4096]);
            BackingRequest::Write { offset, bytes, durable: Durable::AtOnce }
        };
        medium.add_fault(Fault::Calls { kind: Kind::Flush, from: 0, count: 1 });
        backing.begin(1, durable(4096, 2));
        backing.begin(2, if beside { durable(8192, 3) } else { BackingRequest::Flush });
        backing.submit();
        let mut completions = Vec::new();
        while completions.len() < 2 {
            backing.wait(&mut completions);
        }
        completions.sort_by_key(|completion| completion.token);
        let told: Vec<bool> = completions.iter().map(|one| one.result.is_ok()).collect();
        assert!(told != [true, true], "the error was told to one");
        medium.crash(Loss::All);
        let contents = medium.contents();
        if told[0] {
            assert!(contents[4096..8192] == [2; 4096], "seed {seed}");
        }
        if told[1] && beside {
            assert!(contents[8192..12288] == [3; 4096], "seed {seed}");
        } else if told[1] {
            assert!(contents[..4096] == [1; 4096], "seed {seed}");
        }
    }
}

#[test]
fn errors_of_the_medium_come_through_by_kind_and_the_connection_stays() {
    let medium = MemoryMedium::new(BYTES);
    medium.add_fault(Fault::Range { kind: Kind::Read, bytes: 8192..8193 });
    let server = Server::start(&medium, Plan::new(1));
    let mut backing = open(&server);
    let error = perform(&mut backing, read(8000, 4096)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert!(error.to_string().contains("EIO"), "{error}");
    perform(&mut backing, read(0, 4096)).unwrap();
    let error = perform(&mut backing, write(BYTES as u64, &[1])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoSpace);
    assert_eq!(server.connections(), 1);
}

#[test]
fn a_client_goes_with_a_goodbye_and_no_answer_left_behind() {
    let medium = MemoryMedium::new(4 << 20);
    let server = Server::start(&medium, Plan::new(1));
    for _ in 0..20 {
        let mut backing = open(&server);
        for token in 0..60 {
            backing.begin(token, read(token * 65536, 65536));
        }
        backing.wait(&mut Vec::new());
    }
    // It is served when all before it have ended.
    let _last = open(&server);
    assert_eq!(server.goodbyes(), 20);
}

// A loop that polls descriptors again and again would never rest.
#[test]
fn the_descriptor_of_a_backing_with_nothing_in_flight_is_quiet_once_it_was_reaped() {
    let medium = MemoryMedium::new(BYTES);
    let server = Server::start(&medium, Plan::new(1));
    let mut backing = open(&server);
    perform(&mut backing, read(0, 4096)).unwrap();
    let mut completions = Vec::new();
    // What watched over the request may wake once more.
    let is_quiet = (0..10_000).any(|_| {
        backing.reap(&mut completions);
        std::thread::yield_now();
        !is_readable(&backing)
    });
    assert!(completions.is_empty() && is_quiet);
}

#[test]
fn a_connection_that_is_lost_while_nothing_is_in_flight_is_made_again() {
    let medium = MemoryMedium::new(BYTES);
    let server = Server::start(&medium, Plan::new(1));
    let mut backing = open(&server);
    perform(&mut backing, write(0, &[1; 4096])).unwrap();
    server.refuse(true);
    server.refuse(false);
    let mut completions = Vec::new();
    while server.connections() < 2 {
        backing.reap(&mut completions);
        std::thread::yield_now();
    }
    assert!(completions.is_empty());
}

#[test]
fn requests_outlast_a_server_that_is_away_for_a_while() {
    let medium = MemoryMedium::new(BYTES);
    let server = Server::start(&medium, Plan::new(1));
    let mut backing = open(&server);
    perform(&mut backing, write(0, &[1; 4096])).unwrap();
    server.refuse(true);
    backing.begin(1, read(0, 4096));
    backing.begin(2, write(4096, &[2; 4096]));
    backing.begin(3, BackingRequest::Flush);
    backing.submit();
    let mut completions = Vec::new();
    while server.connections() < 4 {
        backing.reap(&mut completions);
        std::thread::yield_now();
    }
    assert!(completions.is_empty(), "{completions:?}");
    server.refuse(false);
    while completions.len() < 3 {
        backing.wait(&mut completions);
    }
    assert!(completions.iter().all(|completion| completion.result.is_ok()), "{completions:?}");
    assert!(medium.contents()[..8192] == [[1; 4096], [2; 4096]].concat());
}

#[test]
fn requests_fail_when_the_server_stays_away_and_succeed_when_it_is_back() {
    let medium = MemoryMedium::new(BYTES);
    let server = Server::start(&medium, Plan::new(1));
    let give_up_after = Duration::from_millis(300);
    let options = NbdOptions { give_up_after, ..NbdOptions::default() };
    let mut backing = NbdBacking::open(&server.uri(), &options).unwrap();
    server.refuse(true);
    let error = perform(&mut backing, read(0, 4096)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert!(error.to_string().contains("gave up a read after 0.3 s"), "{error}");
    server.refuse(false);
    let again = NbdBacking::open(&server.uri(), &options).unwrap();
    drop(again);
    while perform(&mut backing, read(0, 4096)).is_err() {}
}

#[test]
fn another_export_at_the_same_place_is_not_written_to() {
    let medium = MemoryMedium::new(BYTES);
    let server = Server::start(&medium, Plan::new(1));
    let give_up_after = Duration::from_millis(300);
    let options = NbdOptions { give_up_after, ..NbdOptions::default() };
    let mut backing = NbdBacking::open(&server.uri(), &options).unwrap();
    perform(&mut backing, read(0, 512)).unwrap();
    let other = MemoryMedium::new(BYTES + 512);
    server.change(&other, Plan::new(2));
    let error = perform(&mut backing, write(0, &[1; 512])).unwrap_err();
    assert!(error.to_string().contains("another export than before"), "{error}");
    assert!(other.contents() == vec![0; BYTES + 512]);
}

#[test]
fn a_server_without_the_newer_commands_is_made_do() {
    for seed in seeds() {
        let _seed = Seed(seed);
        let medium = MemoryMedium::new(4 * 1_048_576 + 4096);
        let flags = ExportFlags::HAS_FLAGS.with(ExportFlags::FLUSH);
        let sizes = BlockSizes { minimum: 4096, preferred: 4096, payload_max: 1 << 20 };
        let plan = Plan { flags, sizes, dies_one_in: 30, loss: |_| Loss::All, ..Plan::new(seed) };
        let server = Server::start(&medium, plan);
        let mut backing = open(&server);
        let description = backing.description().clone();
        assert_eq!((description.alignment, description.request_bytes_max), (4096, 1 << 20));
        assert!(!description.can_trim && !description.zeroes_fast);
        let mut model = Model::new(vec![0; 4 * 1_048_576 + 4096], seed);
        model.length_max = 100_000;
        model.exercise(&mut backing, 100);
        let bytes = Bytes::from(vec![9; 8192]);
        let durable = Durable::AtOnce;
        perform(&mut backing, BackingRequest::Write { offset: 4096, bytes, durable }).unwrap();
        assert!(medium.durable_contents()[4096..12288] == [9; 8192]);
        let all =
            BackingRequest::Zero { offset: 4096, length: 4 * 1_048_576, hole: Hole::Forbidden };
        perform(&mut backing, all).unwrap();
        assert!(medium.contents()[4096..].iter().all(|byte| *byte == 0));
        perform(&mut backing, BackingRequest::Trim { offset: 0, length: 4096 }).unwrap();
    }
}

#[test]
fn an_export_that_may_only_be_read_says_so() {
    let medium = MemoryMedium::new(BYTES);
    let plan = Plan::new(1);
    let flags = plan.flags.with(ExportFlags::READ_ONLY);
    let server = Server::start(&medium, Plan { flags, ..plan });
    let mut backing = open(&server);
    assert!(backing.description().read_only);
    let refused = perform(&mut backing, write(0, &[1])).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ReadOnly);
    perform(&mut backing, read(0, 1)).unwrap();
}

#[test]
fn allocation_is_told_in_full_however_little_the_server_says_at_a_time() {
    let medium = MemoryMedium::new(1 << 20);
    let server = Server::start(&medium, Plan::new(1));
    let mut backing = open(&server);
    for at in 0..16 {
        perform(&mut backing, write(at * 65536, &[1; 4096])).unwrap();
    }
    let extents = backing.allocation((4096, u64::MAX), 100).unwrap();
    for most in [1, 2, 3, 30] {
        let first = backing.allocation((4096, u64::MAX), most).unwrap();
        assert_eq!(first, extents[..most]);
    }
    assert_eq!(extents.iter().map(|extent| extent.length).sum::<u64>(), (1 << 20) - 4096);
    assert_eq!(extents.len(), 31);
    let kinds = extents.iter().map(|extent| extent.kind == ExtentKind::Hole);
    assert!(kinds.eq((0..31).map(|at| at % 2 == 0)));
    // Who does not wait is told as much as the server says at a time.
    assert!(backing.begin_allocation(7, (4096, 1 << 19)));
    assert_eq!(backing.in_flight(), 1);
    let mut completions = Vec::new();
    backing.wait(&mut completions);
    let [BackingCompletion { token: 7, result: Ok(told) }] = &completions[..] else {
        panic!("{completions:?}")
    };
    assert_eq!((Extent::decode(told), backing.in_flight()), (extents[..2].to_vec(), 0));
}

/// A server that takes whole blocks only refused to tell how a part of one stands.
#[test]
fn allocation_is_told_of_any_range_though_the_server_takes_whole_blocks() {
    let medium = MemoryMedium::new(1 << 20);
    let sizes = BlockSizes { minimum: 4096, preferred: 4096, payload_max: 1 << 20 };
    let server = Server::start(&medium, Plan { sizes, ..Plan::new(1) });
    let mut backing = open(&server);
    perform(&mut backing, write(8192, &[1; 4096])).unwrap();
    let extent = |length, kind| Extent { length, kind };
    let (data, hole) = (ExtentKind::Data, ExtentKind::Hole);
    for (range, expected) in [
        ((100, 200), vec![extent(200, hole)]),
        ((5000, 4000), vec![extent(3192, hole), extent(808, data)]),
        ((9000, 4096), vec![extent(3288, data), extent(808, hole)]),
        ((4096, 1 << 19), vec![extent(4096, hole), extent(4096, data), extent(516_096, hole)]),
    ] {
        assert_eq!(backing.allocation(range, 10).unwrap(), expected, "{range:?}");
        assert!(backing.begin_allocation(7, range));
        let mut completions = Vec::new();
        backing.wait(&mut completions);
        let told = Extent::decode(completions[0].result.as_ref().unwrap());
        assert_eq!(told, expected[..told.len()], "{range:?}");
        assert!(!told.is_empty());
    }
}

#[test]
fn identity_is_the_place_without_credentials() {
    let medium = MemoryMedium::new(BYTES);
    let server = Server::start(&medium, Plan::new(1));
    let identity = open(&server).description().identity.clone();
    assert_eq!(identity, format!("{} of {BYTES} bytes", server.uri()));
}

#[test]
fn what_cannot_be_opened_is_refused_by_kind() {
    let medium = MemoryMedium::new(BYTES);
    let server = Server::start(&medium, Plan::new(1));
    let options = NbdOptions::default();
    let error = |uri: &str| NbdBacking::open(uri, &options).map(drop).unwrap_err();
    let other = server.uri().replace("volume", "other");
    assert_eq!(error(&other).kind(), ErrorKind::Name);
    assert_eq!(error(&format!("{}x", server.uri())).kind(), ErrorKind::Unavailable);
    assert_eq!(error("nbd+unix:///volume").kind(), ErrorKind::InvalidInput);
    assert_eq!(error("nbds://localhost/").kind(), ErrorKind::InvalidInput);
    assert_eq!(error("nbds://localhost/?tls-type=psk").kind(), ErrorKind::Unsupported);
}

#[test]
fn over_tls_the_server_is_verified_and_requests_come_through() {
    let scratch = Scratch::new("tls");
    let key = rcgen::KeyPair::generate().unwrap();
    let mut authority = rcgen::CertificateParams::default();
    authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let authority = rcgen::CertifiedIssuer::self_signed(authority, key).unwrap();
    std::fs::write(scratch.path().join("ca-cert.pem"), authority.pem()).unwrap();
    let server_key = rcgen::KeyPair::generate().unwrap();
    let certificate = rcgen::CertificateParams::new(vec!["volume.example".to_owned()])
        .unwrap()
        .signed_by(&server_key, &authority)
        .unwrap();
    let chain = CertificateDer::from_pem_slice(certificate.pem().as_bytes()).unwrap();
    let server_key = PrivateKeyDer::from_pem_slice(server_key.serialize_pem().as_bytes()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![chain], server_key)
        .unwrap();
    let medium = MemoryMedium::new(4 << 20);
    let plan = Plan { tls: Some(Arc::new(config)), dies_one_in: 40, ..Plan::new(5) };
    let server = Server::start(&medium, plan);
    let plain = NbdBacking::open(&server.uri(), &NbdOptions::default()).map(drop).unwrap_err();
    assert_eq!(plain.kind(), ErrorKind::Unavailable);
    let uri = |host: &str| {
        let folder = scratch.path().display();
        let uri = server.uri().replace("nbd+unix", "nbds+unix");
        format!("{uri}&tls-certificates={folder}&tls-hostname={host}")
    };
    let options = NbdOptions::default();
    let wrong = NbdBacking::open(&uri("other.example"), &options).map(drop).unwrap_err();
    assert!(wrong.to_string().contains("TLS fails"), "{wrong}");
    let mut backing = NbdBacking::open(&uri("volume.example"), &options).unwrap();
    assert!(!backing.description().identity.contains("tls-certificates"));
    let mut model = Model::new(vec![0; 4 << 20], 5);
    model.length_max = 1_000_000;
    model.exercise(&mut backing, 200);
    assert!(medium.contents() == model.bytes);
}

#[test]
fn more_is_written_between_flushes_than_is_kept() {
    let medium = MemoryMedium::new(96 << 20);
    let server = Server::start(&medium, Plan::new(1));
    let mut backing = open(&server);
    let mut random = Random::new(1);
    let mut bytes = vec![0; 1 << 20];
    let mut completions = Vec::new();
    for round in 0..2 {
        for at in 0..96 {
            random.fill(&mut bytes);
            backing.begin(at, write(at << 20, &bytes));
            backing.submit();
            backing.reap(&mut completions);
        }
        while backing.in_flight() > 0 {
            backing.wait(&mut completions);
        }
        assert!(completions.drain(..).all(|completion| completion.result.is_ok()));
        // Flushes of its own keep what it must remember within bounds.
        assert!(medium.counts().flushes > 2 * round);
    }
    let contents = medium.contents();
    server.change(&medium, Plan::new(2));
    medium.crash(Loss::All);
    perform(&mut backing, BackingRequest::Flush).unwrap();
    assert!(medium.durable_contents() == contents);
}
