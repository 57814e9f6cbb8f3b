//! The optional git hook. Continuous integration stays the judge.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::Verdict;
use crate::invocation::Invocation;

const HOOK: &str = "#!/bin/sh\n# Laid by `cargo x hooks`; remove this file to be rid of it.\n\
                    exec cargo x ci --fast\n";

/// `cargo x hooks`: lays the hook that runs before a push; leaves another's alone.
pub(crate) fn perform(arguments: &[String]) -> Result<Verdict, String> {
    if !arguments.is_empty() {
        return Err("it takes no arguments".to_string());
    }
    let directory = Invocation::new("git rev-parse --git-path hooks").read()?;
    let directory = crate::root().join(directory.trim());
    let path = directory.join("pre-push");
    let shown = path.display();
    if path.exists() {
        let present = fs::read_to_string(&path).map_err(|error| format!("{shown}: {error}"))?;
        if present != HOOK {
            println!("{shown} is there and is another's; nothing was changed");
            return Ok(Verdict::Failed);
        }
    }
    let lay = || {
        fs::create_dir_all(&directory)?;
        fs::write(&path, HOOK)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))
    };
    lay().map_err(|error| format!("{shown}: {error}"))?;
    println!("{shown} runs `cargo x ci --fast` before a push");
    Ok(Verdict::Passed)
}
