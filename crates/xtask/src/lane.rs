//! A task of this program beside another: a process of its own, whose output is kept apart until it
//! ends. What waits much of its time, as tests of JVMs do, leaves the processor to the rest.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use crate::report::Report;

/// A task that runs.
#[derive(Debug)]
pub(crate) struct Lane {
    name: &'static str,
    child: Child,
    output: PathBuf,
}

impl Lane {
    /// Starts this program once more, with `arguments`.
    pub(crate) fn begin(name: &'static str, arguments: &[String]) -> Result<Lane, String> {
        let program = std::env::current_exe().map_err(|error| cannot(name, &error))?;
        Lane::begin_with(name, Command::new(program).args(arguments))
    }

    fn begin_with(name: &'static str, command: &mut Command) -> Result<Lane, String> {
        let folder = crate::target_directory();
        let output = folder.join(format!("{name}-{}.log", std::process::id()));
        let mut begin = || {
            std::fs::create_dir_all(&folder)?;
            let file = File::create(&output)?;
            let errors = file.try_clone()?;
            command.stdin(Stdio::null()).stdout(file).stderr(errors).spawn()
        };
        let child = begin().map_err(|error| cannot(name, &error))?;
        println!("── {name}: begun beside the steps that follow; its output comes after them");
        Ok(Lane { name, child, output })
    }

    /// Waits for its end, prints what it said, and gives its steps to `report`.
    pub(crate) fn end(mut self, report: &mut Report) -> Result<(), String> {
        let status = self.child.wait().map_err(|error| cannot(self.name, &error))?;
        let text = std::fs::read(&self.output).map_err(|error| cannot(self.name, &error))?;
        let text = String::from_utf8_lossy(&text);
        println!("{}", text.trim_end());
        report.adopt(self.name, &text);
        match status.code() {
            // What failed is among the steps.
            Some(0 | 1) => {
                let removed = std::fs::remove_file(&self.output);
                removed.map_err(|error| cannot(self.name, &error))
            }
            _ => {
                Err(format!("{}: {status}; its output is in {}", self.name, self.output.display()))
            }
        }
    }
}

fn cannot(name: &str, error: &std::io::Error) -> String {
    format!("{name}: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;

    fn verdict(script: &str) -> Result<Verdict, String> {
        let lane = Lane::begin_with("lane", Command::new("sh").args(["-c", script]))?;
        let mut report = Report::default();
        lane.end(&mut report)?;
        Ok(report.close())
    }

    #[test]
    fn steps_of_a_lane_fail_the_report_and_a_lane_that_broke_is_an_error() {
        let step = "echo 'passed      1.0 s  one          true'";
        assert_eq!(verdict(step), Ok(Verdict::Passed));
        let failed = "echo 'FAILED      1.0 s  one          true'; exit 1";
        assert_eq!(verdict(failed), Ok(Verdict::Failed));
        assert!(verdict("exit 2").is_err());
        assert!(verdict("kill -9 $$").is_err());
    }
}
