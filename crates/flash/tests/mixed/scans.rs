//! Scans and counts: what is certainly there is visited once and counted once, also while entries
//! are moved and written.

use std::collections::{BTreeMap, BTreeSet};

use entresol_flash::{Entry, Result, SpaceId};

use crate::history::{History, Name, PARTITIONS, SPACES, Visibility};
use crate::plan::space;
use crate::requests::Found;
use crate::world::World;

/// What a scan met.
#[derive(Default)]
struct Visits {
    /// How often it visited each key.
    times: BTreeMap<Name, u32>,
    /// Keys that were written meanwhile.
    changed: BTreeSet<Name>,
}

impl World {
    /// Scans a space or a partition, in half of the cases with writes and maintenance between its
    /// pages.
    pub(crate) fn scan(&mut self) {
        let (space, busy) = (space(&mut self.random), self.random.one_in(2));
        let partition = self.random.one_in(3);
        let partition = partition.then(|| self.random.below(u64::from(PARTITIONS)) as u16);
        let limit = 1 + self.random.below(60) as usize;
        let start = self.model.clone();
        let names: BTreeMap<Vec<u8>, Name> = self
            .names()
            .into_iter()
            .filter(|name| name.is_in(space, partition))
            .map(|name| (name.bytes(), name))
            .collect();
        let mut visits = Visits::default();
        let mut cursor = 0;
        loop {
            let page;
            (cursor, page) = self.scan_page((space, partition), (cursor, limit));
            for found in &page {
                let Some(name) = names.get(&found.key) else {
                    panic!("seed {}: a scan shows a key of elsewhere: {found:?}", self.seed)
                };
                self.judge_visit(*name, found);
                *visits.times.entry(*name).or_default() += 1;
            }
            if cursor == 0 {
                break;
            }
            if busy {
                self.write_between_pages(&mut visits);
            }
        }
        for name in names.values() {
            self.judge_visits(*name, &start[name], &visits);
        }
    }

    /// Scans the whole store in the order of the log.
    pub(crate) fn scan_log(&self) {
        let names: BTreeMap<(SpaceId, Vec<u8>), Name> = self
            .names()
            .into_iter()
            .map(|name| ((SpaceId(name.space), name.bytes()), name))
            .collect();
        let mut visits = Visits::default();
        let mut visit = |space, entry: Entry<'_>| {
            let found = Found::of(&entry);
            let name = names[&(space, found.key.clone())];
            self.judge_visit(name, &found);
            *visits.times.entry(name).or_default() += 1;
        };
        let scanned = self.store().scan_log(self.now(), &mut visit);
        let scanned = scanned.expect("a scan goes on, as no fault was ordered");
        assert!(scanned.damaged.is_empty(), "seed {}: {:?}", self.seed, scanned.damaged);
        for name in names.values() {
            self.judge_visits(*name, &self.model[name], &visits);
        }
    }

    fn scan_page(
        &mut self,
        (space, partition): (u16, Option<u16>),
        position: (u64, usize),
    ) -> (u64, Vec<Found>) {
        let now = self.now();
        let wanted = |number| partition.is_none_or(|partition| partition == number);
        let mut page = Vec::new();
        let mut visit = |entry: Result<Entry<'_>>| {
            page.push(Found::of(&entry.expect("a scan reads, as no fault was ordered")));
        };
        let session = self.session(0);
        let scanned = session.scan_partitions(
            (SpaceId(space), &wanted),
            position,
            now,
            (&mut visit, &mut |_, _| ()),
        );
        (scanned.expect("a scan goes on, as no fault was ordered"), page)
    }

    fn judge_visit(&self, name: Name, found: &Found) {
        let shows = |put| self.visibility(Some(put)) != Visibility::Never && found.is(name, &put);
        if !self.model[&name].current().iter().flatten().any(|put| shows(*put)) {
            self.fail(name, &format!("a scan shows what is not there: {found:?}"));
        }
    }

    fn write_between_pages(&mut self, visits: &mut Visits) {
        for _ in 0..self.random.below(4) {
            let name = self.draw_name();
            visits.changed.insert(name);
            let request = self.draw_request(name);
            self.run_and_judge(name, request);
        }
        if self.random.one_in(3) {
            self.maintain(2);
        }
    }

    fn judge_visits(&self, name: Name, start: &History, visits: &Visits) {
        if visits.changed.contains(&name) {
            return;
        }
        let times = visits.times.get(&name).copied().unwrap_or(0);
        let certain = self.is_certain(start);
        if times > 1 || (times == 0 && certain) {
            self.fail(name, &format!("a scan visited it {times} times"));
        }
    }

    fn is_certain(&self, history: &History) -> bool {
        history.current().iter().all(|state| self.visibility(*state) == Visibility::Always)
    }

    /// Compares counts with the model, of what has ended with some leeway: it counts until it is
    /// dropped. Of caches nothing is certain.
    pub(crate) fn check_counts(&self) {
        if !self.ever_evicted {
            // A key that looks like another in the index is counted once its note is settled.
            let is_there = |history: &History| !self.plan.collides && self.is_certain(history);
            self.compare_counts(&is_there, &|history| {
                history.current().iter().any(Option::is_some)
            });
        }
    }

    /// The same once all that ends has ended and was dropped, and notes are settled.
    pub(crate) fn check_counts_exactly(&self) {
        if !self.ever_evicted {
            self.compare_counts(&|history| self.is_certain(history), &|history| {
                let mut states = history.current().iter();
                states.any(|state| self.visibility(*state) != Visibility::Never)
            });
        }
    }

    fn compare_counts(
        &self,
        is_there: &dyn Fn(&History) -> bool,
        may_be_there: &dyn Fn(&History) -> bool,
    ) {
        for (space, partition) in
            SPACES.into_iter().flat_map(|space| (0..PARTITIONS).map(move |number| (space, number)))
        {
            let concerned = |name: Name| name.is_in(space, Some(partition));
            let histories = || {
                let names = self.model.iter().filter(|(name, _)| concerned(**name));
                names.map(|(_, history)| history)
            };
            let least = histories().filter(|history| is_there(history)).count() as u64;
            let most = histories().filter(|history| may_be_there(history)).count() as u64;
            let count = self.store().count_partition(SpaceId(space), partition);
            if !(least..=most).contains(&count) {
                let what = format!("{count} entries in partition {partition} of space {space}");
                self.fail_of(&concerned, &format!("{what}, expected {least} to {most}"));
            }
        }
    }
}
