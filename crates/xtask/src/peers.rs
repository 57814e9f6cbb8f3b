//! `cargo x peers`: suites that other projects wrote, run on a stock Cassandra node and on one
//! whose tables are all on flash, by the scripts under `conformance/cassandra`. They get the suites
//! from package registries, so the gate does without them, and the soak has them.

use crate::Verdict;
use crate::invocation::Invocation;
use crate::java;
use crate::report::Report;

const SCRIPTS: &[&str] = &["gocql", "cqlsh", "harry"];

/// `cargo x peers [NAME]`.
pub(crate) fn perform(arguments: &[String]) -> Result<Verdict, String> {
    let wanted: Vec<&str> = match arguments {
        [] => SCRIPTS.to_vec(),
        [name] => SCRIPTS.iter().copied().filter(|script| script == name).collect(),
        _ => return Err("it takes one name or nothing".to_string()),
    };
    if wanted.is_empty() {
        return Err(format!("`{}` is no suite; expected {}", arguments[0], SCRIPTS.join(", ")));
    }
    let mut report = Report::default();
    run_scripts(&mut report, &wanted)?;
    Ok(report.close())
}

/// All suites, for the soak.
pub(crate) fn run_all(report: &mut Report) -> Result<(), String> {
    run_scripts(report, SCRIPTS)
}

fn run_scripts(report: &mut Report, scripts: &[&str]) -> Result<(), String> {
    if !report.run("build", &java::package("cassandra"))? {
        return Ok(());
    }
    for script in scripts {
        let line = format!("python3 conformance/cassandra/{script}.py");
        report.run(script, &Invocation::new(&line))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_suite_that_is_called_has_its_script() {
        for script in SCRIPTS {
            let path = crate::root().join("conformance/cassandra").join(script);
            assert!(path.with_extension("py").is_file(), "{}", path.display());
        }
    }

    #[test]
    fn names_that_no_suite_has_are_refused() {
        assert!(perform(&["gosql".to_string()]).is_err());
        assert!(perform(&["gocql".to_string(), "cqlsh".to_string()]).is_err());
    }
}
