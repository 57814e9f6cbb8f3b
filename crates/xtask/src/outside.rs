//! `cargo x outside`: volumes held against clients, servers and faults that others wrote, and the
//! console against a browser, by scripts under `conformance`.

use crate::Verdict;
use crate::invocation::Invocation;
use crate::report::Report;

/// A script, and whether the soak alone waits for it.
struct Script {
    name: &'static str,
    /// Below `conformance`.
    folder: &'static str,
    patience: Patience,
    /// What it is given where it is to take minutes, and in the soak.
    arguments: [&'static str; 2],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Patience {
    /// Minutes; needs the Debian packages of the tests.
    Short,
    /// Needs a guest or a browser, or compares times.
    Long,
}

const SCRIPTS: &[Script] = &[
    Script::of("rewritten", Patience::Short),
    Script::of("acknowledged", Patience::Short),
    Script::of("faults", Patience::Short),
    Script {
        name: "small",
        folder: "volume",
        patience: Patience::Short,
        arguments: [
            "--sizes 64,128 --modes wb,wt --rounds 2 --mib 16 --fio-mib 150 --seed 1",
            "--rounds 20",
        ],
    },
    Script::of("guest", Patience::Long),
    Script::of("delay", Patience::Long),
    Script::of("oltp", Patience::Long),
    Script {
        name: "look",
        folder: "console",
        patience: Patience::Long,
        arguments: [
            "target/checked/entresol",
            "target/checked/entresol --grid java/grid/bin/entresol-grid",
        ],
    },
];

impl Script {
    const fn of(name: &'static str, patience: Patience) -> Script {
        Script { name, folder: "volume", patience, arguments: ["", ""] }
    }

    fn path(&self) -> String {
        format!("conformance/{}/{}.py", self.folder, self.name)
    }
}

/// `cargo x outside [NAME | --all]`.
pub(crate) fn perform(arguments: &[String]) -> Result<Verdict, String> {
    let wanted: Vec<&Script> = match arguments {
        [] => SCRIPTS.iter().filter(|script| script.patience == Patience::Short).collect(),
        [flag] if flag == "--all" => SCRIPTS.iter().collect(),
        [name] => SCRIPTS.iter().filter(|script| script.name == name).collect(),
        _ => return Err("it takes one name, --all or nothing".to_string()),
    };
    if wanted.is_empty() {
        let names: Vec<&str> = SCRIPTS.iter().map(|script| script.name).collect();
        return Err(format!("`{}` is no script; expected {}", arguments[0], names.join(", ")));
    }
    let mut report = Report::default();
    run_scripts(&mut report, &wanted, Patience::Short)?;
    Ok(report.close())
}

/// All scripts, for the soak.
pub(crate) fn run_all(report: &mut Report) -> Result<(), String> {
    run_scripts(report, &SCRIPTS.iter().collect::<Vec<_>>(), Patience::Long)
}

fn run_scripts(report: &mut Report, scripts: &[&Script], patience: Patience) -> Result<(), String> {
    // Optimised, with assertions: the comparisons of times need the one, the faults the other.
    let build = Invocation::cargo("build --quiet --profile checked -p entresol");
    if !report.run("build", &build)? {
        return Ok(());
    }
    for script in scripts {
        let [short, long] = script.arguments;
        let arguments = if patience == Patience::Long { long } else { short };
        let line = format!("/usr/bin/python3 {} {arguments}", script.path());
        report.run(script.name, &Invocation::new(line.trim_end()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_script_that_is_called_is_there() {
        for script in SCRIPTS {
            let path = crate::root().join(script.path());
            assert!(path.is_file(), "{}", path.display());
        }
    }

    #[test]
    fn names_that_no_script_has_are_refused() {
        assert!(perform(&["guests".to_string()]).is_err());
        assert!(perform(&["faults".to_string(), "guest".to_string()]).is_err());
    }
}
