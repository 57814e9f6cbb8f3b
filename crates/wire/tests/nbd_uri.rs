//! URIs of NBD exports: what they mean, and what is refused.

#![expect(clippy::unwrap_used, reason = "a test stops where something fails")]

use entresol_random::SplitMix;
use entresol_wire::nbd::{Transport, Uri};

fn tcp(text: &str) -> (String, u16, String) {
    let uri = Uri::parse(text).unwrap();
    match uri.transport {
        Transport::Tcp { host, port } => (host, port, uri.export),
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn examples_of_the_format_mean_what_it_says() {
    let is = |host: &str, port, export: &str| (host.to_owned(), port, export.to_owned());
    assert_eq!(tcp("nbd://example.com/disk"), is("example.com", 10809, "disk"));
    assert_eq!(tcp("nbd://example.com/"), is("example.com", 10809, ""));
    assert_eq!(tcp("nbd://example.com"), is("example.com", 10809, ""));
    assert_eq!(tcp("nbd://example.com//disk"), is("example.com", 10809, "/disk"));
    assert_eq!(tcp("nbd://example.com/hello%20world"), is("example.com", 10809, "hello world"));
    assert_eq!(tcp("nbd://example.com:1/%C3%A4"), is("example.com", 1, "ä"));
    assert_eq!(tcp("nbds://[::1]:99/x"), is("::1", 99, "x"));
    assert_eq!(tcp("nbd://[::1]/x"), is("::1", 10809, "x"));
    assert_eq!(tcp("nbd://joe@h:7"), is("h", 7, ""));
    assert_eq!(tcp("nbd:///x"), is("localhost", 10809, "x"));
    let unix = Uri::parse("nbd+unix:///disk?socket=/run/a%20b").unwrap();
    assert_eq!(unix.transport, Transport::Unix { path: "/run/a b".into() });
    assert_eq!((unix.export.as_str(), unix.encrypted), ("disk", false));
    let unix = Uri::parse("nbds+unix:///?socket=%00/abstract&x-other=1").unwrap();
    assert_eq!(unix.transport, Transport::Unix { path: "\0/abstract".into() });
    assert!(unix.encrypted);
}

#[test]
fn parameters_of_tls_are_read_and_credentials_can_be_left_out() {
    let text = "nbds://joe@h/x?tls-type=x509&tls-hostname=n&tls-verify-peer=0&\
                tls-certificates=/etc/pki&tls-psk-file=/k";
    let uri = Uri::parse(text).unwrap();
    assert_eq!(uri.user.as_deref(), Some("joe"));
    assert_eq!(uri.tls_type.as_deref(), Some("x509"));
    assert_eq!(uri.tls_hostname.as_deref(), Some("n"));
    assert_eq!(uri.tls_verify_peer, Some(false));
    assert_eq!(uri.tls_certificates.as_deref(), Some("/etc/pki"));
    assert_eq!(uri.tls_psk_file.as_deref(), Some("/k"));
    let public = uri.without_credentials().to_string();
    assert_eq!(public, "nbds://h/x?tls-type=x509&tls-hostname=n&tls-verify-peer=0");
}

#[test]
fn what_is_no_uri_of_nbd_is_refused_with_the_part_that_is_wrong() {
    for (text, field) in [
        ("http://h/x", "scheme"),
        ("nbd:h", "scheme"),
        ("nbd://h:99999/x", "port"),
        ("nbd://[::1/x", "host"),
        ("nbd://[::1]9/x", "port"),
        ("nbd://h/%zz", "export"),
        ("nbd://h/%00", "export"),
        ("nbd://h/%ff", "export"),
        ("nbd://h/x?socket=/s", "socket"),
        ("nbd+unix:///x", "socket"),
        ("nbd+unix:///x?socket=", "socket"),
        ("nbd+unix:///x?socket=a%00b", "socket"),
        ("nbd+unix://h/x?socket=/s", "host"),
        ("nbd://h/x?color=blue", "parameter"),
        ("nbd://h/x?tls-type=magic", "parameter"),
        ("nbd://h/x?tls-verify-peer=maybe", "parameter"),
    ] {
        let error = Uri::parse(text).unwrap_err();
        assert!(error.field().contains(field), "{text}: {error}");
        assert!(error.to_string().contains("expected"), "{text}: {error}");
    }
}

#[test]
fn a_uri_is_read_back_as_it_was_written() {
    for seed in 0..2000 {
        println!("seed {seed}");
        let random = &mut SplitMix::new(seed);
        let mut text = |longest: usize, least: usize| -> String {
            const SIGNS: [char; 14] =
                ['a', 'Z', '9', '-', '/', ' ', '%', '?', '&', '#', '@', ':', 'ä', '='];
            let length = least + random.index(longest);
            (0..length).map(|_| SIGNS[random.index(SIGNS.len())]).collect()
        };
        let (export, path, host) = (text(9, 0), text(9, 1), text(5, 1));
        let (user, hostname) = (text(4, 1), text(4, 0));
        let unix = random.index(2) == 0;
        let port = if random.index(2) == 0 { 10809 } else { random.next_u64() as u16 };
        let uri = Uri {
            transport: match unix {
                true => Transport::Unix { path },
                false => Transport::Tcp { host, port },
            },
            export,
            encrypted: random.index(2) == 0,
            user: (!unix && random.index(2) == 0).then_some(user),
            tls_type: (random.index(2) == 0).then(|| "x509".to_owned()),
            tls_hostname: (random.index(2) == 0).then_some(hostname),
            tls_verify_peer: [None, Some(true), Some(false)][random.index(3)],
            tls_certificates: None,
            tls_psk_file: None,
        };
        let text = uri.to_string();
        assert_eq!(Uri::parse(&text).unwrap(), uri, "{text}");
    }
}
