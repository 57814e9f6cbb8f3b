//! Certificates of drives: reports that `entresol act certify --json` printed, for the console.
//!
//! They are read when the server starts, so that no look at the console waits for their files. They
//! say what a drive did under a load; the server draws no conclusion from them.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use entresol_net::SettingError;
use serde_json::Value;

/// Largest report that is read.
const REPORT_BYTES_MAX: u64 = 16 << 20;
/// Most reports that are shown.
const REPORTS_MAX: usize = 64;

/// What a report says of the drives that it judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Certificate {
    /// `pass`, `fail` or `undecided`.
    pub(crate) verdict: String,
    /// What led to it, in a sentence.
    pub(crate) line: String,
    /// The name of the configuration.
    pub(crate) name: String,
    /// When the test began, seconds since 1970.
    pub(crate) started_unix: u64,
    /// What was judged.
    pub(crate) drives: Vec<Drive>,
}

/// A drive, as the system named it then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Drive {
    /// The file or block device that was loaded.
    pub(crate) target: String,
    /// Model and serial number; empty where the system did not tell.
    pub(crate) model: String,
    pub(crate) serial: String,
}

/// The certificates in `folder`, the newest first.
pub(crate) fn read(folder: &Path) -> Result<Vec<Certificate>, SettingError> {
    let wrong = |detail: String| SettingError::new("drive-certificates", detail);
    let listed = |error: std::io::Error| {
        wrong(format!("expected a folder that can be read, {}: {error}", folder.display()))
    };
    let mut paths: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(listed)? {
        paths.push(entry.map_err(listed)?.path());
    }
    paths.retain(|path| path.extension().is_some_and(|end| end == "json"));
    if paths.len() > REPORTS_MAX {
        let found = paths.len();
        return Err(wrong(format!("expected at most {REPORTS_MAX} reports, found {found}")));
    }
    let one = |path: &PathBuf| {
        report(path).map_err(|detail| wrong(format!("{}: {detail}", path.display())))
    };
    let mut all = paths.iter().map(one).collect::<Result<Vec<_>, _>>()?;
    all.sort_by_key(|one| std::cmp::Reverse(one.started_unix));
    Ok(all)
}

fn report(path: &Path) -> Result<Certificate, String> {
    let mut text = String::new();
    let file = File::open(path).map_err(|error| error.to_string())?;
    let read = file.take(REPORT_BYTES_MAX + 1).read_to_string(&mut text);
    read.map_err(|error| error.to_string())?;
    if text.len() as u64 > REPORT_BYTES_MAX {
        return Err(format!("expected at most {REPORT_BYTES_MAX} bytes, found more"));
    }
    let report: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    parsed(&report).ok_or_else(|| {
        "expected what `entresol act certify --json` prints, found another object".to_owned()
    })
}

/// `None` where it is no report of a certification.
fn parsed(report: &Value) -> Option<Certificate> {
    let text = |key: &str| report[key].as_str().map(str::to_owned);
    if report["act"] != "certify" {
        return None;
    }
    let drive = |target: &Value| {
        let text = |key: &str| target[key].as_str().unwrap_or_default().trim().to_owned();
        Drive { target: text("name"), model: text("model"), serial: text("serial") }
    };
    Some(Certificate {
        verdict: text("verdict")?,
        line: text("line")?,
        name: text("name")?,
        started_unix: report["started_unix"].as_u64()?,
        drives: report["machine"]["targets"].as_array()?.iter().map(drive).collect(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_no_report_of_a_certification_is_none() {
        let whole = json!({
            "act": "certify", "verdict": "pass", "line": "PASS: …", "name": "30x",
            "started_unix": 7, "machine": {"targets": [{"name": "/dev/sdx", "model": " M "}]},
        });
        let drive = |model: &str| Drive {
            target: "/dev/sdx".to_owned(),
            model: model.to_owned(),
            serial: String::new(),
        };
        assert_eq!(parsed(&whole).unwrap().drives, [drive("M")]);
        for (key, other) in [
            ("act", json!("search")),
            ("verdict", json!(null)),
            ("started_unix", json!("7")),
            ("machine", json!({})),
        ] {
            let mut wrong = whole.clone();
            wrong[key] = other;
            assert_eq!(parsed(&wrong), None, "{key}");
        }
    }

    #[test]
    fn a_folder_that_cannot_be_read_is_an_error_that_names_it() {
        let error = read(Path::new("/there/is/none")).unwrap_err();
        assert_eq!(error.key(), "drive-certificates");
        assert!(error.detail().contains("/there/is/none"), "{}", error.detail());
    }
}
