//! The figures of a server, out of the text of `INFO`, and rates between two of them.

use std::collections::BTreeMap;

use entresol_page::CERTIFICATE_DAYS;
use serde_json::{Map, Value, json};

use super::{count, share};
use crate::units;

/// What a server said of itself at a moment.
#[derive(Debug, Clone, Default)]
pub(super) struct Figures {
    values: BTreeMap<String, String>,
}

/// Where a read was answered: the name for people, and the figure.
const ANSWERED: [(&str, &str); 4] = [
    ("cache", "memory_hits"),
    ("buffer", "buffer_hits"),
    ("device", "flash_hits"),
    ("absent", "misses"),
];
/// Commands that are named, those that took the most time first.
const COMMANDS: usize = 5;
/// Certificates: the figure that says when each ends, which one it is, options of its files.
const CERTIFICATES: [(&str, &str, &str); 2] = [
    ("certificate_end_seconds", "the certificate", "`tls-cert` and `tls-key`"),
    (
        "admin_certificate_end_seconds",
        "the certificate of the HTTP interface",
        "`admin-tls-cert` and `admin-tls-key`",
    ),
];

impl Figures {
    /// Lines of `name:value`; others only structure the text.
    pub(super) fn parse(text: &str) -> Figures {
        let lines = text.lines().filter_map(|line| line.trim_end().split_once(':'));
        let values = lines.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        Figures { values }
    }

    fn text(&self, name: &str) -> &str {
        self.values.get(name).map_or("", String::as_str)
    }

    /// A figure; 0 where the server has none of the name.
    fn number(&self, name: &str) -> f64 {
        self.text(name).parse().unwrap_or(0.0)
    }

    pub(super) fn is_poisoned(&self) -> bool {
        self.number("poisoned") != 0.0
    }

    /// Which program it is, and for how long it has been up.
    pub(super) fn title(&self) -> String {
        let (name, version) = match self.text("entresol_version") {
            "" => ("redis-server", self.text("redis_version")),
            version => ("entresol", version),
        };
        let up = units::seconds(self.number("uptime_in_seconds"));
        format!("{name} {version}, up {up}, at")
    }

    /// Reads, wherever they were answered.
    fn reads(&self) -> f64 {
        ANSWERED.iter().map(|(_, figure)| self.number(figure)).sum()
    }

    fn writes(&self) -> f64 {
        self.number("puts") + self.number("removes") + self.number("touches")
    }

    /// What a person wants to know first, and how it is.
    pub(super) fn sentences(&self) -> Vec<(&'static str, String)> {
        let bytes = |name: &str| units::bytes(self.number(name));
        let health = match (self.is_poisoned(), self.number("ground_lost") != 0.0) {
            (true, _) => "takes no writes: one to the device failed".to_owned(),
            (false, true) => "serves, but writes wait for the device: no buffers".to_owned(),
            (false, false) => "serves".to_owned(),
        };
        let (segments, free) = (self.number("segments"), self.number("segments_free"));
        let used = segments - free;
        let live = share(self.number("flash_live_bytes"), self.number("flash_allocated_bytes"));
        let reads = self.reads();
        let answered = ANSWERED
            .map(|(name, figure)| format!("{name} {}", share(self.number(figure), reads)))
            .join(", ");
        let warnings = self.warnings().into_iter().map(|warning| ("warning", warning));
        let mut sentences = vec![("health", health)];
        sentences.extend(warnings);
        sentences.extend([
            ("entries", count(self.number("entries"))),
            (
                "memory",
                format!(
                    "{} of {} ({}): index {}, write buffers {}, cache {}",
                    bytes("used_memory"),
                    bytes("maxmemory"),
                    share(self.number("used_memory"), self.number("maxmemory")),
                    bytes("index_bytes"),
                    bytes("buffer_bytes"),
                    bytes("cache_bytes")
                ),
            ),
            (
                "flash",
                format!(
                    "{} of {} segments in use ({}), {live} of their bytes live",
                    count(used),
                    count(segments),
                    share(used, segments)
                ),
            ),
            ("reads", format!("{}: {answered}", count(reads))),
            (
                "writes",
                format!(
                    "{}, {} of theirs, {} to the device{}",
                    count(self.writes()),
                    bytes("user_written_bytes"),
                    bytes("device_written_bytes"),
                    amplified(self.number("write_amplification"))
                ),
            ),
            ("device", format!("{} requests under way", count(self.number("pending_io")))),
            (
                "clients",
                format!(
                    "{} of {}, {} refused",
                    count(self.number("connected_clients")),
                    count(self.number("maxclients")),
                    count(self.number("rejected_connections"))
                ),
            ),
            ("commands", self.busiest()),
        ]);
        sentences
    }

    /// What does no harm yet, but will, with the next step.
    fn warnings(&self) -> Vec<String> {
        CERTIFICATES.iter().filter_map(|one| self.certificate_ends(*one)).collect()
    }

    /// That a certificate which the server shows ends soon, by the server's own clock.
    fn certificate_ends(&self, (end, which, files): (&str, &str, &str)) -> Option<String> {
        let end = self.text(end).parse::<f64>().ok()?;
        let left = end - self.number("server_time_usec") / 1e6;
        let next = format!("put a new one in the place of {files}, and send SIGHUP");
        match left {
            left if left < 0.0 => {
                let ago = units::seconds(-left);
                Some(format!("{which} ended {ago} ago, clients refuse it: {next}"))
            }
            left if left < (CERTIFICATE_DAYS * 86_400) as f64 => {
                Some(format!("{which} ends in {}: {next}", units::seconds(left)))
            }
            _ => None,
        }
    }

    /// The commands that took the most time.
    fn busiest(&self) -> String {
        let mut all: Vec<(f64, String)> = self
            .commands()
            .map(|(name, calls, microseconds)| {
                let mean = units::seconds(microseconds / calls.max(1.0) / 1e6);
                (microseconds, format!("{name} {} times, {mean} each", count(calls)))
            })
            .collect();
        all.sort_by(|one, other| other.0.total_cmp(&one.0));
        match all.is_empty() {
            true => "none so far".to_owned(),
            false => {
                all.into_iter().take(COMMANDS).map(|(_, text)| text).collect::<Vec<_>>().join("\n")
            }
        }
    }

    /// Each command with its calls and the microseconds of all of them.
    fn commands(&self) -> impl Iterator<Item = (&str, f64, f64)> {
        self.values.iter().filter_map(|(name, value)| {
            let name = name.strip_prefix("cmdstat_")?;
            let part = |wanted: &str| {
                let parts = value.split(',').filter_map(|part| part.split_once('='));
                let mut named = parts.filter(|(name, _)| *name == wanted);
                named.next()?.1.parse::<f64>().ok()
            };
            Some((name, part("calls")?, part("usec")?))
        })
    }

    /// All figures by their names in `INFO`, numbers as numbers, and last the warnings.
    pub(super) fn json(&self) -> Value {
        let value = |text: &String| {
            text.parse::<f64>()
                .map_or(json!(text), |_| serde_json::from_str(text).unwrap_or_else(|_| json!(text)))
        };
        let mut all: Map<String, Value> =
            self.values.iter().map(|(name, text)| (name.clone(), value(text))).collect();
        all.insert("warnings".to_owned(), json!(self.warnings()));
        Value::Object(all)
    }
}

/// What happened in a second between two looks.
#[derive(Debug)]
pub(super) struct Rates {
    columns: Vec<(&'static str, usize, f64)>,
}

impl Rates {
    /// Between `before` and `now`, so many seconds apart.
    pub(super) fn between(before: &Figures, now: &Figures, seconds: f64) -> Rates {
        let seconds = seconds.max(1e-9);
        // A server that was started again begins at 0.
        let more = |name: &str| (now.number(name) - before.number(name)).max(0.0);
        let rate = |name: &str| more(name) / seconds;
        let reads = (now.reads() - before.reads()).max(0.0);
        let percent = |part: f64, whole: f64| if whole > 0.0 { 100.0 * part / whole } else { 0.0 };
        let spent = |figures: &Figures| -> (f64, f64) {
            figures.commands().fold((0.0, 0.0), |(calls, time), (_, c, t)| (calls + c, time + t))
        };
        let ((calls, time), (calls_before, time_before)) = (spent(now), spent(before));
        let mean = (time - time_before).max(0.0) / (calls - calls_before).max(1.0);
        let mut columns = vec![
            ("commands/s", 11, rate("total_commands_processed")),
            ("µs each", 8, mean),
            ("reads/s", 10, reads / seconds),
        ];
        for (name, figure) in ANSWERED {
            let name = match name {
                "cache" => "cache %",
                "buffer" => "buffer %",
                "device" => "device %",
                _ => "absent %",
            };
            columns.push((name, 9, percent(more(figure), reads)));
        }
        let segments = now.number("segments");
        columns.extend([
            ("writes/s", 10, (now.writes() - before.writes()).max(0.0) / seconds),
            ("device reads/s", 15, rate("device_reads")),
            ("MB written/s", 13, rate("device_written_bytes") / 1e6),
            ("memory %", 9, percent(now.number("used_memory"), now.number("maxmemory"))),
            ("flash %", 8, percent(segments - now.number("segments_free"), segments)),
            ("clients", 8, now.number("connected_clients")),
        ]);
        Rates { columns }
    }

    /// Each with its name, for programs.
    pub(super) fn all(&self) -> impl Iterator<Item = (&'static str, f64)> {
        self.columns.iter().map(|(name, _, value)| (*name, *value))
    }

    pub(super) fn heading(&self) -> String {
        let names = self.columns.iter().map(|(name, width, _)| format!("{name:>width$}"));
        format!("{}\n", names.collect::<String>())
    }

    pub(super) fn line(&self) -> String {
        let value = |(name, width, value): &(&str, usize, f64)| {
            let decimals = usize::from(name.contains('%') || *value < 10.0 && *value != 0.0);
            format!("{value:>width$.decimals$}")
        };
        self.columns.iter().map(value).collect()
    }
}

/// How many bytes were written for each one that clients put. The writes of the opening are not
/// among them, so it is 0, and says nothing, until more is written.
fn amplified(times: f64) -> String {
    if times > 0.0 { format!(" ({times:.2} times)") } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(lines: &[&str]) -> Figures {
        Figures::parse(&lines.join("\r\n"))
    }

    #[test]
    fn rates_are_of_the_time_between_two_looks_alone() {
        let before = figures(&["# Stats", "memory_hits:100", "misses:0", "puts:7", "segments:10"]);
        let now = figures(&[
            "memory_hits:160",
            "flash_hits:20",
            "misses:20",
            "puts:17",
            "segments:10",
            "segments_free:5",
            "cmdstat_get:calls=100,usec=250,usec_per_call=2.50",
        ]);
        let rates = Rates::between(&before, &now, 2.0);
        let of = |wanted: &str| rates.all().find(|(name, _)| *name == wanted).unwrap().1;
        assert_eq!((of("reads/s"), of("writes/s")), (50.0, 5.0));
        assert_eq!((of("cache %"), of("device %"), of("absent %")), (60.0, 20.0, 20.0));
        assert_eq!((of("µs each"), of("flash %")), (2.5, 50.0));
        assert_eq!(rates.heading().trim_end().chars().count(), rates.line().chars().count());
    }

    #[test]
    fn a_server_that_was_started_again_has_no_negative_rates() {
        let (before, now) = (figures(&["puts:1000", "memory_hits:5"]), figures(&["puts:3"]));
        assert!(Rates::between(&before, &now, 1.0).all().all(|(_, value)| value >= 0.0));
    }

    #[test]
    fn bytes_of_the_opening_alone_are_no_amplification() {
        let writes = |times: &str| {
            let of = figures(&["device_written_bytes:262144", "user_written_bytes:13", times]);
            of.sentences().into_iter().find(|(what, _)| *what == "writes").unwrap().1
        };
        assert!(writes("write_amplification:1.08").ends_with("to the device (1.08 times)"));
        assert!(writes("write_amplification:0.000").ends_with("to the device"));
    }

    #[test]
    fn a_server_that_takes_no_writes_says_so_first() {
        let poisoned = figures(&["poisoned:1", "entresol_version:0.1.0"]);
        assert!(poisoned.is_poisoned());
        assert!(poisoned.sentences()[0].1.starts_with("takes no writes"));
        assert_eq!(figures(&["poisoned:0"]).sentences()[0].1, "serves");
    }

    #[test]
    fn a_certificate_that_ends_within_a_month_is_warned_of_and_no_other() {
        let warnings = |end: &str| {
            let now = "server_time_usec:2000000000000000";
            let of = figures(&[now, &format!("certificate_end_seconds:{end}")]);
            let (shown, json) = (of.sentences(), of.json()["warnings"].clone());
            let shown: Vec<String> = (shown.into_iter())
                .filter_map(|(what, text)| (what == "warning").then_some(text))
                .collect();
            assert_eq!(json, json!(shown));
            shown
        };
        assert!(figures(&["poisoned:0"]).warnings().is_empty(), "no TLS, no certificate");
        let month = 30 * 86_400;
        assert!(warnings(&(2_000_000_000 + month).to_string()).is_empty());
        let soon = warnings(&(2_000_000_000 + month - 86_400).to_string());
        assert!(
            soon[0].starts_with("the certificate ends in 29.0 days: put a new one"),
            "{soon:?}"
        );
        let of = figures(&[
            "server_time_usec:2000000000000000",
            "admin_certificate_end_seconds:2000086400",
        ]);
        let http = of.warnings();
        assert_eq!(http.len(), 1, "{http:?}");
        assert!(http[0].starts_with("the certificate of the HTTP interface ends in"), "{http:?}");
        assert!(http[0].contains("`admin-tls-cert`"), "{http:?}");
        let ended = warnings("1999996400");
        assert!(ended[0].starts_with("the certificate ended 60.0 min ago"), "{ended:?}");
    }
}
