//! `cargo x image`: the container image, looked into as its layout says, and run from its own files
//! as its configuration says.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::Verdict;
use crate::invocation::Invocation;
use crate::report::{self, Report};
use crate::rooted::{Recipe, as_failure, is_as_expected};
use crate::scratch::{Scratch, shown};

/// Free ports, and little of everything.
const OPTIONS: &str = "--port 0 --admin-port 0 --capacity 128MiB --memory 64MiB";
const PASSWORD: &str = "a password of a test";

/// `cargo x image`.
pub(crate) fn perform(arguments: &[String]) -> Result<Verdict, String> {
    report::alone(arguments, check)
}

/// Makes the image, then looks into it.
pub(crate) fn check(report: &mut Report) -> Result<(), String> {
    let scratch = Scratch::of("image");
    let make = Invocation::new("scripts/package-image").with_argument(shown(scratch.path()));
    if !report.run("image", &make)? {
        return Ok(());
    }
    let archive = crate::only_file(scratch.path())?;
    let repeat = "cargo x image";
    if Invocation::new("skopeo --version").run_quietly().is_ok_and(|ending| ending.passed) {
        let inspect = Invocation::new("skopeo inspect --no-tags")
            .with_argument(format!("oci-archive:{}", shown(&archive)));
        report.run("image skopeo", &inspect)?;
    } else {
        println!("skipped: another opinion about the image: apt-get install skopeo");
    }
    let place = scratch.path().join("layout");
    let mut layout = None;
    report.perform("image layout", repeat, &mut || {
        layout = Layout::of(&archive, &place)?;
        Ok(layout.is_some())
    })?;
    if let Some(layout) = layout {
        report.perform("image run", repeat, &mut || layout.serves().or_else(as_failure))?;
    }
    Ok(())
}

/// An image whose parts have the digests that name them, unpacked.
#[derive(Debug)]
struct Layout {
    root: PathBuf,
    /// What a container is made with.
    config: Value,
}

impl Layout {
    /// None where a part is not what its digest says, and then this is printed.
    fn of(archive: &Path, place: &Path) -> Result<Option<Layout>, String> {
        unpack(archive, place)?;
        let index = json(&place.join("index.json"))?;
        let Some(manifest) = part(place, &index["manifests"][0])? else { return Ok(None) };
        let manifest = json(&manifest)?;
        let Some(config) = part(place, &manifest["config"])? else { return Ok(None) };
        let Some(layer) = part(place, &manifest["layers"][0])? else { return Ok(None) };
        let root = place.join("root");
        unpack(&layer, &root)?;
        Ok(Some(Layout { root, config: json(&config)?["config"].take() }))
    }

    /// Whether it refuses to serve without users, and serves with them.
    fn serves(&self) -> Result<bool, String> {
        let shared = self.root.join("dev/shm");
        let mount = Invocation::new("mkdir --parents --mode 1777").with_argument(shown(&shared));
        mount.run_quietly()?;
        let mut words = strings(&self.config["Entrypoint"]);
        words.extend(OPTIONS.split(' ').map(str::to_string));
        let environment = strings(&self.config["Env"]);
        let user = self.config["User"].as_str().unwrap_or_default();
        let recipe = Recipe { root: &self.root, user, words: &words, environment: &environment };
        let mut passed = is_as_expected("the user", user, "10001:10001");
        match recipe.start() {
            Err(reason) if reason.contains("entresol user add NAME") => {}
            Err(reason) => return Err(reason),
            Ok(_) => {
                println!("anybody may connect: the image serves without a file of users");
                passed = false;
            }
        }
        self.add_user()?;
        let server = recipe.start()?;
        let refused = server.replies(&["ping"])?;
        passed &= is_as_expected("a stranger's ping", &refused, "NOAUTH Authentication required.");
        let known = ["--no-auth-warning", "--user", "app", "--pass", PASSWORD, "ping"];
        passed &= is_as_expected("a user's ping", &server.replies(&known)?, "PONG");
        for path in ["/health/live", "/health/ready"] {
            passed &= is_as_expected(path, &server.status_of(path)?, "HTTP/1.1 200 OK");
        }
        passed &= is_as_expected("clean stop", &server.stop()?.to_string(), "true");
        let data = self.root.join("data/entresol.data").is_file();
        Ok(passed & is_as_expected("the volume has the data", &data.to_string(), "true"))
    }

    /// Writes the file of users with the image's own program.
    fn add_user(&self) -> Result<(), String> {
        let program = shown(&self.root.join("usr/bin/entresol"));
        let line = "printf '%s\\n' \"$1\" | \"$0\" user add app";
        let made = Invocation::new("sh -c")
            .with_argument(line)
            .with_argument(program)
            .with_argument(PASSWORD)
            .read()?;
        let users = self.root.join("etc/entresol/users");
        std::fs::write(&users, made).map_err(|error| format!("{}: {error}", users.display()))
    }
}

/// The file that a descriptor names; none where its length or digest are others, which is printed.
fn part(place: &Path, descriptor: &Value) -> Result<Option<PathBuf>, String> {
    let digest = descriptor["digest"].as_str().unwrap_or_default();
    let Some(sum) = digest.strip_prefix("sha256:") else {
        println!("a part of the image: expected a digest by SHA-256, found `{digest}`");
        return Ok(None);
    };
    let path = place.join("blobs/sha256").join(sum);
    let length =
        std::fs::metadata(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let found = Invocation::new("sha256sum").with_argument(shown(&path)).read()?;
    let found = found.split(' ').next().unwrap_or_default();
    let is_it = is_as_expected("a part's digest", found, sum)
        & is_as_expected("its length", &length.len().to_string(), &descriptor["size"].to_string());
    Ok(is_it.then_some(path))
}

fn unpack(archive: &Path, place: &Path) -> Result<(), String> {
    std::fs::create_dir_all(place).map_err(|error| format!("{}: {error}", place.display()))?;
    let unpack = Invocation::new("tar --extract --numeric-owner --same-permissions --file")
        .with_argument(shown(archive))
        .with_argument("--directory")
        .with_argument(shown(place));
    unpack.read().map(drop)
}

fn json(path: &Path) -> Result<Value, String> {
    let cannot = |error: String| format!("{}: {error}", path.display());
    let text = std::fs::read_to_string(path).map_err(|error| cannot(error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| cannot(error.to_string()))
}

fn strings(list: &Value) -> Vec<String> {
    let words = list.as_array().into_iter().flatten();
    words.filter_map(|word| Some(word.as_str()?.to_string())).collect()
}
