//! The names of ACT's programs: a call by a link of such a name runs that program.
//!
//! Scripts written for ACT find its behaviour: testers and analyser run as with `--compat`.

use std::ffi::{OsStr, OsString};
use std::path::Path;

/// A program of ACT: its name, its subcommand, and whether that knows `--compat`.
const PROGRAMS: [(&str, &str, bool); 4] = [
    ("act_prep", "prep", false),
    ("act_storage", "storage", true),
    ("act_index", "index", true),
    ("act_latency", "latency", true),
];

/// The command line with the subcommand that the first argument names, if it names one.
pub(crate) fn named_by_link(arguments: Vec<OsString>) -> Vec<OsString> {
    let called = arguments.first().and_then(|path| Path::new(path).file_name());
    let called = called.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let called = called.strip_suffix(".py").unwrap_or(&called);
    let Some((_, subcommand, compat)) = PROGRAMS.iter().find(|(name, ..)| *name == called) else {
        return arguments;
    };
    let given = |option: &str| arguments.iter().any(|argument| argument == OsStr::new(option));
    let mut named: Vec<OsString> = vec!["entresol".into(), "act".into(), (*subcommand).into()];
    if *compat && !given("--compat") && !given("--help") {
        named.push("--compat".into());
    }
    named.extend(arguments.into_iter().skip(1));
    named
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(line: &str) -> String {
        let arguments = line.split(' ').map(OsString::from).collect();
        let named: Vec<String> = named_by_link(arguments)
            .into_iter()
            .map(|argument| argument.into_string().expect("what was given was text"))
            .collect();
        named.join(" ")
    }

    #[test]
    fn links_named_as_programs_of_act_are_those() {
        for (line, expected) in [
            ("/usr/bin/act_storage a.conf", "entresol act storage --compat a.conf"),
            ("act_storage --compat a.conf", "entresol act storage --compat a.conf"),
            ("./act_index", "entresol act index --compat"),
            ("act_prep /dev/x", "entresol act prep /dev/x"),
            ("act_latency.py -l log -h reads", "entresol act latency --compat -l log -h reads"),
            ("act_index --help", "entresol act index --help"),
            ("entresol act storage a.conf", "entresol act storage a.conf"),
            ("act storage", "act storage"),
        ] {
            assert_eq!(named(line), expected);
        }
    }
}
