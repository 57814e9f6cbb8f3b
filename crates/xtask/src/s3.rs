//! `cargo x s3`: backups into a bucket of a server of S3 that others wrote.

use crate::Verdict;
use crate::invocation::Invocation;
use crate::kill;
use crate::python;
use crate::report::{self, Report};
use crate::scratch::shown;

const CHECK: &str = "conformance/backup/s3.py";
const REQUIREMENTS: &str = "conformance/backup/requirements.txt";

/// `cargo x s3`.
pub(crate) fn perform(arguments: &[String]) -> Result<Verdict, String> {
    report::alone(arguments, check)
}

/// Backs up, restores, damages and thins out, where the server of S3 is here or can be fetched.
pub(crate) fn check(report: &mut Report) -> Result<(), String> {
    let Some(python) = python::with("moto", REQUIREMENTS)? else {
        println!("skipped: backups into a bucket: pip cannot fetch {REQUIREMENTS}");
        return Ok(());
    };
    let check = Invocation::new(&format!("{python} {CHECK}"));
    report.run("s3", &check.with_argument(shown(&kill::build()?))).map(drop)
}
