//! A scrape: what a server shows, read as Prometheus does.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};

/// What each label of a metric is at some sample.
pub(crate) type Labels = BTreeMap<String, BTreeSet<String>>;

/// The metrics that a server shows.
pub(crate) struct Scrape {
    pub(crate) text: String,
    /// By the name that queries use.
    pub(crate) samples: BTreeMap<String, Labels>,
}

impl Scrape {
    /// Asks the server at `address` by TLS.
    pub(crate) fn of(address: &str, trusted: &Arc<ClientConfig>) -> Scrape {
        let name = ServerName::try_from("localhost").unwrap();
        let connection = ClientConnection::new(Arc::clone(trusted), name).unwrap();
        let mut stream = StreamOwned::new(connection, TcpStream::connect(address).unwrap());
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let kind =
            "\r\nContent-Type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n";
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.contains(kind), "{head}");
        Scrape::read(body)
    }

    /// Reads the text of one.
    pub(crate) fn read(text: &str) -> Scrape {
        assert!(text.ends_with("# EOF\n"), "{text}");
        let mut samples: BTreeMap<String, Labels> = BTreeMap::new();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let (sample, value) = line.rsplit_once(' ').unwrap();
            assert!(value.parse::<f64>().is_ok(), "{line}");
            let (name, rest) = sample.split_once('{').unwrap_or((sample, "}"));
            let labels = samples.entry(name.to_owned()).or_default();
            // No value of these has a comma.
            for label in rest.trim_end_matches('}').split(',').filter(|one| !one.is_empty()) {
                let (label, value) = label.split_once('=').unwrap();
                let values = labels.entry(label.to_owned()).or_default();
                values.insert(value.trim_matches('"').to_owned());
            }
        }
        Scrape { text: text.to_owned(), samples }
    }

    /// By the full name of each metric: its type, and its labels in their order.
    pub(crate) fn families(&self) -> impl Iterator<Item = (String, String)> {
        let declared = self.text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
        declared.map(|declared| {
            let (name, kind) = declared.split_once(' ').unwrap();
            let (suffix, sample) = match kind {
                "counter" => ("_total", "_total"),
                "histogram" => ("", "_count"),
                _ => ("", ""),
            };
            let labels = self.samples.get(&format!("{name}{sample}"));
            let labels = labels.unwrap_or_else(|| panic!("{name} has no sample"));
            let labels: Vec<&str> = labels.keys().map(String::as_str).collect();
            (format!("{name}{suffix}"), format!("{kind} {}", labels.join(", ")))
        })
    }
}
