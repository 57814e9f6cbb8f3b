//! A session of ordered tables as a connection of the driver.

use std::sync::Arc;
use std::time::{Duration, Instant};

use entresol_tier::{ErrorKind, SessionOptions, Timestamp};
use entresol_tree::{
    Action, Order, Outcome as TreeOutcome, RowAt, RowRange, Session, Table, Tree, Write, WriteBatch,
};

use crate::bench::target::{Answer, Connection, Request, Span, Visit};
use crate::engine::now;
use crate::failure::Outcome;

/// The name of the table.
const TABLE: &[u8] = b"rows";
/// How long a write waits for room before it fails.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long it waits before it asks again.
const PAUSE: Duration = Duration::from_millis(1);

/// One thread's way to the rows of a table.
pub(crate) struct Rows {
    session: Session,
    table: Arc<Table>,
    now: Timestamp,
}

impl Rows {
    pub(crate) fn new(tree: &Tree, options: SessionOptions) -> Outcome<Rows> {
        let mut session = tree.session(options)?;
        let now = now();
        let table = session.table(now, TABLE)?;
        Ok(Rows { session, table, now })
    }

    /// Puts a row. While too many changes wait for merges it waits, too: their thread is at it.
    fn put(&mut self, token: u64, (key, value): (&[u8], &[u8]), visit: Visit<'_>) {
        let write = Write { table: &self.table, key, action: Action::Put(value) };
        let batch = WriteBatch { writes: &[write], durability: None };
        let mut began = None;
        loop {
            let mut is_refused = false;
            self.session.write(token, self.now, batch, &mut |token, outcome| match outcome {
                Err(error) if matches!(error.kind(), ErrorKind::Busy | ErrorKind::Full) => {
                    let began = *began.get_or_insert_with(Instant::now);
                    is_refused = began.elapsed() < PATIENCE;
                    if !is_refused {
                        visit(token, Answer::Failed(error.to_string()));
                    }
                }
                other => visit(token, answer(other)),
            });
            if !is_refused {
                return;
            }
            std::thread::sleep(PAUSE);
            self.now = now();
        }
    }
}

impl Connection for Rows {
    fn begin(&mut self, token: u64, request: Request<'_>, visit: Visit<'_>) {
        match request {
            Request::Get(key) => {
                let row = RowAt { table: &self.table, key };
                self.session.get(token, self.now, row, &mut |token, outcome| {
                    visit(token, answer(outcome));
                });
            }
            Request::Put(key, value, _) => self.put(token, (key, value), visit),
        }
    }

    fn flush(&mut self) -> Outcome<()> {
        self.now = now();
        Ok(self.session.flush()?)
    }

    fn wait(&mut self, at_least: usize, visit: Visit<'_>) -> Outcome<()> {
        self.session.poll(at_least, self.now, &mut |token, outcome| {
            visit(token, answer(outcome));
        })?;
        self.now = now();
        Ok(())
    }

    fn scan(&mut self, token: u64, span: Span<'_>, visit: Visit<'_>) -> Outcome<()> {
        let Span { key: low, limit, .. } = span;
        let range =
            RowRange { table: &self.table, low, high: None, limit, order: Order::Ascending };
        self.session.scan(token, self.now, range, &mut |token, outcome| {
            visit(token, answer(outcome));
        });
        Ok(())
    }
}

fn answer<'a>(outcome: entresol_tier::Result<TreeOutcome<'a>>) -> Answer<'a> {
    match outcome {
        Ok(TreeOutcome::Found(value)) => Answer::Value(value),
        Ok(TreeOutcome::Missing) => Answer::Missing,
        Ok(TreeOutcome::Done(_)) => Answer::Done,
        Ok(TreeOutcome::Rows(rows)) => Answer::Rows(rows.len() as u64),
        Ok(TreeOutcome::Count(rows)) => Answer::Rows(rows),
        Ok(TreeOutcome::Refused { .. }) => Answer::Failed("the condition did not hold".into()),
        Err(error) => Answer::Failed(error.to_string()),
    }
}
