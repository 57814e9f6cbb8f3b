//! `cargo x book`: the documents as a book, with the documentation of the libraries beside.
//!
//! The pages are those that `docs/SUMMARY.md` names. They, and the sources that they link to, are
//! laid below `target/book/src` under the paths that they have in the repository, so links hold.
//! `cargo x tidy` has looked at the links; mdBook renders.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::Verdict;
use crate::invocation::Invocation;
use crate::tidy::markdown;
use crate::tidy::summary::SUMMARY;

const SETTINGS: &str = "docs/book.toml";
/// Below the root.
const BOOK: &str = "target/book";
/// A program of its own workspace, which is mdBook's library.
const RENDERER: &str = "book/Cargo.toml";
/// Made here, not a file of the repository.
const LIBRARIES: &str = "libraries.md";

const CRATES: &[&str] =
    &["tier", "flash", "device", "heap", "volume", "workload", "certify", "wire"];
const MODULES: [&str; 4] = ["native", "binding", "heap", "collections"];
/// Packages that programs have no use for.
const INTERNAL: [&str; 2] =
    ["io.entresol.collections.internal.blocks", "io.entresol.collections.internal.views"];

/// `cargo x book`.
pub(crate) fn perform(arguments: &[String]) -> Result<Verdict, String> {
    if !arguments.is_empty() {
        return Err("it takes no arguments".to_string());
    }
    let java = has_javadoc();
    let book = lay_and_render(java)?;
    add_rust(&book)?;
    if java {
        add_java(&book)?;
    } else {
        println!("skipped: there is no javadoc here: apt-get install openjdk-17-jdk-headless");
    }
    println!("the book: {BOOK}/html/index.html");
    Ok(Verdict::Passed)
}

/// Lays the pages and has them rendered: all of the book that is not made from sources.
pub(crate) fn render() -> Result<bool, String> {
    lay_and_render(has_javadoc()).map(|_| true)
}

/// The directory of the book.
fn lay_and_render(java: bool) -> Result<PathBuf, String> {
    let book = crate::root().join(BOOK);
    match fs::remove_dir_all(&book) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(format!("{BOOK}: {error}"));
        }
        _ => {}
    }
    lay_pages(&book.join("src"), java)?;
    copy(SETTINGS, &book.join("book.toml"))?;
    let render = format!("run --quiet --locked --manifest-path {RENDERER} -- {BOOK}");
    Invocation::cargo(&render).read()?;
    Ok(book)
}

/// Every page of the book, what pages link to, and the table of contents.
fn lay_pages(source: &Path, java: bool) -> Result<(), String> {
    let summary = read(SUMMARY)?;
    let pages: BTreeSet<String> = linked(SUMMARY, &summary).collect();
    let mut others = BTreeSet::new();
    for page in &pages {
        let text = read(page)?;
        others.extend(linked(page, &text).filter(|path| !pages.contains(path)));
        copy(page, &source.join(page))?;
    }
    for path in others.iter().filter(|path| crate::root().join(path).is_file()) {
        copy(path, &source.join(path))?;
    }
    let mut contents = rooted(&summary);
    contents.push_str(&format!("\n- [Documentation of the libraries]({LIBRARIES})\n"));
    write(&source.join("SUMMARY.md"), &contents)?;
    write(&source.join(LIBRARIES), &libraries(java))
}

/// Paths of what `text`, the contents of `document`, links to in this repository.
fn linked(document: &str, text: &str) -> impl Iterator<Item = String> {
    let ours = |target: &str| {
        let target = target.split('#').next().unwrap_or_default();
        markdown::is_ours(target).then(|| markdown::resolved(document, target))
    };
    text.lines().flat_map(markdown::targets).filter_map(ours).collect::<Vec<_>>().into_iter()
}

/// The table of contents with paths from the root.
fn rooted(summary: &str) -> String {
    let mut text = String::new();
    for line in summary.lines() {
        match line.split_once("](").zip(markdown::targets(line).next()) {
            Some(((start, _), target)) => {
                text.push_str(&format!("{start}]({})", markdown::resolved(SUMMARY, target)));
            }
            None => text.push_str(line),
        }
        text.push('\n');
    }
    text
}

fn libraries(java: bool) -> String {
    let mut text = "# Documentation of the libraries\n\n## Rust\n\n".to_string();
    for name in CRATES {
        text.push_str(&format!("* [`entresol-{name}`](rust/entresol_{name}/index.html)\n"));
    }
    if java {
        text.push_str(
            "\n## Java\n\n* [`io.entresol`](java/index.html): stores, caches, heaps and ",
        );
        text.push_str("collections\n");
    }
    text
}

fn add_rust(book: &Path) -> Result<(), String> {
    let mut documentation = Invocation::cargo("doc --quiet --no-deps --target-dir target");
    for name in CRATES {
        documentation =
            documentation.with_argument("--package").with_argument(format!("entresol-{name}"));
    }
    documentation.read()?;
    let copy = Invocation::new("cp --recursive target/doc");
    copy.with_argument(book.join("html/rust").to_string_lossy()).read().map(drop)
}

fn has_javadoc() -> bool {
    Invocation::new("javadoc --version").run_quietly().is_ok_and(|ending| ending.passed)
}

fn add_java(book: &Path) -> Result<(), String> {
    let generated = book.join("generated").to_string_lossy().into_owned();
    let newer = book.join("generated-22").to_string_lossy().into_owned();
    let generator = Invocation::new("java java/collections/src/generator/java/Generate.java");
    generator.with_argument(&*generated).read()?;
    let calls = Invocation::new("java java/native/src/generator/java/Generate.java")
        .with_argument("java/native/src/main/java/io/entresol/heap/engine");
    calls.with_argument(&*generated).with_argument(newer).read()?;
    let sources = MODULES.map(|module| format!("java/{module}/src/main/java")).join(":");
    let javadoc = Invocation::new("javadoc -quiet -Xdoclint:none -encoding UTF-8 -protected")
        .with_argument("-d")
        .with_argument(book.join("html/java").to_string_lossy())
        .with_argument("-sourcepath")
        .with_argument(format!("{sources}:{generated}"));
    let javadoc = javadoc.with_argument("-exclude").with_argument(INTERNAL.join(":"));
    javadoc.with_argument("-subpackages").with_argument("io.entresol").read().map(drop)
}

fn read(path: &str) -> Result<String, String> {
    fs::read_to_string(crate::root().join(path)).map_err(|error| format!("{path}: {error}"))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

fn copy(path: &str, to: &Path) -> Result<(), String> {
    let copied = to.parent().map_or(Ok(()), fs::create_dir_all);
    let copied = copied.and_then(|()| fs::copy(crate::root().join(path), to));
    copied.map(drop).map_err(|error| format!("{path} to {}: {error}", to.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_contents_is_seen_from_the_root() {
        let summary = "# Contents\n[Start](README.md)\n- [Map](../ARCHITECTURE.md)\n";
        assert_eq!(
            rooted(summary),
            "# Contents\n[Start](docs/README.md)\n- [Map](ARCHITECTURE.md)\n"
        );
    }

    #[test]
    fn links_of_a_page_are_paths_of_the_repository() {
        let text = "[a](../b.md#c) [d](https://e) [f](#g)\n![h](../images/i.svg)";
        let found: Vec<String> = linked("docs/start/x.md", text).collect();
        assert_eq!(found, ["docs/b.md", "docs/images/i.svg"]);
    }
}
