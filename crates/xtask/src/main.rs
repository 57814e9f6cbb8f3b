//! The project's own tasks, called as `cargo x TASK`.
//!
//! Owns the list of tasks and what their arguments mean; each task lives in a module of its own.
//! Exit status: 0 done, 1 something that was checked failed, 2 the task could not be run.

mod bench;
mod book;
mod chart;
mod ci;
mod deb;
mod deny;
mod failures;
mod fixed;
mod fuzz;
mod hooks;
mod image;
mod invocation;
mod java;
mod kill;
mod kubernetes;
mod lane;
mod library;
mod metadata;
mod outside;
mod peers;
mod planted;
mod python;
mod report;
mod rooted;
mod s3;
mod scratch;
mod seeded;
mod simulate;
mod tally;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// A task: how it is called and what it does.
struct Task {
    name: &'static str,
    arguments: &'static str,
    summary: &'static str,
    perform: fn(&[String]) -> Result<Verdict, String>,
}

/// What a task found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Passed,
    Failed,
}

const TASKS: &[Task] = &[
    Task {
        name: "ci",
        arguments: "[--fast]",
        summary: "every check, as continuous integration runs it; --fast: the quick ones",
        perform: ci::perform,
    },
    Task {
        name: "tidy",
        arguments: "[--circles | --tuples]",
        summary: "the rules of STYLE.md that a program can check",
        perform: tidy::perform,
    },
    Task {
        name: "simulate",
        arguments: "[SEED | --seeds N]",
        summary: "seeded faults under a running store; prints the line that replays a failure",
        perform: simulate::perform_simulation,
    },
    Task {
        name: "crash",
        arguments: "[SEED]",
        summary: "every prefix of device calls as a crash point, recovery crashed too",
        perform: simulate::perform_crash,
    },
    Task {
        name: "kill",
        arguments: "[--rounds N] [--durability LEVEL] [--seed S]",
        summary: "a server under load killed N times (200), every key compared with the promise",
        perform: kill::perform,
    },
    Task {
        name: "planted",
        arguments: "[NAME]",
        summary: "plants known bugs one at a time and demands that a test catches each",
        perform: planted::perform,
    },
    Task {
        name: "fuzz",
        arguments: "[--seconds N]",
        summary: "arbitrary bytes into every decoder and into open",
        perform: fuzz::perform_fuzz,
    },
    Task {
        name: "conformance",
        arguments: "",
        summary: "random commands to this server and to redis-server; volumes under NBD clients",
        perform: fuzz::perform_conformance,
    },
    Task {
        name: "outside",
        arguments: "[NAME | --all]",
        summary: "volumes against libnbd, fio, nbdkit and QEMU: kills, faults, a guest's disk",
        perform: outside::perform,
    },
    Task {
        name: "peers",
        arguments: "[NAME]",
        summary: "gocql, cqlsh and Harry on a stock Cassandra node and on ours, test by test",
        perform: peers::perform,
    },
    Task {
        name: "java",
        arguments: "[--brief] [--kills N]",
        summary: "the Java libraries, tested on every JDK that is here, JVMs killed N times (5)",
        perform: java::perform,
    },
    Task {
        name: "python",
        arguments: "",
        summary: "the wheel for Python, installed into an empty environment and tested there",
        perform: python::perform,
    },
    Task {
        name: "library",
        arguments: "",
        summary: "the C library installed under an empty root, and a C program that finds it there",
        perform: library::perform,
    },
    Task {
        name: "deb",
        arguments: "",
        summary: "the Debian package, unpacked under an empty root and looked into",
        perform: deb::perform,
    },
    Task {
        name: "static",
        arguments: "",
        summary: "the program without libraries, alone in an empty root, where it serves",
        perform: fixed::perform,
    },
    Task {
        name: "image",
        arguments: "",
        summary: "the container image, looked into, unpacked and run from its own files",
        perform: image::perform,
    },
    Task {
        name: "kubernetes",
        arguments: "",
        summary: "the manifests of Kubernetes, by its schemas and by our own tables",
        perform: kubernetes::perform,
    },
    Task {
        name: "s3",
        arguments: "",
        summary: "backups into a bucket of a server of S3: restored, damaged and thinned out",
        perform: s3::perform,
    },
    Task {
        name: "metadata",
        arguments: "[--release]",
        summary: "what registries ask of crates and modules, and one version everywhere",
        perform: metadata::perform,
    },
    Task {
        name: "deny",
        arguments: "",
        summary: "licences, sources and versions of dependencies, and advisories about them",
        perform: deny::perform,
    },
    Task {
        name: "bench",
        arguments: "[NAME]",
        summary: "this project's benchmarks, then the comparison with other stores",
        perform: bench::perform_bench,
    },
    Task {
        name: "soak",
        arguments: "[--minutes N] [--seed S]",
        summary: "kills, then seeds never run before for so long (60 minutes)",
        perform: bench::perform_soak,
    },
    Task {
        name: "docs",
        arguments: "",
        summary: "the library documentation, with every warning an error",
        perform: ci::perform_docs,
    },
    Task {
        name: "book",
        arguments: "",
        summary: "the documents as a book, with the documentation of the libraries beside",
        perform: book::perform,
    },
    Task {
        name: "chart",
        arguments: "",
        summary: "the chart of README.md, drawn from docs/concepts/figures.json",
        perform: chart::perform,
    },
    Task {
        name: "hooks",
        arguments: "",
        summary: "installs a git hook that runs `cargo x ci --fast` before a push",
        perform: hooks::perform,
    },
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((name, rest)) = arguments.split_first() else {
        print!("{}", usage());
        return ExitCode::from(2);
    };
    if matches!(name.as_str(), "help" | "--help" | "-h") {
        print!("{}", usage());
        return ExitCode::SUCCESS;
    }
    let Some(task) = TASKS.iter().find(|task| task.name == name) else {
        eprint!("cargo x: there is no task `{name}`.\n\n{}", usage());
        return ExitCode::from(2);
    };
    if rest.iter().any(|argument| argument == "--help" || argument == "-h") {
        println!("cargo x {} {}\n    {}", task.name, task.arguments, task.summary);
        return ExitCode::SUCCESS;
    }
    match (task.perform)(rest) {
        Ok(Verdict::Passed) => ExitCode::SUCCESS,
        Ok(Verdict::Failed) => ExitCode::from(1),
        Err(reason) => {
            eprintln!("cargo x {name}: {reason}");
            ExitCode::from(2)
        }
    }
}

/// The root of the work tree: where the workspace's manifest is.
pub(crate) fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).map(PathBuf::from).unwrap_or(here)
}

/// Where cargo puts what it builds.
pub(crate) fn target_directory() -> PathBuf {
    let named = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    named.unwrap_or_else(|| root().join("target"))
}

/// The file that a script has put into an empty folder.
pub(crate) fn only_file(folder: &Path) -> Result<PathBuf, String> {
    let cannot = |error: std::io::Error| format!("{}: {error}", folder.display());
    let first = std::fs::read_dir(folder).map_err(cannot)?.next();
    let entry = first.ok_or_else(|| format!("{}: nothing is there", folder.display()))?;
    Ok(entry.map_err(cannot)?.path())
}

/// The number after `flag` in `arguments`, or `default` where the flag is absent. Anything else
/// that stands in `arguments` is refused.
pub(crate) fn number_option(arguments: &[String], flag: &str, default: u64) -> Result<u64, String> {
    match arguments {
        [] => Ok(default),
        [name, value] if name == flag => {
            value.parse().map_err(|_| format!("`{value}` after {flag} is not a whole number"))
        }
        _ => Err(format!("unexpected `{}`; it takes {flag} N or nothing", arguments.join(" "))),
    }
}

fn usage() -> String {
    let mut text = String::from("cargo x TASK\n\n");
    for task in TASKS {
        let call = format!("{} {}", task.name, task.arguments);
        text.push_str(&format!("    {call:<30} {}\n", task.summary));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_options_refuse_what_they_do_not_know() {
        let words = |text: &str| text.split(' ').map(str::to_string).collect::<Vec<_>>();
        assert_eq!(number_option(&[], "--seeds", 7), Ok(7));
        assert_eq!(number_option(&words("--seeds 12"), "--seeds", 7), Ok(12));
        assert!(number_option(&words("--seeds twelve"), "--seeds", 7).is_err());
        assert!(number_option(&words("--grains 12"), "--seeds", 7).is_err());
        assert!(number_option(&words("12"), "--seeds", 7).is_err());
    }

    #[test]
    fn the_root_holds_the_workspace_manifest() {
        assert!(root().join("Cargo.toml").is_file());
        assert!(root().join("crates/xtask/Cargo.toml").is_file());
    }
}
