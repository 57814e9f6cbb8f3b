//! The files of the work tree and what the build knows of its packages, read once.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use crate::invocation::Invocation;
use crate::tidy::tokens::Tokens;

/// Everything that rules look at.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    pub(crate) files: Vec<File>,
    pub(crate) packages: Vec<Package>,
    /// Crates from outside that the project's own workspace is built from, whoever wants them.
    pub(crate) outside: Vec<Outside>,
}

/// One text file.
#[derive(Debug)]
pub(crate) struct File {
    /// Relative to the root, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
    /// Rust sources only.
    pub(crate) tokens: Option<Tokens>,
}

/// One member of a workspace.
#[derive(Debug, Clone)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) dependencies: Vec<Dependency>,
}

/// One crate from outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Outside {
    pub(crate) name: String,
    pub(crate) version: String,
    /// As its manifest has it.
    pub(crate) licence: Option<String>,
}

/// What a package depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    pub(crate) purpose: Purpose,
    /// Inside this repository.
    pub(crate) local: bool,
}

/// Why a package depends on another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    Product,
    Tests,
    Build,
}

/// Manifests of workspaces: the project's own, and those kept apart from it.
const WORKSPACES: &[&str] = &["Cargo.toml", "benches-compare/Cargo.toml", "fuzz/Cargo.toml"];

/// What releases are built for, as `deny.toml` has it.
const PLATFORMS: &[&str] = &["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"];

impl Tree {
    /// Reads every file that git tracks or would track.
    pub(crate) fn read(root: &Path) -> Result<Tree, String> {
        let listing = "git ls-files --cached --others --exclude-standard";
        let listing = Invocation::new(listing).read()?;
        let mut paths: Vec<&str> = listing.lines().collect();
        paths.sort_unstable();
        paths.dedup();
        let mut files = Vec::new();
        for path in paths {
            // A file that is gone but not yet committed as gone, or that is no text, is skipped.
            if let Ok(text) = std::fs::read_to_string(root.join(path)) {
                files.push(File::new(path, text));
            }
        }
        let mut packages = Vec::new();
        for manifest in WORKSPACES.iter().filter(|path| root.join(path).is_file()) {
            let command = "metadata --offline --no-deps --format-version 1 --manifest-path";
            let metadata = Invocation::cargo(command).with_argument(*manifest).read()?;
            packages.extend(packages_in(&metadata)?);
        }
        Ok(Tree { files, packages, outside: read_outside()? })
    }

    /// A tree for tests of rules.
    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Tree {
        let files = files.iter().map(|(path, text)| File::new(path, text.to_string())).collect();
        Tree { files, packages: Vec::new(), outside: Vec::new() }
    }

    pub(crate) fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    /// Whether a file or a folder of this path is there.
    pub(crate) fn has(&self, path: &str) -> bool {
        let folder = format!("{}/", path.trim_end_matches('/'));
        self.files.iter().any(|file| file.path == path || file.path.starts_with(&folder))
    }

    /// Names of the project's crates (`flash`).
    pub(crate) fn crates(&self) -> BTreeSet<&str> {
        self.rust().filter_map(|(file, _)| file.crate_name()).collect()
    }

    /// Rust sources with their tokens.
    pub(crate) fn rust(&self) -> impl Iterator<Item = (&File, &Tokens)> {
        self.files.iter().filter_map(|file| Some((file, file.tokens.as_ref()?)))
    }
}

impl File {
    fn new(path: &str, text: String) -> File {
        let tokens = path.ends_with(".rs").then(|| Tokens::of(&text));
        File { path: path.to_string(), text, tokens }
    }

    /// The crate that the file belongs to (`flash`), if it is one of the project's.
    pub(crate) fn crate_name(&self) -> Option<&str> {
        self.path.strip_prefix("crates/")?.split('/').next()
    }

    /// Whether the file is an example: a program, and no part of the library beside it.
    pub(crate) fn is_example(&self) -> bool {
        self.path.contains("/examples/")
    }

    /// Whether the whole file is a test or a benchmark.
    pub(crate) fn is_test(&self) -> bool {
        let within = |folder: &str| self.path.contains(folder);
        within("/tests/") || within("/benches/") || self.path.ends_with("/tests.rs")
    }

    /// Lines with their numbers, from 1.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(index, line)| (index + 1, line))
    }
}

/// What the lock file names for the platforms that are built for. A clone that was not built yet
/// does not have all of it; then nothing is looked at, and said so.
fn read_outside() -> Result<Vec<Outside>, String> {
    let mut command = Invocation::cargo("metadata --offline --locked --format-version 1");
    for platform in PLATFORMS {
        command = command.with_argument("--filter-platform").with_argument(*platform);
    }
    match command.read() {
        Ok(metadata) => outside_in(&metadata),
        Err(_) => {
            println!(
                "skipped: licences: some crates are not on this machine; `cargo fetch` gets them"
            );
            Ok(Vec::new())
        }
    }
}

fn outside_in(metadata: &str) -> Result<Vec<Outside>, String> {
    let outside = |value: &Value| Outside {
        name: text(value, "name"),
        version: text(value, "version"),
        licence: value["license"].as_str().map(str::to_owned),
    };
    let packages = list(&parsed(metadata)?, "packages");
    Ok(packages.iter().filter(|package| package["source"].is_string()).map(outside).collect())
}

fn parsed(metadata: &str) -> Result<Value, String> {
    serde_json::from_str(metadata).map_err(|error| format!("cargo metadata: {error}"))
}

fn list(value: &Value, name: &str) -> Vec<Value> {
    value[name].as_array().cloned().unwrap_or_default()
}

fn text(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_default().to_string()
}

fn packages_in(metadata: &str) -> Result<Vec<Package>, String> {
    let metadata = parsed(metadata)?;
    let dependency = |value: &Value| Dependency {
        name: text(value, "name"),
        purpose: match value["kind"].as_str() {
            Some("dev") => Purpose::Tests,
            Some("build") => Purpose::Build,
            _ => Purpose::Product,
        },
        local: value["path"].is_string(),
    };
    let package = |value: &Value| Package {
        name: text(value, "name"),
        dependencies: list(value, "dependencies").iter().map(dependency).collect(),
    };
    Ok(list(&metadata, "packages").iter().map(package).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_yields_packages_and_purposes() {
        let metadata = r#"{"packages": [{"name": "a", "dependencies": [
            {"name": "b", "kind": null, "path": "/x/b"}, {"name": "c", "kind": "dev"}]}]}"#;
        let packages = packages_in(metadata).unwrap();
        assert_eq!(packages.len(), 1);
        let b = Dependency { name: "b".into(), purpose: Purpose::Product, local: true };
        let c = Dependency { name: "c".into(), purpose: Purpose::Tests, local: false };
        assert_eq!(packages[0].dependencies, vec![b, c]);
    }

    #[test]
    fn metadata_yields_crates_from_outside_with_their_licences() {
        let metadata = r#"{"packages": [
            {"name": "ours", "version": "0.1.0", "source": null, "license": "Apache-2.0"},
            {"name": "b", "version": "1.2.3", "source": "registry", "license": "MIT"},
            {"name": "c", "version": "4.5.6", "source": "registry", "license": null}]}"#;
        let found = outside_in(metadata).unwrap();
        let named: Vec<_> = found.iter().map(|o| (&*o.name, &*o.version, &o.licence)).collect();
        assert_eq!(named, [("b", "1.2.3", &Some("MIT".to_owned())), ("c", "4.5.6", &None)]);
    }

    #[test]
    fn folders_and_files_are_both_there() {
        let tree = Tree::of(&[("crates/flash/src/log.rs", "//! x")]);
        assert!(tree.has("crates/flash") && tree.has("crates/flash/src/log.rs"));
        assert!(!tree.has("crates/fla") && !tree.has("crates/flash/src/lag.rs"));
        assert_eq!(tree.files[0].crate_name(), Some("flash"));
    }
}
