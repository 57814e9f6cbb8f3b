//! Rule `tuples`: a function that the whole crate may call takes no tuple, whose members have
//! neither names nor units where it is called. `crates/xtask/ratchets.txt` has how many a crate
//! still has.

use crate::tidy::Finding;
use crate::tidy::ratchets::{self, Count};
use crate::tidy::tokens::Token;
use crate::tidy::tree::Tree;

const RULE: &str = "tuples";

/// A parameter whose type is a tuple, or a reference to one.
#[derive(Debug)]
struct Parameter<'a> {
    file: &'a str,
    line: usize,
    function: &'a str,
}

pub(crate) fn find(tree: &Tree) -> Vec<Finding> {
    let counts = tree.crates().into_iter().map(|name| {
        let count = parameters(tree, name).len();
        let message = format!("{count} tuples as parameters; `cargo x tidy --tuples` has them");
        Count { of: name.to_string(), count, message }
    });
    ratchets::compare(tree, RULE, counts.collect())
}

/// Every such parameter, by crate.
pub(crate) fn list(tree: &Tree) -> String {
    let mut text = String::new();
    for name in tree.crates() {
        let found = parameters(tree, name);
        if !found.is_empty() {
            text += &format!("{name}: {} parameters\n", found.len());
        }
        for Parameter { file, line, function } in found {
            text += &format!("    {file}:{line}: {function}\n");
        }
    }
    text
}

fn parameters<'a>(tree: &'a Tree, name: &str) -> Vec<Parameter<'a>> {
    let folder = format!("crates/{name}/src/");
    let mut found = Vec::new();
    for (file, tokens) in tree.rust().filter(|(file, _)| !file.is_test()) {
        if !file.path.starts_with(&folder) {
            continue;
        }
        for (index, token) in tokens.list.iter().enumerate().filter(|(_, token)| !token.in_test) {
            if token.text == "fn" && is_visible(&tokens.list[..index]) {
                let rest = &tokens.list[index + 1..];
                let function = rest.first().map_or("", |name| name.text.as_str());
                let lines = tuple_lines(rest);
                let parameter = |line| Parameter { file: &file.path, line, function };
                found.extend(lines.into_iter().map(parameter));
            }
        }
    }
    found
}

/// Whether `pub` or `pub(crate)` stands at the end of what comes before `fn`.
fn is_visible(before: &[Token]) -> bool {
    let words = before.iter().rev().map(|token| token.text.as_str());
    let qualifiers = ["const", "async", "unsafe", "extern", "literal"];
    let last: Vec<&str> = words.skip_while(|word| qualifiers.contains(word)).take(4).collect();
    last.first() == Some(&"pub") || last == [")", "crate", "(", "pub"]
}

/// Lines of the parameters that are tuples, of a function that begins with its name.
fn tuple_lines(function: &[Token]) -> Vec<usize> {
    let mut lines = Vec::new();
    let mut depth = Depth::default();
    // Generic parameters may hold parentheses of their own.
    let Some(open) = function.iter().position(|token| {
        let outside = depth.is_outside();
        depth.pass(&token.text);
        outside && token.text == "("
    }) else {
        return lines;
    };
    let (mut depth, mut parameter) = (Depth::default(), Vec::new());
    for token in &function[open + 1..] {
        let ends = depth.is_outside() && matches!(token.text.as_str(), "," | ")");
        if ends {
            lines.extend(tuple_line(&parameter));
            parameter.clear();
            if token.text == ")" {
                break;
            }
            continue;
        }
        depth.pass(&token.text);
        parameter.push(token);
    }
    lines
}

/// The line of a parameter `name: type`, if the type is a tuple of two or more.
fn tuple_line(parameter: &[&Token]) -> Option<usize> {
    let mut depth = Depth::default();
    let colon = parameter.iter().position(|token| {
        depth.pass(&token.text);
        depth.is_outside() && token.text == ":"
    })?;
    let mut kind = &parameter[colon + 1..];
    loop {
        kind = match kind.first()?.text.as_str() {
            "&" | "mut" => &kind[1..],
            "'" => kind.get(2..)?,
            _ => break,
        };
    }
    let (open, inside) = kind.split_first().filter(|(open, _)| open.text == "(")?;
    let mut depth = Depth::default();
    let is_tuple = inside.iter().any(|token| {
        let found = depth.is_outside() && token.text == ",";
        depth.pass(&token.text);
        found
    });
    is_tuple.then_some(open.line)
}

/// How many brackets are open.
#[derive(Debug, Default)]
struct Depth {
    brackets: usize,
    angles: usize,
    after_minus: bool,
}

impl Depth {
    fn pass(&mut self, text: &str) {
        match text {
            "(" | "[" | "{" => self.brackets += 1,
            ")" | "]" | "}" => self.brackets = self.brackets.saturating_sub(1),
            "<" => self.angles += 1,
            ">" if !self.after_minus => self.angles = self.angles.saturating_sub(1),
            _ => {}
        }
        self.after_minus = text == "-";
    }

    fn is_outside(&self) -> bool {
        self.brackets == 0 && self.angles == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(text: &str) -> usize {
        parameters(&Tree::of(&[("crates/x/src/a.rs", text)]), "x").len()
    }

    #[test]
    fn tuples_and_references_to_them_are_found() {
        assert_eq!(count("pub fn f(range: (u64, u64)) {}"), 1);
        assert_eq!(count("pub(crate) fn f(&self, (a, b): &(u64, u64), c: &'a mut (u8, u8)) {}"), 2);
        assert_eq!(
            count("impl A { pub const fn f<F: Fn(u8) -> u8>(f: F, t: (u8, B<C, D>)) {} }"),
            1
        );
    }

    #[test]
    fn other_parameters_and_functions_of_one_file_are_not() {
        assert_eq!(count("fn f(range: (u64, u64)) {}"), 0);
        assert_eq!(count("pub(super) fn f(range: (u64, u64)) {}"), 0);
        assert_eq!(count("pub fn f(a: u8, b: (B<C, D>), c: ()) -> (u8, u8) {}"), 0);
        assert_eq!(count("pub fn f(a: &dyn Fn(u8, u8), b: &[(u8, u8)], c: [u8; 2]) {}"), 0);
        assert_eq!(count("#[cfg(test)] mod tests { pub fn f(range: (u64, u64)) {} }"), 0);
    }

    #[test]
    fn more_than_the_list_allows_is_found() {
        let source = ("crates/x/src/a.rs", "pub fn f(range: (u64, u64)) {}");
        assert_eq!(find(&Tree::of(&[source])).len(), 1);
        let list = (ratchets::LIST, "tuples | x | 1 | a reason");
        assert_eq!(find(&Tree::of(&[source, list])), []);
    }
}
