//! The console: what its page shows, to whom, and by which headers.

#![expect(clippy::unwrap_used, reason = "a test stops where something fails")]

mod support;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use serde_json::Value;
use support::{TempDir, TestServer};

const TOKEN: &str = "0123456789abcdef";
const HOSTILE: &str = "<img/src=x>\"'&<script>";

/// A server whose console asks for [`TOKEN`], and its directory.
fn guarded() -> (TestServer, TempDir) {
    let directory = TempDir::new();
    let file = directory.path("token");
    std::fs::write(&file, format!("{TOKEN}\n")).unwrap();
    let settings = [
        ("admin-port", "0"),
        ("admin-token", file.to_str().unwrap()),
        ("slowlog-log-slower-than", "0"),
    ];
    (TestServer::start(&settings), directory)
}

fn get(server: &TestServer, path: &str, header: &str) -> (String, String) {
    let address: SocketAddr = server.server.ports().admin.unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    let host = format!("Host: localhost:{}", address.port());
    stream.write_all(format!("GET {path} HTTP/1.1\r\n{host}\r\n{header}\r\n").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

fn bearer() -> String {
    format!("Authorization: Bearer {TOKEN}\r\n")
}

fn stats(server: &TestServer) -> Value {
    serde_json::from_str(&get(server, "/stats", "").1).unwrap()
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
fn every_figure_of_the_page_is_that_of_the_statistics() {
    let server = TestServer::start(&[("admin-port", "0")]);
    let mut client = server.client();
    for number in 0..500 {
        client.call(&format!("SET key:{number} {}", "v".repeat(100)));
        client.call(&format!("GET key:{}", number * 2));
    }
    client.call("GET");
    let before = stats(&server);
    let (_, page) = get(&server, "/", "");
    let after = stats(&server);
    let shown = figures(&page);
    assert!(shown.len() > 60, "{}", shown.len());
    for (path, value) in &shown {
        let of = |all: &Value| all.pointer(path).map(Value::to_string);
        // What changes by itself, such as memory, may have done so in between; the sample of
        // entries comes once somebody has looked.
        let value = Some(value.clone());
        let found = [of(&before), of(&after)];
        assert!(found[1].is_some(), "{path}");
        assert!(found.contains(&value) || found[0] != found[1], "{path}: {value:?} {found:?}");
    }
    for path in ["/store/gets", "/store/puts", "/commands/set/calls", "/spaces/0/entries"] {
        assert_eq!(before.pointer(path), after.pointer(path), "{path}");
    }
    for (path, expected) in [
        ("/store/gets", "500"),
        ("/commands/set/calls", "500"),
        ("/commands/get/rejected", "1"),
        ("/spaces/0/entries", "500"),
        ("/clients/connected", "1"),
    ] {
        let found = shown.iter().find(|(shown, _)| shown == path).map(|(_, value)| value.as_str());
        assert_eq!(found, Some(expected), "{path}");
    }
}

/// What was overwritten makes room among the old segments, not among the young ones.
#[test]
fn segments_by_age_show_which_part_of_each_quarter_is_live() {
    let server = TestServer::start(&[("admin-port", "0")]);
    let mut client = server.client();
    let value = "v".repeat(16 << 10);
    let mut put =
        |number: u32| assert_eq!(client.call(&format!("SET {number} {value}")), "+OK\r\n");
    (0..1200).for_each(&mut put);
    (0..200).for_each(&mut put);
    let of = |all: &Value, quarter: usize, key: &str| {
        let found = all.pointer(&format!("/segment_ages/{quarter}/{key}"));
        found.and_then(Value::as_u64).unwrap()
    };
    let all = stats(&server);
    let oldest = 100 * of(&all, 3, "live_bytes") / of(&all, 3, "used_bytes");
    let youngest = 100 * of(&all, 0, "live_bytes") / of(&all, 0, "used_bytes");
    assert!(oldest < 70 && youngest > 95, "{oldest} {youngest}: {}", all["segment_ages"]);
    let ages: Vec<u64> = (0..4).map(|quarter| of(&all, quarter, "age_writes_max")).collect();
    assert!(ages.is_sorted() && ages[3] > 2 * ages[0], "{ages:?}");
    let (_, page) = get(&server, "/", "");
    let shown = figures(&page);
    for quarter in 0..4 {
        for key in ["segments", "live_bytes", "age_writes_max"] {
            let path = format!("/segment_ages/{quarter}/{key}");
            let found = shown.iter().find(|(shown, _)| *shown == path).map(|(_, value)| value);
            assert_eq!(found, Some(&of(&all, quarter, key).to_string()), "{path}");
        }
    }
    assert!(page.contains("segments by their age") && page.contains("oldest quarter"));
}

#[test]
fn a_database_is_shown_with_the_types_sizes_and_ends_of_its_entries() {
    let server = TestServer::start(&[("admin-port", "0")]);
    let mut client = server.client();
    client.call("SELECT 3");
    let value = "v".repeat(1000);
    for number in 0..3000 {
        let end = if number % 2 == 0 { " EX 1000" } else { "" };
        assert_eq!(client.call(&format!("SET key:{number:05} {value}{end}")), "+OK\r\n");
        if number % 3 == 0 {
            client.call(&format!("HSET hash:{number:04} field {value}"));
        }
    }
    // Whoever looks first begins the survey.
    let of = |all: &Value, key: &str| {
        all.pointer(&format!("/spaces/3/{key}")).and_then(Value::as_f64).unwrap_or_default()
    };
    let mut all = stats(&server);
    while of(&all, "sample/entries") == 0.0 {
        std::thread::yield_now();
        all = stats(&server);
    }
    assert_eq!(of(&all, "entries"), 4000.0);
    let part = |key: &str| of(&all, &format!("sample/{key}")) / of(&all, "sample/entries");
    let said = &all["spaces"];
    assert_eq!(part("strings") + part("hashes"), 1.0, "{said}");
    assert!((0.6..0.9).contains(&part("strings")), "{said}");
    assert!((0.2..0.55).contains(&part("ending")), "{said}");
    assert_eq!(of(&all, "sample/key_bytes_mean"), 9.0, "{said}");
    assert!((1000.0..1020.0).contains(&of(&all, "sample/value_bytes_mean")), "{said}");
    assert!((4.0e6..4.6e6).contains(&of(&all, "estimated_bytes")), "{said}");
    assert_eq!(
        said["0"],
        serde_json::json!({
            "entries": 0, "is_database": true, "estimated_bytes": null, "sample": null,
        })
    );
    let page = get(&server, "/", "").1;
    let shown = figures(&page);
    for key in ["entries", "estimated_bytes", "sample/value_bytes_mean"] {
        let path = format!("/spaces/3/{key}");
        let found = shown.iter().find(|(shown, _)| *shown == path).map(|(_, value)| value.clone());
        assert_eq!(found, all.pointer(&path).map(Value::to_string), "{path}");
    }
    // One who looks again soon after has nothing read anew.
    assert_eq!(stats(&server)["spaces"]["3"]["sample"], said["3"]["sample"]);
}

#[test]
fn the_page_has_all_sections_and_says_whether_all_is_well() {
    let server = TestServer::start(&[("admin-port", "0")]);
    for path in ["/", "/?span=day", "/console/now"] {
        let (head, page) = get(&server, path, "");
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        for text in [
            "Healthy",
            "Device full",
            "Latency of reads",
            "Where gets are answered",
            "Memory by use",
            "Segments on flash",
            "Writing and reclaim",
            "Tables",
            "Commands since the start",
        ] {
            assert!(page.contains(text), "{path}: {text}");
        }
        // Without a token nobody is known, and entries are nobody's business.
        for text in ["Slow log</h2>", "Look at a key", "Sign out"] {
            assert!(!page.contains(text), "{path}: {text}");
        }
        assert!(page.contains("<code>admin-token</code>"), "{path}");
    }
    assert!(get(&server, "/console/key?space=0&key=k", "").0.starts_with("HTTP/1.1 404"));
    assert!(get(&server, "/console/sign-in", "").0.starts_with("HTTP/1.1 404"));
}

#[test]
fn pages_may_run_nothing_but_the_script_of_the_server_and_have_no_style_within() {
    let (server, _directory) = guarded();
    let mut client = server.client();
    client.call("SET k v");
    let look = "/console/key?space=0&key=k";
    for (path, header) in [("/", bearer()), ("/", String::new()), (look, bearer())] {
        let (head, page) = get(&server, path, &header);
        let policy = head.lines().find(|line| line.starts_with("Content-Security-Policy: "));
        let policy = policy.unwrap();
        for rule in ["default-src 'none'", "script-src 'self'", "style-src 'self'"] {
            assert!(policy.contains(rule), "{policy}");
        }
        for rule in ["form-action 'none'", "base-uri 'none'", "frame-ancestors 'none'"] {
            assert!(policy.contains(rule), "{policy}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
        for line in ["X-Content-Type-Options: nosniff", "Referrer-Policy: no-referrer"] {
            assert!(head.contains(line), "{head}");
        }
        assert!(head.contains("Cache-Control: no-store"), "{head}");
        for unwanted in [" style=", "<style", " onclick", "javascript:", "http://", "https://"] {
            // Drawings name the namespace of SVG, which nobody fetches.
            let page = page.replace("http://www.w3.org/2000/svg", "");
            assert!(!page.contains(unwanted), "{path}: {unwanted}");
        }
        assert_eq!(page.matches("<script").count(), usize::from(path == "/"), "{page}");
    }
    for (path, kind) in [("style.css", "text/css"), ("script.js", "text/javascript")] {
        let (head, text) = get(&server, &format!("/console/{path}"), "");
        assert!(head.starts_with("HTTP/1.1 200") && head.contains(kind), "{head}");
        assert!(!text.contains("http://") && !text.contains("https://") && !text.contains("url("));
    }
}

#[test]
fn whoever_shows_no_token_is_shown_a_form_that_names_the_option_and_no_figure() {
    let (server, _directory) = guarded();
    for header in ["", "Authorization: Bearer 0123456789abcdeX\r\n", "Cookie: a=b\r\n"] {
        let (head, page) = get(&server, "/", header);
        assert!(head.starts_with("HTTP/1.1 401 Unauthorized\r\n"), "{head}");
        assert!(page.contains("<code>admin-token</code>") && page.contains("Sign in"));
        assert!(figures(&page).is_empty());
        // A form without names puts nothing into an address.
        assert!(!page.contains(" name=\"token") && !page.contains("action="), "{page}");
        for path in ["/console/now", "/console/key?space=0&key=k", "/console/sign-in"] {
            let (head, _) = get(&server, path, header);
            assert!(head.starts_with("HTTP/1.1 401 Unauthorized\r\n"), "{path}: {head}");
            assert!(!head.contains("Set-Cookie"), "{path}: {head}");
        }
    }
}

#[test]
fn a_browser_signs_in_once_and_out_again() {
    let (server, _directory) = guarded();
    let (head, body) = get(&server, "/console/sign-in", &bearer());
    let cookie = head.lines().find_map(|line| line.strip_prefix("Set-Cookie: ")).unwrap();
    assert!(cookie.ends_with("; Path=/; HttpOnly; SameSite=Strict"), "{cookie}");
    assert!(!body.contains(TOKEN));
    let kept = format!("Cookie: {}\r\n", cookie.split(';').next().unwrap());
    for path in ["/", "/console/now", "/stats", "/metrics"] {
        assert!(get(&server, path, &kept).0.starts_with("HTTP/1.1 200"), "{path}");
        // The token opens nothing where it would be kept by others.
        let address = format!("{path}?token={TOKEN}");
        assert!(get(&server, &address, "").0.starts_with("HTTP/1.1 401"), "{path}");
    }
    let (_, page) = get(&server, "/", &kept);
    assert!(page.contains("Sign out") && !page.contains(TOKEN));
    let (head, _) = get(&server, "/console/sign-out", &kept);
    let gone = head.lines().find_map(|line| line.strip_prefix("Set-Cookie: ")).unwrap();
    assert!(gone.contains("=; Max-Age=0; ") && !gone.contains(TOKEN), "{gone}");
}

#[test]
fn names_keys_and_values_of_clients_are_text_wherever_they_are_shown() {
    let (server, _directory) = guarded();
    let mut client = server.client();
    client.call(&format!("CLIENT SETNAME {HOSTILE}"));
    client.call(&format!("SET {HOSTILE} {HOSTILE}"));
    client.call(&format!("HSET h {HOSTILE} {HOSTILE}"));
    client.send(&[&b"GET"[..], b"\xFF\x00\xE2\x80\xAE<b>"]);
    client.reply();
    let encoded: String = HOSTILE.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let escaped = "&lt;img/src=x&gt;&quot;'&amp;&lt;script&gt;";
    let (_, page) = get(&server, "/", &bearer());
    // The name of the client, the slow log's name and its arguments.
    assert!(page.matches(escaped).count() >= 6, "{}", page.matches(escaped).count());
    assert!(page.contains("\\xff\\x00\\xe2\\x80\\xae&lt;b&gt;"));
    let look = |key: &str| get(&server, &format!("/console/key?space=0&key={key}"), &bearer()).1;
    assert_eq!(look(&encoded).matches(escaped).count(), 2, "{}", look(&encoded));
    assert_eq!(look("h").matches(escaped).count(), 2, "{}", look("h"));
    for page in [page, look(&encoded), look("h"), look("%3Cb%3E%5Cz")] {
        assert!(!page.contains("<img") && !page.contains("'&<") && !page.contains("\\xae<b>"));
        assert!(page.matches("<script").count() <= 1);
    }
}

#[test]
fn a_look_at_a_key_tells_type_size_and_end_and_changes_nothing() {
    let (server, _directory) = guarded();
    let mut client = server.client();
    client.call("SELECT 3");
    client.call("SET k some-value EX 1000");
    client.call(&format!("SET long {}", "x".repeat(5000)));
    client.call(&format!("SET huge {}", "x".repeat(2 << 20)));
    let look = |key: &str| get(&server, &format!("/console/key?{key}"), &bearer()).1;
    let page = look("space=3&key=k");
    for text in ["string", "10 B", "some-value", "in 16 min"] {
        assert!(page.contains(text), "{text}: {page}");
    }
    assert!(look("space=3&key=%5Cx6b").contains("some-value"));
    assert!(look("space=3&key=long").contains("(2952 more bytes)"));
    assert!(look("space=3&key=huge").contains("more than the console reads"));
    assert!(look("space=0&key=k").contains("There is no such key."));
    assert!(look("space=16&key=k").contains("expected a number from 0 to 15, found `16`"));
    assert!(look("key=k").contains("expected a number"));
    assert!(look("space=3&key=%5Cq").contains("expected text in which"));
    assert_eq!(client.call("GET k"), "$10\r\nsome-value\r\n");
    assert_eq!(client.call("DBSIZE"), ":3\r\n");
}

#[test]
fn certificates_of_drives_stand_on_the_page_the_newest_first_and_as_text() {
    let directory = TempDir::new();
    let report = |name: &str, started: u64, verdict: &str| {
        let text = serde_json::json!({
            "act": "certify", "verdict": verdict, "name": HOSTILE, "started_unix": started,
            "line": format!("line of {name}"),
            "machine": {"targets": [{"name": "/dev/nvme7n1", "model": name, "serial": null}]},
        });
        std::fs::write(directory.path(&format!("{name}.json")), text.to_string()).unwrap();
    };
    report("old", 1_000, "fail");
    report("new", 2_000, "pass");
    std::fs::write(directory.path("notes.txt"), "no report").unwrap();
    let folder = directory.path("").display().to_string();
    let settings = [("admin-port", "0"), ("drive-certificates", folder.as_str())];
    let server = TestServer::start(&settings);
    let (_, page) = get(&server, "/", "");
    assert!(page.contains("Certified drives") && !page.contains("no report"));
    let places = ["line of new", "line of old"].map(|line| page.find(line).unwrap());
    assert!(places[0] < places[1], "{places:?}");
    assert_eq!(page.matches("<code>/dev/nvme7n1</code>: ").count(), 2);
    assert_eq!(page.matches("&lt;img/src=x&gt;&quot;'&amp;&lt;script&gt;").count(), 2);
    let none = TestServer::start(&[("admin-port", "0")]);
    assert!(!get(&none, "/", "").1.contains("Certified drives"));
}
