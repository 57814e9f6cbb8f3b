//! Rule `tests`: a test's name says the property; no test sleeps, reads a clock or is ignored.

use crate::tidy::Finding;
use crate::tidy::tree::Tree;

const CLOCKS: &[&[&str]] = &[
    &["thread", ":", ":", "sleep"],
    &["Instant", ":", ":", "now"],
    &["SystemTime", ":", ":", "now"],
];

pub(crate) fn find(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, tokens) in tree.rust() {
        let mut add = |line, message: String| {
            findings.push(Finding::new("tests", &file.path, line, message));
        };
        let whole = file.is_test() && !file.path.contains("/benches/");
        for pattern in CLOCKS {
            for token in tokens.matches(pattern).filter(|token| whole || token.in_test) {
                add(token.line, format!("`{}` in a test", pattern.concat()));
            }
        }
        for token in tokens.matches(&["#", "[", "ignore"]) {
            add(token.line, "an ignored test: mend it or remove it".to_string());
        }
        for (name, line) in tokens.tests() {
            if name.starts_with("test") || name.starts_with("it_works") || !name.contains('_') {
                add(line, format!("`{name}` does not say which property it shows"));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, text: &str) -> usize {
        find(&Tree::of(&[(path, text)])).len()
    }

    #[test]
    fn clocks_are_found_in_tests_only() {
        let sleep = "fn wait() { std::thread::sleep(d); }";
        assert_eq!(check("crates/server/tests/a.rs", sleep), 1);
        assert_eq!(check("crates/server/src/a.rs", sleep), 0);
        let inside = format!("#[cfg(test)] mod tests {{ {sleep} }}");
        assert_eq!(check("crates/server/src/a.rs", &inside), 1);
    }

    #[test]
    fn ignored_and_nameless_tests_are_found() {
        assert_eq!(check("crates/flash/tests/a.rs", "#[test] #[ignore] fn a_b_c() {}"), 1);
        assert_eq!(check("crates/flash/tests/a.rs", "#[test] fn test_put() {}"), 1);
        assert_eq!(check("crates/flash/tests/a.rs", "#[test] fn works() {}"), 1);
        assert_eq!(check("crates/flash/tests/a.rs", "#[test] fn a_put_is_read_back() {}"), 0);
    }
}
