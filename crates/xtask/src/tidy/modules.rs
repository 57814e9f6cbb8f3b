//! The modules of a crate as its files make them, and the paths between them.
//!
//! A path leads to the file that defines what it names: re-exports and globs are followed, an item
//! of a module written inside a file counts as the file's. Methods and fields are not followed, nor
//! what a macro makes: of these only the path that begins with a module is seen.

use std::collections::{BTreeMap, BTreeSet};

use crate::tidy::tokens::Token;
use crate::tidy::tree::Tree;

/// Steps from import to import; two modules may import a name from one another.
const STEPS_MAX: usize = 16;

/// The path of a module from the root of its crate, which is empty.
type Place = Vec<String>;

/// One crate's modules.
#[derive(Debug, Default)]
pub(crate) struct Modules {
    all: BTreeMap<Place, Module>,
}

/// One file.
#[derive(Debug, Default)]
struct Module {
    file: String,
    defined: BTreeSet<String>,
    /// Names that a `use` brings in, with the paths they stand for.
    imported: BTreeMap<String, Vec<String>>,
    globs: Vec<Vec<String>>,
    /// Every path of the file, those of its imports too.
    paths: Vec<Vec<String>>,
}

/// A file that names what is in another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Edge {
    pub(crate) from: String,
    pub(crate) to: String,
    /// One of the paths that make it.
    pub(crate) by: String,
}

impl Modules {
    /// Those of `crates/NAME/src`, without tests.
    pub(crate) fn of(tree: &Tree, name: &str) -> Modules {
        let folder = format!("crates/{name}/src/");
        let mut modules = Modules::default();
        for (file, tokens) in tree.rust().filter(|(file, _)| !file.is_test()) {
            let Some(path) = file.path.strip_prefix(&folder) else { continue };
            let product: Vec<&Token> = tokens.list.iter().filter(|token| !token.in_test).collect();
            let mut module = Module { file: file.path.clone(), ..Module::default() };
            module.read(&product);
            modules.all.insert(place_of(path), module);
        }
        modules
    }

    /// Edges between files, but not between a module and those above or below it.
    pub(crate) fn edges(&self) -> Vec<Edge> {
        let mut edges: BTreeMap<(&str, &str), String> = BTreeMap::new();
        for (place, module) in &self.all {
            for path in &module.paths {
                let Some(target) = self.resolve(place, path, 0) else { continue };
                let related = target.starts_with(place) || place.starts_with(&target);
                if !related && let Some(other) = self.all.get(&target) {
                    edges.entry((&module.file, &other.file)).or_insert_with(|| path.join("::"));
                }
            }
        }
        let edge = |((from, to), by): ((&str, &str), String)| Edge {
            from: from.to_string(),
            to: to.to_string(),
            by,
        };
        edges.into_iter().map(edge).collect()
    }

    /// The module that defines what `path` names where it stands in `place`.
    fn resolve(&self, place: &Place, path: &[String], steps: usize) -> Option<Place> {
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            "crate" => self.follow(Place::new(), rest, steps),
            "self" => self.follow(place.clone(), rest, steps),
            "super" => {
                let mut above = place.clone();
                above.pop()?;
                let ups = rest.iter().take_while(|word| *word == "super").count();
                above.truncate(above.len().checked_sub(ups)?);
                self.follow(above, &rest[ups..], steps)
            }
            _ if self.knows(place, first, steps) => self.follow(place.clone(), path, steps),
            _ => None,
        }
    }

    /// Whether `name` is there in `place`: a module below it, an item or an import.
    fn knows(&self, place: &Place, name: &String, steps: usize) -> bool {
        let Some(module) = self.all.get(place) else { return false };
        self.all.contains_key(&below(place, name))
            || module.defined.contains(name)
            || module.imported.contains_key(name)
            || (steps < STEPS_MAX && self.glob_of(place, name, steps).is_some())
    }

    fn follow(&self, place: Place, path: &[String], steps: usize) -> Option<Place> {
        let Some((first, rest)) = path.split_first() else { return Some(place) };
        let module = self.all.get(&place)?;
        let lower = below(&place, first);
        if self.all.contains_key(&lower) {
            return self.follow(lower, rest, steps);
        }
        if module.defined.contains(first) || steps >= STEPS_MAX {
            return Some(place);
        }
        if let Some(import) = module.imported.get(first) {
            let whole: Vec<String> = import.iter().chain(rest).cloned().collect();
            // What comes from another crate is nobody's in this one.
            return self.resolve(&place, &whole, steps + 1);
        }
        match self.glob_of(&place, first, steps) {
            Some(target) => self.follow(target, path, steps + 1),
            None => Some(place),
        }
    }

    /// The module of whose names `place` has all, and that has this one.
    fn glob_of(&self, place: &Place, name: &String, steps: usize) -> Option<Place> {
        let globs = &self.all.get(place)?.globs;
        let targets = globs.iter().filter_map(|glob| self.resolve(place, glob, steps + 1));
        targets
            .filter(|target| target != place)
            .find(|target| self.knows(target, name, steps + STEPS_MAX / 4))
    }
}

impl Module {
    fn read(&mut self, tokens: &[&Token]) {
        let mut depth = 0usize;
        let mut index = 0;
        while let Some(token) = tokens.get(index) {
            match token.text.as_str() {
                "{" | "(" | "[" => depth += 1,
                "}" | ")" | "]" => depth = depth.saturating_sub(1),
                "use" => {
                    index = self.read_use(tokens, index + 1, &[], depth == 0);
                    continue;
                }
                "struct" | "enum" | "union" | "trait" | "type" | "fn" | "const" | "static"
                | "mod"
                    if depth == 0 =>
                {
                    let name = tokens[index + 1..].iter().find(|t| t.is_word && t.text != "mut");
                    self.defined.extend(name.map(|token| token.text.clone()));
                }
                _ if token.is_word && starts_path(tokens, index) => {
                    let path = path_from(tokens, index);
                    index += path.len() * 3 - 2;
                    self.paths.push(path);
                    continue;
                }
                _ => {}
            }
            index += 1;
        }
    }

    /// Reads a tree of imports that begins at `index`, below `prefix`; returns where it ends.
    fn read_use(&mut self, tokens: &[&Token], at: usize, prefix: &[String], top: bool) -> usize {
        let mut path = prefix.to_vec();
        let mut name = None;
        let mut index = at;
        while let Some(token) = tokens.get(index) {
            index += 1;
            match token.text.as_str() {
                ":" => {}
                "as" => {
                    name = tokens.get(index).map(|token| token.text.clone());
                    index += 1;
                }
                "*" => {
                    self.paths.push(path.clone());
                    self.globs.push(path.clone());
                    path.clear();
                }
                "{" => {
                    loop {
                        index = self.read_use(tokens, index, &path, top);
                        match tokens.get(index).map(|token| token.text.as_str()) {
                            Some(",") => index += 1,
                            _ => break,
                        }
                    }
                    index += 1;
                    path.clear();
                }
                "," | "}" | ";" => {
                    index -= 1;
                    break;
                }
                word => path.push(word.to_string()),
            }
        }
        // `a::{self, b}` names `a`.
        if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
            path.pop();
        }
        if path.len() > prefix.len() || (!prefix.is_empty() && !path.is_empty()) {
            self.paths.push(path.clone());
            if let Some(name) = name.or_else(|| path.last().cloned()).filter(|_| top) {
                self.imported.insert(name, path);
            }
        }
        index
    }
}

/// `a/b.rs` and `a/b/mod.rs` are `a::b`; the roots are nothing.
fn place_of(path: &str) -> Place {
    let stem = path.trim_end_matches(".rs");
    let mut place: Place = stem.split('/').map(str::to_string).collect();
    if place.last().is_some_and(|last| last == "mod") {
        place.pop();
    }
    if place == ["lib"] || place == ["main"] { Place::new() } else { place }
}

fn below(place: &Place, name: &str) -> Place {
    let mut lower = place.clone();
    lower.push(name.to_string());
    lower
}

/// Whether a path of more than one word begins at `index`.
fn starts_path(tokens: &[&Token], index: usize) -> bool {
    let before = index.checked_sub(1).map(|before| tokens[before].text.as_str());
    !matches!(before, Some("." | "fn")) && is_joint(tokens, index + 1)
}

/// Whether `::` and a word stand at `index`.
fn is_joint(tokens: &[&Token], index: usize) -> bool {
    let is_colon = |at: usize| tokens.get(at).is_some_and(|token| token.text == ":");
    is_colon(index)
        && is_colon(index + 1)
        && tokens.get(index + 2).is_some_and(|token| token.is_word)
}

fn path_from(tokens: &[&Token], mut index: usize) -> Vec<String> {
    let mut path = vec![tokens[index].text.clone()];
    while is_joint(tokens, index + 1) {
        index += 3;
        path.push(tokens[index].text.clone());
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edges(files: &[(&str, &str)]) -> Vec<String> {
        let short = |path: &str| path.trim_start_matches("crates/x/src/").to_string();
        let edges = Modules::of(&Tree::of(files), "x").edges();
        edges.iter().map(|edge| format!("{} {}", short(&edge.from), short(&edge.to))).collect()
    }

    #[test]
    fn imports_and_paths_lead_to_the_file_that_defines_the_item() {
        let found = edges(&[
            ("crates/x/src/lib.rs", "mod a; mod b; pub use b::Thing; use std::io;"),
            ("crates/x/src/a.rs", "use crate::{Thing as T, c::{self, Other}}; use std::fmt;"),
            ("crates/x/src/b.rs", "pub struct Thing; fn f() { super::a::go::<u8>(); }"),
            ("crates/x/src/c.rs", "pub struct Other; fn f() { io::Error::new(); }"),
        ]);
        assert_eq!(found, ["a.rs b.rs", "a.rs c.rs", "b.rs a.rs"]);
    }

    #[test]
    fn re_exports_and_globs_are_followed() {
        let found = edges(&[
            ("crates/x/src/lib.rs", "mod a; mod b; mod c;"),
            ("crates/x/src/a.rs", "use crate::b::Deep; fn f() { Deep::new(); }"),
            ("crates/x/src/b.rs", "mod deep; pub use deep::*; pub use crate::a::Deep as Loop;"),
            ("crates/x/src/b/deep.rs", "pub struct Deep;"),
            ("crates/x/src/c.rs", "use super::b::*; fn f() { Deep::new(); Loop::new(); }"),
        ]);
        assert_eq!(found, ["a.rs b/deep.rs", "c.rs b.rs", "c.rs b/deep.rs"]);
    }

    #[test]
    fn modules_above_and_below_and_tests_make_no_edges() {
        let found = edges(&[
            ("crates/x/src/lib.rs", "mod a; mod b; fn f() { a::deep::go(); }"),
            ("crates/x/src/a.rs", "#[cfg(test)] mod tests { use crate::b::Other; }"),
            ("crates/x/src/a/deep.rs", "use super::Item; use crate::Root;"),
            ("crates/x/src/b.rs", "pub struct Other;"),
        ]);
        assert_eq!(found, [""; 0]);
    }
}
