//! Ordered tables of stopped stores as scripts see them: loaded, listed, dumped, verified.

mod support;

use std::path::Path;

use support::{Directory, entresol, json, refused_with};

/// Records of rows: text, bytes that are no text, and out of order.
fn records(count: usize) -> String {
    let mut lines = String::from("{\"key_hex\":\"ff00\",\"value_hex\":\"c0ff\"}\n");
    for number in (0..count).rev() {
        lines += &format!("{{\"key\":\"{number:05}\",\"value\":\"event {number}\"}}\n");
    }
    lines
}

fn load(file: &str, store: &str, table: &str) -> serde_json::Value {
    let arguments = ["--key", "key", "--value", "value", "--capacity", "64MiB", "--json"];
    let place = ["load", file, "--dir", store, "--table", table];
    json(&entresol(&[&place[..], &arguments].concat()))
}

fn text_of(arguments: &[&str]) -> String {
    let output = entresol(arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("the output is text")
}

#[test]
fn rows_go_into_a_table_and_come_out_in_order_as_they_were() {
    const ROWS: usize = 5000;
    let directory = Directory::new("tables-rows");
    let file = directory.file("in.jsonl", &records(ROWS)).display().to_string();
    let (store, copy) = (directory.path("store"), directory.path("copy"));
    assert_eq!(load(&file, &store, "events")["records"], ROWS + 1);
    let exported = text_of(&["export", "--dir", &store, "--table", "events"]);
    let mut expected: Vec<String> = records(ROWS).lines().map(str::to_owned).collect();
    expected.reverse();
    assert_eq!(exported.lines().collect::<Vec<_>>(), expected);
    let again = directory.file("out.jsonl", &exported).display().to_string();
    load(&again, &copy, "hex:00ff");
    // Twice is once.
    load(&again, &copy, "hex:00ff");
    assert_eq!(text_of(&["export", "--dir", &copy, "--table", "hex:00ff"]), exported);
    let csv = text_of(&["export", "--dir", &copy, "--table", "hex:00ff", "--format", "csv"]);
    assert_eq!(csv.lines().count(), ROWS + 2);

    let part = ["--table", "events", "--from", "00010", "--to", "00020"];
    let dumped = text_of(&[&["store", "dump", "--dir", &store, "--json"], &part[..]].concat());
    let first: serde_json::Value =
        serde_json::from_str(dumped.lines().next().unwrap_or_default()).expect("JSON");
    assert_eq!((&first["key"], &first["value"]), (&"00010".into(), &"event 10".into()));
    assert_eq!(dumped.lines().count(), 10);
    let few = text_of(&[&["store", "dump", "--dir", &store, "--limit", "3"], &part[..]].concat());
    assert_eq!(few, "00010\tevent 10\n00011\tevent 11\n00012\tevent 12\n");
    assert_eq!(text_of(&[&["export", "--dir", &store], &part[..]].concat()).lines().count(), 10);

    let info = json(&entresol(&["store", "info", "--dir", &store, "--json"]));
    assert_eq!((&info["tables"], &info["tables_settled"]), (&1.into(), &true.into()), "{info}");
    assert!(info["table_pages"].as_u64() > Some(10) && info["table_record_bytes"].is_u64());
    let tables = json(&entresol(&["store", "tables", "--dir", &copy, "--json"]));
    assert_eq!((&tables["name_hex"], &tables["dropped"]), (&"00ff".into(), &false.into()));
    let verified = json(&entresol(&["store", "verify", "--dir", &store, "--json"]));
    assert_eq!(verified["table_rows"], ROWS + 1);
    assert_eq!(verified["tables_verified"], 1);
    assert_eq!(verified["damaged"].as_array().map(Vec::len), Some(0));
}

/// Parts that nobody can fold here stay in the journal: they are seen, and it is said.
#[test]
fn rows_that_are_in_the_journal_alone_are_seen() {
    let directory = Directory::new("tables-parts");
    let lines = "{\"key\":\"a\",\"value\":\"base\",\"parts\":[\"one\",\"two\"]}\n\
                 {\"key\":\"b\",\"parts_hex\":[\"ff01\"]}\n";
    let file = directory.file("in.jsonl", lines).display().to_string();
    let store = directory.path("store");
    load(&file, &store, "parted");
    assert_eq!(text_of(&["export", "--dir", &store, "--table", "parted"]), lines);
    let dumped = text_of(&["store", "dump", "--dir", &store, "--table", "parted"]);
    assert_eq!(dumped, "a\tbase\tand 2 parts\nb\t\tand 1 parts\n");
    let verified = json(&entresol(&["store", "verify", "--dir", &store, "--json"]));
    assert_eq!(
        (&verified["table_rows"], &verified["table_journal_changes"]),
        (&0.into(), &5.into())
    );
    assert!(verified["notes"][0].as_str().is_some_and(|note| note.contains("in no page")));
    let info = json(&entresol(&["store", "info", "--dir", &store, "--json"]));
    assert_eq!((&info["tables"], &info["tables_settled"]), (&0.into(), &false.into()));
    let tables = text_of(&["store", "tables", "--dir", &store]);
    assert!(tables.starts_with("parted\t") && tables.contains("5 changes in the journal"));
    refused_with(
        &["export", "--dir", &store, "--table", "parted", "--format", "csv"],
        &["row 'a' has parts that nobody has folded"],
    );
    refused_with(
        &["load", &file, "--key", "key", "--value", "value", "--dir", &store],
        &["parts can only be loaded into an ordered table"],
    );
}

#[test]
fn a_leaf_that_is_damaged_is_named_by_its_table_and_page() {
    let directory = Directory::new("tables-damage");
    let file = directory.file("in.jsonl", &records(5000)).display().to_string();
    let store = directory.path("store");
    load(&file, &store, "events");
    let data = Path::new(&store).join("entresol.data");
    let mut bytes = std::fs::read(&data).expect("the store's file can be read");
    // The last one is in a leaf; those before are in the journal.
    let at = bytes.windows(10).rposition(|window| window == b"event 2500").expect("a row");
    bytes[at] ^= 1;
    std::fs::write(&data, &bytes).expect("the store's file can be written");
    let output = entresol(&["store", "verify", "--dir", &store, "--json"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let expected = ["damaged: ordered table `events`, page ", ": its bytes: expected those that"];
    assert!(expected.iter().all(|part| said.contains(part)), "{said}");
}

#[test]
fn what_names_no_table_is_refused_with_what_to_do() {
    let directory = Directory::new("tables-refused");
    let file = directory.file("in.jsonl", &records(3)).display().to_string();
    let store = directory.path("store");
    load(&file, &store, "events");
    let known = "the store has no ordered table 'other'; `entresol store tables` lists those";
    refused_with(&["export", "--dir", &store, "--table", "other"], &[known]);
    refused_with(&["store", "dump", "--dir", &store, "--table", "other"], &[known]);
    refused_with(&["export", "--dir", &store, "--table", "hex:0"], &["pairs of hexadecimal"]);
    refused_with(&["export", "--dir", &store, "--space", "65534"], &["name one with --table"]);
    refused_with(
        &["export", "--target", "redis://127.0.0.1:1", "--table", "events"],
        &["a server has no ordered tables"],
    );
    let output = entresol(&["export", "--dir", &store]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("note: ordered tables: 1; `entresol store tables` lists them"), "{said}");
}
