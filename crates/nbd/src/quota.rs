//! What a client makes the server hold, and whether it may make it hold more.
//!
//! Held are requests that the volume has not answered, with their payloads or room for their
//! answers; a payload on its way; and what the client is owed and has not taken. Whoever has no
//! room waits until there is as much as the next request needs: no sooner, or the event loop would
//! turn without an end.

/// Most requests of a client in flight.
const REQUESTS_MAX: usize = 256;
/// Most bytes held for a client: payloads, room for answers, answers not sent.
const BYTES_MAX: usize = 64 << 20;
/// Most bytes held for all clients; past it each has one request at a time.
const BYTES_ALL: usize = 512 << 20;

/// What one client makes the server hold.
#[derive(Debug, Default)]
pub(crate) struct Quota {
    /// Requests in flight.
    requests: usize,
    /// Bytes of those.
    bytes: usize,
    /// Bytes of all that the total counts.
    counted_bytes: usize,
    /// What the next request needs, if it found no room.
    wanted_bytes: usize,
}

impl Quota {
    /// Requests in flight.
    pub(crate) fn requests(&self) -> usize {
        self.requests
    }

    /// Whether a request of `bytes` may be begun, with so many `owed` to the client and held for
    /// all. If not, [`Quota::may_go_on`] says when.
    pub(crate) fn admits(&mut self, bytes: usize, owed: usize, held_by_all: usize) -> bool {
        self.wanted_bytes = bytes;
        self.may_go_on(owed, held_by_all)
    }

    /// Whether there is room for what was asked of [`Quota::admits`] last.
    pub(crate) fn may_go_on(&self, owed: usize, held_by_all: usize) -> bool {
        let wanted = self.wanted_bytes;
        let fits = self.bytes + owed + wanted <= BYTES_MAX && held_by_all + wanted <= BYTES_ALL;
        let is_alone = self.requests == 0 && owed == 0;
        self.requests < REQUESTS_MAX && (fits || is_alone)
    }

    /// Whether there is room for more replies to one who has asked for nothing of a volume.
    pub(crate) fn may_be_told(&mut self, owed: usize) -> bool {
        // Shaking hands holds nothing else, so that others' requests do not stand in its way.
        self.admits(0, owed, 0)
    }

    /// A request of `bytes` is in flight.
    pub(crate) fn begin(&mut self, bytes: usize) {
        self.requests += 1;
        self.bytes += bytes;
    }

    /// A request of `bytes` is answered.
    pub(crate) fn end(&mut self, bytes: usize) {
        self.requests -= 1;
        self.bytes -= bytes;
    }

    /// Brings the total up to date: `beside` are the bytes owed and on their way.
    pub(crate) fn count(&mut self, beside: usize, held_by_all: &mut usize) {
        let held = self.bytes + beside;
        *held_by_all = *held_by_all + held - self.counted_bytes;
        self.counted_bytes = held;
    }

    /// Takes a client that has gone out of the total, but for its requests in flight: their bytes
    /// are held until the volume answers, who counts them out then.
    pub(crate) fn leave(&mut self, held_by_all: &mut usize) {
        self.count(0, held_by_all);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    /// A client that found no room for a large request was looked at again whenever it had room
    /// for any: the event loop turned without a pause until its volume had answered the others.
    #[test]
    fn who_finds_no_room_goes_on_when_there_is_room_for_what_it_wants() {
        let mut quota = Quota::default();
        for _ in 0..2 {
            assert!(quota.admits(32 * MIB, 0, 0));
            quota.begin(32 * MIB);
        }
        assert!(!quota.admits(32 * MIB, 0, 64 * MIB));
        assert!(!quota.may_go_on(0, 64 * MIB), "it has room for nothing but small requests");
        quota.end(32 * MIB);
        assert!(!quota.may_go_on(32 * MIB, 64 * MIB), "the answer is not taken");
        assert!(quota.may_go_on(0, 32 * MIB));
    }

    /// Past the total, a client that took no answers could have 64 MiB of them waiting.
    #[test]
    fn past_the_total_a_client_has_one_request_at_a_time_its_answer_included() {
        let mut quota = Quota::default();
        assert!(quota.admits(MIB, 0, BYTES_ALL), "each has one");
        quota.begin(MIB);
        assert!(!quota.admits(MIB, 0, BYTES_ALL + MIB));
        quota.end(MIB);
        assert!(!quota.may_go_on(MIB, BYTES_ALL + MIB), "the answer is not taken");
        assert!(quota.may_go_on(0, BYTES_ALL));
    }

    /// Clients that broke off and came again could hold any number of requests that their volume
    /// had not answered.
    #[test]
    fn requests_of_a_client_that_has_gone_stay_in_the_total() {
        let (mut quota, mut all) = (Quota::default(), 7);
        quota.begin(5 * MIB);
        quota.count(3 * MIB, &mut all);
        assert_eq!(all, 7 + 8 * MIB);
        quota.leave(&mut all);
        assert_eq!(all, 7 + 5 * MIB);
    }
}
