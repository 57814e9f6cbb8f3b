//! `cargo x metadata`: what registries ask of crates and of Maven's modules, and one version in all
//! places that name it. `--release` asks for what only the publisher knows, too: the address of the
//! repository.

use std::path::PathBuf;

use serde_json::Value;

use crate::Verdict;
use crate::invocation::Invocation;
use crate::report::Report;

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Keywords that a crate may have, and the longest of them.
const KEYWORDS_MAX: usize = 5;
const KEYWORD_CHARS_MAX: usize = 20;
/// Packages without a network: dependencies on one another come from the tree.
const PACKAGE: &str = "package --quiet --offline --no-verify --allow-dirty";
/// What makes the jars that are handed out, but for signatures.
const JARS: &str = "mvn --batch-mode --quiet --file java/pom.xml -Prelease package -DskipTests";
/// Elements of the parent of all modules, from which they have them.
const OF_PARENT: [&str; 3] = ["licenses", "organization", "developers"];
/// What has the address of the repository.
const OF_PUBLISHER: [&str; 2] = ["url", "scm"];
/// What to set where the address of the repository is not there.
const ADDRESS: &str = "the address of the repository is to be set: `repository` below \
    [workspace.package] in Cargo.toml, `repository.workspace = true` in the Cargo.toml of each \
    crate above, and `<url>` and `<scm>` in java/pom.xml";
/// Where the version stands beside the manifests; `@` is the version.
const PLACES: [(&str, &str); 9] = [
    ("CHANGELOG.md", "\n## @\n"),
    ("packaging/kubernetes/entresol.yaml", "image: entresol:@\n"),
    ("docs/guides/install.md", "entresol-@-amd64.oci.tar"),
    ("docs/guides/operating.md", " entresol:@ "),
    ("docs/guides/cassandra.md", "`entresol-cassandra-@.jar`"),
    ("docs/start/java-objects.md", ", version @.\n"),
    ("docs/start/java-objects.md", "V=@;"),
    ("java/grid/src/main/java/io/entresol/grid/Launcher.java", "\"entresol-grid @\""),
    (
        "java/jdbc/src/main/java/io/entresol/jdbc/Driver.java",
        "Driver\", \"@\", \"Entresol\", \"@\"",
    ),
];

/// How much is demanded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Demand {
    /// What can be known before anybody publishes.
    Known,
    /// The address of the repository, too.
    Release,
}

/// `cargo x metadata [--release]`.
pub(crate) fn perform(arguments: &[String]) -> Result<Verdict, String> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let demand = match words.as_slice() {
        [] => Demand::Known,
        ["--release"] => Demand::Release,
        other => {
            return Err(format!("unexpected `{}`; it takes --release or nothing", other.join(" ")));
        }
    };
    let mut report = Report::default();
    check_all(&mut report, demand)?;
    Ok(report.close())
}

/// Jars of sources and documentation beside the jar of each module that is handed out: minutes.
pub(crate) fn check_jars(report: &mut Report) -> Result<(), String> {
    if !report.run("release jars", &Invocation::new(JARS))? {
        return Ok(());
    }
    report.perform("jars beside", JARS, &mut || {
        let mut passed = true;
        for module in modules()? {
            if read(&format!("java/{module}/pom.xml"))?.contains("<maven.deploy.skip>true<") {
                continue;
            }
            for kind in ["sources", "javadoc"] {
                let jar = format!("java/{module}/target/entresol-{module}-{VERSION}-{kind}.jar");
                if !crate::root().join(&jar).is_file() {
                    println!("{jar}: expected by the profile `release`, not there");
                    passed = false;
                }
            }
        }
        Ok(passed)
    })?;
    Ok(())
}

/// What the gate demands.
pub(crate) fn check(report: &mut Report) -> Result<(), String> {
    check_all(report, Demand::Known)
}

fn check_all(report: &mut Report, demand: Demand) -> Result<(), String> {
    let text = Invocation::cargo("metadata --no-deps --offline --format-version 1").read()?;
    let metadata: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let crates = metadata["packages"].as_array().cloned().unwrap_or_default();
    report.perform("metadata", "cargo x metadata", &mut || {
        let mut faults: Vec<String> =
            crates.iter().flat_map(|each| faults_of_crate(each, demand)).collect();
        faults.extend(faults_of_modules(demand)?);
        faults.extend(faults_of_places()?);
        faults.extend(next_step(&faults));
        faults.iter().for_each(|fault| println!("{fault}"));
        Ok(faults.is_empty())
    })?;
    let mut package = Invocation::cargo(PACKAGE);
    for each in crates.iter().filter(|each| is_published(each)) {
        let name = each["name"].as_str().unwrap_or_default();
        package = package.with_argument("--package").with_argument(name);
    }
    report.perform("crates", &package.to_string(), &mut || {
        let ending = package.run_quietly()?;
        if !ending.passed {
            println!("{}", ending.output);
        }
        Ok(ending.passed)
    })?;
    Ok(())
}

/// What is to be done about faults that are the lack of an address.
fn next_step(faults: &[String]) -> Option<String> {
    let names = ["`repository` ", "`<url>` ", "`<scm>` "];
    let lacks = |fault: &String| names.iter().any(|name| fault.contains(name));
    faults.iter().any(lacks).then(|| ADDRESS.to_string())
}

/// `publish = false` is an empty list of registries.
fn is_published(each: &Value) -> bool {
    each["publish"].as_array().is_none_or(|registries| !registries.is_empty())
}

/// What a crate lacks, as cargo describes it.
fn faults_of_crate(each: &Value, demand: Demand) -> Vec<String> {
    let mut faults = Vec::new();
    if !is_published(each) {
        return faults;
    }
    let name = each["name"].as_str().unwrap_or_default();
    let mut fields = vec!["description", "license", "readme"];
    if demand == Demand::Release {
        fields.push("repository");
    }
    for field in fields {
        if each[field].as_str().is_none_or(str::is_empty) {
            faults.push(format!("crate {name}: `{field}` is missing, or `publish = false`"));
        }
    }
    let list = |field: &str| each[field].as_array().cloned().unwrap_or_default();
    let (keywords, categories) = (list("keywords"), list("categories"));
    let is_short = |word: &Value| word.as_str().is_some_and(|w| w.len() <= KEYWORD_CHARS_MAX);
    if !(1..=KEYWORDS_MAX).contains(&keywords.len()) || !keywords.iter().all(is_short) {
        faults.push(format!(
            "crate {name}: `keywords`: expected 1 to {KEYWORDS_MAX} of at most \
             {KEYWORD_CHARS_MAX} characters, found {keywords:?}"
        ));
    }
    if categories.is_empty() {
        faults.push(format!("crate {name}: `categories` is missing"));
    }
    faults
}

/// What Maven's modules and their parent lack.
fn faults_of_modules(demand: Demand) -> Result<Vec<String>, String> {
    let parent = read("java/pom.xml")?;
    let mut wanted = vec!["name", "description"];
    wanted.extend(OF_PARENT);
    if demand == Demand::Release {
        wanted.extend(OF_PUBLISHER);
    }
    let mut faults = lacking("java/pom.xml", &parent, &wanted);
    faults.extend(version_fault("java/pom.xml", &parent, "\n  <version>@</version>"));
    if !parent.contains("<id>release</id>") {
        faults.push("java/pom.xml: the profile `release` is missing".to_string());
    }
    for module in modules()? {
        let path = format!("java/{module}/pom.xml");
        let text = read(&path)?;
        faults.extend(lacking(&path, &text, &["name", "description"]));
        faults.extend(version_fault(&path, &text, "\n    <version>@</version>\n  </parent>"));
    }
    Ok(faults)
}

/// The elements below a POM's root that are not there: what is further in is indented more.
fn lacking(path: &str, text: &str, wanted: &[&str]) -> Vec<String> {
    let absent = wanted.iter().filter(|name| !text.contains(&format!("\n  <{name}>")));
    absent.map(|name| format!("{path}: `<{name}>` is missing")).collect()
}

/// Folders of modules.
fn modules() -> Result<Vec<String>, String> {
    let folder = crate::root().join("java");
    let cannot = |error: std::io::Error| format!("{}: {error}", folder.display());
    let entries = std::fs::read_dir(&folder).map_err(cannot)?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let module = |path: PathBuf| Some(path.file_name()?.to_str()?.to_string());
    Ok(paths.filter(|path| path.join("pom.xml").is_file()).filter_map(module).collect())
}

fn faults_of_places() -> Result<Vec<String>, String> {
    let mut faults = Vec::new();
    for (path, pattern) in PLACES {
        faults.extend(version_fault(path, &read(path)?, pattern));
    }
    Ok(faults)
}

/// A fault where `text` has no `pattern` with this version.
fn version_fault(path: &str, text: &str, pattern: &str) -> Option<String> {
    let expected = pattern.replace('@', VERSION);
    (!text.contains(&expected)).then(|| format!("{path}: expected `{}`", expected.trim()))
}

fn read(path: &str) -> Result<String, String> {
    std::fs::read_to_string(crate::root().join(path)).map_err(|error| format!("{path}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = r#"{"name": "a", "publish": null, "description": "d", "license": "l",
        "readme": "r", "keywords": ["k"], "categories": ["c"]}"#;

    fn faults(text: &str, demand: Demand) -> usize {
        faults_of_crate(&serde_json::from_str(text).unwrap(), demand).len()
    }

    #[test]
    fn a_crate_that_is_published_must_say_what_registries_ask() {
        assert_eq!(faults(WHOLE, Demand::Known), 0);
        assert_eq!(faults(WHOLE, Demand::Release), 1, "the repository is for the publisher");
        assert_eq!(faults(&WHOLE.replace("\"d\"", "null"), Demand::Known), 1);
        assert_eq!(faults(&WHOLE.replace("[\"c\"]", "[]"), Demand::Known), 1);
        let long = format!("[\"{}\"]", "k".repeat(KEYWORD_CHARS_MAX + 1));
        assert_eq!(faults(&WHOLE.replace("[\"k\"]", &long), Demand::Known), 1);
        assert_eq!(faults(r#"{"name": "a", "publish": []}"#, Demand::Release), 0);
    }

    #[test]
    fn where_the_address_is_missing_the_places_to_set_it_are_named_once() {
        let whole: Value = serde_json::from_str(WHOLE).unwrap();
        let faults = faults_of_crate(&whole, Demand::Release);
        assert_eq!(next_step(&faults).as_deref(), Some(ADDRESS));
        let poms = lacking("pom.xml", "<project>\n", &OF_PUBLISHER);
        assert!(poms.iter().all(|fault| next_step(std::slice::from_ref(fault)).is_some()));
        assert_eq!(next_step(&lacking("pom.xml", "<project>\n", &["name"])), None);
    }

    #[test]
    fn an_element_counts_at_the_root_of_a_pom_only() {
        let text = "<project>\n  <name>a</name>\n  <licenses>\n    <url>b</url>\n  </licenses>\n";
        assert_eq!(lacking("pom.xml", text, &["name", "licenses"]), Vec::<String>::new());
        assert_eq!(lacking("pom.xml", text, &["url"]).len(), 1);
    }

    #[test]
    fn another_version_is_a_fault() {
        let text = format!("\n## {VERSION}\n");
        assert_eq!(version_fault("CHANGELOG.md", &text, "\n## @\n"), None);
        assert!(version_fault("CHANGELOG.md", "\n## 9.9.9\n", "\n## @\n").is_some());
    }
}
