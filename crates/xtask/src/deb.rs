//! `cargo x deb`: the Debian package, unpacked under an empty root. What it has is compared with
//! what a package of a server has, and its program is asked what it is.

use std::path::{Path, PathBuf};

use crate::Verdict;
use crate::invocation::Invocation;
use crate::report::{self, Report};
use crate::scratch::{Scratch, shown};

/// What users look for in a package.
const FILES: [&str; 11] = [
    "etc/entresol/entresol.conf",
    "lib/systemd/system/entresol.service",
    "lib/systemd/system/entresol.socket",
    "lib/systemd/system/entresol-volume.service",
    "usr/bin/entresol",
    "usr/share/bash-completion/completions/entresol",
    "usr/share/doc/entresol/changelog.gz",
    "usr/share/doc/entresol/copyright",
    "usr/share/doc/entresol/guides/operating.md",
    "usr/share/man/man1/entresol.1.gz",
    "usr/share/man/man1/entresol-serve.1.gz",
];

/// Looks after the units of a package.
const UNITS: &str = "/usr/bin/python3 conformance/packages/units.py";
/// What makes a Debian, and boots it.
const BOOTS: [&str; 2] = ["/usr/sbin/debootstrap", "/usr/bin/systemd-nspawn"];

/// `cargo x deb`.
pub(crate) fn perform(arguments: &[String]) -> Result<Verdict, String> {
    report::alone(arguments, check)
}

/// Makes the package, then looks into it.
pub(crate) fn check(report: &mut Report) -> Result<(), String> {
    let scratch = Scratch::of("deb");
    let make = Invocation::new("scripts/package-deb").with_argument(shown(scratch.path()));
    if report.run("deb", &make)? {
        report.perform("deb content", "cargo x deb", &mut || is_whole(scratch.path()))?;
        boot(report, &package_in(scratch.path())?)?;
    }
    Ok(())
}

/// Installs the package in a Debian that boots, where that can be: its units are started, reloaded,
/// restarted and stopped by a service manager.
fn boot(report: &mut Report, package: &Path) -> Result<(), String> {
    let is_root = Invocation::new("id -u").read()?.trim() == "0";
    if !is_root || BOOTS.iter().any(|program| !Path::new(program).is_file()) {
        println!("skipped: the units: root, {} are needed", BOOTS.join(" and "));
        return Ok(());
    }
    let check = Invocation::new(UNITS).with_argument(shown(package));
    report.run("deb units", &check).map(drop)
}

/// Whether the package in `place` has all that it should, and a program that starts.
fn is_whole(place: &Path) -> Result<bool, String> {
    let root = place.join("root");
    let unpack = Invocation::new("dpkg-deb --extract")
        .with_argument(shown(&package_in(place)?))
        .with_argument(shown(&root))
        .run_quietly()?;
    if !unpack.passed {
        println!("{}", unpack.output);
        return Ok(false);
    }
    let absent: Vec<&str> = FILES.into_iter().filter(|file| !root.join(file).is_file()).collect();
    if !absent.is_empty() {
        println!("the package lacks {}", absent.join(", "));
    }
    let says = Invocation::new(&shown(&root.join("usr/bin/entresol")))
        .with_argument("--version")
        .read()?;
    let expected = format!("entresol {}", env!("CARGO_PKG_VERSION"));
    if says.trim() != expected {
        println!("the program says {says:?} and should say {expected}");
    }
    Ok(absent.is_empty() && says.trim() == expected)
}

fn package_in(place: &Path) -> Result<PathBuf, String> {
    let entries = std::fs::read_dir(place).map_err(|error| error.to_string())?;
    entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.extension().is_some_and(|extension| extension == "deb"))
        .ok_or_else(|| format!("no package is in {}", place.display()))
}
