//! New leaves in place of one, or of a group.
//!
//! Changes of a leaf for which many wait, as for the first one of a load, come part by part: memory
//! holds one part, the leaves that are made of it, and what is left of the old leaf.

use entresol_flash::Result;

use super::{FoundPages, Input, Made, NewLeaves, Pages, SMALL_BYTES_MAX, Site, Work, child_of};
use crate::error::damaged;
use crate::filter::leaf_filter;
use crate::format::{PageRole, page_key};
use crate::maintain::ahead::PageKey;
use crate::maintain::marking::write_marker;
use crate::maintain::reserve;
use crate::merge::{Leaf, LeafLimits, MergeError, NewLeaf, Rewrite, merge_leaves};
use crate::shared::NewPage;
use crate::statistics::Counters;
use crate::table::{Copied, Keys, NewChild, Quota, ROOT_PAGE};

/// What a rewrite has done, and what is left of it.
struct Rewriting<'w> {
    work: &'w Work,
    /// What is merged first.
    input: &'w Input,
    limits: LeafLimits,
    /// The table was small.
    grows: bool,
    /// What is left of the leaves, with the changes that are merged next.
    rest: Option<Rest>,
    /// Number of the first one of these leaves, and the key from which on it holds rows, unless it
    /// is the first of all.
    number: u32,
    separator: Option<Vec<u8>>,
    /// Leaves that were written.
    written: Vec<PageKey>,
    made: Option<NewLeaves>,
}

/// As the input of a merge.
struct Rest {
    leaves: Vec<Pages>,
    copied: Copied,
    end: Option<Vec<u8>>,
}

impl Work {
    /// New leaves; or why the table's owner must do something first.
    pub(in crate::maintain) fn rewrite(
        &self,
        site: &mut Site<'_>,
        input: &Input,
    ) -> Result<std::result::Result<Made, MergeError>> {
        let child = &input.group.at.child;
        let mut limits = site.shared.limits();
        let is_small = child.page == ROOT_PAGE;
        let bytes = input.leaves[0].base.len() + input.copied.bytes();
        if is_small && input.end.is_none() && bytes <= SMALL_BYTES_MAX {
            limits.leaf_bytes_max = usize::MAX;
        }
        let grows = is_small && limits.leaf_bytes_max != usize::MAX;
        let number = match grows {
            true => self.table.lock().directory.take_number(),
            false => child.page,
        };
        let absorbed = input.group.members[1..].iter().map(|member| member.child.page).collect();
        let mut rewriting = Rewriting {
            work: self,
            input,
            limits,
            grows,
            rest: None,
            number,
            separator: None,
            written: Vec::new(),
            made: None,
        };
        loop {
            let mut made = match rewriting.merge(site)? {
                Ok(made) => made,
                Err(error) => {
                    // Nothing will ever name them.
                    site.shared.remove_all(site.session, site.now, &rewriting.written)?;
                    return Ok(Err(error));
                }
            };
            if is_small && !grows {
                return Ok(Ok(Made::Small(made.swap_remove(0).page)));
            }
            let is_merged = |leaf: &NewLeaf| leaf.is_merged;
            let rest = made.split_off(made.partition_point(is_merged));
            rewriting.write(site, made)?;
            if rest.is_empty() {
                let made = rewriting.made.expect("a merge makes a leaf");
                let (had_delta, found) = (input.has_delta, input.leaves[0].found);
                return Ok(Ok(Made::Leaves(NewLeaves { had_delta, found, absorbed, ..made })));
            }
            rewriting.go_on(site, rest)?;
        }
    }
}

impl Rewriting<'_> {
    fn merge(&self, site: &Site<'_>) -> Result<std::result::Result<Vec<NewLeaf>, MergeError>> {
        let table = &self.work.table;
        let (leaves, copied, end) = match &self.rest {
            None => (&self.input.leaves, &self.input.copied, &self.input.end),
            Some(rest) => (&rest.leaves, &rest.copied, &rest.end),
        };
        let leaves = leaves.iter();
        let leaves = leaves.map(|pages| Leaf::parse(&pages.base, pages.delta.as_deref()));
        let leaves = leaves.collect::<std::result::Result<Vec<_>, _>>();
        let leaves = leaves.map_err(|damage| damaged(table, &damage))?;
        let function = site.shared.merge_of(table);
        let mut changes = copied.changes();
        changes.retain(|change| change.sequence <= site.through);
        let mut rewrite = Rewrite {
            number: self.number,
            through: site.through,
            end: end.as_deref(),
            limits: self.limits,
            merge: function.as_ref().map(|function| &**function as _),
            fresh: &mut || table.lock().directory.take_number(),
        };
        match merge_leaves(&leaves, &changes, &mut rewrite) {
            Err(MergeError::Damage(damage)) => Err(damaged(table, &damage)),
            made => Ok(made),
        }
    }

    /// Writes leaves: all but the first of all, and that one too where nothing names it so far.
    fn write(&mut self, site: &mut Site<'_>, leaves: Vec<NewLeaf>) -> Result<()> {
        let table = &self.work.table;
        reserve(site.shared, site.session, site.now, table)?;
        Counters::add(&site.shared.counters.leaf_writes, leaves.len());
        for leaf in leaves {
            let (child, filter) = (child_of(&leaf, site.through), self.filter_of(site, &leaf)?);
            let mut page = Some(leaf.page);
            if (self.made.is_some() || self.grows)
                && let Some(page) = page.take()
            {
                let key = page_key(table.id(), leaf.number, PageRole::Page);
                site.write(table, &key, NewPage { bytes: &page, found: None })?;
                self.written.push(key);
            }
            let Some(made) = &mut self.made else {
                let (number, grows, others) = (leaf.number, self.grows, Vec::new());
                let (had_delta, found, absorbed) = (false, FoundPages::default(), Vec::new());
                self.made = Some(NewLeaves {
                    number,
                    had_delta,
                    found,
                    page,
                    child,
                    filter,
                    absorbed,
                    others,
                    grows,
                });
                continue;
            };
            let separator = leaf.separator.or_else(|| self.separator.take()).unwrap_or_default();
            made.others.push(NewChild { separator, child, filter });
        }
        Ok(())
    }

    /// Takes the next changes, and what is left of the leaves.
    fn go_on(&mut self, site: &mut Site<'_>, rest: Vec<NewLeaf>) -> Result<()> {
        let low = match &mut self.rest {
            None => self.input.end.clone(),
            Some(rest) => rest.end.take(),
        };
        let low = low.expect("changes that were not all");
        self.number = rest[0].number;
        self.separator.clone_from(&rest[0].separator);
        let found = FoundPages::default();
        let pages = rest.into_iter().map(|leaf| Pages { base: leaf.page, delta: None, found });
        let mut rest = Rest { leaves: pages.collect(), copied: Copied::default(), end: None };
        let work = self.work;
        let state = work.table.lock();
        // What was dropped is never named: it does not matter what it holds.
        if state.directory.created() == work.created {
            let keys = Keys { low: &low, high: work.high.as_deref() };
            let quota = Quota::of_bytes(site.shared.options.merge_bytes_max());
            let arena = site.shared.arena.read();
            rest.end = rest.copied.copy_range(&state.pending, &arena, keys, quota);
            rest.copied.retain_through(site.through);
        }
        drop(state);
        write_marker(site.shared, site.session, site.now, &work.table, &rest.copied)?;
        self.rest = Some(rest);
        Ok(())
    }

    /// What is known of the keys of a new leaf.
    fn filter_of(&self, site: &Site<'_>, leaf: &NewLeaf) -> Result<Vec<u8>> {
        match site.shared.options.absent_filter_bits {
            0 => Ok(Vec::new()),
            key_bits => Ok(leaf_filter(&self.work.keys_of(&leaf.page)?, key_bits)),
        }
    }
}
