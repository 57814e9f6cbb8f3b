//! Commands against a server that lets only its users in, over TCP, TLS and a Unix socket.

#[path = "support/interruptible.rs"]
mod interruptible;
#[path = "support/served.rs"]
#[expect(dead_code, reason = "who is not let in cannot stop the server")]
mod served;
mod support;

use std::io::Write;
use std::process::{Command, Stdio};

use served::Served;
use support::{Directory, entresol, json, refused_with};

const PASSWORD: &str = "s3cret/@ word";

/// The line of user `ann` for a users file.
fn line_of_ann() -> String {
    let mut child = Command::new(env!("CARGO_BIN_EXE_entresol"))
        .args(["user", "add", "ann"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut input = child.stdin.take().expect("it is piped");
    input.write_all(PASSWORD.as_bytes()).expect("it reads the password");
    drop(input);
    let output = child.wait_with_output().expect("it ends");
    String::from_utf8(output.stdout).expect("a line is text")
}

/// Starts a server with user `ann`, and says on which TCP port it listens.
fn served(directory: &Directory, options: &[&str]) -> (Served, String) {
    let users = directory.file("users", &line_of_ann()).display().to_string();
    let data = directory.path("data");
    let own = ["--dir", &data, "--capacity", "64MiB", "--users", &users, "--port", "0"];
    let served = Served::start(directory, &[&own[..], options].concat());
    let mut client = served.client();
    assert_eq!(client.call(&[b"AUTH", b"ann", PASSWORD.as_bytes()]), "+OK");
    let info = client.call(&[b"INFO", b"server"]);
    let port = info.lines().find_map(|line| line.strip_prefix("tcp_port:")).expect("it is told");
    let port = port.trim().to_owned();
    (served, port)
}

/// A server with users could not be loaded, exported or driven: nobody said who asks.
#[test]
fn servers_with_users_are_driven_loaded_and_exported_and_no_message_has_the_password() {
    let directory = Directory::new("login");
    let password = directory.file("password", &format!("{PASSWORD}\n")).display().to_string();
    let wrong = directory.file("wrong", "s3cret").display().to_string();
    let csv = directory.file("a.csv", "k,v\nx,1\n").display().to_string();
    let data = directory.path("data");
    let (_served, port) = served(&directory, &[]);

    let with_password = format!("redis://ann:s3cret%2F%40%20word@127.0.0.1:{port}");
    let with_user = format!("redis://ann@127.0.0.1:{port}");
    let nobody = format!("redis://127.0.0.1:{port}");
    let bench = ["bench", "load", "--keys", "100", "--value-size", "10", "--json"];
    let driven = json(&entresol(&[&bench[..], &["--target", &with_password]].concat()));
    assert!(driven["ops_per_second"].as_f64().is_some_and(|rate| rate > 0.0), "{driven}");
    let asked = ["--target", &with_user, "--password-file", &password];
    json(&entresol(&[&bench[..], &asked[..]].concat()));
    let loaded = entresol(&[&["load", &csv, "--key", "k", "--value", "v"], &asked[..]].concat());
    assert!(loaded.status.success(), "{loaded:?}");
    let value = "v".repeat(50_001);
    let lines: String = (0..300).map(|key| format!("{key},{value}\n")).collect();
    let large = directory.file("large.csv", &format!("k,v\n{lines}")).display().to_string();
    let load = [&["load", &large, "--key", "k"], &asked[..]].concat();
    assert!(entresol(&load).status.success());
    let exported = entresol(&[&["export"], &asked[..]].concat());
    let text = String::from_utf8_lossy(&exported.stdout);
    assert!(exported.status.success() && text.contains("\"key\":\"x\""), "{text}");

    let on_unix = format!("unix:{}", directory.path("socket"));
    for (target, file, expected) in [
        (with_user.as_str(), wrong.as_str(), &["redis://ann@", "lets nobody in", "WRONGPASS"][..]),
        (&on_unix, &password, &["unix:", "lets nobody in"]),
        (&with_password, &password, &["redis://ann@", "has a password", "give one"]),
        (&with_user, "/nowhere/p", &["cannot read a password from /nowhere/p"]),
    ] {
        for command in [&["export"][..], &bench] {
            let arguments = [command, &["--target", target, "--password-file", file]].concat();
            refused_with(&arguments, expected);
            let said = String::from_utf8_lossy(&entresol(&arguments).stderr).into_owned();
            assert!(!said.contains("s3cret") && !said.contains("word@"), "{said}");
        }
    }
    refused_with(&["export", "--target", &with_user], &["no password", "--password-file FILE"]);
    // A bench took each refusal for an operation that had failed, as if it had run.
    for command in [&["export"][..], &bench] {
        let arguments = [command, &["--target", &nobody]].concat();
        refused_with(&arguments, &["NOAUTH", "--password-file FILE"]);
    }
    let mistyped = with_password.replace("127.0.0.1", "").replace(':', "");
    for command in [&["export"][..], &bench] {
        let output = entresol(&[command, &["--target", &mistyped]].concat());
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("expected") && !said.contains("s3cret"), "{said}");
    }
    let of_a_store = ["export", "--dir", &data, "--password-file", &password];
    refused_with(&of_a_store, &["--password-file goes with --target"]);
    refused_with(&[&bench[..], &["--password-file", &password]].concat(), &["--target"]);
}

/// An authority, and the files of a server that it issued a certificate for.
fn issue(directory: &Directory, name: &str) -> (String, String, String) {
    let mut parameters =
        rcgen::CertificateParams::new(Vec::new()).expect("no names are no mistake");
    parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let authority_key = rcgen::KeyPair::generate().expect("a key is drawn");
    let authority =
        rcgen::CertifiedIssuer::self_signed(parameters, authority_key).expect("it can be signed");
    let parameters = rcgen::CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("it is IP");
    let key = rcgen::KeyPair::generate().expect("a key is drawn");
    let certificate = parameters.signed_by(&key, &authority).expect("it can be signed");
    let write = |kind: &str, text: &str| {
        directory.file(&format!("{name}-{kind}"), text).display().to_string()
    };
    let chain = write("cert", &certificate.pem());
    (write("ca", &authority.pem()), chain, write("key", &key.serialize_pem()))
}

/// A server with TLS could not be driven at all. Values that fill the sockets both ways stand for
/// ever where one end waits to send before it receives.
#[test]
fn servers_with_tls_are_driven_by_whom_they_let_in() {
    let directory = Directory::new("login-tls");
    let (authority, certificate, key) = issue(&directory, "own");
    let (stranger, _, _) = issue(&directory, "other");
    let tls = ["--tls-cert", &certificate, "--tls-key", &key];
    let (_served, port) =
        served(&directory, &[&tls[..], &["--threads", "1", "--memory", "256MiB"]].concat());
    let password = directory.file("password", PASSWORD).display().to_string();
    let target = format!("rediss://ann@127.0.0.1:{port}");
    let access = ["--password-file", &password, "--target", &target, "--tls-ca"];
    let asked = [&access[..], &[&authority]].concat();
    for name in ["load", "ycsb-a"] {
        let bench = [
            "bench",
            name,
            "--keys",
            "300",
            "--value-size",
            "50000",
            "--in-flight",
            "256",
            "--threads",
            "2",
            "--seconds",
            "0.5",
            "--json",
        ];
        let driven = json(&entresol(&[&bench[..], &asked].concat()));
        assert!(driven["ops_per_second"].as_f64().is_some_and(|rate| rate > 0.0), "{driven}");
    }
    let value = "v".repeat(50_001);
    let lines: String = (0..300).map(|key| format!("{key},{value}\n")).collect();
    let large = directory.file("large.csv", &format!("k,v\n{lines}")).display().to_string();
    let load = [&["load", &large, "--key", "k"], &asked[..]].concat();
    assert!(entresol(&load).status.success());
    let exported = entresol(&[&["export"], &asked[..]].concat());
    let (said, bytes) = (String::from_utf8_lossy(&exported.stderr), exported.stdout.len());
    assert!(exported.status.success() && bytes > 300 * 50_000, "{bytes} bytes; {said}");

    let of_a_stranger = [&["export"], &access[..], &[&stranger]].concat();
    refused_with(&of_a_stranger, &["cannot connect to rediss://ann@", "certificate"]);
    let of_nobody = [&["export"], &access[..], &[&password]].concat();
    refused_with(&of_nobody, &["expected certificates (PEM) in", "password: there is none"]);
    refused_with(&[&["export"], &access[..4]].concat(), &["--tls-ca FILE"]);
    let plain = target.replace("rediss", "redis");
    let of_plain = ["export", "--target", &plain, "--password-file", &password];
    let output = entresol(&of_plain);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    refused_with(&of_plain, &["speaks TLS: write the address as rediss://"]);
    refused_with(&[&of_plain[..], &["--tls-ca", &authority]].concat(), &["speaks no TLS"]);
}
