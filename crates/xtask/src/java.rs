//! `cargo x java`: the Java libraries built, installed and tested on the JDK that Maven runs on,
//! then tested again on a newer one, where there is one, by both ways into the native library. The
//! gate tests there what binds the library alone.

use std::path::{Path, PathBuf};

use crate::Verdict;
use crate::invocation::Invocation;
use crate::lane::Lane;
use crate::report::Report;

/// The first Java with the Foreign Function and Memory API.
const NEWER: u32 = 22;
/// Where Debian and others put their JDKs.
const PLACES: &str = "/usr/lib/jvm";
const MAVEN: &str = "mvn --batch-mode --quiet --file java/pom.xml";
/// The one flag that a newer Java asks for.
const ACCESS: &str = "--enable-native-access=ALL-UNNAMED";

const BRIEF: &str = "--brief";
/// Rings of three nodes, and all that takes minutes.
const THOROUGH: &str = " -Dentresol.thorough=true";
/// Without tests that take minutes.
const QUICK: &str = " -DexcludedGroups=minutes";
const KILLS: &str = "--kills";

/// What measures, and what it needs.
const COSTS: &str = "io.entresol.examples.Costs";
const MEASURED: &str = "native,heap,collections,examples";
const MEASURED_ENTRIES: u32 = 1_000_000;
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// How much is tested on a newer JDK, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Breadth {
    /// What binds the native library, by the way that a newer Java takes.
    Binding,
    /// Everything that comes by the library, by both ways.
    Everything,
}

/// One run on a newer JDK.
struct Newer {
    name: &'static str,
    path: &'static str,
    only: &'static str,
    without: &'static str,
}

/// What the gate asks for. The other way was taken on the first JDK.
const BINDING: &[Newer] = &[Newer {
    name: "java ffm",
    path: "ffm",
    only: "--projects heap,llpl-adapter,binding",
    without: "none",
}];

/// Collections take one way into the library on each JDK; the first run had the other. Nodes of a
/// grid, clusters that recover, SQL and Infinispan's own suites do nothing of their own with it.
/// `PathsTest` compares both ways whenever it runs.
const EVERYTHING: &[Newer] = &[
    Newer {
        name: "java ffm",
        path: "ffm",
        only: "--projects !grid,!jdbc,!cassandra -Dsuites.skip=true",
        without: "GridRecoveryTest",
    },
    Newer {
        name: "java jni",
        path: "jni",
        only: "--projects heap,llpl-adapter,binding",
        without: "PathsTest",
    },
];

/// `cargo x java [--brief] [--kills N]`.
pub(crate) fn perform(arguments: &[String]) -> Result<Verdict, String> {
    let (breadth, rest) = match arguments.split_first() {
        Some((first, rest)) if first == BRIEF => (Breadth::Binding, rest),
        _ => (Breadth::Everything, arguments),
    };
    let kills = crate::number_option(rest, KILLS, 5)?;
    let mut report = Report::default();
    check(&mut report, kills, breadth)?;
    Ok(report.close())
}

/// All steps of the gate, beside other steps; `kills` JVMs are killed in each.
pub(crate) fn begin(kills: u64) -> Result<Lane, String> {
    let words = ["java".to_string(), BRIEF.to_string(), KILLS.to_string(), kills.to_string()];
    Lane::begin("java", &words)
}

/// All steps, on a newer JDK too; `kills` JVMs are killed in each.
pub(crate) fn check_everything(report: &mut Report, kills: u64) -> Result<(), String> {
    check(report, kills, Breadth::Everything)
}

fn check(report: &mut Report, kills: u64, breadth: Breadth) -> Result<(), String> {
    if Invocation::new("mvn --version").run_quietly().is_err() {
        return Err("there is no Maven here: apt-get install maven".to_string());
    }
    let thorough = if breadth == Breadth::Everything { THOROUGH } else { QUICK };
    let rounds = format!("-Dentresol.kill.rounds={kills}{thorough}");
    report.run("java", &Invocation::new(&format!("{MAVEN} install {rounds}")))?;
    let Some(newer) = newer_java(Path::new(PLACES)) else {
        println!("skipped: there is no Java {NEWER} or newer under {PLACES} to test with");
        return Ok(());
    };
    let runs = match breadth {
        Breadth::Binding => BINDING,
        Breadth::Everything => EVERYTHING,
    };
    for Newer { name, path, only, without } in runs {
        let invocation = Invocation::new(&format!("{MAVEN} {only} integration-test {rounds}"))
            .with_argument(format!("-Dtested.without=**/{without}*"))
            .with_argument(format!("-Dtested.jvm={}", newer.display()))
            .with_argument(format!("-Dtested.flags={ACCESS} -Dentresol.heap.native={path}"));
        report.run(name, &invocation)?;
    }
    Ok(())
}

/// The build of a module's jar, with those that it needs.
pub(crate) fn package(module: &str) -> Invocation {
    Invocation::new(&format!("{MAVEN} package -DskipTests --also-make --projects {module}"))
}

/// What operations of a heap take of the processor in Java, by either way of writing.
pub(crate) fn measure(report: &mut Report) -> Result<(), String> {
    let modules = ["native", "heap", "examples"];
    let build = format!("{MAVEN} install -DskipTests --projects {MEASURED}");
    report.run("java", &Invocation::new(&build))?;
    let jars =
        modules.map(|module| format!("java/{module}/target/entresol-{module}-{VERSION}.jar"));
    for medium in ["bytes", "pages"] {
        let invocation = Invocation::new("java -cp")
            .with_argument(jars.join(":"))
            .with_argument(COSTS.to_string())
            .with_argument("/dev/shm".to_string())
            .with_argument(MEASURED_ENTRIES.to_string())
            .with_argument(medium.to_string());
        report.run(&format!("java {medium}"), &invocation)?;
    }
    Ok(())
}

/// The `java` of the newest JDK among `places` that is new enough.
fn newer_java(places: &Path) -> Option<PathBuf> {
    let folders = std::fs::read_dir(places).ok()?;
    let homes = folders.filter_map(|folder| Some(folder.ok()?.path()));
    let newest = homes
        .filter_map(|home| {
            Some((version(&std::fs::read_to_string(home.join("release")).ok()?)?, home))
        })
        .filter(|(version, home)| *version >= NEWER && home.join("bin/java").is_file())
        .max();
    newest.map(|(_, home)| home.join("bin/java"))
}

/// The feature version in the text of a JDK's `release` file.
fn version(release: &str) -> Option<u32> {
    let line = release.lines().find_map(|line| line.strip_prefix("JAVA_VERSION="))?;
    line.trim_matches('"').split(['.', '-', '+']).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_of_a_jdk_is_read_from_its_release_file() {
        assert_eq!(version("IMPLEMENTOR=\"X\"\nJAVA_VERSION=\"25.0.3\"\n"), Some(25));
        assert_eq!(version("JAVA_VERSION=\"22\""), Some(22));
        assert_eq!(version("JAVA_VERSION=\"1.8.0_402\""), Some(1));
        assert_eq!(version("nothing"), None);
    }

    #[test]
    fn a_place_without_jdks_has_no_newer_one() {
        assert_eq!(newer_java(&crate::root().join("docs")), None);
    }
}
