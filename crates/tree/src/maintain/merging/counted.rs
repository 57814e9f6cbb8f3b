//! What a delta page does to the rows of its leaf.

use entresol_flash::Result;
use entresol_planted::planted;

use super::{Site, Work};
use crate::error::damaged;
use crate::format::{Damage, Effect, PageRole, Rows, page_key};
use crate::merge::{Leaf, NewDelta, count_rows};
use crate::table::LeafAt;

impl Work {
    /// What inner nodes say of the rows of a leaf with its new delta page. A table that keeps
    /// counts reads the leaf for it. `None`: the rows have parts that cannot be folded.
    pub(super) fn count(
        &self,
        site: &mut Site<'_>,
        at: &LeafAt,
        delta: &NewDelta,
    ) -> Result<Option<u32>> {
        if !self.table.keeps_counts() || planted!("rows-of-delta-pages-not-counted") {
            return Ok(Some(at.child.rows));
        }
        let page = site.read(&page_key(self.table.id(), at.child.page, PageRole::Page))?;
        let Some(page) = page else {
            let missing = format!("page {} is missing", at.child.page);
            return Err(damaged(&self.table, &missing));
        };
        let leaf = Leaf::parse(&page.bytes, Some(&delta.page));
        let leaf = leaf.map_err(|damage| damaged(&self.table, &damage))?;
        let merge = site.shared.merge_of(&self.table);
        Ok(count_rows(leaf, merge.as_ref().map(|merge| &**merge as _)).ok())
    }
}

/// How many rows a delta page removes.
pub(super) fn removes(page: &[u8]) -> std::result::Result<usize, Damage> {
    let rows = Rows::parse(page)?;
    let mut removes = 0;
    for index in 0..rows.count() {
        removes += usize::from(rows.row(index)?.effect == Effect::Remove);
    }
    Ok(removes)
}
