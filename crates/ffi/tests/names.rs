//! The functions that are exported, those of the C header, and those that Java declares are the
//! same ones with the same numbers of arguments.
#![expect(clippy::unwrap_used, reason = "a test stops where something fails")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// How many arguments each function has.
type Functions = BTreeMap<String, usize>;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_path_buf()
}

fn count(arguments: &str) -> usize {
    arguments.split(',').filter(|argument| !argument.trim().is_empty()).count()
}

/// `entresol_heap_is_live` of `heapIsLive`.
fn snake(name: &str) -> String {
    let mut snake = String::from("entresol_");
    for character in name.chars() {
        if character.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(character.to_ascii_lowercase());
    }
    snake
}

fn exported() -> Functions {
    let mut found = Functions::new();
    let files = std::fs::read_dir(root().join("src")).unwrap();
    // What is exported stands in the files of the folder itself.
    for path in files.map(|file| file.unwrap().path()).filter(|path| path.is_file()) {
        let text = std::fs::read_to_string(path).unwrap();
        for part in text.split("Java_io_entresol_heap_engine_Jni_").skip(1) {
            let (name, rest) = part.split_once('(').unwrap();
            let (arguments, after) = rest.split_once(')').unwrap();
            // The one that Java alone has is written out, with types.
            if after.trim_start().starts_with('{') {
                found.insert(snake(name), count(arguments));
            }
        }
    }
    found
}

fn declared(text: &str, start: &str, named: impl Fn(&str) -> String) -> Functions {
    let mut found = Functions::new();
    for part in text.split(start).skip(1) {
        let (name, rest) = part.split_once('(').unwrap();
        let (arguments, _) = rest.split_once(')').unwrap();
        found.insert(named(name), count(arguments));
    }
    found
}

#[test]
fn header_and_java_name_what_is_exported() {
    let exported = exported();
    assert!(exported.len() > 30, "{} functions were found", exported.len());
    let header = std::fs::read_to_string(root().join("include/entresol.h")).unwrap();
    let prefixed = |name: &str| format!("entresol_{name}");
    assert_eq!(declared(&header, "int64_t entresol_", prefixed), exported);
    let folder = root().join("../../java/native/src/main/java/io/entresol/heap/engine");
    let java = std::fs::read_to_string(folder.join("Jni.java")).unwrap();
    assert_eq!(declared(&java, "static native long ", snake), exported);
}
