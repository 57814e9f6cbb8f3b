//! Records as entries, and back, line by line.

use super::*;

fn fields(key: &str, value: Option<&str>) -> Fields {
    Fields {
        key: key.split(',').map(str::to_owned).collect(),
        separator: "=".into(),
        value: value.map(str::to_owned),
    }
}

fn all(text: &str, layout: Layout, fields: &Fields) -> Outcome<Vec<Item>> {
    let mut items = Vec::new();
    read(text.as_bytes(), layout, fields, &mut |item| {
        items.push(item);
        Ok(())
    })?;
    Ok(items)
}

/// The keys of all such records were the text `null`: each took the place of the one before.
#[test]
fn a_key_that_is_null_is_refused_like_one_that_is_empty() {
    let text = "{\"id\":1,\"part\":2}\n{\"id\":1,\"part\":null}\n";
    for key in ["part", "id,part"] {
        let refused = all(text, Layout::Jsonl, &fields(key, None)).unwrap_err().to_string();
        assert_eq!(refused, "line 2: the key field 'part' is null");
    }
    assert_eq!(all(text, Layout::Jsonl, &fields("id", None)).unwrap().len(), 2);
    let named = "{\"id\":\"null\",\"v\":null}\n";
    let items = all(named, Layout::Jsonl, &fields("id", Some("v"))).unwrap();
    assert_eq!((items[0].key.as_slice(), items[0].value.as_slice()), (&b"null"[..], &b"null"[..]));
}

#[test]
fn json_lines_become_entries() {
    let text = "{\"name\":\"a\",\"version\":2,\"x\":true}\n\n{\"name\":\"b\",\"version\":\"3\"}\n";
    let items = all(text, Layout::Jsonl, &fields("name,version", None)).unwrap();
    assert_eq!(items[0].key, b"a=2");
    assert_eq!(items[0].value, br#"{"name":"a","version":2,"x":true}"#);
    assert_eq!(items[1].key, b"b=3");
    let values = all(text, Layout::Jsonl, &fields("name", Some("version"))).unwrap();
    assert_eq!(values[1].value, b"3");
}

#[test]
fn csv_becomes_entries_with_quotes_and_newlines() {
    let text = "id,text\n1,\"a, \"\"b\"\"\nc\"\n2,plain\n";
    let items = all(text, Layout::Csv, &fields("id", Some("text"))).unwrap();
    assert_eq!(items[0].value, b"a, \"b\"\nc");
    assert_eq!(items[1].key, b"2");
}

/// Such a line stands behind the last record, unseen, and the first one ended a load in silence.
#[test]
fn a_line_that_reads_as_the_mark_behind_the_input_is_a_record() {
    let text = "id\n1\n\0the end\0\n2\n\"\n\0the end\0\n\"\n3";
    let items = all(text, Layout::Csv, &fields("id", Some("id"))).unwrap();
    let keys: Vec<&[u8]> = items.iter().map(|item| item.key.as_slice()).collect();
    assert_eq!(keys, [b"1".as_slice(), b"\0the end\0", b"2", b"\n\0the end\0\n", b"3"]);
    let empty = all("\0the end\0\n", Layout::Csv, &fields("id", None)).unwrap();
    assert!(empty.is_empty());
}

/// A later one made the entry end at once for whoever asked for the time that is left.
#[test]
fn an_end_later_than_clients_can_name_is_refused() {
    let record = |ms: u64| format!("{{\"key\":\"k\",\"value\":\"v\",\"expires_at_ms\":{ms}}}\n");
    let latest = i64::MAX as u64;
    let items = all(&record(latest), Layout::Jsonl, &fields("key", Some("value"))).unwrap();
    assert_eq!(items[0].expires_at_ms, Some(latest));
    let error = all(&record(latest + 1), Layout::Jsonl, &fields("key", Some("value"))).unwrap_err();
    assert!(error.to_string().contains("up to 9223372036854775807"), "{error}");
}

#[test]
fn errors_name_the_line() {
    let cases = [
        ("{\"a\":1}\n{oops\n", Layout::Jsonl, "line 2"),
        ("{\"a\":1}\n{\"b\":1}\n", Layout::Jsonl, "line 2: no field 'a'; there are b"),
        ("a,b\n1,2\n3\n", Layout::Csv, "line 3: expected 2 fields as in line 1, found 1"),
        ("a,b,a\n1,2,3\n", Layout::Csv, "line 1: two fields are called 'a'"),
        ("\"a,b\n1,2\n", Layout::Csv, "line 1: field 1 begins with a quote"),
        (
            "{\"a\":1}\n{\"a\":",
            Layout::Jsonl,
            "line 2: expected a JSON object: expected a value, found EOF",
        ),
        ("a,b\n1,2\n,3\n", Layout::Csv, "line 3: the key field 'a' is empty"),
    ];
    for (text, layout, expected) in cases {
        let error = all(text, layout, &fields("a", None)).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

/// A hash with this field could not be loaded, a record with it lost it, and large exponents
/// changed.
#[test]
fn names_and_numbers_of_records_mean_nothing_but_themselves() {
    let text = "{\"k\":\"a\",\"v\":{\"$serde_json::private::Number\":\"12\"},\"n\":[1e400,1E5]}\n\
                {\"k\":\"b\",\"v\":{\"$serde_json::private::RawValue\":\"12\"}}\n";
    let whole = all(text, Layout::Jsonl, &fields("k", None)).unwrap();
    let found: Vec<_> = whole.iter().map(|item| str::from_utf8(&item.value).unwrap()).collect();
    assert_eq!(found, text.lines().collect::<Vec<_>>());
    let values = all(text, Layout::Jsonl, &fields("k", Some("v"))).unwrap();
    assert_eq!(values[0].value, br#"{"$serde_json::private::Number":"12"}"#);
    let hash = Item {
        key: b"h".to_vec(),
        fields: vec![(b"$serde_json::private::Number".to_vec(), b"12".to_vec())],
        ..Item::default()
    };
    let mut written = Vec::new();
    let mut writer = Writer::new(Layout::Jsonl, &mut written).unwrap();
    writer.write(&hash).unwrap();
    writer.finish().unwrap();
    let text = String::from_utf8(written).unwrap();
    let read = all(&text, Layout::Jsonl, &fields("key", Some("value"))).unwrap();
    assert_eq!(read[0].fields, hash.fields);
}

/// Of two values of a field the last one was taken, and nothing was said.
#[test]
fn a_field_that_stands_twice_is_refused_with_its_line() {
    let text = "{\"a\":1,\"b\":2}\n{\"a\":1,\"b\":{\"c\":2,\"c\":3}}\n";
    let error = all(text, Layout::Jsonl, &fields("a", None)).unwrap_err().to_string();
    assert!(
        error.contains("line 2: expected a JSON object: the field 'c' stands twice"),
        "{error}"
    );
}

/// A number was read into 64 bits and written anew: long ones fell together.
#[test]
fn numbers_become_entries_digit_by_digit() {
    let text = "{\"id\":12345678901234567890123,\"x\":1.10}\n\
                {\"id\":12345678901234567890124,\"x\":-0.0}\n";
    let items = all(text, Layout::Jsonl, &fields("id", Some("x"))).unwrap();
    let keys: Vec<&[u8]> = items.iter().map(|item| &item.key[..]).collect();
    assert_eq!(keys, [b"12345678901234567890123", b"12345678901234567890124"]);
    assert_eq!((&items[0].value[..], &items[1].value[..]), (&b"1.10"[..], &b"-0.0"[..]));
    let whole = all(text, Layout::Jsonl, &fields("id", None)).unwrap();
    assert_eq!(whole[0].value, text.lines().next().unwrap().as_bytes());
}

/// All that followed became part of the value, and one record was loaded.
#[test]
fn a_quote_that_is_never_closed_is_refused_where_it_opens() {
    for text in ["id,text\n1,plain\n2,\"cut off\n3,x\n4,y\n", "id,text\n1,plain\n2,\"cut"] {
        let mut items = Vec::new();
        let ended = read(text.as_bytes(), Layout::Csv, &fields("id", Some("text")), &mut |i| {
            items.push(i);
            Ok(())
        });
        let error = ended.unwrap_err().to_string();
        assert!(error.contains("line 3: field 2 begins with a quote"), "{error}");
        assert_eq!(items.len(), 1);
    }
    let closed = "id,text\r\n1,\"a\"\"\"\r\n2,b\" \"c";
    let items = all(closed, Layout::Csv, &fields("id", Some("text"))).unwrap();
    assert_eq!((&items[0].value[..], &items[1].value[..]), (&b"a\""[..], &b"b\" \"c"[..]));
    assert!(all("", Layout::Csv, &fields("id", None)).unwrap().is_empty());
    assert!(all("id\n", Layout::Csv, &fields("id", None)).unwrap().is_empty());
}

/// A file without ends of records, as an array of JSON in one line or what follows a quote that
/// is not closed, was read into memory as a whole, however long it was.
#[test]
fn a_record_that_is_longer_than_any_entry_needs_is_refused() {
    const BYTES_MAX: u64 = 100_000;
    let short = "x".repeat(60_000);
    let long = format!("{short}\n{short}");
    let line = |id, text: &str| format!("{{\"id\":{id},\"text\":\"{text}\"}}\n");
    let cases = [
        (Layout::Csv, format!("id,text\n1,{short}\n2,{short}\n3,\"{long}\n"), 4),
        (Layout::Jsonl, line(1, &short) + &line(2, &short) + &line(3, &short.repeat(2)), 3),
    ];
    for (layout, text, at) in cases {
        let mut items = 0;
        let wanted = fields("id", Some("text"));
        let ended = read_within(BYTES_MAX, (text.as_bytes(), layout), &wanted, &mut |_| {
            items += 1;
            Ok(())
        });
        let error = ended.unwrap_err().to_string();
        assert!(error.contains(&format!("line {at}: ")), "{error}");
        assert!(error.contains("longer than 100000 bytes"), "{error}");
        assert_eq!(items, 2);
    }
}

/// `color_hex` was taken for the bytes of `color`, `label` for the type of the entry.
#[test]
fn names_that_an_export_uses_are_fields_like_others_elsewhere() {
    let text = "{\"id\":1,\"color\":\"red\",\"color_hex\":\"ff0000\",\"label\":1,\
                \"fields\":{\"a\":1},\"pinned\":true,\"idle_seconds\":\"long\"}";
    let items = all(text, Layout::Jsonl, &fields("id", Some("color"))).unwrap();
    let expected = Item { key: b"1".into(), value: b"red".into(), ..Item::default() };
    assert_eq!(items, [expected]);
    let of_export = fields("key", Some("value"));
    let text = "{\"key\":\"a\",\"value\":\"b\",\"label\":300}";
    let error = all(text, Layout::Jsonl, &of_export).unwrap_err().to_string();
    assert!(error.contains("up to 255, found '300'"), "{error}");
    let text = "{\"key\":\"a\",\"value_hex\":\"+f\"}";
    let error = all(text, Layout::Jsonl, &of_export).unwrap_err().to_string();
    assert!(error.contains("'value_hex': expected pairs"), "{error}");
}

#[test]
fn a_byte_order_mark_is_no_part_of_the_text() {
    let wanted = fields("id", Some("x"));
    let json = all("\u{FEFF}{\"id\":1,\"x\":2}\n", Layout::Jsonl, &wanted).unwrap();
    assert_eq!(json, all("\u{FEFF}id,x\r\n1,2\r\n", Layout::Csv, &wanted).unwrap());
}

#[test]
fn what_is_written_reads_back() {
    let items = [
        Item { key: b"a".into(), value: b"x,\"y\"\n".into(), ..Item::default() },
        Item { key: vec![0xFF, 0], value: vec![0xC0, 1, 2], label: 1, ..Item::default() },
        Item { key: b"t".into(), expires_at_ms: Some(99), ..Item::default() },
        Item { key: b"i".into(), idle_seconds: NonZeroU32::new(9), ..Item::default() },
        Item { key: b"p".into(), is_pinned: true, label: 255, ..Item::default() },
    ];
    for layout in [Layout::Csv, Layout::Jsonl] {
        let mut output = Vec::new();
        let mut writer = Writer::new(layout, &mut output).unwrap();
        items.iter().for_each(|item| writer.write(item).unwrap());
        writer.finish().unwrap();
        let text = String::from_utf8(output).unwrap();
        assert_eq!(all(&text, layout, &fields("key", Some("value"))).unwrap(), items);
    }
    let hash =
        Item { key: b"h".into(), fields: vec![(b"f".into(), b"v".into())], ..Item::default() };
    let mut hash = hash;
    for (name, value) in [(&b"g"[..], &b"\xFF"[..]), (b"\xFE", b"x"), (b"\xFD\0", b"\n")] {
        hash.fields.push((name.to_vec(), value.to_vec()));
    }
    let mut output = Vec::new();
    Writer::new(Layout::Jsonl, &mut output).unwrap().write(&hash).unwrap();
    let text = String::from_utf8(output).unwrap();
    assert_eq!(all(&text, Layout::Jsonl, &fields("key", Some("value"))).unwrap(), [hash]);
}

// The reader of CSV counts what follows a CRLF, or an empty line, to the line before.
#[test]
fn an_error_in_csv_names_the_line_that_the_record_begins_in() {
    let lines = |end: &str, last: &str| {
        let text = ["id,v", "1,\"a", "b\"", "", "", "2,y", last].map(|line| format!("{line}{end}"));
        let refused = all(&text.concat(), Layout::Csv, &fields("id", None));
        refused.unwrap_err().to_string()
    };
    for end in ["\n", "\r\n"] {
        assert_eq!(lines(end, "3"), "line 7: expected 2 fields as in line 1, found 1");
        let unclosed = lines(end, "3,\"z");
        assert!(unclosed.starts_with("line 7: field 2 begins with a quote"), "{unclosed}");
        let many = format!("id{end}{}{end}{end},{end}", vec!["1"; 50_000].join(end));
        let refused = all(&many, Layout::Csv, &fields("id", None)).unwrap_err().to_string();
        assert_eq!(refused, "line 50003: expected 1 fields as in line 1, found 2");
        let long = format!("id,v{end}1,\"{}\"{end}3{end}", vec!["x"; 50_000].join(end));
        let refused = all(&long, Layout::Csv, &fields("id", None)).unwrap_err().to_string();
        assert_eq!(refused, "line 50002: expected 2 fields as in line 1, found 1");
    }
}

#[test]
fn a_field_of_csv_that_is_not_utf_8_is_named() {
    let text = b"id,name\r\n1,x\r\n2,\xff\r\n";
    let mut visit = |_| Ok(());
    let refused = read(&text[..], Layout::Csv, &fields("id", None), &mut visit).unwrap_err();
    let expected = "line 3: the field 'name' is not UTF-8; write it as hexadecimal digits in a \
                    field 'name_hex'";
    assert_eq!(refused.to_string(), expected);
    let refused = read(&b"id,\xff\n"[..], Layout::Csv, &fields("id", None), &mut visit);
    assert_eq!(refused.unwrap_err().to_string(), "line 1: field 2 is not UTF-8");
}
