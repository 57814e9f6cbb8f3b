//! `cargo x static`: the program that needs no library, in a root where there is nothing else. It
//! does there what README.md begins with.

use std::path::Path;

use crate::Verdict;
use crate::invocation::Invocation;
use crate::report::{self, Report};
use crate::rooted::{Recipe, as_failure, is_as_expected};
use crate::scratch::{Scratch, shown};

const NOBODY: &str = "65534:65534";
/// As README.md has it, but for the port, and smaller.
const SERVE: &str = "/entresol serve --dir /data --capacity 128MiB --memory 64MiB --port 0";

/// `cargo x static`.
pub(crate) fn perform(arguments: &[String]) -> Result<Verdict, String> {
    report::alone(arguments, check)
}

/// Makes the program and looks into it.
pub(crate) fn check(report: &mut Report) -> Result<(), String> {
    let scratch = Scratch::of("static");
    let make = Invocation::new("scripts/package-static").with_argument(shown(scratch.path()));
    if !report.run("static", &make)? {
        return Ok(());
    }
    let program = crate::only_file(scratch.path())?;
    let repeat = "cargo x static";
    report.perform("static file", repeat, &mut || is_static(&program))?;
    let root = scratch.path().join("root");
    report.perform("static root", repeat, &mut || {
        serves_alone(&program, &root).or_else(as_failure)
    })?;
    Ok(())
}

/// Whether the program asks for no library and no loader.
fn is_static(program: &Path) -> Result<bool, String> {
    let headers = Invocation::new("readelf --wide --program-headers --dynamic")
        .with_argument(shown(program))
        .read()?;
    println!("{} bytes", std::fs::metadata(program).map_err(|error| error.to_string())?.len());
    let asked: Vec<&str> =
        headers.lines().filter(|line| line.contains("NEEDED") || line.contains("INTERP")).collect();
    for line in &asked {
        println!("the program is not static: {}", line.trim());
    }
    Ok(asked.is_empty())
}

/// Whether it serves in a root that has two empty folders beside it.
fn serves_alone(program: &Path, root: &Path) -> Result<bool, String> {
    let lay = "mkdir --parents --mode 1777";
    let laid = Invocation::new(lay)
        .with_argument(shown(&root.join("dev/shm")))
        .with_argument(shown(&root.join("data")))
        .run_quietly()?;
    let copied = std::fs::copy(program, root.join("entresol"));
    if let (false, _) | (_, Err(_)) = (laid.passed, &copied) {
        return Err(format!("{}: {} {copied:?}", root.display(), laid.output));
    }
    let words: Vec<String> = SERVE.split(' ').map(str::to_string).collect();
    let recipe = Recipe { root, user: NOBODY, words: &words, environment: &[] };
    let server = recipe.start()?;
    // Where the kernel refuses rings, any program reads by blocking calls.
    let ways = if server.has_said("blocking calls") { "blocking calls" } else { "io_uring" };
    println!("devices are read by {ways}");
    let text = "hello from flash";
    let mut passed = is_as_expected("ping", &server.replies(&["ping"])?, "PONG");
    passed &= is_as_expected("set", &server.replies(&["set", "greeting", text])?, "OK");
    passed &= is_as_expected("get", &server.replies(&["get", "greeting"])?, text);
    passed &= is_as_expected("clean stop", &server.stop()?.to_string(), "true");
    // What was written is there for the next one.
    let again = recipe.start()?;
    passed &= is_as_expected("get after a restart", &again.replies(&["get", "greeting"])?, text);
    Ok(passed)
}
