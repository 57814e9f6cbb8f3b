//! The way of a read to a leaf: inner nodes that are not in memory, the delta page, the leaf.
//!
//! The delta page is read before the leaf: changes move from it to the leaf and never back, so that
//! a merge in between hides none.

use std::borrow::Cow;
use std::sync::Arc;

use entresol_flash::{Outcome as Stored, Result};
use entresol_planted::planted;

use super::Next;
use crate::error::damaged;
use crate::filter::{Filter, KeyHash, leaf_filter};
use crate::format::{Child, Damage, Header, PAGE_KEY_BYTES, PageKind, PageRole, Root, page_key};
use crate::merge::{Leaf, count_rows};
use crate::node::is_known;
use crate::sequence::Sequence;
use crate::shared::Shared;
use crate::table::{Copied, Detours, LeafAt, Learnt, Missing, Place, ROOT_PAGE, Table};

/// So often a page may be missing where it was thought to be.
const MISSES_MAX: u32 = 4;

/// The key of a page's record.
pub(super) type PageKey = [u8; PAGE_KEY_BYTES];

/// A read on its way to a leaf.
pub(super) struct Approach {
    pub table: Arc<Table>,
    stage: Stage,
    /// The leaf, once it is located.
    pub leaf: Option<LeafAt>,
    /// The leaf's delta page, where it was read and is needed beside the leaf.
    pub delta: Option<Vec<u8>>,
    /// How often the page with this number was not there, one time after another.
    misses: (u32, u32),
    detours: Detours,
    /// What was learnt of the leaf.
    learnt: Option<Learnt>,
    /// Pages that had taken changes up to there which were copied before they were read.
    overtook: Vec<(u32, Sequence)>,
}

/// What was read of a leaf.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReadPages<'r> {
    pub delta: Option<&'r [u8]>,
    pub base_bytes: usize,
}

/// What a read waits for.
#[derive(Debug, Clone, Copy)]
enum Stage {
    Idle,
    Node(Missing),
    Delta,
    Leaf,
}

/// How a read goes on.
pub(super) enum Resumed {
    /// It was visited.
    Visited,
    /// It looks where its key is.
    Locate,
    /// It reads this record.
    Read(PageKey),
    /// It reads the value of its row.
    Value,
}

/// What the store answered.
pub(super) enum Arrived<'r> {
    /// Nothing that the owner of the read must look at.
    Next(Next),
    /// The delta page, if it is there.
    Delta(Option<&'r [u8]>),
    /// The record of the leaf, if it is there.
    Leaf(Option<&'r [u8]>),
}

/// What the record of a leaf holds.
pub(super) enum LeafPage<'r> {
    /// The leaf.
    Page(Cow<'r, [u8]>),
    /// The table has no rows.
    Empty,
    /// Something else: the leaf is located again.
    Moved(Next),
}

impl Approach {
    pub(super) fn new(table: &Arc<Table>) -> Approach {
        let table = Arc::clone(table);
        let stage = Stage::Idle;
        let (misses, detours) = ((0, 0), Detours::default());
        Approach {
            table,
            stage,
            leaf: None,
            delta: None,
            misses,
            detours,
            learnt: None,
            overtook: Vec::new(),
        }
    }

    /// Does what needs no page.
    pub(super) fn resume(&mut self, shared: &Shared, next: Next) -> Result<Resumed> {
        self.teach(shared);
        match next {
            Next::Done => return Ok(Resumed::Visited),
            Next::Fail(error) => return Err(error),
            Next::ReadLeaf => {
                self.stage = Stage::Leaf;
                return Ok(Resumed::Read(self.leaf_key()));
            }
            Next::ReadValue => return Ok(Resumed::Value),
            Next::Load(missing, bytes) => {
                let is_exact = shared.recovered.lock().is_exact;
                let mut state = self.table.lock();
                let loaded = state.directory.load(missing, &bytes, is_exact);
                drop(state);
                let is_new = loaded.map_err(|damage| damaged(&self.table, &damage))?;
                self.detour(missing.page(), is_new)?;
            }
            Next::Learn { high, right } => {
                let leaf = self.leaf.take().expect("a leaf that was read");
                let is_new = self.table.lock().directory.learn(&leaf, &high, right);
                self.detour(leaf.child.page, is_new)?;
            }
            Next::Reload(page) => self.miss(page)?,
            Next::Astray(page) => self.detour(page, false)?,
            Next::Locate => {}
        }
        self.delta = None;
        Ok(Resumed::Locate)
    }

    /// A page was not there. It was located before it was absorbed or moved; but it is not located
    /// again and again.
    fn miss(&mut self, page: u32) -> Result<()> {
        let (same, misses) = self.misses;
        self.misses = (page, if same == page { misses + 1 } else { 1 });
        if self.misses.1 > MISSES_MAX {
            return Err(damaged(&self.table, &"a page that another one names is missing"));
        }
        Ok(())
    }

    fn detour(&mut self, page: u32, has_learnt: bool) -> Result<()> {
        let counted = self.detours.count(page, has_learnt);
        counted.map_err(|damage| damaged(&self.table, &damage))
    }

    /// The record to read at `place`. `key`: the one key that is looked for, if it is one.
    pub(super) fn head_for(
        &mut self,
        shared: &Shared,
        store: &entresol_tier::Session,
        place: Place,
        key: Option<&[u8]>,
    ) -> PageKey {
        let at = match place {
            Place::Missing(missing) => {
                self.stage = Stage::Node(missing);
                return self.page_key(missing.page(), PageRole::Page);
            }
            Place::Leaf(at) => at,
        };
        let Child { page, delta_bytes, filter, .. } = at.child;
        let delta_key = self.page_key(page, PageRole::Delta);
        let has_delta = delta_bytes > 0
            && key.is_none_or(|key| Filter(filter).may_hold(key))
            && (is_known(&at.child) || store.may_hold(shared.key(&delta_key)));
        self.leaf = Some(at);
        self.stage = if has_delta { Stage::Delta } else { Stage::Leaf };
        if has_delta { delta_key } else { self.leaf_key() }
    }

    fn leaf_key(&self) -> PageKey {
        let page = self.leaf.as_ref().map_or(ROOT_PAGE, |leaf| leaf.child.page);
        self.page_key(page, PageRole::Page)
    }

    fn page_key(&self, page: u32, role: PageRole) -> PageKey {
        page_key(self.table.id(), page, role)
    }

    /// What the store answered. Called under its locks: it calls nobody.
    pub(super) fn arrive<'r>(&self, outcome: Result<Stored<'r>>) -> Arrived<'r> {
        let page = match outcome {
            Ok(Stored::Found(entry)) => Some(entry.value),
            Ok(_) => None,
            Err(error) => return Arrived::Next(Next::Fail(error)),
        };
        match (self.stage, page) {
            (Stage::Idle, _) => unreachable!("a read that was begun"),
            (Stage::Node(missing), Some(page)) => Arrived::Next(Next::Load(missing, page.to_vec())),
            (Stage::Node(missing), None) => Arrived::Next(Next::Reload(missing.page())),
            (Stage::Delta, page) => Arrived::Delta(page),
            (Stage::Leaf, record) => Arrived::Leaf(record),
        }
    }

    /// The leaf that was located.
    pub(super) fn located(&self) -> &LeafAt {
        self.leaf.as_ref().expect("a leaf that was located")
    }

    /// What `record` holds. Page 1 stands behind the table's name: it may be of a table that was
    /// dropped, or made since, and is an inner node where the table has grown.
    pub(super) fn leaf_page<'r>(&self, record: Option<&'r [u8]>) -> Result<LeafPage<'r>> {
        let at = self.located();
        let damage = |damage: Damage| damaged(&self.table, &damage);
        let is_root = at.child.page == ROOT_PAGE;
        let page = match record {
            None if is_root => return Ok(LeafPage::Empty),
            None => return Ok(LeafPage::Moved(Next::Reload(at.child.page))),
            Some(record) if is_root => {
                let root = Root::decode(record).map_err(damage)?;
                match root.created.cmp(&at.created.0) {
                    std::cmp::Ordering::Greater => {
                        return Ok(LeafPage::Moved(Next::Astray(ROOT_PAGE)));
                    }
                    std::cmp::Ordering::Less => return Ok(LeafPage::Empty),
                    std::cmp::Ordering::Equal => root.page,
                }
            }
            Some(page) => Cow::Borrowed(page),
        };
        let is_inner = Header::decode(&page).map_err(damage)?.kind == PageKind::Inner;
        let elsewhere = Next::Astray(at.child.page);
        Ok(if is_inner { LeafPage::Moved(elsewhere) } else { LeafPage::Page(page) })
    }

    /// Whether what waits must be copied once more: the leaf that was located has taken changes up
    /// to `known`, and may not have had them when they were copied. A later write may have replaced
    /// some of them before the leaf took them: it has none of these, and the copy not that write.
    /// What is copied once the leaf has them is whole.
    pub(super) fn is_overtaken(&mut self, copied: &Copied, known: Sequence) -> bool {
        if planted!("changes-not-copied-once-more") || !copied.has_through(known) {
            return false;
        }
        let child = &self.located().child;
        let (overtook, has_taken) =
            ((child.page, known), is_known(child) && child.sequence >= known);
        if has_taken || self.overtook.contains(&overtook) {
            return false;
        }
        self.overtook.push(overtook);
        true
    }

    /// Takes note of what is known of the leaf, now that it and its delta page were read, unless
    /// that was known.
    pub(super) fn learn(
        &mut self,
        shared: &Shared,
        leaf: &Leaf<'_>,
        read: ReadPages<'_>,
    ) -> Result<()> {
        let at = self.located();
        let is_whole = leaf.base().high_key() == at.high.as_deref();
        if !is_whole || at.child.page == ROOT_PAGE {
            return Ok(());
        }
        let key_bits = shared.options.absent_filter_bits;
        let child = match is_known(&at.child) {
            false => self.child_of(leaf, read)?,
            // Its delta page is not read where it cannot hold the key.
            true => Some(at.child).filter(|child| {
                let has_delta = leaf.delta().is_some();
                let is_same = child.sequence == leaf.base().header().sequence;
                key_bits > 0 && !at.is_filtered && is_same && (child.delta_bytes > 0) == has_delta
            }),
        };
        let Some(child) = child else { return Ok(()) };
        let mut filter = Vec::new();
        if key_bits > 0 {
            let mut keys = Vec::new();
            for rows in [Some(leaf.base()), leaf.delta()].into_iter().flatten() {
                for index in 0..rows.count() {
                    let row = rows.row(index).map_err(|damage| damaged(&self.table, &damage))?;
                    keys.push(KeyHash::of(&row.key.to_vec()));
                }
            }
            filter = leaf_filter(&keys, key_bits);
        }
        self.learnt = Some(Learnt { child, filter });
        Ok(())
    }

    /// Enters what was learnt of the leaf.
    fn teach(&mut self, shared: &Shared) {
        if let (Some(leaf), Some(learnt)) = (&self.leaf, self.learnt.take()) {
            let most = shared.options.leaf_bytes_max;
            let joins = self.table.lock().directory.teach(leaf, &learnt, most);
            if joins {
                shared.joining.lock().insert(self.table.id());
            }
        }
    }

    /// What is known of a leaf that was read with its delta page.
    fn child_of(&self, leaf: &Leaf<'_>, read: ReadPages<'_>) -> Result<Option<Child>> {
        let (at, ReadPages { delta, base_bytes }) = (self.located(), read);
        let (mut filter, mut delta_bytes) = (Filter::default(), 0);
        if let (Some(rows), Some(page)) = (leaf.delta(), delta) {
            delta_bytes = page.len();
            for index in 0..rows.count() {
                let row = rows.row(index).map_err(|damage| damaged(&self.table, &damage))?;
                filter.insert(&row.key.to_vec());
            }
        }
        let Ok(base_bytes) = u16::try_from(base_bytes) else { return Ok(None) };
        let Ok(delta_bytes) = u16::try_from(delta_bytes) else { return Ok(None) };
        let sequence = leaf.base().header().sequence;
        let rows = if self.table.keeps_counts() {
            // Where there are parts to fold, nothing is learnt.
            let Ok(rows) = count_rows(*leaf, None) else { return Ok(None) };
            rows
        } else {
            leaf.base().keys().map_err(|damage| damaged(&self.table, &damage))?
        };
        let filter = filter.0;
        Ok(Some(Child { sequence, base_bytes, delta_bytes, filter, rows, ..at.child }))
    }
}
