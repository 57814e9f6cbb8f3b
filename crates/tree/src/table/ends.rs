//! Where the rows of a table begin and end, as far as scans found out.
//!
//! Whoever takes rows from an end of a table, as from a queue, leaves removes behind that wait for
//! a merge. A scan from that end would look at all of them each time. So the scan that found the
//! first row says where it is, and the next one begins there.
//!
//! Invariant: beyond a bound there is no row. A change that may make one moves the bound, under the
//! lock of the table; one that comes while a scan looks for a bound moves what it finds.

/// Both ends of a table.
#[derive(Debug, Default)]
pub(crate) struct Ends {
    low: End,
    high: End,
    looks: u64,
}

/// One end.
#[derive(Debug, Default)]
struct End {
    bound: EndBound,
    look: Option<Look>,
}

/// What is known of an end.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum EndBound {
    /// Nothing.
    #[default]
    Unknown,
    /// No row is beyond this key.
    At(Box<[u8]>),
    /// There is no row at all.
    NoRows,
}

/// A scan that is to find a bound.
#[derive(Debug)]
struct Look {
    number: u64,
    /// The changes that may have made rows since it began: the one that is the furthest out.
    outermost: EndBound,
}

/// Which end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Low,
    High,
}

impl Side {
    /// Whether `key` is beyond `bound`, seen from the rows.
    fn is_beyond(self, key: &[u8], bound: &[u8]) -> bool {
        match self {
            Side::Low => key < bound,
            Side::High => key > bound,
        }
    }
}

impl Ends {
    fn end(&mut self, side: Side) -> &mut End {
        match side {
            Side::Low => &mut self.low,
            Side::High => &mut self.high,
        }
    }

    /// A change came that may make a row.
    pub(crate) fn mark(&mut self, key: &[u8]) {
        for side in [Side::Low, Side::High] {
            let end = self.end(side);
            let is_known = end.bound != EndBound::Unknown;
            let is_beyond = match &end.bound {
                EndBound::At(bound) => side.is_beyond(key, bound),
                EndBound::NoRows => true,
                EndBound::Unknown => false,
            };
            if is_known && is_beyond {
                end.bound = EndBound::At(key.into());
            }
            if let Some(look) = &mut end.look {
                look.mark(side, key);
            }
        }
    }

    /// What is known of an end.
    pub(crate) fn bound(&mut self, side: Side) -> EndBound {
        self.end(side).bound.clone()
    }

    /// A scan begins to look for the bound, beyond which it sees all rows. Its number; an earlier
    /// one that is still on its way looks in vain.
    pub(crate) fn look(&mut self, side: Side) -> u64 {
        self.looks += 1;
        let number = self.looks;
        self.end(side).look = Some(Look { number, outermost: EndBound::NoRows });
        number
    }

    /// The look `number` found that no row was beyond `found`.
    pub(crate) fn found(&mut self, side: Side, number: u64, found: EndBound) {
        let end = self.end(side);
        let Some(mut look) = end.look.take_if(|look| look.number == number) else { return };
        if let EndBound::At(found) = found {
            look.mark(side, &found);
        }
        end.bound = look.outermost;
    }
}

impl Look {
    fn mark(&mut self, side: Side, key: &[u8]) {
        let is_outer = match &self.outermost {
            EndBound::At(bound) => side.is_beyond(key, bound),
            EndBound::NoRows | EndBound::Unknown => true,
        };
        if is_outer {
            self.outermost = EndBound::At(key.into());
        }
    }
}
