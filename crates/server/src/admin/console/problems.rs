//! What is wrong, and what to do about it.

use entresol_host::now;
use entresol_page::{Figures, Grade, Problem, ShownCertificate, Unit, shown, store};

use crate::shared::Shared;

const CERTIFICATES: [ShownCertificate; 2] = [
    ShownCertificate {
        which: "clients are shown",
        end: "/certificate_end_seconds",
        files: "`tls-cert` and `tls-key`",
    },
    ShownCertificate {
        which: "the HTTP interface shows",
        end: "/admin_certificate_end_seconds",
        files: "`admin-tls-cert` and `admin-tls-key`",
    },
];

/// What only the store itself knows, and the time.
#[derive(Debug, Clone, Default)]
pub(super) struct Ground {
    /// What the opening found of the superblock.
    pub(super) superblock: Option<String>,
    /// Where files or write buffers are not.
    pub(super) lost: Option<String>,
    /// Whether the store makes room by itself.
    pub(super) evicts: bool,
    /// Seconds since the epoch.
    pub(super) now_seconds: u64,
}

impl Ground {
    /// That of a server's store.
    pub(super) fn of(shared: &Shared) -> Ground {
        let store = shared.tier.store();
        Ground {
            superblock: store.superblock_damage().map(str::to_owned),
            lost: store.ground(),
            evicts: shared.tier.evicts(),
            now_seconds: now().0 / 1000,
        }
    }
}

/// Everything that is wrong, the worst first.
pub(super) fn find(figures: Figures<'_>, ground: &Ground) -> Vec<Problem> {
    let mut found = Vec::new();
    let mut add = |grade, what: String, next: &str| {
        found.push(Problem { grade, what, next: next.to_owned() });
    };
    let status = figures.text("/health/status");
    match status.as_str() {
        "ok" => {}
        "stalled" => add(
            Grade::Failure,
            format!(
                "The device has not answered for {}.",
                shown(figures.number("/health/oldest_pending_io_seconds"), Unit::Seconds)
            ),
            &figures.text("/health/next"),
        ),
        "stopping" => add(Grade::Warning, "The server is stopping.".to_owned(), "wait for the end"),
        other => add(
            Grade::Failure,
            format!("The store is {other}: writes are refused."),
            &figures.text("/health/next"),
        ),
    }
    if let Some(lost) = &ground.lost {
        add(Grade::Failure, lost.clone(), "put back what is missing before the server stops");
    }
    if let Some(damage) = &ground.superblock {
        add(
            Grade::Warning,
            format!("A copy of the superblock did not verify: {damage}"),
            "check the device; stop the server and run `entresol store verify`",
        );
    }
    found.extend(of_store(figures, ground));
    if figures.number("/clients/refused") > 0.0 {
        let count = shown(figures.number("/clients/refused"), Unit::Count);
        let what = format!("{count} connections were refused since the start.");
        let next = "raise `maxclients`, or have clients share connections".to_owned();
        found.push(Problem { grade: Grade::Warning, what, next });
    }
    found.extend(CERTIFICATES.iter().filter_map(|one| one.problem(figures, ground.now_seconds)));
    found.sort_by_key(|problem| std::cmp::Reverse(problem.grade));
    found
}

/// What is wrong with the entries.
fn of_store(figures: Figures<'_>, ground: &Ground) -> impl Iterator<Item = Problem> {
    let verify = "stop the server and run `entresol store verify`, which says where they are";
    let more = "remove entries, or add capacity or devices (`capacity`, `devices`) with a restart";
    let full = if ground.evicts { None } else { store::nearly_full(figures, more) };
    store::damaged(figures, verify).into_iter().chain(full)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn healthy() -> Value {
        json!({
            "health": {"status": "ok"},
            "store": {"damaged": 0, "flash_live_bytes": 10, "capacity_bytes": 100},
            "clients": {"refused": 0},
        })
    }

    fn whats(figures: &Value, ground: &Ground) -> Vec<String> {
        let problems = find(Figures(figures), ground);
        assert!(problems.iter().all(|problem| problem.next.len() > 10), "{problems:?}");
        problems.into_iter().map(|problem| problem.what).collect()
    }

    #[test]
    fn each_thing_that_is_wrong_is_told_with_the_next_step_and_the_worst_is_first() {
        assert!(whats(&healthy(), &Ground::default()).is_empty());
        let mut figures = healthy();
        figures["store"]["damaged"] = json!(3);
        figures["store"]["flash_live_bytes"] = json!(90);
        figures["clients"]["refused"] = json!(1234);
        figures["certificate_end_seconds"] = json!(1_000_000 + 7200);
        figures["admin_certificate_end_seconds"] = json!(1_000_000 - 60);
        figures["health"] = json!({"status": "stalled", "oldest_pending_io_seconds": 45,
            "next": "check the device"});
        let ground = Ground {
            superblock: Some("copy 1 of 2 is torn".to_owned()),
            lost: Some("the file is gone".to_owned()),
            evicts: false,
            now_seconds: 1_000_000,
        };
        let expected = [
            "The device has not answered for 45 s.",
            "the file is gone",
            "The certificate that the HTTP interface shows ended 1 min 0 s ago: it is refused.",
            "A copy of the superblock did not verify: copy 1 of 2 is torn",
            "Damaged records were met 3 times.",
            "The device is nearly full: 90.0 % of it is live.",
            "1,234 connections were refused since the start.",
            "The certificate that clients are shown ends in 2 h 0 min.",
        ];
        assert_eq!(whats(&figures, &ground), expected);
    }

    /// A cache is always full.
    #[test]
    fn a_cache_is_not_called_nearly_full() {
        let mut figures = healthy();
        figures["store"]["flash_live_bytes"] = json!(99);
        assert_eq!(whats(&figures, &Ground::default()).len(), 1);
        assert!(whats(&figures, &Ground { evicts: true, ..Ground::default() }).is_empty());
    }

    #[test]
    fn a_poisoned_store_fails() {
        let mut figures = healthy();
        figures["health"] = json!({"status": "poisoned", "next": "check, then restart"});
        let problems = find(Figures(&figures), &Ground::default());
        assert_eq!(problems[0].grade, Grade::Failure);
        assert!(problems[0].what.contains("poisoned"));
    }
}
