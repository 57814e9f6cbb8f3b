//! The bytes of pages and batches: images kept from the first version, and arbitrary bytes.
//!
//! `ENTRESOL_SEED` replaces the seeds. `ENTRESOL_MAKE_IMAGES=1` writes the images anew, as only a
//! new version of the formats may.

use std::path::PathBuf;

use entresol_tree::format::{
    Batch, BatchBuilder, BatchOperation, Child, Children, ChildrenBuilder, Effect, Marker,
    NodeFrame, PageBuilder, PageFrame, PageKind, Root, Rows,
};
use entresol_tree::{Leaf, Sequence};
use entresol_workload::Random;

fn leaf(has_sequences: bool) -> Vec<u8> {
    let mut builder = PageBuilder::default();
    builder.push(b"row:1", Effect::Put, Sequence(7), b"first");
    builder.push(b"row:2", Effect::Separate, Sequence(8), b"");
    builder.push(b"row:2", Effect::Part, Sequence(9), b"a part");
    let frame = PageFrame {
        kind: PageKind::Leaf,
        high_key: Some(b"row:3"),
        sequence: Sequence(9),
        link: 4,
        has_sequences,
    };
    builder.page(0..3, frame)
}

fn delta() -> Vec<u8> {
    let mut builder = PageBuilder::default();
    builder.push(b"row:1", Effect::Remove, Sequence(10), b"");
    let frame = PageFrame {
        kind: PageKind::Delta,
        high_key: None,
        sequence: Sequence(10),
        link: 9,
        has_sequences: false,
    };
    builder.page(0..1, frame)
}

fn inner() -> Vec<u8> {
    inner_with([b"", b""])
}

fn inner_with_filters() -> Vec<u8> {
    inner_with([b"", b"filter"])
}

/// Of two leaves with these filters.
fn inner_with(filters: [&[u8]; 2]) -> Vec<u8> {
    let mut builder = ChildrenBuilder::default();
    let child = |page| Child {
        page,
        sequence: Sequence(8),
        base_bytes: 8000,
        delta_bytes: 99,
        rows: 60,
        filter: 0xf0,
    };
    builder.push_filtered(b"", child(2), filters[0]);
    builder.push_filtered(b"row:3", child(4), filters[1]);
    let frame = NodeFrame { level: 1, high_key: None, right: 0, sequence: Sequence(9) };
    builder.node(frame)
}

fn root() -> Vec<u8> {
    let page = leaf(false);
    Root { created: 5, first: 0, name: b"a table", page: page.into() }.encode()
}

/// Of a table with a few rows.
fn small_root() -> Vec<u8> {
    let mut builder = PageBuilder::default();
    builder.push(b"row:1", Effect::Put, Sequence(7), b"first");
    builder.push(b"row:2", Effect::Separate, Sequence(8), &[1; 16]);
    builder.push(b"row:2", Effect::Part, Sequence(9), &[2; 200]);
    let frame = PageFrame {
        kind: PageKind::Leaf,
        high_key: None,
        sequence: Sequence(9),
        link: 0,
        has_sequences: false,
    };
    let page = builder.page(0..3, frame);
    let root = Root { created: 0, first: 0, name: b"a table", page: page.into() };
    let bytes = root.encode();
    assert_eq!(Root::decode(&bytes).as_ref(), Ok(&root));
    bytes
}

/// Of a table that was dropped before.
fn new_root() -> Vec<u8> {
    let page = leaf(false);
    Root { created: 5, first: 1026, name: b"a table", page: page.into() }.encode()
}

fn drop_batch() -> Vec<u8> {
    let mut builder = BatchBuilder::default();
    let (key, value) = (b"a table", 9_u64.to_le_bytes());
    builder.push(BatchOperation { table: 0, key, effect: Effect::Remove, value: &value });
    builder.bytes(Sequence(7), Sequence(3)).to_vec()
}

fn batch() -> Vec<u8> {
    let mut builder = BatchBuilder::default();
    let put = BatchOperation { table: 1, key: b"row:1", effect: Effect::Put, value: b"first" };
    builder.push(put);
    builder.push(BatchOperation { table: 2, key: b"k", effect: Effect::Remove, value: b"" });
    builder.bytes(Sequence(7), Sequence(3)).to_vec()
}

/// Each structure under the name of its image.
fn structures() -> [(&'static str, Vec<u8>); 10] {
    [
        ("leaf", leaf(false)),
        ("leaf-sequences", leaf(true)),
        ("delta", delta()),
        ("inner", inner()),
        ("inner-filters", inner_with_filters()),
        ("root", root()),
        ("root-new", new_root()),
        ("root-small", small_root()),
        ("batch", batch()),
        ("batch-drop", drop_batch()),
    ]
}

#[test]
fn pages_and_batchs_have_the_bytes_of_the_first_version() {
    for (name, bytes) in structures() {
        let file = format!("tests/images/{name}.bin");
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(file);
        if std::env::var_os("ENTRESOL_MAKE_IMAGES").is_some() {
            std::fs::write(&path, &bytes).unwrap();
        }
        assert_eq!(std::fs::read(path).unwrap(), bytes, "{name}");
    }
}

#[test]
fn a_page_says_what_was_built() {
    for has_sequences in [false, true] {
        let bytes = leaf(has_sequences);
        let rows = Rows::parse(&bytes).unwrap();
        rows.check().unwrap();
        assert_eq!((rows.count(), rows.header().link), (3, 4));
        assert_eq!(rows.high_key(), Some(&b"row:3"[..]));
        assert_eq!(rows.entries_of(b"row:2").unwrap(), 1..3);
        assert_eq!(rows.entries_of(b"row:1").unwrap(), 0..1);
        for absent in [&b"row"[..], b"row:", b"row:11", b"row:3", b"a", b"z"] {
            assert!(rows.entries_of(absent).unwrap().is_empty());
        }
        let part = rows.row(2).unwrap();
        assert_eq!((part.effect, part.value), (Effect::Part, &b"a part"[..]));
        assert_eq!(part.sequence, has_sequences.then_some(Sequence(9)));
        let changes = delta();
        assert!(Leaf::parse(&bytes, Some(&changes)).unwrap().delta().is_some());
    }
    let bytes = inner();
    let children = Children::parse(&bytes).unwrap();
    children.check().unwrap();
    for (key, position) in [(&b""[..], 0), (b"row:2", 0), (b"row:3", 1), (b"z", 1)] {
        assert_eq!(children.position(key).unwrap(), position);
    }
    assert_eq!(children.child(1).unwrap().page, 4);
    assert!(children.filters().unwrap().is_empty());
    let bytes = inner_with_filters();
    let children = Children::parse(&bytes).unwrap();
    children.check().unwrap();
    assert_eq!(children.child(1).unwrap().page, 4);
    assert_eq!(children.filters().unwrap(), [&b""[..], b"filter"]);
    let mut cut = bytes.clone();
    cut[26] -= 1;
    let damage = Children::parse(&cut).and_then(|children| children.check()).unwrap_err();
    assert_eq!(damage.field, "a filter");
    let bytes = root();
    let table = Root::decode(&bytes).unwrap();
    assert_eq!((table.name, table.created, &*table.page), (&b"a table"[..], 5, &leaf(false)[..]));
    assert_eq!((table.first, Root::decode(&new_root()).unwrap().first), (0, 1026));
    let bytes = batch();
    let record = Batch::parse(&bytes).unwrap();
    assert_eq!((record.sequence, record.low, record.count), (Sequence(7), Sequence(3), 2));
    let operations: Vec<_> = record.operations().map(Result::unwrap).collect();
    assert_eq!((operations[0].table, operations[0].value), (1, &b"first"[..]));
    assert_eq!((operations[1].key, operations[1].effect), (&b"k"[..], Effect::Remove));
}

/// Looks at everything in `bytes`, whatever they are.
fn exercise(bytes: &[u8], key: &[u8]) {
    if let Ok(rows) = Rows::parse(bytes) {
        let _ = rows.check();
        let _ = rows.entries_of(key);
        for index in 0..rows.count() {
            let _ = rows.row(index).map(|row| row.key.to_vec());
        }
        let _ = Leaf::parse(bytes, Some(bytes));
    }
    if let Ok(children) = Children::parse(bytes) {
        let _ = children.check();
        let _ = children.position(key);
        let _ = children.filters();
        for index in 0..children.count() {
            let _ = children.child(index);
        }
    }
    if let Ok(root) = Root::decode(bytes) {
        let _ = Rows::parse(&root.page).map(|rows| rows.check());
    }
    if let Ok(record) = Batch::parse(bytes) {
        let _ = record.operations().count();
    }
}

#[test]
fn arbitrary_bytes_are_damage_and_nothing_worse() {
    let given = std::env::var("ENTRESOL_SEED").ok().and_then(|text| text.parse().ok());
    let seeds = given.map_or(1..=2000, |seed: u64| seed..=seed);
    for seed in seeds {
        let mut random = Random::new(seed);
        for (_, bytes) in structures() {
            let mut damaged = bytes.clone();
            for _ in 0..=random.below(4) {
                let at = random.below(damaged.len() as u64) as usize;
                damaged[at] = random.next() as u8;
            }
            damaged.truncate(random.below(damaged.len() as u64 + 40) as usize);
            exercise(&damaged, b"row:2");
        }
        let mut noise = vec![0; random.below(300) as usize];
        random.fill(&mut noise);
        exercise(&noise, b"row:2");
    }
}

#[test]
fn a_page_that_breaks_a_rule_is_damage_that_says_which() {
    let check = |bytes: &[u8]| match Rows::parse(bytes).and_then(|rows| rows.check()) {
        Ok(()) => String::new(),
        Err(damage) => damage.to_string(),
    };
    let mut builder = PageBuilder::default();
    builder.push(b"b", Effect::Put, Sequence(1), b"");
    builder.push(b"a", Effect::Put, Sequence(2), b"");
    let frame = PageFrame {
        kind: PageKind::Leaf,
        high_key: Some(b"b"),
        sequence: Sequence(2),
        link: 2,
        has_sequences: false,
    };
    assert!(check(&builder.page(0..2, frame)).starts_with("order of rows"));
    assert!(check(&builder.page(0..1, frame)).starts_with("order of rows"), "the high key");
    assert_eq!(check(&builder.page(1..2, frame)), "");
    let mut bytes = leaf(false);
    bytes[24] = 2;
    assert_eq!(check(&bytes), "version of a page: found 2, expected 1 or less");
    assert!(check(&bytes[..20]).starts_with("bytes of a page: found 20"));
}

#[test]
fn a_mark_of_the_first_version_says_nothing_of_small_rows() {
    assert_eq!(Marker::decode(&[1]), Marker::AnyRows);
    for marker in [Marker::AnyRows, Marker::LargeRowsOnly] {
        assert_eq!(Marker::decode(&marker.encode()), marker);
    }
}
