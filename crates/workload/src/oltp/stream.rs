//! The request stream: contexts of business scaling units (BSUs), each of eight streams with
//! arrivals of their own, drawn in the order of their times.
//!
//! All contexts draw from one generator of random numbers, so the stream depends on the order in
//! which contexts are asked. [`RequestStream::next`] always asks the context whose request is due
//! first; [`RequestStream::next_of`] asks a single context, as recorded traces do.

use super::layout::Layout;
use super::lrand48::Lrand48;
use super::request::{Asu, Operation, Request, TICKS_PER_SECOND};
use super::walk::{Region, Walker};

/// How the hot regions are walked; the generator's three ages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// The oldest: walkers start at multiples of eight blocks, writes fall on the next block.
    Classic,
    /// Walkers share leaves that lie at the same places.
    Fixed,
    /// Walkers share the whole region.
    V2,
}

/// How many of the requests read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mix {
    /// 75 % on the data store and 60 % on the user store, as pblio has it: 55 % overall.
    Pblio,
    /// 50 % and 30 %: 39 % overall, and nothing of the start is thrown away.
    Original,
}

/// All that the stream depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Configuration {
    /// Sizes of the units.
    pub layout: Layout,
    /// Business scaling units, each about 50 requests a second; at least 1.
    pub bsus: u64,
    /// Contexts that the BSUs are dealt to; 1 to `bsus`.
    pub contexts: u64,
    /// How hot regions are walked.
    pub style: Style,
    /// How many of the requests read.
    pub mix: Mix,
    /// `None`: the stream of a generator that nobody seeded.
    pub seed: Option<u64>,
}

/// Requests without end.
#[derive(Debug, Clone)]
pub struct RequestStream {
    random: Lrand48,
    contexts: Vec<Context>,
    /// What each context was asked for and has not handed out yet.
    heads: Vec<Option<Request>>,
}

impl Configuration {
    /// As many contexts as the original runs for `bsus`: one for each hundred begun.
    pub fn contexts_for(bsus: u64) -> u64 {
        bsus.div_ceil(100)
    }

    /// Requests a second that are asked for.
    pub fn requests_per_second(&self) -> u64 {
        self.bsus * 50
    }
}

impl RequestStream {
    /// The stream from its start.
    pub fn new(configuration: &Configuration) -> RequestStream {
        let Configuration { bsus, contexts, .. } = *configuration;
        assert!((1..=bsus).contains(&contexts), "each context has at least one BSU");
        let mut random = match configuration.seed {
            None => Lrand48::unseeded(),
            Some(seed) => Lrand48::seeded(seed),
        };
        let contexts: Vec<Context> = (0..contexts)
            .map(|number| {
                let own = bsus / contexts + u64::from(number < bsus % contexts);
                let mut context = Context::new(configuration, own);
                context.start(&mut random);
                context
            })
            .collect();
        let heads = vec![None; contexts.len()];
        RequestStream { random, contexts, heads }
    }

    /// The request that is due next in any context.
    #[expect(clippy::should_implement_trait, reason = "an endless stream is no iterator")]
    pub fn next(&mut self) -> Request {
        for (context, head) in self.contexts.iter_mut().zip(&mut self.heads) {
            if head.is_none() {
                *head = Some(context.next(&mut self.random));
            }
        }
        let due = |head: &Option<Request>| head.map_or(u64::MAX, |request| request.due);
        let earliest = self.heads.iter_mut().min_by_key(|head| due(head));
        earliest.and_then(Option::take).expect("each context was just asked for a request")
    }

    /// The next request of `context`, counted from 0.
    pub fn next_of(&mut self, context: usize) -> Request {
        match self.heads[context].take() {
            Some(request) => request,
            None => self.contexts[context].next(&mut self.random),
        }
    }
}

/// Streams that share hot regions, in a heap by the time of their next request.
#[derive(Debug, Clone)]
struct Context {
    layout: Layout,
    style: Style,
    mix: Mix,
    regions: [Region; 3],
    heap: Vec<Stream>,
}

/// One stream and its next request.
#[derive(Debug, Clone)]
struct Stream {
    kind: u8,
    /// 0: not started.
    due: u64,
    operation: Operation,
    blocks: u64,
    position: u64,
    end: u64,
    walker: Walker,
}

/// What a stream does.
#[derive(Debug, Clone, Copy)]
enum Access {
    Uniform,
    /// Over the hot region of this number.
    Walk(usize),
    /// Runs that start within one part of the unit and are as long as another, both percent: the
    /// first block, the room for starts, the length.
    Sequential(u64, u64, u64),
}

/// The eight kinds: unit, share of the requests, access.
const KINDS: [(Asu, f64, Access); 8] = [
    (Asu::Data, 0.035, Access::Uniform),
    (Asu::Data, 0.281, Access::Walk(0)),
    (Asu::Data, 0.070, Access::Sequential(20, 40, 10)),
    (Asu::Data, 0.210, Access::Walk(1)),
    (Asu::User, 0.018, Access::Uniform),
    (Asu::User, 0.070, Access::Walk(2)),
    (Asu::User, 0.035, Access::Sequential(20, 40, 10)),
    (Asu::Log, 0.281, Access::Sequential(0, 70, 30)),
];

/// Lengths of sequential requests, blocks, one as likely as the other.
const LENGTHS: [u64; 25] =
    [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 4, 4, 4, 4, 4, 8, 8, 16, 16];

impl Context {
    fn new(configuration: &Configuration, bsus: u64) -> Context {
        let Configuration { layout, style, mix, .. } = *configuration;
        let region = |asu, start| {
            let blocks = layout.generated_blocks(asu);
            Region::new(style, percent(blocks, start), blocks / 20)
        };
        let regions = [region(Asu::Data, 15), region(Asu::Data, 70), region(Asu::User, 47)];
        let heap = (0..bsus).flat_map(|_| (0..8).map(Stream::new)).collect();
        Context { layout, style, mix, regions, heap }
    }

    fn start(&mut self, random: &mut Lrand48) {
        match self.mix {
            // The first request is drawn and thrown away.
            Mix::Pblio => drop(self.next(random)),
            Mix::Original => {
                for _ in 0..self.heap.len() {
                    self.step(random);
                }
            }
        }
    }

    fn next(&mut self, random: &mut Lrand48) -> Request {
        loop {
            if let Some(request) = self.step(random) {
                return request;
            }
        }
    }

    /// Takes the request of the stream that is first, if it has started, and prepares its next.
    fn step(&mut self, random: &mut Lrand48) -> Option<Request> {
        let (asu, _, access) = KINDS[usize::from(self.heap[0].kind)];
        let stream = &mut self.heap[0];
        let request = (stream.due != 0).then(|| {
            if let Access::Walk(region) = access {
                let region = &mut self.regions[region];
                let walker = &mut stream.walker;
                stream.position = region.step(walker, stream.position, stream.operation, random);
            }
            Request {
                asu,
                operation: stream.operation,
                blocks: stream.blocks,
                stream: stream.kind,
                position: stream.position / self.layout.multiplier(asu),
                due: stream.due,
            }
        });
        self.prepare(random);
        self.sift_down();
        request
    }

    /// Draws the first stream's next request. The order of the draws is the original's.
    fn prepare(&mut self, random: &mut Lrand48) {
        let (asu, share, access) = KINDS[usize::from(self.heap[0].kind)];
        let blocks = self.layout.generated_blocks(asu);
        let mix = self.mix;
        let stream = &mut self.heap[0];
        match access {
            Access::Uniform => {
                stream.due += interval(share, random);
                stream.operation = draw_operation(mix, asu, random);
                stream.blocks = 1;
                stream.position = random.below(blocks);
                if asu == Asu::User && self.style != Style::Classic {
                    stream.position &= !1;
                }
            }
            Access::Walk(region) => {
                if stream.due == 0 {
                    stream.position = self.regions[region].enter(&mut stream.walker, random);
                }
                stream.due += interval(share, random);
                stream.operation = draw_operation(mix, asu, random);
                stream.blocks = 1;
            }
            Access::Sequential(first, room, length) => {
                stream.operation = if asu == Asu::Log { Operation::Write } else { Operation::Read };
                stream.position += stream.blocks;
                stream.blocks = LENGTHS[random.below(LENGTHS.len() as u64) as usize];
                if stream.due == 0 || stream.position + stream.blocks >= stream.end {
                    stream.position = percent(blocks, first) + random.below(percent(blocks, room));
                    stream.end = stream.position + percent(blocks, length);
                    if self.style == Style::Classic {
                        stream.position &= !15;
                        stream.end &= !15;
                    }
                }
                stream.due += interval(share, random);
            }
        }
    }

    /// Lets the root sink to its place; ties favour the left child.
    fn sift_down(&mut self) {
        let mut at = 0;
        loop {
            let (left, right) = (2 * at + 1, 2 * at + 2);
            let due = |index: usize| self.heap.get(index).map_or(u64::MAX, |stream| stream.due);
            if due(at) <= due(left) && due(at) <= due(right) {
                return;
            }
            let child = if due(left) <= due(right) { left } else { right };
            self.heap.swap(at, child);
            at = child;
        }
    }
}

impl Stream {
    fn new(kind: u8) -> Stream {
        Stream {
            kind,
            due: 0,
            operation: Operation::Read,
            blocks: 0,
            position: 0,
            end: 0,
            walker: Walker::default(),
        }
    }
}

/// Ticks to a stream's next request: exponential around the inverse of its rate. The order of the
/// arithmetic is the original's, since it is rounded.
fn interval(share: f64, random: &mut Lrand48) -> u64 {
    let drawn = random.fraction().max(1e-8);
    (-drawn.ln() * (1.0 / (50.0 * share)) * TICKS_PER_SECOND as f64 + 0.5) as u64
}

fn draw_operation(mix: Mix, asu: Asu, random: &mut Lrand48) -> Operation {
    let reads = match (mix, asu) {
        (Mix::Pblio, Asu::Data) => random.below(100) < 75,
        (Mix::Pblio, _) => random.below(100) < 60,
        (Mix::Original, Asu::Data) => random.below(10) < 5,
        (Mix::Original, _) => random.below(10) < 3,
    };
    if reads { Operation::Read } else { Operation::Write }
}

fn percent(blocks: u64, percent: u64) -> u64 {
    (blocks as f64 * (percent as f64 / 100.0)) as u64
}
