//! Tables that are used as queues: rows come at one end and go at the other.

use entresol_flash::Durability;
use entresol_tree::Order;

use crate::open::{Bounds, Open};
use crate::seeds;
use crate::world::World;

const ROUNDS: usize = 10;
const PUSHES: u64 = 1200;
/// Rows that a queue has at least.
const DEPTH: u64 = 150;

/// What a round cost.
#[derive(Debug, Clone, Copy, Default)]
struct Cost {
    pages_read: u64,
    pages_written: u64,
    bytes_written: u64,
}

impl Cost {
    fn so_far(world: &World) -> Cost {
        let Some(Open { tree, .. }) = &world.open else { unreachable!() };
        let all = tree.statistics();
        Cost {
            pages_read: all.get_reads + all.merge_reads,
            pages_written: all.leaf_writes + all.delta_writes + all.node_writes,
            bytes_written: all.page_bytes,
        }
    }

    fn since(self, before: Cost) -> [u64; 3] {
        [
            self.pages_read - before.pages_read,
            self.pages_written - before.pages_written,
            self.bytes_written - before.bytes_written,
        ]
    }
}

fn directory_bytes(world: &World) -> u64 {
    let Some(Open { tree, .. }) = &world.open else { unreachable!() };
    tree.statistics().directory_bytes
}

/// Pushes rows at the upper end, and pops as many at the lower one.
fn turn(world: &mut World, next: &mut u64) {
    let key = |number: u64| number.to_be_bytes().to_vec();
    let numbers = *next..*next + 6;
    *next = numbers.end;
    let rows: Vec<_> = numbers.map(|number| (key(number), Some(vec![7; 30]))).collect();
    world.put_all(0, &rows, Durability::Memory).expect("pushes");
    if *next > DEPTH {
        let bounds = Bounds { low: b"", high: None, limit: 6, order: Order::Ascending };
        let first = world.scan(0, bounds).expect("the first rows");
        assert_eq!(first.len(), 6, "the queue has rows");
        assert_eq!(first[0].0, key(*next - DEPTH - 6), "and they come in order");
        let pops: Vec<_> = first.into_iter().map(|(key, _)| (key, None)).collect();
        world.put_all(0, &pops, Durability::Memory).expect("pops");
    }
    world.maintain(1).expect("maintenance");
}

/// Leaves and inner nodes of rows that were popped are absorbed: without that each round would
/// leave more of them behind.
#[test]
fn a_queue_costs_the_same_however_long_it_runs() {
    let mut world = World::new(1);
    world.cache_bytes = Some(0);
    world.open().expect("a world");
    let mut next = 0;
    while next < DEPTH {
        turn(&mut world, &mut next);
    }
    next = DEPTH;
    let (mut costs, mut memory) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let (before, end) = (Cost::so_far(&world), next + PUSHES);
        while next < end {
            turn(&mut world, &mut next);
        }
        costs.push(Cost::so_far(&world).since(before));
        memory.push(directory_bytes(&world));
    }
    println!("pages read, pages written, bytes written: {costs:?}; memory {memory:?}");
    // The first rounds fill the first nodes.
    let (early, last) = (costs[2], costs[ROUNDS - 1]);
    for (early, last) in early.into_iter().zip(last) {
        assert!(last * 10 <= early * 11, "{last} in the last round, {early} in the third");
    }
    let most = memory[1..4].iter().max().copied().unwrap_or_default();
    assert!(memory[ROUNDS - 1] <= most * 11 / 10, "{memory:?}");
    world.settle_and_close().expect("a world that closes");
    world.open().expect("a world");
    world.check_prefix().expect("all rows");
}

/// A scan that begins where rows began before sees rows that came beyond that since.
#[test]
fn both_ends_of_a_table_are_where_its_rows_are() {
    for seed in seeds(6) {
        eprintln!("ENTRESOL_SEED={seed}");
        let mut world = World::new(seed);
        world.open().expect("a world");
        let (mut low, mut high) = (1_000_000_u64, 1_000_000_u64);
        for _ in 0..800 {
            let number = match world.random.below(4) {
                0 => {
                    low -= 1 + world.random.below(3);
                    low
                }
                1 => {
                    high += 1 + world.random.below(3);
                    high
                }
                _ => low + world.random.below(high - low + 1),
            };
            let row = (number.to_be_bytes().to_vec(), Some(vec![7; 20]));
            world.put_all(0, &[row], Durability::Memory).expect("a put");
            let ends = (0..world.random.below(3)).map(|_| world.random.below(2));
            for end in ends.collect::<Vec<_>>() {
                let order = if end == 0 { Order::Ascending } else { Order::Descending };
                let limit = 1 + world.random.below(3) as usize;
                let bounds = Bounds { low: b"", high: None, limit, order };
                let found = world.scan(0, bounds).expect("rows at an end");
                let [rows, ..] = world.model(world.history.len());
                let keys = rows.keys().cloned();
                let expected: Vec<Vec<u8>> = match order {
                    Order::Ascending => keys.take(limit).collect(),
                    Order::Descending => keys.rev().take(limit).collect(),
                };
                let found: Vec<Vec<u8>> = found.into_iter().map(|(key, _)| key).collect();
                assert_eq!(found, expected);
                let pops: Vec<_> = found.into_iter().map(|key| (key, None)).collect();
                if !pops.is_empty() {
                    world.put_all(0, &pops, Durability::Memory).expect("pops");
                }
            }
            if world.random.below(4) == 0 {
                world.maintain(2).expect("maintenance");
            }
        }
        world.durable = world.history.len();
        world.check_prefix().expect("all rows");
    }
}
