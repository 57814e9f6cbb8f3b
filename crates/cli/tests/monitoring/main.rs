//! What watches the servers, held against what the servers show: the dashboard, the alerts and the
//! reference may name no metric and no label that there is not.

#![expect(clippy::unwrap_used, reason = "a test stops where something fails")]

#[path = "../support/interruptible.rs"]
mod interruptible;
mod query;
mod scrape;
#[path = "../support/served.rs"]
#[expect(dead_code, reason = "of a server on a socket only the client is used")]
mod served;
#[path = "../support/mod.rs"]
#[expect(dead_code, reason = "nothing here reads JSON of commands")]
mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use query::Query;
use rustls::{ClientConfig, RootCertStore};
use scrape::Scrape;
use serde_json::Value;
use served::Client;
use support::{Directory, entresol};

const DASHBOARD: &str = include_str!("../../../../packaging/grafana/entresol.json");
const ALERTS: &str = include_str!("../../../../packaging/prometheus/alerts.yaml");
const REFERENCE: &str = include_str!("../../../../docs/guides/monitoring.md");

/// A server. Dropped, it is told to stop: one that is killed leaves its write buffers behind.
struct Running {
    child: Child,
    admin: String,
    trusted: Arc<ClientConfig>,
}

impl Running {
    /// Starts it by the program's `arguments`, with a certificate for each of its ports; it says in
    /// its first line where its pages are.
    fn start(directory: &Directory, arguments: &[&str]) -> Running {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let (cert, key) = (directory.path("cert"), directory.path("key"));
        std::fs::write(&cert, made.cert.pem()).unwrap();
        std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_entresol"))
            .args(arguments)
            .args(["--admin-port", "0", "--admin-tls-cert", &cert, "--admin-tls-key", &key])
            .args(["--tls-cert", &cert, "--tls-key", &key])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let port = line.split_whitespace().find_map(|word| word.strip_prefix("admin="));
        let admin = format!("127.0.0.1:{}", port.unwrap_or_else(|| panic!("no port in {line}")));
        let mut roots = RootCertStore::empty();
        roots.add(made.cert.der().clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let trusting = ClientConfig::builder_with_provider(provider);
        let trusting = trusting.with_safe_default_protocol_versions().unwrap();
        let trusting = trusting.with_root_certificates(roots).with_no_client_auth();
        Running { child, admin, trusted: Arc::new(trusting) }
    }

    /// What it shows once that is all that there is to show: figures come after what they count.
    fn scrape(&self, complete: &str) -> Scrape {
        loop {
            let scrape = Scrape::of(&self.admin, &self.trusted);
            if scrape.text.contains(complete) {
                return scrape;
            }
            std::thread::yield_now();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let pid = Pid::from_raw(self.child.id().cast_signed());
        kill(pid, Signal::SIGTERM).expect("it runs, or is not waited for");
        drop(self.child.wait());
    }
}

/// A server after a few commands.
fn serve(directory: &Directory) -> Scrape {
    let (data, socket) = (directory.path("data"), directory.path("socket"));
    let options = [
        "serve",
        "--memory",
        "64MiB",
        "--port",
        "",
        "--durability",
        "memory",
        "--capacity",
        "160MiB",
        "--dir",
        &data,
        "--unix",
        &socket,
    ];
    let server = Running::start(directory, &options);
    let mut client = Client::of(socket.as_ref());
    assert_eq!(client.call(&[b"SET", b"key", b"value"]), "+OK");
    assert_eq!(client.call(&[b"GET", b"key"]), "value");
    assert!(client.call(&[b"GETRANGE", b"key", b"x", b"y"]).starts_with("-ERR"));
    server.scrape("entresol_commands_total{command=\"getrange\"}")
}

/// A server of one volume, and of one whose backing is gone.
fn serve_volumes(directory: &Directory) -> Scrape {
    let (cache, socket) = (directory.path("cache"), directory.path("nbd"));
    for name in ["vm1", "vm2"] {
        let backing = directory.path(name);
        File::create(&backing).unwrap().set_len(8 << 20).unwrap();
        let create = ["volume", "create", name, "--cache", &cache, "--backing", &backing];
        let made = entresol(&create);
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    }
    std::fs::remove_file(directory.path("vm2")).unwrap();
    let options = ["volume", "serve", "--cache", &cache, "--unix", &socket];
    let server = Running::start(directory, &options);
    server.scrape("entresol_volume_exports")
}

fn scrapes(name: &str) -> [Scrape; 2] {
    let directory = Directory::new(name);
    [serve(&directory), serve_volumes(&directory)]
}

#[test]
fn dashboard_and_alerts_ask_for_metrics_and_labels_that_there_are() {
    let scrapes = scrapes("monitoring-queries");
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().filter_map(|panel| panel["targets"].as_array()).flatten();
    let mut queries: Vec<Query> = targets
        .map(|target| {
            let legend = target["legendFormat"].as_str().unwrap();
            Query::of(target["expr"].as_str().unwrap()).with_template(legend)
        })
        .collect();
    assert!(queries.len() > 50, "the dashboard has {} queries", queries.len());
    let variables = dashboard["templating"]["list"].as_array().unwrap().iter();
    let asked = variables.filter_map(|one| one["query"]["query"].as_str());
    let asked: Vec<&str> = asked.filter_map(|text| text.strip_prefix("label_values(")).collect();
    assert_eq!(asked.len(), 1, "one variable is asked for, the other is the data source");
    queries.push(Query::of(asked[0].split(',').next().unwrap()));
    let mut lines = ALERTS.lines().map(str::trim).peekable();
    let mut alerts = 0;
    while let Some(line) = lines.next() {
        if let Some(expression) = line.strip_prefix("expr: ") {
            let mut query = Query::of(expression);
            while let Some(more) = lines.next_if(|line| !line.starts_with("- alert: ")) {
                query = query.with_template(more);
            }
            queries.push(query);
            alerts += 1;
        }
    }
    assert_eq!(alerts, ALERTS.matches("- alert: ").count());
    let wrong: Vec<String> = queries.iter().flat_map(|query| query.faults(&scrapes)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn each_metric_stands_in_the_reference_with_its_type_and_its_labels() {
    let mut shown: BTreeMap<String, String> = BTreeMap::new();
    for scrape in scrapes("monitoring-reference") {
        shown.extend(scrape.families());
    }
    let reference = REFERENCE.split("## Names of earlier builds").next().unwrap();
    let rows = reference.lines().filter_map(|line| line.strip_prefix("| `"));
    let described: BTreeMap<String, String> = rows
        .map(|row| {
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            let name = cells[0].trim_end_matches('`').to_owned();
            // A label stands before its values, if these are named at all.
            let parts = cells[2].split("; ").flat_map(|part| match part.split_once(": ") {
                Some((label, _)) => vec![label],
                None => part.split(", ").collect(),
            });
            let labels: BTreeSet<&str> = parts.map(|label| label.trim_matches('`')).collect();
            let labels: Vec<&str> = labels.into_iter().filter(|one| !one.is_empty()).collect();
            (name, format!("{} {}", cells[1], labels.join(", ")))
        })
        .collect();
    assert_eq!(shown, described);
}

/// A typing error in a query would look like a metric that never has anything to say.
#[test]
fn a_metric_or_label_that_there_is_not_is_found() {
    let scrape = Scrape::read("# TYPE a_b gauge\na_b{c=\"d\"} 1\n# EOF\n");
    let faults = |text: &str| Query::of(text).faults(std::slice::from_ref(&scrape));
    let fine = "sum by (c) (rate(a_b{c=\"d\",instance=~\"$i\"}[$__rate_interval])) > 1e6 * 5";
    assert_eq!(faults(fine), Vec::<String>::new());
    for (text, named) in [
        ("rate(a_bc[5m])", "`a_bc`"),
        ("a_b{e=\"d\"}", "`e`"),
        ("a_b{c=\"x\"}", "`x`"),
        ("sum by (e) (a_b)", "`e`"),
        ("sun(a_b)", "`sun`"),
    ] {
        let found = faults(text);
        assert!(found.len() == 1 && found[0].contains(named), "{text}: {found:?}");
    }
    let found = Query::of("a_b").with_template("{{e}}: {{c}}").faults(&[scrape]);
    assert!(found.len() == 1 && found[0].contains("`e`"), "{found:?}");
}
