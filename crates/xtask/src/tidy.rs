//! The rules of STYLE.md that a program can check.
//!
//! Owns the list of rules and the exceptions to them. A rule is a function from the tree to
//! findings and has a test that plants a violation. An exception names rule, file, the text it
//! excuses and the reason; one that excuses nothing is itself a finding, so that the list only
//! shrinks.

mod circles;
mod copies;
mod dependencies;
mod documents;
mod engine;
mod exceptions;
mod forbidden;
mod format_guard;
mod glossary;
mod ladder;
mod leftovers;
mod licences;
pub(crate) mod markdown;
mod modules;
mod planted_names;
mod quotes;
mod ratchets;
mod reflow;
mod sizes;
pub(crate) mod summary;
mod test_rules;
mod tokens;
mod tree;
mod tuples;
mod words;

use crate::Verdict;
use tree::Tree;

/// A breach of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    rule: &'static str,
    path: String,
    line: usize,
    message: String,
}

impl Finding {
    fn new(rule: &'static str, path: &str, line: usize, message: impl Into<String>) -> Finding {
        Finding { rule, path: path.to_string(), line, message: message.into() }
    }
}

const RULES: &[fn(&Tree) -> Vec<Finding>] = &[
    ladder::find,
    dependencies::find,
    licences::find,
    sizes::find,
    words::find,
    leftovers::find,
    engine::find,
    test_rules::find,
    documents::find,
    summary::find,
    quotes::find,
    glossary::find,
    forbidden::find,
    format_guard::find,
    planted_names::find,
    circles::find,
    tuples::find,
    reflow::find,
    copies::find,
];

/// `cargo x tidy [--circles | --tuples]`: the findings, or what two of the rules count.
pub(crate) fn perform(arguments: &[String]) -> Result<Verdict, String> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        [] => return Ok(if check()? { Verdict::Passed } else { Verdict::Failed }),
        ["--circles"] => print!("{}", circles::list(&Tree::read(&crate::root())?)),
        ["--tuples"] => print!("{}", tuples::list(&Tree::read(&crate::root())?)),
        _ => return Err("it takes --circles, --tuples or nothing".to_string()),
    }
    Ok(Verdict::Passed)
}

/// Prints every finding; returns whether there was none.
pub(crate) fn check() -> Result<bool, String> {
    let tree = Tree::read(&crate::root())?;
    let findings = find(&tree);
    for finding in &findings {
        let Finding { rule, path, line, message } = finding;
        println!("{path}:{line}: {rule}: {message}");
    }
    println!("tidy: {} files, {} findings", tree.files.len(), findings.len());
    Ok(findings.is_empty())
}

fn find(tree: &Tree) -> Vec<Finding> {
    let mut findings: Vec<Finding> = RULES.iter().flat_map(|rule| rule(tree)).collect();
    exceptions::apply(tree, &mut findings);
    findings.sort_by(|a, b| (&a.path, a.line, a.rule).cmp(&(&b.path, b.line, b.rule)));
    findings
}
