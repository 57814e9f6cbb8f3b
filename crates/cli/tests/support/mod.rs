//! The common parts of the program's tests: a directory for each test, and the program.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// A directory of one test, removed at its end.
pub(crate) struct Directory(pub(crate) PathBuf);

impl Directory {
    pub(crate) fn new(name: &str) -> Directory {
        let path = std::env::temp_dir().join(format!("entresol-cli-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a directory can be made");
        Directory(path)
    }

    pub(crate) fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, text).expect("a file can be written");
        path
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

/// Runs the program to its end.
pub(crate) fn entresol(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_entresol"));
    command.args(arguments).stdin(Stdio::null()).output().expect("the program starts")
}

/// The JSON that a command printed.
pub(crate) fn json(output: &Output) -> serde_json::Value {
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_str(&text).expect("the output is JSON")
}

/// Demands that the program could not run and said all of `expected`.
pub(crate) fn refused_with(arguments: &[&str], expected: &[&str]) {
    let output = entresol(arguments);
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
    for part in expected {
        assert!(message.contains(part), "{arguments:?}: expected '{part}' in: {message}");
    }
}
