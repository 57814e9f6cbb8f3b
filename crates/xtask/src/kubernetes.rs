//! `cargo x kubernetes`: the manifests of `packaging/kubernetes`, by the schemas of Kubernetes, and
//! held against the keys of the configuration and the image of the server.

use crate::Verdict;
use crate::invocation::Invocation;
use crate::python;
use crate::report::{self, Report};

const CHECK: &str = "conformance/kubernetes/check.py";
const REQUIREMENTS: &str = "conformance/kubernetes/requirements.txt";

/// `cargo x kubernetes`.
pub(crate) fn perform(arguments: &[String]) -> Result<Verdict, String> {
    report::alone(arguments, check)
}

/// Looks through the manifests, where the schemas are here or can be fetched.
pub(crate) fn check(report: &mut Report) -> Result<(), String> {
    let Some(python) = python::with("kubernetes_validate", REQUIREMENTS)? else {
        println!("skipped: manifests of Kubernetes: pip cannot fetch {REQUIREMENTS}");
        return Ok(());
    };
    report.run("kubernetes", &Invocation::new(&format!("{python} {CHECK}"))).map(drop)
}
