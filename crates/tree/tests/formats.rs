//! The bytes of pages and batches: images kept from the first version, and arbitrary bytes.
//!
//! `ENTRESOL_SEED` replaces the seeds. `ENTRESOL_MAKE_IMAGES=1` writes the images anew, as only a
//! new version of the formats may.

use std::path::PathBuf;

use entresol_tree::format::{
    BatchBuilder, BatchContext, BatchOperation, BatchReader, Child, Children, ChildrenBuilder,
    Damage, Effect, Marker, Naming, NodeFrame, PageBuilder, PageFrame, PageKind, Root, Rows,
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
    Root { created: 5, first: 0, keeps_counts: false, name: b"a table", page: page.into() }.encode()
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
    let root =
        Root { created: 0, first: 0, keeps_counts: false, name: b"a table", page: page.into() };
    let bytes = root.encode();
    assert_eq!(Root::decode(&bytes).as_ref(), Ok(&root));
    bytes
}

/// Of a table that keeps counts, whose root is above other inner nodes.
fn counted_root() -> Vec<u8> {
    let mut builder = ChildrenBuilder::default();
    builder.push(b"", Child { page: 7, base_bytes: 1, rows: 1234, ..Child::default() });
    builder.push(b"row:3", Child { page: 9, delta_bytes: u16::MAX, ..Child::default() });
    let frame = NodeFrame { level: 2, high_key: None, right: 0, sequence: Sequence(9) };
    let page = builder.node(frame);
    let root =
        Root { created: 5, first: 0, keeps_counts: true, name: b"a table", page: page.into() };
    let bytes = root.encode();
    assert_eq!(Root::decode(&bytes).as_ref(), Ok(&root));
    bytes
}

/// Names a table that keeps counts, and drops it.
fn counted_batch() -> Vec<u8> {
    let mut builder = BatchBuilder::default();
    for (effect, dropped) in [(Effect::Put, None), (Effect::Remove, Some(5))] {
        let naming = Naming { id: 9, dropped, keeps_counts: true };
        let value = naming.encode();
        assert_eq!(Naming::decode(effect, &value), Some(naming));
        let of_others = Naming { keeps_counts: false, ..naming };
        assert_eq!(Naming::decode(effect, &value[..value.len() - 1]), Some(of_others));
        builder.push(BatchOperation { table: 0, key: b"a table", effect, value: &value });
    }
    builder.build(Sequence(7), None).whole.to_vec()
}

/// Of a table that was dropped before.
fn new_root() -> Vec<u8> {
    let page = leaf(false);
    Root { created: 5, first: 1026, keeps_counts: false, name: b"a table", page: page.into() }
        .encode()
}

fn drop_batch() -> Vec<u8> {
    let mut builder = BatchBuilder::default();
    let (key, value) = (b"a table", 9_u64.to_le_bytes());
    builder.push(BatchOperation { table: 0, key, effect: Effect::Remove, value: &value });
    builder.build(Sequence(7), None).whole.to_vec()
}

const OPERATIONS: [BatchOperation<'_>; 4] = [
    BatchOperation { table: 1, key: b"row:1", effect: Effect::Put, value: b"first" },
    BatchOperation { table: 1, key: b"row:12", effect: Effect::Part, value: b"" },
    BatchOperation { table: 2, key: b"k", effect: Effect::Remove, value: b"" },
    BatchOperation { table: 2, key: b"k", effect: Effect::Separate, value: &[7; 200] },
];

/// The batch of the change 300, and its end.
fn batch(builder: &mut BatchBuilder) -> (Vec<u8>, BatchContext) {
    builder.clear();
    OPERATIONS.into_iter().for_each(|operation| builder.push(operation));
    let bytes = builder.build(Sequence(300), None).whole.to_vec();
    let mut context = BatchContext::default();
    builder.end(Sequence(300), &mut context);
    (bytes, context)
}

/// One that continues that one.
fn continuing(builder: &mut BatchBuilder) -> Vec<u8> {
    let (_, context) = batch(builder);
    builder.clear();
    builder.push(BatchOperation { table: 2, key: b"kk", effect: Effect::Put, value: b"v" });
    builder.push(BatchOperation { table: 1, key: b"kl", effect: Effect::Put, value: b"v" });
    let built = builder.build(Sequence(304), Some(&context));
    built.continuing.expect("it follows the batch").to_vec()
}

/// Each structure under the name of its image.
fn structures() -> [(&'static str, Vec<u8>); 13] {
    let mut builder = BatchBuilder::default();
    [
        ("leaf", leaf(false)),
        ("leaf-sequences", leaf(true)),
        ("delta", delta()),
        ("inner", inner()),
        ("inner-filters", inner_with_filters()),
        ("root", root()),
        ("root-new", new_root()),
        ("root-small", small_root()),
        ("root-counted", counted_root()),
        ("batch-2", batch(&mut builder).0),
        ("batch-2-drop", drop_batch()),
        ("batch-2-counted", counted_batch()),
        ("batch-3", continuing(&mut builder)),
    ]
}

fn image(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/images/{name}.bin"))
}

#[test]
fn pages_and_batches_have_the_bytes_of_their_images() {
    for (name, bytes) in structures() {
        let path = image(name);
        if std::env::var_os("ENTRESOL_MAKE_IMAGES").is_some() {
            std::fs::write(&path, &bytes).unwrap();
        }
        assert_eq!(std::fs::read(path).unwrap(), bytes, "{name}");
    }
}

/// A change: table, key, effect, value.
type Read = (u64, Vec<u8>, Effect, Vec<u8>);

/// The sequence and the changes of a batch.
fn read(reader: &mut BatchReader, bytes: &[u8]) -> Result<(Sequence, Vec<Read>), Damage> {
    let mut batch = reader.read(bytes)?;
    let mut all = Vec::new();
    while let Some(operation) = batch.operation() {
        let BatchOperation { table, key, effect, value } = operation?;
        all.push((table, key.to_vec(), effect, value.to_vec()));
    }
    assert_eq!(all.len(), batch.count as usize);
    Ok((batch.sequence, all))
}

#[test]
fn batches_of_the_first_version_are_read() {
    let mut reader = BatchReader::default();
    let bytes = std::fs::read(image("batch")).unwrap();
    let expected = vec![
        (1, b"row:1".to_vec(), Effect::Put, b"first".to_vec()),
        (2, b"k".to_vec(), Effect::Remove, vec![]),
    ];
    assert_eq!(read(&mut reader, &bytes), Ok((Sequence(7), expected)));
    assert_eq!(reader.read(&bytes).unwrap().low, Sequence(3));
    let bytes = std::fs::read(image("batch-drop")).unwrap();
    let dropped = (0, b"a table".to_vec(), Effect::Remove, 9_u64.to_le_bytes().to_vec());
    assert_eq!(read(&mut reader, &bytes), Ok((Sequence(7), vec![dropped])));
}

#[test]
fn a_batch_says_what_was_put_in_it() {
    let mut builder = BatchBuilder::default();
    let (bytes, context) = batch(&mut builder);
    let mut reader = BatchReader::default();
    let put = |operation: BatchOperation<'_>| {
        let BatchOperation { table, key, effect, value } = operation;
        (table, key.to_vec(), effect, value.to_vec())
    };
    let expected = OPERATIONS.map(put).to_vec();
    assert_eq!(read(&mut reader, &bytes), Ok((Sequence(300), expected)));
    let more = continuing(&mut builder);
    let expected = vec![
        (2, b"kk".to_vec(), Effect::Put, b"v".to_vec()),
        (1, b"kl".to_vec(), Effect::Put, b"v".to_vec()),
    ];
    assert_eq!(read(&mut reader, &more), Ok((Sequence(304), expected)));
    assert!(read(&mut BatchReader::default(), &more).is_err(), "what it continues is not known");
    let _ = reader.read(&bytes).unwrap();
    assert!(read(&mut reader, &more).is_err(), "its operations were not read");
    assert!(builder.build(Sequence(305), Some(&context)).continuing.is_none());
}

/// Keys in order have what they begin with once in a record.
#[test]
fn a_put_that_continues_a_batch_takes_few_bytes_beside_its_value() {
    let mut builder = BatchBuilder::default();
    let mut context = BatchContext::default();
    let mut bytes = 0;
    for number in 0..1000_u64 {
        builder.clear();
        let key = format!("a key, {number:09}");
        let (key, effect) = (key.as_bytes(), Effect::Put);
        builder.push(BatchOperation { table: 1 << 60, key, effect, value: &[7; 100] });
        let built = builder.build(Sequence(number + 1), Some(&context));
        bytes += built.continuing.unwrap_or(built.whole).len();
        builder.end(Sequence(number + 1), &mut context);
    }
    assert!(bytes < 1000 * 108, "{bytes} bytes");
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
    let (before, _) = batch(&mut BatchBuilder::default());
    let mut reader = BatchReader::default();
    let _ = read(&mut reader, &before);
    let _ = read(&mut reader, bytes);
    let _ = read(&mut reader, bytes);
}

#[test]
fn arbitrary_bytes_are_damage_and_nothing_worse() {
    let given = std::env::var("ENTRESOL_SEED").ok().and_then(|text| text.parse().ok());
    let seeds = given.map_or(1..=2000, |seed: u64| seed..=seed);
    for seed in seeds {
        let mut random = Random::new(seed);
        let first = ["batch", "batch-drop"].map(|name| std::fs::read(image(name)).unwrap());
        for bytes in structures().map(|(_, bytes)| bytes).into_iter().chain(first) {
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
