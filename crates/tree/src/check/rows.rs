//! How many rows there are, as pages have them and as inner nodes say.

use crate::format::{Children, Damage, Effect, Rows};
use crate::node::is_known;

/// How many rows a page has. A check does not know merge functions: parts of a row may fold into
/// none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RowCount {
    pub least: u64,
    pub most: u64,
}

impl RowCount {
    pub(super) fn may_be(&self, rows: u64) -> bool {
        (self.least..=self.most).contains(&rows)
    }
}

impl std::fmt::Display for RowCount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.least == self.most {
            true => write!(f, "{}", self.most),
            false => write!(f, "{} to {}", self.least, self.most),
        }
    }
}

/// Rows of a leaf with its delta page.
pub(super) fn count_rows(
    leaf: &Rows<'_>,
    delta: Option<&Rows<'_>>,
) -> std::result::Result<RowCount, Damage> {
    let (mut count, mut before) = (RowCount { least: 0, most: 0 }, None);
    for index in 0..leaf.count() {
        let row = leaf.row(index)?;
        let key = row.key.to_vec();
        if before.as_ref() == Some(&key) {
            continue;
        }
        let said = delta.map(|delta| said_of(delta, &key)).transpose()?.unwrap_or_default();
        let is_separate = row.effect == Effect::Separate && said.whole.is_none();
        count.add(said.whole.unwrap_or(row.effect), said.has_parts && !is_separate);
        before = Some(key);
    }
    let Some(delta) = delta else { return Ok(count) };
    let mut index = 0;
    while index < delta.count() {
        let key = delta.row(index)?.key.to_vec();
        let said = said_of(delta, &key)?;
        if leaf.entries_of(&key)?.is_empty() {
            count.add(said.whole.unwrap_or(Effect::Remove), said.has_parts);
        }
        index = delta.entries_of(&key)?.end.max(index + 1);
    }
    Ok(count)
}

impl RowCount {
    /// Adds a row: the last whole thing that was said of it, and whether parts came on top.
    fn add(&mut self, whole: Effect, has_parts: bool) {
        self.most += u64::from(whole != Effect::Remove || has_parts);
        let is_sure = whole == Effect::Separate || whole == Effect::Put && !has_parts;
        self.least += u64::from(is_sure);
    }
}

/// What a delta page says of a key.
#[derive(Default)]
struct Said {
    whole: Option<Effect>,
    has_parts: bool,
}

fn said_of(delta: &Rows<'_>, key: &[u8]) -> std::result::Result<Said, Damage> {
    let mut said = Said::default();
    for index in delta.entries_of(key)? {
        match delta.row(index)?.effect {
            Effect::Part => said.has_parts = true,
            whole => said = Said { whole: Some(whole), has_parts: false },
        }
    }
    Ok(said)
}

/// Rows below a node, as it says itself; `None`: it does not know.
pub(super) fn rows_said(node: &Children<'_>) -> Option<RowCount> {
    let mut rows = 0;
    for index in 0..node.count() {
        let child = node.child(index).ok().filter(is_known)?;
        rows += u64::from(child.rows);
    }
    Some(RowCount { least: rows, most: rows })
}
