//! Arbitrary bytes to each decoder of ordered tables: what does not hold for all bytes panics. The
//! targets of cargo-fuzz make the same calls.

use entresol_tree::format::{
    BatchBuilder, BatchContext, BatchReader, Children, ChildrenBuilder, Effect, Header, Marker,
    Naming, NodeFrame, PageBuilder, PageFrame, PageKind, Reference, Root, Row, Rows, ValueName,
    partition_of,
};
use entresol_tree::{
    Change, DeltaTarget, Folded, Leaf, LeafLimits, MergeFunction, Rewrite, Sequence, UnfoldedRow,
    merge_delta, merge_leaves,
};

/// Keys that are looked for in every page.
const KEYS: [&[u8]; 4] = [b"", b"row:2", b"row:", b"\xff\xff"];

/// `bytes` as a page: a leaf, a delta page or an inner node.
pub(crate) fn page(bytes: &[u8]) {
    if let Ok(header) = Header::decode(bytes) {
        let again = Header::decode(&header.encode());
        assert_eq!(again.as_ref(), Ok(&header), "a header is what its bytes say");
    }
    if let Ok(rows) = Rows::parse(bytes) {
        rows_of(&rows);
    }
    if let Ok(children) = Children::parse(bytes) {
        children_of(&children);
    }
}

fn rows_of(rows: &Rows<'_>) {
    for key in KEYS {
        let found = rows.entries_of(key);
        assert!(found.is_err() || found.is_ok_and(|found| found.end <= rows.count()));
    }
    for index in 0..rows.count() {
        let _ = rows.row(index).map(|row| row.key.to_vec());
    }
    let _ = rows.keys();
    if rows.check().is_err() {
        return;
    }
    let all: Vec<Row<'_>> = (0..rows.count()).map(|index| rows.row(index).unwrap()).collect();
    for (index, row) in all.iter().enumerate() {
        let key = row.key.to_vec();
        let found = rows.entries_of(&key).unwrap();
        assert!(found.contains(&index), "a sound page finds each of its rows");
        assert!(rows.high_key().is_none_or(|high| key.as_slice() < high));
    }
    // Entries of a page may lie in one another: together they may be more than a page holds.
    let bytes: usize = all.iter().map(|row| 64 + row.key.to_vec().len() + row.value.len()).sum();
    if bytes < 60 << 10 {
        let again = rebuilt(rows, &all);
        let again = Rows::parse(&again).unwrap();
        assert_eq!(again.header().sequence, rows.header().sequence);
        assert_eq!(again.count(), all.len());
        for (index, row) in all.iter().enumerate() {
            let other = again.row(index).unwrap();
            assert_eq!(other.key.to_vec(), row.key.to_vec());
            assert_eq!((other.effect, other.value), (row.effect, row.value));
        }
    }
}

/// The page as a program would write it.
fn rebuilt(rows: &Rows<'_>, all: &[Row<'_>]) -> Vec<u8> {
    let mut builder = PageBuilder::default();
    for row in all {
        let sequence = row.sequence.unwrap_or_default();
        builder.push(&row.key.to_vec(), row.effect, sequence, row.value);
    }
    let header = rows.header();
    let frame = PageFrame {
        kind: header.kind,
        high_key: rows.high_key(),
        sequence: header.sequence,
        link: header.link,
        has_sequences: header.has_sequences,
    };
    builder.page(0..all.len(), frame)
}

fn children_of(children: &Children<'_>) {
    for key in KEYS {
        let found = children.position(key);
        assert!(found.is_err() || found.is_ok_and(|found| found < children.count()));
    }
    let mut separator = Vec::new();
    for index in 0..children.count() {
        let _ = children.separator(index, &mut separator);
        let _ = children.child(index);
    }
    let filters = children.filters();
    if children.check().is_err() {
        return;
    }
    let filters = filters.unwrap();
    let mut builder = ChildrenBuilder::default();
    let mut bytes = 0;
    for index in 0..children.count() {
        children.separator(index, &mut separator).unwrap();
        let (child, filter) = (children.child(index).unwrap(), filters.get(index).copied());
        let first = children.position(&separator).unwrap();
        assert_eq!(first, index, "a sound node finds each of its children");
        bytes += 64 + separator.len() + filter.map_or(0, <[u8]>::len);
        builder.push_filtered(&separator, child, filter.unwrap_or_default());
    }
    if bytes < 40 << 10 {
        let header = children.header();
        let frame = NodeFrame {
            level: header.level,
            high_key: children.high_key(),
            right: header.link as u32,
            sequence: header.sequence,
        };
        let node = builder.node(frame);
        let again = Children::parse(&node).unwrap();
        again.check().unwrap();
        for index in 0..children.count() {
            assert_eq!(again.child(index), children.child(index));
        }
    }
}

/// Parts are put one behind the other.
struct Append;

impl MergeFunction for Append {
    fn fold(&self, _: &[u8], base: Option<&[u8]>, parts: &[&[u8]], out: &mut Vec<u8>) -> Folded {
        out.extend_from_slice(base.unwrap_or_default());
        parts.iter().for_each(|part| out.extend_from_slice(part));
        out.truncate(500);
        Folded::Row
    }
}

/// `bytes` as a leaf and its delta page, merged with changes. The last two bytes say how long the
/// leaf is.
pub(crate) fn merge(bytes: &[u8]) {
    let Some((bytes, length)) = bytes.split_last_chunk() else { return };
    let length = usize::from(u16::from_le_bytes(*length)).min(bytes.len());
    let (base, delta) = bytes.split_at(length);
    let delta = Some(delta).filter(|delta| !delta.is_empty());
    let Ok(leaf) = Leaf::parse(base, delta) else { return };
    let change = |key, number| Change {
        key,
        effect: Effect::Put,
        sequence: Sequence(number),
        value: b"a value",
    };
    let changes = [change(b"a", u64::MAX - 1), change(b"row:2", u64::MAX - 2)];
    let through = Sequence(u64::MAX - 1);
    let target = DeltaTarget { through, has_sequences: false };
    if let Ok(made) = merge_delta(leaf.delta(), leaf.base().header().sequence, &changes, target) {
        assert!(Rows::parse(&made.page).is_ok(), "a delta page that a merge made is one");
        let known = leaf.sequence().max(leaf.base().header().sequence);
        let mut later = changes.iter().filter(|change| change.sequence > known);
        assert!(later.all(|change| made.filter.may_hold(change.key)));
    }
    let mut number = 1;
    let mut rewrite = Rewrite {
        number: 1,
        through,
        end: None,
        limits: LeafLimits { leaf_bytes_max: 1024 },
        merge: Some(&Append),
        fresh: &mut || {
            number += 1;
            number
        },
    };
    if let Ok(made) = merge_leaves(&[leaf], &changes, &mut rewrite) {
        for leaf in &made {
            assert!(Leaf::parse(&leaf.page, None).is_ok(), "a leaf that a merge made is one");
        }
    }
}

/// `bytes` as a table's first record.
pub(crate) fn root(bytes: &[u8]) {
    let Ok(root) = Root::decode(bytes) else { return };
    page(&root.page);
    let is_sound = Rows::parse(&root.page).is_ok_and(|rows| rows.check().is_ok());
    if is_sound && root.name.len() <= 2048 {
        let again = root.encode();
        let again = Root::decode(&again).expect("what was read can be written");
        assert_eq!((again.created, again.first), (root.created, root.first));
        assert_eq!((again.keeps_counts, again.name), (root.keeps_counts, root.name));
        let (rows, others) = (Rows::parse(&root.page).unwrap(), Rows::parse(&again.page).unwrap());
        assert_eq!(rows.count(), others.count());
        assert_eq!(rows.high_key(), others.high_key());
    }
}

/// `bytes` as what stands in a row or in a small record: a reference to a value, the key of a
/// value's record, a mark, a naming, an unfolded row.
pub(crate) fn value(bytes: &[u8]) {
    if let Ok(reference) = Reference::decode(bytes) {
        assert_eq!(reference.encode(), bytes);
    }
    let _ = partition_of(bytes);
    if let Some(name) = ValueName::parse(bytes) {
        let key = name.record_key();
        assert_eq!(ValueName::parse(&key), Some(name), "{bytes:?}");
        assert_eq!(partition_of(&key), 4);
    }
    let marker = Marker::decode(bytes);
    assert_eq!(Marker::decode(&marker.encode()), marker);
    for effect in [Effect::Put, Effect::Remove] {
        if let Some(naming) = Naming::decode(effect, bytes) {
            assert_eq!(Naming::decode(effect, &naming.encode()), Some(naming));
        }
    }
    if let Some(row) = UnfoldedRow::parse(bytes) {
        let bytes_of_parts: usize = row.parts().map(<[u8]>::len).sum();
        assert!(row.base.map_or(0, <[u8]>::len) + bytes_of_parts <= bytes.len());
    }
}

/// One change of a batch.
type Read = (u64, Vec<u8>, Effect, Vec<u8>);

/// `bytes` as records of the journal, one behind the other: two bytes for the length of each, then
/// the batch. What is left is the last one.
pub(crate) fn batches(bytes: &[u8]) {
    let (mut reader, mut rest) = (BatchReader::default(), bytes);
    // Bytes without a length before them are a batch as well.
    let _ = read(&mut reader, bytes);
    while let Some((length, after)) = rest.split_first_chunk() {
        let length = usize::from(u16::from_le_bytes(*length)).min(after.len());
        let (batch, others) = after.split_at(length);
        rest = others;
        if let Some((sequence, changes)) = read(&mut reader, batch) {
            let written = Writing { sequence, changes: &changes };
            written.check();
        }
    }
}

fn read(reader: &mut BatchReader, bytes: &[u8]) -> Option<(Sequence, Vec<Read>)> {
    let mut batch = reader.read(bytes).ok()?;
    let (sequence, count) = (batch.sequence, batch.count);
    let mut changes = Vec::new();
    while let Some(operation) = batch.operation() {
        let operation = operation.ok()?;
        assert!((1..=2048).contains(&operation.key.len()), "a key within its limits");
        assert!(operation.value.len() <= bytes.len());
        let (key, value) = (operation.key.to_vec(), operation.value.to_vec());
        changes.push((operation.table, key, operation.effect, value));
    }
    assert_eq!(changes.len(), count as usize);
    Some((sequence, changes))
}

/// Changes that are written anew.
struct Writing<'a> {
    sequence: Sequence,
    changes: &'a [Read],
}

impl Writing<'_> {
    /// Writes them, and reads them back.
    fn check(&self) {
        let mut builder = BatchBuilder::default();
        for (table, key, effect, value) in self.changes {
            let operation = entresol_tree::format::BatchOperation {
                table: *table,
                key,
                effect: *effect,
                value,
            };
            builder.push(operation);
        }
        let mut reader = BatchReader::default();
        let whole = builder.build(self.sequence, None).whole.to_vec();
        let expected = Some((self.sequence, self.changes.to_vec()));
        assert_eq!(read(&mut reader, &whole), expected, "what was read can be written");
        let mut context = BatchContext::default();
        builder.end(self.sequence, &mut context);
        let next = Sequence(self.sequence.0 + self.changes.len() as u64);
        if next.0.checked_add(self.changes.len() as u64).is_none() {
            return;
        }
        if let Some(continuing) = builder.build(next, Some(&context)).continuing {
            let expected = Some((next, self.changes.to_vec()));
            assert_eq!(read(&mut reader, continuing), expected, "and continues itself");
        }
    }
}

/// What a page that a program wrote begins with, put before bytes that are to be one: decoders then
/// see more than the header.
pub(crate) fn under_a_header(kind: PageKind, bytes: &[u8]) -> Vec<u8> {
    let mut page = bytes.to_vec();
    page.resize(page.len().max(32), 0);
    (page[0], page[1]) = (kind as u8 + 1, page[1] & 7);
    if kind != PageKind::Inner {
        page[1] &= 3;
    }
    (page[24], page[25]) = (1, u8::from(kind == PageKind::Inner));
    page
}
