//! Rule `engine`: the engine's crates start no thread, read no clock, no environment and no file,
//! and draw no random numbers; such things come in as arguments.

use crate::tidy::Finding;
use crate::tidy::tree::Tree;

const ENGINE: &[&str] = &["flash", "tier", "tree", "wire", "workload"];

const WORLD: &[(&[&str], &str)] = &[
    (&["Instant"], "a clock"),
    (&["SystemTime"], "a clock"),
    (&["thread", ":", ":", "spawn"], "a thread"),
    (&["thread", ":", ":", "Builder"], "a thread"),
    (&["thread", ":", ":", "scope"], "a thread"),
    (&["thread", ":", ":", "sleep"], "a wait"),
    (&["std", ":", ":", "env"], "the environment"),
    (&["std", ":", ":", "fs"], "files"),
    (&["std", ":", ":", "net"], "the network"),
    (&["std", ":", ":", "process"], "a process"),
    (&["getrandom"], "random numbers"),
    (&["thread_rng"], "random numbers"),
];

pub(crate) fn find(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, tokens) in tree.rust() {
        let is_program = file.is_test() || file.is_example();
        if is_program || !file.crate_name().is_some_and(|name| ENGINE.contains(&name)) {
            continue;
        }
        for (pattern, what) in WORLD {
            for token in tokens.matches(pattern).filter(|token| !token.in_test) {
                let message = format!("`{}`: {what} must come in as an argument", pattern.concat());
                findings.push(Finding::new("engine", &file.path, token.line, message));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_world_is_found_in_engine_crates_only() {
        let clock = "fn now() { std::time::Instant::now(); }";
        let thread = "fn go() { std::thread::spawn(|| {}); }";
        let check = |path: &str, text: &str| find(&Tree::of(&[(path, text)])).len();
        assert_eq!(check("crates/flash/src/a.rs", clock), 1);
        assert_eq!(check("crates/tier/src/a.rs", thread), 1);
        assert_eq!(check("crates/server/src/a.rs", thread), 0);
        assert_eq!(check("crates/flash/benches/a.rs", clock), 0);
    }
}
