//! Which children of a node a neighbour is to absorb.

/// Number of a page that a directory made of one of its nodes: later ones are higher.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct Edition(pub u64);

/// Children that leave a node. Most nodes have none.
#[derive(Debug, Default)]
pub(crate) struct Leaving {
    marks: Vec<Mark>,
}

#[derive(Debug, Clone, Copy)]
struct Mark {
    /// The child.
    page: u32,
    /// The last page of any node that was made before: later ones do not name the child.
    since: Edition,
}

impl Leaving {
    /// Child `page` leaves: pages after edition `since` do not name it.
    pub(crate) fn add(&mut self, page: u32, since: Edition) {
        self.marks.push(Mark { page, since });
    }

    /// Child `page` is gone, or stays.
    pub(crate) fn remove(&mut self, page: u32) {
        self.marks.retain(|mark| mark.page != page);
    }

    pub(crate) fn contains(&self, page: u32) -> bool {
        self.marks.iter().any(|mark| mark.page == page)
    }

    /// Whether the node's page on flash, which is of edition `written`, lacks child `page`.
    pub(crate) fn is_unnamed(&self, page: u32, written: Edition) -> bool {
        self.marks.iter().any(|mark| mark.page == page && mark.since < written)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.marks.is_empty()
    }

    pub(crate) fn extend(&mut self, other: Leaving) {
        self.marks.extend(other.marks);
    }

    /// Takes out the children that `is_right` says.
    pub(crate) fn split_off(&mut self, is_right: impl Fn(u32) -> bool) -> Leaving {
        let (right, left) = self.marks.drain(..).partition(|mark| is_right(mark.page));
        self.marks = left;
        Leaving { marks: right }
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.marks.capacity() * size_of::<Mark>()
    }
}
