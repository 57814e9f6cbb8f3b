//! The memory of all tables' pending changes: blocks, cut into cells of equal size.
//!
//! A block belongs to one class of sizes while it has live cells. Once it has none, it goes back:
//! to a few spare blocks, then to the process. A freed cell is used again before a block is
//! opened, so what the arena takes follows the peak of each class, not the number of changes that
//! ever were. A class that falls out of use keeps its blocks until their last cells go.
//!
//! A cell's name is a number of four bytes. The arena does not know what is in a cell; whoever
//! frees one must own it. Cells are not cleared.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use entresol_device::ArenaPiece;

/// What the arena takes from the process, and gives back, at a time.
pub const BLOCK_BYTES: usize = 64 << 10;
/// Cells begin at multiples of it.
const GRAIN_BYTES: usize = 8;
const GRAINS: usize = BLOCK_BYTES / GRAIN_BYTES;
/// Blocks that a cell's name can tell apart; the last one would hold `Cell::NONE`.
const BLOCKS_MAX: usize = (1 << 32) / GRAINS - 1;
/// Empty blocks that stay: changes that come and go at the edge of a block cost no zeroed memory.
const SPARE_BLOCKS: usize = 4;
/// Ends lists of blocks.
const NO_BLOCK: u32 = u32::MAX;
/// Ends a block's list of freed cells.
const NO_GRAIN: u16 = u16::MAX;

/// How many large cells a block has: sizes that leave little of a block over.
const LARGE: [usize; 21] =
    [56, 50, 44, 40, 36, 32, 28, 25, 22, 20, 18, 16, 14, 13, 12, 11, 10, 9, 8, 7, 6];
/// Sizes of cells: steps of 8 bytes, from 128 bytes on of an eighth to a sixteenth.
pub const CLASSES: usize = 39 + LARGE.len();
const SIZES: [usize; CLASSES] = sizes();
const CELL_BYTES_MAX: usize = SIZES[CLASSES - 1];
/// The smallest class for a number of grains.
const CLASS_OF: [u8; CELL_BYTES_MAX / GRAIN_BYTES + 1] = classes();

const fn sizes() -> [usize; CLASSES] {
    let mut sizes = [0; CLASSES];
    let mut size: usize = 16;
    let mut class = 0;
    while size <= 1024 {
        sizes[class] = size;
        class += 1;
        size += if size < 128 { 8 } else { (1 << size.ilog2()) / 8 };
    }
    let mut large = 0;
    while large < LARGE.len() {
        sizes[class] = BLOCK_BYTES / LARGE[large] / GRAIN_BYTES * GRAIN_BYTES;
        class += 1;
        large += 1;
    }
    assert!(class == CLASSES);
    sizes
}

const fn classes() -> [u8; CELL_BYTES_MAX / GRAIN_BYTES + 1] {
    let mut classes = [0; CELL_BYTES_MAX / GRAIN_BYTES + 1];
    let mut class = 0;
    let mut grains = 0;
    while grains < classes.len() {
        if grains * GRAIN_BYTES > SIZES[class] {
            class += 1;
        }
        classes[grains] = class as u8;
        grains += 1;
    }
    classes
}

/// The arena has no room below its cap: changes must be merged first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full {
    /// The arena's cap.
    pub cap_bytes: u64,
}

impl fmt::Display for Full {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.cap_bytes;
        write!(formatter, "pending changes fill their {bytes} bytes of memory; merge some first")
    }
}

impl Error for Full {}

/// The name of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cell(u32);

impl Cell {
    /// No cell.
    pub(super) const NONE: Cell = Cell(u32::MAX);

    fn at(block: u32, grain: u16) -> Cell {
        Cell(block * GRAINS as u32 + u32::from(grain))
    }

    fn block(self) -> usize {
        self.0 as usize / GRAINS
    }

    fn grain(self) -> u16 {
        (self.0 as usize % GRAINS) as u16
    }

    fn start(self) -> usize {
        usize::from(self.grain()) * GRAIN_BYTES
    }

    /// As it lies in another cell.
    pub(super) fn to_bytes(self) -> [u8; 4] {
        self.0.to_le_bytes()
    }

    /// The inverse of `to_bytes`.
    pub(super) fn from_bytes(bytes: [u8; 4]) -> Cell {
        Cell(u32::from_le_bytes(bytes))
    }
}

/// What is known of a block beside its bytes.
#[derive(Clone, Copy)]
struct Block {
    class: u8,
    /// The cell freed last. Each freed cell begins with the next one's grain.
    freed: u16,
    /// From here on no cell was ever used.
    fresh: u16,
    live: u16,
    /// Neighbours in the list of blocks of the class that have room.
    previous: u32,
    next: u32,
}

/// An arena that another one has lent blocks to.
pub struct Lent {
    pub arena: Arena,
    /// The numbers that its first blocks have in the other one.
    numbers: Vec<u32>,
}

impl Lent {
    fn of(arena: Arena) -> Lent {
        Lent { arena, numbers: Vec::new() }
    }

    fn push(&mut self, number: u32, block: Block, memory: Option<ArenaPiece>) {
        let Lent { arena, numbers } = self;
        numbers.push(number);
        arena.memory.push(memory);
        arena.blocks.push(block);
        arena.taken += 1;
        arena.link(arena.blocks.len() as u32 - 1);
    }
}

/// What cells of an arena that was lent are named now.
pub struct Names(Vec<u32>);

impl Names {
    /// The name of a cell that was named `cell`.
    pub(super) fn of(&self, cell: Cell) -> Cell {
        Cell::at(self.0[cell.block()], cell.grain())
    }
}

/// The memory of all tables' pending changes, up to a cap.
pub struct Arena {
    /// Where blocks have their bytes, once there is one. A block that goes back leaves no hole in
    /// the heap of the process, which would keep it.
    room: Option<Arc<entresol_device::Arena>>,
    /// The bytes of each block; none for a number that has no memory now.
    memory: Vec<Option<ArenaPiece>>,
    blocks: Vec<Block>,
    /// For each class the first block that has room.
    roomy: [u32; CLASSES],
    /// Blocks with memory and without a class.
    spare: Vec<u32>,
    /// Numbers of blocks without memory.
    vacant: Vec<u32>,
    taken: usize,
    bytes_in_use: u64,
    cap_bytes: u64,
}

impl Arena {
    /// With fewer bytes some sizes of cells may have no block.
    pub const LEAST_BYTES: u64 = ((CLASSES + SPARE_BLOCKS) * BLOCK_BYTES) as u64;

    /// An empty arena. Blocks of `cap_bytes` are taken at most; a cap should leave each class in
    /// use a block, four megabytes in all, and a share for what lies between.
    pub fn new(cap_bytes: u64) -> Arena {
        Arena {
            room: None,
            memory: Vec::new(),
            blocks: Vec::new(),
            roomy: [NO_BLOCK; CLASSES],
            spare: Vec::new(),
            vacant: Vec::new(),
            taken: 0,
            bytes_in_use: 0,
            cap_bytes,
        }
    }

    /// Bytes of all blocks that the arena holds. The list of blocks adds a thousandth to it.
    pub fn bytes_taken(&self) -> u64 {
        (self.taken * BLOCK_BYTES) as u64
    }

    /// Bytes of all cells in use, with what their contents leave over of them.
    pub fn bytes_in_use(&self) -> u64 {
        self.bytes_in_use
    }

    /// The largest value of `bytes_taken`.
    pub fn cap_bytes(&self) -> u64 {
        self.cap_bytes
    }

    /// A cell of at least so many bytes, with arbitrary contents.
    pub(super) fn allocate(&mut self, bytes: usize) -> Result<Cell, Full> {
        let class = class_of(bytes);
        let number = match self.roomy[class] {
            NO_BLOCK => self.open(class)?,
            number => number,
        };
        let block = &mut self.blocks[number as usize];
        let grain = if block.freed == NO_GRAIN {
            let grain = block.fresh;
            block.fresh += (SIZES[class] / GRAIN_BYTES) as u16;
            grain
        } else {
            let grain = block.freed;
            let start = usize::from(grain) * GRAIN_BYTES;
            let memory = memory(&self.memory[number as usize]);
            block.freed = u16::from_le_bytes([memory[start], memory[start + 1]]);
            grain
        };
        block.live += 1;
        if usize::from(block.live) == BLOCK_BYTES / SIZES[class] {
            self.unlink(number);
        }
        self.bytes_in_use += SIZES[class] as u64;
        Ok(Cell::at(number, grain))
    }

    /// Takes a cell back.
    pub(super) fn free(&mut self, cell: Cell) {
        let number = cell.block();
        let block = &mut self.blocks[number];
        let class = usize::from(block.class);
        assert!(block.live > 0, "a cell of an empty block is freed");
        let start = cell.start();
        let next = block.freed.to_le_bytes();
        memory_mut(&mut self.memory[number])[start..start + 2].copy_from_slice(&next);
        block.freed = cell.grain();
        block.live -= 1;
        let live = usize::from(block.live);
        self.bytes_in_use -= SIZES[class] as u64;
        if live + 1 == BLOCK_BYTES / SIZES[class] {
            self.link(number as u32);
        }
        if live == 0 {
            self.unlink(number as u32);
            self.retire(number as u32);
        }
    }

    /// Arenas for `parts` threads, which go on in the blocks that have room. What these blocks
    /// have is there again once all are taken back.
    pub fn lend(&mut self, parts: usize) -> Vec<Lent> {
        self.make_room();
        let arena = || Arena { room: self.room.clone(), ..Arena::new(self.cap_bytes) };
        let mut lent: Vec<_> = (0..parts).map(|_| Lent::of(arena())).collect();
        for class in 0..CLASSES {
            for part in (0..parts).cycle() {
                let number = self.roomy[class];
                if number == NO_BLOCK {
                    break;
                }
                self.unlink(number);
                let memory = self.memory[number as usize].take();
                lent[part].push(number, self.blocks[number as usize], memory);
                self.taken -= 1;
            }
        }
        lent
    }

    /// Takes all cells of an arena that was lent; how these are named here.
    pub fn take_back(&mut self, lent: Lent) -> Names {
        let Lent { mut arena, mut numbers } = lent;
        self.bytes_in_use += arena.bytes_in_use;
        for (at, block) in arena.blocks.iter().enumerate() {
            let memory = arena.memory[at].take();
            let known = numbers.get(at).copied();
            if block.live == 0 {
                // Nothing is in it, and its memory goes back.
                self.vacant.extend(known);
                numbers.resize(numbers.len().max(at + 1), NO_BLOCK);
                continue;
            }
            let number = known.or_else(|| self.vacant.pop()).unwrap_or(self.blocks.len() as u32);
            if number as usize == self.blocks.len() {
                self.memory.push(None);
                self.blocks.push(*block);
            }
            (self.memory[number as usize], self.blocks[number as usize]) = (memory, *block);
            self.taken += 1;
            if usize::from(block.live) < BLOCK_BYTES / SIZES[usize::from(block.class)] {
                self.link(number);
            }
            if known.is_none() {
                numbers.push(number);
            }
        }
        Names(numbers)
    }

    /// The bytes from a cell's start on; those beyond its size are not the cell's.
    pub(super) fn bytes(&self, cell: Cell) -> &[u8] {
        &memory(&self.memory[cell.block()])[cell.start()..]
    }

    /// As `bytes`.
    pub(super) fn bytes_mut(&mut self, cell: Cell) -> &mut [u8] {
        &mut memory_mut(&mut self.memory[cell.block()])[cell.start()..]
    }

    /// A cell's size.
    pub(super) fn cell_bytes(&self, cell: Cell) -> usize {
        SIZES[usize::from(self.blocks[cell.block()].class)]
    }

    /// Whether a cell for so many bytes would be as large as this one.
    pub(super) fn suits(&self, cell: Cell, bytes: usize) -> bool {
        usize::from(self.blocks[cell.block()].class) == class_of(bytes)
    }

    /// Gives a class another block.
    fn open(&mut self, class: usize) -> Result<u32, Full> {
        let number = match self.spare.pop() {
            Some(number) => number,
            None => self.take()?,
        };
        let block = &mut self.blocks[number as usize];
        block.class = class as u8;
        block.freed = NO_GRAIN;
        block.fresh = 0;
        self.link(number);
        Ok(number)
    }

    fn take(&mut self) -> Result<u32, Full> {
        let full = Full { cap_bytes: self.cap_bytes };
        if self.taken >= self.blocks_max() {
            return Err(full);
        }
        self.make_room();
        // A system without memory is as a cap that is reached.
        let memory = self.room.as_ref().and_then(|room| room.take());
        let memory = Some(memory.ok_or(full)?);
        self.taken += 1;
        if let Some(number) = self.vacant.pop() {
            self.memory[number as usize] = memory;
            return Ok(number);
        }
        self.memory.push(memory);
        let (previous, next) = (NO_BLOCK, NO_BLOCK);
        self.blocks.push(Block { class: 0, freed: NO_GRAIN, fresh: 0, live: 0, previous, next });
        Ok(self.blocks.len() as u32 - 1)
    }

    /// Most blocks that there may be.
    fn blocks_max(&self) -> usize {
        let cap = usize::try_from(self.cap_bytes).unwrap_or(usize::MAX) / BLOCK_BYTES;
        cap.min(BLOCKS_MAX)
    }

    fn make_room(&mut self) {
        if self.room.is_none() {
            self.room = entresol_device::Arena::reserve(BLOCK_BYTES, self.blocks_max()).ok();
        }
    }

    /// Takes the class from a block without live cells.
    fn retire(&mut self, number: u32) {
        if self.spare.len() < SPARE_BLOCKS {
            self.spare.push(number);
        } else {
            self.memory[number as usize] = None;
            self.vacant.push(number);
            self.taken -= 1;
        }
    }

    /// Puts a block before all others of its class that have room.
    fn link(&mut self, number: u32) {
        let class = usize::from(self.blocks[number as usize].class);
        let next = std::mem::replace(&mut self.roomy[class], number);
        let block = &mut self.blocks[number as usize];
        block.previous = NO_BLOCK;
        block.next = next;
        if next != NO_BLOCK {
            self.blocks[next as usize].previous = number;
        }
    }

    fn unlink(&mut self, number: u32) {
        let block = &self.blocks[number as usize];
        let (class, previous, next) = (usize::from(block.class), block.previous, block.next);
        match previous {
            NO_BLOCK => self.roomy[class] = next,
            _ => self.blocks[previous as usize].next = next,
        }
        if next != NO_BLOCK {
            self.blocks[next as usize].previous = previous;
        }
    }
}

fn memory(block: &Option<ArenaPiece>) -> &[u8] {
    block.as_ref().expect("a block with cells has memory").bytes()
}

fn memory_mut(block: &mut Option<ArenaPiece>) -> &mut [u8] {
    block.as_mut().expect("a block with cells has memory").bytes_mut()
}

fn class_of(bytes: usize) -> usize {
    usize::from(CLASS_OF[bytes.div_ceil(GRAIN_BYTES)])
}
