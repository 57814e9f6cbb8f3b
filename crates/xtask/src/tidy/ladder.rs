//! Rule `ladder`: crates depend downward only, by a table that names every edge allowed.

use crate::tidy::Finding;
use crate::tidy::tree::{Dependency, Package, Purpose, Tree};

/// One crate's edges: what the product may use, and what its tests may use besides.
struct Rung {
    name: &'static str,
    uses: &'static [&'static str],
    tests_use: &'static [&'static str],
}

/// Lowest first.
const RUNGS: &[Rung] = &[
    Rung { name: "entresol-planted", uses: &[], tests_use: &[] },
    Rung { name: "entresol-random", uses: &[], tests_use: &[] },
    Rung { name: "entresol-backup", uses: &[], tests_use: &[] },
    Rung { name: "entresol-page", uses: &[], tests_use: &[] },
    Rung { name: "entresol-device", uses: &[], tests_use: &["entresol-sim"] },
    Rung { name: "entresol-net", uses: &["entresol-device"], tests_use: &[] },
    Rung { name: "entresol-wire", uses: &[], tests_use: &["entresol-random"] },
    Rung { name: "entresol-workload", uses: &["entresol-random"], tests_use: &[] },
    Rung {
        name: "entresol-heap",
        uses: &["entresol-planted"],
        tests_use: &["entresol-device", "entresol-sim"],
    },
    Rung { name: "entresol-sim", uses: &["entresol-device", "entresol-random"], tests_use: &[] },
    Rung {
        name: "entresol-flash",
        uses: &["entresol-device", "entresol-planted"],
        tests_use: &["entresol-random", "entresol-sim", "entresol-workload"],
    },
    Rung {
        name: "entresol-tier",
        uses: &["entresol-device", "entresol-flash"],
        tests_use: &["entresol-sim", "entresol-workload"],
    },
    Rung {
        name: "entresol-tree",
        uses: &["entresol-device", "entresol-flash", "entresol-planted", "entresol-tier"],
        tests_use: &["entresol-device", "entresol-sim", "entresol-workload"],
    },
    Rung {
        name: "entresol-host",
        uses: &["entresol-device", "entresol-tier", "entresol-tree"],
        tests_use: &["entresol-random"],
    },
    Rung {
        name: "entresol-ffi",
        uses: &[
            "entresol-device",
            "entresol-heap",
            "entresol-host",
            "entresol-page",
            "entresol-tier",
            "entresol-tree",
        ],
        tests_use: &[],
    },
    Rung {
        name: "entresol-python",
        uses: &["entresol-host", "entresol-tier", "entresol-tree"],
        tests_use: &[],
    },
    Rung {
        name: "entresol-volume",
        uses: &[
            "entresol-device",
            "entresol-flash",
            "entresol-net",
            "entresol-planted",
            "entresol-random",
            "entresol-wire",
        ],
        tests_use: &["entresol-sim", "entresol-workload"],
    },
    Rung {
        name: "entresol-nbd",
        uses: &[
            "entresol-device",
            "entresol-host",
            "entresol-net",
            "entresol-page",
            "entresol-volume",
            "entresol-wire",
        ],
        tests_use: &["entresol-workload"],
    },
    Rung {
        name: "entresol-server",
        uses: &[
            "entresol-device",
            "entresol-host",
            "entresol-net",
            "entresol-page",
            "entresol-random",
            "entresol-tier",
            "entresol-wire",
        ],
        tests_use: &[],
    },
    Rung {
        name: "entresol-certify",
        uses: &["entresol-device", "entresol-page", "entresol-workload"],
        tests_use: &["entresol-sim"],
    },
    Rung {
        name: "entresol",
        uses: &[
            "entresol-backup",
            "entresol-certify",
            "entresol-device",
            "entresol-flash",
            "entresol-heap",
            "entresol-host",
            "entresol-nbd",
            "entresol-page",
            "entresol-tier",
            "entresol-server",
            "entresol-tree",
            "entresol-volume",
            "entresol-wire",
            "entresol-workload",
        ],
        tests_use: &[],
    },
    Rung { name: "xtask", uses: &["entresol-random"], tests_use: &["entresol-planted"] },
    // A workspace of its own: it needs a nightly compiler.
    Rung {
        name: "entresol-fuzz",
        uses: &[
            "entresol-certify",
            "entresol-device",
            "entresol-flash",
            "entresol-random",
            "entresol-tier",
            "entresol-tree",
            "entresol-volume",
            "entresol-wire",
        ],
        tests_use: &[],
    },
    // A workspace of its own: it holds the rivals.
    Rung {
        name: "entresol-compare",
        uses: &[
            "entresol-device",
            "entresol-flash",
            "entresol-host",
            "entresol-tier",
            "entresol-tree",
            "entresol-workload",
        ],
        tests_use: &[],
    },
];

pub(crate) fn find(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in &tree.packages {
        let manifest = manifest_of(package);
        let Some(rung) = RUNGS.iter().find(|rung| rung.name == package.name) else {
            let message = format!("`{}` has no rung in the table of the ladder", package.name);
            findings.push(Finding::new("ladder", &manifest, 1, message));
            continue;
        };
        for dependency in package.dependencies.iter().filter(|dependency| dependency.local) {
            if !is_allowed(rung, dependency) {
                let message =
                    format!("`{}` must not depend on `{}`", package.name, dependency.name);
                findings.push(Finding::new("ladder", &manifest, 1, message));
            }
        }
    }
    findings
}

fn is_allowed(rung: &Rung, dependency: &Dependency) -> bool {
    let name = dependency.name.as_str();
    match dependency.purpose {
        Purpose::Product | Purpose::Build => rung.uses.contains(&name),
        Purpose::Tests => rung.uses.contains(&name) || rung.tests_use.contains(&name),
    }
}

fn manifest_of(package: &Package) -> String {
    match package.name.as_str() {
        "entresol" => "crates/cli/Cargo.toml".to_string(),
        "entresol-fuzz" => "fuzz/Cargo.toml".to_string(),
        "entresol-compare" => "benches-compare/Cargo.toml".to_string(),
        name => format!("crates/{}/Cargo.toml", name.trim_start_matches("entresol-")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(package: &str, dependency: &str, purpose: Purpose) -> usize {
        let dependency = Dependency { name: dependency.to_string(), purpose, local: true };
        let package = Package { name: package.to_string(), dependencies: vec![dependency] };
        find(&Tree { packages: vec![package], ..Tree::default() }).len()
    }

    #[test]
    fn upward_edges_and_unknown_crates_are_found() {
        assert_eq!(check("entresol-flash", "entresol-device", Purpose::Product), 0);
        assert_eq!(check("entresol-device", "entresol-flash", Purpose::Product), 1);
        assert_eq!(check("entresol-flash", "entresol-tier", Purpose::Tests), 1);
        assert_eq!(check("entresol-common", "entresol-device", Purpose::Product), 1);
    }

    #[test]
    fn the_simulated_device_serves_tests_only() {
        assert_eq!(check("entresol-flash", "entresol-sim", Purpose::Tests), 0);
        assert_eq!(check("entresol-flash", "entresol-sim", Purpose::Product), 1);
    }
}
