//! What is wrong with volumes, and what to do about it.

use std::time::Duration;

use entresol_page::{Figures, Grade, Problem, ShownCertificate, Unit, share, shown, text_of};
use serde_json::Value;

/// Which part of the most dirty blocks is near it.
const NEARLY_ALL: f64 = 0.85;

const CERTIFICATES: [ShownCertificate; 2] = [
    ShownCertificate {
        which: "clients are shown",
        end: "/server/certificate_end_seconds",
        files: "`--tls-cert` and `--tls-key`",
    },
    ShownCertificate {
        which: "the HTTP interface shows",
        end: "/server/admin_certificate_end_seconds",
        files: "`--admin-tls-cert` and `--admin-tls-key`",
    },
];

/// Everything that is wrong at `now_seconds` since the epoch, the worst first; `late` is for how
/// long the figures have not become new, if they should have.
pub(super) fn find(figures: Figures<'_>, late: Option<Duration>, now_seconds: u64) -> Vec<Problem> {
    let mut found = Vec::new();
    let mut add = |grade, what: String, next: &str| {
        found.push(Problem { grade, what, next: next.to_owned() });
    };
    if figures.text("/health/status") == "stalled" {
        let device = text_of(figures.text("/health/device").as_bytes());
        let seconds = shown(figures.number("/health/oldest_pending_io_seconds"), Unit::Seconds);
        let what = format!("{device} has not answered for {seconds}.");
        add(Grade::Failure, what, &figures.text("/health/next"));
    }
    if let Some(failure) = figures.0.pointer("/cache/failed").and_then(Value::as_str) {
        add(
            Grade::Failure,
            format!("The cache is no longer used, volumes go on without it: {}.", said(failure)),
            "check the cache device, then restart the server",
        );
    }
    for volume in list(figures, "/volumes") {
        if let Some(error) = volume["errors"]["write_back"].as_str() {
            let what = format!("Writing back of volume {} fails: {}.", name(volume), said(error));
            add(Grade::Failure, what, "check the backing; the volume tries again by itself");
        }
    }
    for volume in list(figures, "/absent") {
        let error = said(volume["error"].as_str().unwrap_or_default());
        let what = format!("Volume {} is not exported: {error}.", name(volume));
        add(Grade::Failure, what, "put its backing back, then restart the server");
    }
    if let Some(late) = late {
        let seconds = shown(late.as_secs_f64(), Unit::Seconds);
        add(
            Grade::Warning,
            format!("The figures are {seconds} old: the server waits for its cache device."),
            "check the device if this lasts",
        );
    }
    let (dirty, most) =
        (figures.number("/total/usage/dirty"), figures.number("/cache/dirty_blocks_max"));
    if dirty > NEARLY_ALL * most {
        add(
            Grade::Warning,
            format!("Dirty data are near their limit, at which writers wait: {}.", {
                share(dirty, most)
            }),
            "the backings do not keep up; see whether they are slow",
        );
    }
    let errors = list_of_errors(figures);
    if errors > 0.0 {
        let count = shown(errors, Unit::Count);
        add(
            Grade::Warning,
            format!("Requests to the cache or to backings failed {count} times."),
            "see which volume and device in the table of volumes and in the log",
        );
    }
    if figures.number("/server/refused") > 0.0 {
        let count = shown(figures.number("/server/refused"), Unit::Count);
        add(
            Grade::Warning,
            format!("{count} connections were refused since the start."),
            "have clients share connections; the log says of other reasons",
        );
    }
    found.extend(CERTIFICATES.iter().filter_map(|one| one.problem(figures, now_seconds)));
    found.sort_by_key(|problem| std::cmp::Reverse(problem.grade));
    found
}

fn list<'a>(figures: Figures<'a>, path: &str) -> impl Iterator<Item = &'a Value> {
    figures.0.pointer(path).and_then(Value::as_array).into_iter().flatten()
}

fn list_of_errors(figures: Figures<'_>) -> f64 {
    let keys = ["cache_reads", "cache_writes", "backing_reads", "backing_writes"];
    keys.iter().map(|key| figures.number(&format!("/total/errors/{key}"))).sum()
}

fn name(volume: &Value) -> String {
    text_of(volume["name"].as_str().unwrap_or_default().as_bytes())
}

/// What somebody said, so that a full stop can follow.
fn said(text: &str) -> String {
    text_of(text.trim_end_matches('.').as_bytes())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn healthy() -> Value {
        json!({
            "cache": {"failed": null, "dirty_blocks_max": 100},
            "volumes": [{"name": "vm1", "errors": {"write_back": null}}],
            "absent": [],
            "server": {"refused": 0},
            "total": {"usage": {"dirty": 85}, "errors": {"cache_reads": 0}},
            "health": {"status": "ok"},
        })
    }

    fn whats(figures: &Value, late: Option<Duration>) -> Vec<String> {
        let problems = find(Figures(figures), late, 1_000_000);
        assert!(problems.iter().all(|problem| problem.next.len() > 10), "{problems:?}");
        problems.into_iter().map(|problem| problem.what).collect()
    }

    #[test]
    fn each_thing_that_is_wrong_is_told_with_the_next_step_and_the_worst_is_first() {
        assert!(whats(&healthy(), None).is_empty());
        let mut figures = healthy();
        figures["health"] = json!({"status": "stalled", "oldest_pending_io_seconds": 45,
            "device": "/hdd/a (backing of volume vm1)", "next": "check the device"});
        figures["cache"]["failed"] = json!("a write failed.");
        figures["volumes"][0]["errors"]["write_back"] = json!("no space");
        figures["absent"] = json!([{"name": "vm2", "error": "there is no /hdd/b"}]);
        figures["total"] = json!({"usage": {"dirty": 86},
            "errors": {"cache_reads": 1, "backing_writes": 1233}});
        figures["server"] = json!({"refused": 2, "certificate_end_seconds": 1_000_000 + 3600,
            "admin_certificate_end_seconds": 1_000_000 - 5});
        let expected = [
            "/hdd/a (backing of volume vm1) has not answered for 45 s.",
            "The cache is no longer used, volumes go on without it: a write failed.",
            "Writing back of volume vm1 fails: no space.",
            "Volume vm2 is not exported: there is no /hdd/b.",
            "The certificate that the HTTP interface shows ended 5 s ago: it is refused.",
            "The figures are 4 s old: the server waits for its cache device.",
            "Dirty data are near their limit, at which writers wait: 86.0 %.",
            "Requests to the cache or to backings failed 1,234 times.",
            "2 connections were refused since the start.",
            "The certificate that clients are shown ends in 1 h 0 min.",
        ];
        assert_eq!(whats(&figures, Some(Duration::from_secs(4))), expected);
    }

    /// A cache without figures has no limit that dirty data could be near.
    #[test]
    fn figures_that_are_not_there_are_no_problem() {
        assert!(whats(&json!({}), None).is_empty());
    }
}
