//! The demo's crash: writers that note every acknowledgement, a `kill -9` in their middle, and the
//! check that no acknowledged put is gone.
//!
//! Each writer overwrites keys of its own with numbered values. After the crash a key must hold a
//! put from the last acknowledged one to the last one sent, whole.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use entresol_workload::{Random, Values, key_bytes};

use crate::address::Address;
use crate::bench::driver::Shared;
use crate::client::{Client, Reply};
use crate::failure::{Failure, Outcome};
use crate::progress;
use crate::service::Service;

/// What one writer knows of its keys: those from `first`, `step` apart.
pub(super) struct Ledger {
    first: u64,
    step: u64,
    acknowledged: Vec<u64>,
    sent: Vec<u64>,
}

/// What a crash left to check.
pub(super) struct Crashed {
    /// One for each writer.
    pub(super) ledgers: Vec<Ledger>,
    /// Puts that were acknowledged while the server lived.
    pub(super) acknowledged: u64,
    /// Puts that were sent and not answered.
    pub(super) unanswered: u64,
}

/// What the check found.
#[derive(Debug, Default)]
pub(super) struct Checked {
    /// Keys read.
    pub(super) keys: u64,
    /// Keys that were overwritten before the crash.
    pub(super) overwritten: u64,
    /// Keys whose unanswered put is there: allowed, not promised.
    pub(super) newer: u64,
    /// Keys that are gone, older than acknowledged, foreign or changed.
    pub(super) lost: u64,
    /// The first of them.
    pub(super) first_problem: Option<String>,
}

const WRITERS: u64 = 2;
const IN_FLIGHT: usize = 64;
/// Bytes of each value.
pub(super) const VALUE_BYTES: usize = 1_700;

/// Overwrites keys below `keys` for `time`, then kills the server in the middle of it.
pub(super) fn write_and_kill(
    service: Service,
    shared: &Shared,
    keys: u64,
    time: Duration,
) -> Outcome<Crashed> {
    let address = service.address().clone();
    let count = AtomicU64::new(0);
    let killed = AtomicBool::new(false);
    let ledgers = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|number| {
                let (address, count, killed) = (&address, &count, &killed);
                scope.spawn(move || {
                    let mut ledger = Ledger::new(number, WRITERS, keys);
                    let ended = ledger.write(address, &shared.values, count);
                    match ended {
                        Err(failure) if !killed.load(Ordering::SeqCst) => Err(failure),
                        _ => Ok(ledger),
                    }
                })
            })
            .collect();
        std::thread::sleep(time);
        killed.store(true, Ordering::SeqCst);
        let ended = service.kill();
        let mut ledgers = Vec::new();
        for writer in writers {
            match writer.join() {
                Ok(ledger) => ledgers.push(ledger?),
                Err(_) => return Err(Failure::Failed("a writer panicked".into())),
            }
        }
        ended.map(|()| ledgers)
    })?;
    let unanswered = ledgers.iter().map(Ledger::unanswered).sum();
    Ok(Crashed { ledgers, acknowledged: count.load(Ordering::Relaxed), unanswered })
}

/// Reads every key and compares it with the ledgers.
pub(super) fn check(service: &Service, shared: &Shared, crashed: &Crashed) -> Outcome<Checked> {
    let total: u64 = crashed.ledgers.iter().map(|l| l.sent.len() as u64).sum();
    let bar = progress::bar("checking every record", total);
    let checked = std::thread::scope(|scope| {
        let readers: Vec<_> = crashed
            .ledgers
            .iter()
            .map(|ledger| {
                let bar = &bar;
                scope.spawn(move || ledger.check(service.address(), &shared.values, bar))
            })
            .collect();
        let mut all = Checked::default();
        for reader in readers {
            match reader.join() {
                Ok(checked) => all.merge(checked?),
                Err(_) => return Err(Failure::Failed("a reader panicked".into())),
            }
        }
        Ok(all)
    });
    bar.finish_and_clear();
    checked
}

impl Ledger {
    fn new(first: u64, step: u64, keys: u64) -> Ledger {
        let own = (keys - first).div_ceil(step) as usize;
        Ledger { first, step, acknowledged: vec![0; own], sent: vec![0; own] }
    }

    fn id(&self, place: usize) -> u64 {
        self.first + place as u64 * self.step
    }

    fn unanswered(&self) -> u64 {
        let pairs = self.sent.iter().zip(&self.acknowledged);
        pairs.filter(|(sent, acknowledged)| sent > acknowledged).count() as u64
    }

    /// Puts until the connection fails.
    fn write(&mut self, address: &Address, values: &Values, count: &AtomicU64) -> Outcome<()> {
        let mut client = Client::connect(address)?;
        let mut random = Random::new(self.first + 77);
        let mut value = vec![0; VALUE_BYTES];
        let mut pending = std::collections::VecDeque::new();
        let mut put = 0;
        loop {
            while pending.len() < IN_FLIGHT {
                put += 1;
                let place = random.below(self.sent.len() as u64) as usize;
                values.fill(self.id(place), put, &mut value);
                client.gather(&[b"SET", &key_bytes(self.id(place)), &value]);
                self.sent[place] = put;
                pending.push_back((place, put));
            }
            let mut refused = None;
            client.receive(IN_FLIGHT / 4, &mut |reply| {
                let Some((place, put)) = pending.pop_front() else { return };
                match reply {
                    Reply::Simple(_) => {
                        self.acknowledged[place] = put;
                        count.fetch_add(1, Ordering::Relaxed);
                    }
                    other => refused = Some(format!("a SET was answered {other:?}")),
                }
            })?;
            if let Some(sentence) = refused {
                return Err(Failure::Failed(sentence));
            }
        }
    }

    fn check(
        &self,
        address: &Address,
        values: &Values,
        bar: &indicatif::ProgressBar,
    ) -> Outcome<Checked> {
        let mut client = Client::connect(address)?;
        let mut checked = Checked::default();
        let (mut asked, mut answered) = (0, 0);
        while answered < self.sent.len() {
            while asked < self.sent.len() && asked - answered < IN_FLIGHT {
                client.gather(&[b"GET", &key_bytes(self.id(asked))]);
                asked += 1;
            }
            let at_least = ((asked - answered) / 4).max(1);
            let took = client.receive(at_least, &mut |reply| {
                self.judge(answered, &reply, values, &mut checked);
                answered += 1;
            })?;
            bar.inc(took as u64);
        }
        Ok(checked)
    }

    fn judge(&self, place: usize, reply: &Reply<'_>, values: &Values, checked: &mut Checked) {
        let id = self.id(place);
        let (acknowledged, sent) = (self.acknowledged[place], self.sent[place]);
        checked.keys += 1;
        checked.overwritten += u64::from(acknowledged > 0);
        let found = match reply {
            Reply::Bulk(value) => values.verify(id, VALUE_BYTES, value).map_err(|e| e.to_string()),
            other => Err(format!("GET of key {id} was answered {other:?}")),
        };
        // Puts of the load carry numbers from 2^40; a key never overwritten holds one of those.
        const LOAD_PUTS: u64 = 1 << 40;
        let good = match &found {
            Ok(put) if *put >= LOAD_PUTS => acknowledged == 0,
            Ok(put) => (acknowledged..=sent).contains(put) && *put > 0,
            Err(_) => false,
        };
        if good {
            let newer = matches!(&found, Ok(put) if *put < LOAD_PUTS && *put > acknowledged);
            checked.newer += u64::from(newer);
            return;
        }
        checked.lost += 1;
        if checked.first_problem.is_none() {
            let what = found.map_or_else(|e| e, |put| format!("key {id} holds put {put}"));
            checked.first_problem =
                Some(format!("{what}; acknowledged {acknowledged}, sent {sent}"));
        }
    }
}

impl Checked {
    fn merge(&mut self, other: Checked) {
        self.keys += other.keys;
        self.overwritten += other.overwritten;
        self.newer += other.newer;
        self.lost += other.lost;
        self.first_problem = self.first_problem.take().or(other.first_problem);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_may_hold_what_was_acknowledged_or_sent_after_and_nothing_else() {
        let values = Values::new(1);
        let load = (1 << 40) + 5;
        // (acknowledged, sent, put found, whether it is right)
        let cases = [
            (0, 0, load, true),
            (0, 3, load, true),
            (0, 3, 3, true),
            (2, 3, 2, true),
            (2, 3, 3, true),
            (2, 3, 1, false),
            (2, 3, load, false),
            (2, 3, 4, false),
        ];
        for (acknowledged, sent, put, right) in cases {
            let mut ledger = Ledger::new(0, 1, 1);
            ledger.acknowledged[0] = acknowledged;
            ledger.sent[0] = sent;
            let mut value = vec![0; VALUE_BYTES];
            values.fill(0, put, &mut value);
            let mut checked = Checked::default();
            ledger.judge(0, &Reply::Bulk(&value), &values, &mut checked);
            assert_eq!(checked.lost == 0, right, "{acknowledged} {sent} {put}");
        }
        let mut checked = Checked::default();
        Ledger::new(0, 1, 1).judge(0, &Reply::Null, &values, &mut checked);
        assert_eq!(checked.lost, 1);
    }
}
