//! `cargo x kubernetes`: the manifests of `packaging/kubernetes`, by the schemas of Kubernetes, and
//! held against the keys of the configuration and the image of the server.

use crate::Verdict;
use crate::invocation::Invocation;
use crate::python;
use crate::report::{self, Report};
use crate::scratch::shown;

const CHECK: &str = "conformance/kubernetes/check.py";
const REQUIREMENTS: &str = "conformance/kubernetes/requirements.txt";

/// `cargo x kubernetes`.
pub(crate) fn perform(arguments: &[String]) -> Result<Verdict, String> {
    report::alone(arguments, check)
}

/// Looks through the manifests, where the schemas are here or can be fetched.
pub(crate) fn check(report: &mut Report) -> Result<(), String> {
    // It stays for the next time.
    let tools = crate::target_directory().join("kubernetes");
    let python = shown(&tools.join("bin/python"));
    let has_schemas =
        Invocation::new(&python).with_argument("-c").with_argument("import kubernetes_validate");
    if !has_schemas.run_quietly().is_ok_and(|ending| ending.passed) {
        python::environment(&tools)?;
        let fetch = Invocation::new(&format!("{python} -m pip install --quiet --requirement"))
            .with_argument(REQUIREMENTS);
        if !fetch.run_quietly()?.passed {
            println!("skipped: manifests of Kubernetes: pip cannot fetch {REQUIREMENTS}");
            return Ok(());
        }
    }
    report.run("kubernetes", &Invocation::new(&format!("{python} {CHECK}"))).map(drop)
}
