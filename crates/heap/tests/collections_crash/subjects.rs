//! The collections as subjects of crashes: their changes, their models, their views.

use std::any::Any;
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Debug;
use std::ops::Bound;

use entresol_heap::collections::{
    AppendLog, Array, Deque, HashMap, LinkedList, RadixMap, RadixTree, Width,
};
use entresol_heap::{Heap, Result, Transaction};
use entresol_sim::Random;

/// A collection that crashes are survived by.
pub(crate) trait Subject: Sized {
    type Model: Clone + PartialEq + Debug;

    fn create(transaction: &mut Transaction) -> (Self, Self::Model);
    fn open(heap: &Heap, handle: u64) -> Result<Self>;
    fn handle(&self) -> u64;
    /// One random change, made to both.
    fn act(&self, transaction: &mut Transaction, model: &mut Self::Model, random: &mut Random);
    /// Everything in it, and how many blocks it has, all of them sound.
    fn contents(&self) -> Result<(Self::Model, u64)>;
    /// Something that keeps what it sees, where there is such a thing.
    fn view(&self) -> Option<Box<dyn Any>> {
        None
    }
}

type Words = BTreeMap<Vec<u8>, u64>;
type Bytes = BTreeMap<Vec<u8>, Vec<u8>>;

/// Few keys of many shapes: nodes grow to 48 and shrink again, prefixes end in them.
fn key(random: &mut Random) -> Vec<u8> {
    match random.below(3) {
        0 => vec![b'k'; random.below(6) as usize],
        1 => vec![b'k', random.below(60) as u8],
        _ => vec![b'k', b'k', random.below(6) as u8, b'x', random.below(3) as u8],
    }
}

fn value(random: &mut Random) -> Vec<u8> {
    let mut value = vec![0; random.below(60) as usize];
    random.fill(&mut value);
    value
}

fn words_in(tree: &RadixTree) -> Result<Words> {
    let view = tree.view()?;
    let range = view.range(Bound::Unbounded, Bound::Unbounded);
    range.map(|entry| entry.map(|(key, value)| (key.to_vec(), value))).collect()
}

fn change_tree(tree: &RadixTree, tx: &mut Transaction, model: &mut Words, random: &mut Random) {
    // Several keys at a time, so that few transactions make large nodes.
    for _ in 0..1 + random.below(12) {
        let key = key(random);
        match random.below(4) {
            0 => assert_eq!(tree.remove(tx, &key).unwrap(), model.remove(&key)),
            1 => {
                let merge = |old: Option<u64>| old.unwrap_or(0) + 1;
                let old = tree.merge(tx, &key, merge).unwrap();
                assert_eq!(model.insert(key, merge(old)), old);
            }
            _ => {
                let value = random.below(9);
                assert_eq!(tree.put(tx, &key, value).unwrap(), model.insert(key, value));
            }
        }
    }
    if random.one_in(12) {
        tree.clear(tx, |_, _| {}).unwrap();
        model.clear();
    }
}

pub(crate) struct RadixTrees(RadixTree);

impl Subject for RadixTrees {
    type Model = Words;

    fn create(tx: &mut Transaction) -> (Self, Words) {
        (RadixTrees(RadixTree::create(tx).unwrap()), Words::new())
    }

    fn open(heap: &Heap, handle: u64) -> Result<Self> {
        RadixTree::open(heap, handle).map(RadixTrees)
    }

    fn handle(&self) -> u64 {
        self.0.handle()
    }

    fn act(&self, tx: &mut Transaction, model: &mut Words, random: &mut Random) {
        change_tree(&self.0, tx, model, random);
    }

    fn contents(&self) -> Result<(Words, u64)> {
        let checked = self.0.verify()?;
        Ok((words_in(&self.0)?, checked.blocks))
    }

    fn view(&self) -> Option<Box<dyn Any>> {
        Some(Box::new(self.0.view().unwrap()))
    }
}

/// Two trees, whose handles are in an array; now and then the first is joined to the second, or
/// its upper half is split off and joined.
pub(crate) struct Splits(Array);

impl Splits {
    fn tree(&self, index: u64) -> RadixTree {
        RadixTree::open(self.0.heap(), self.0.get(index).unwrap()).unwrap()
    }
}

impl Subject for Splits {
    type Model = (Words, Words);

    fn create(tx: &mut Transaction) -> (Self, Self::Model) {
        let array = Array::create(tx, Width::U64, 2).unwrap();
        for index in 0..2 {
            let tree = RadixTree::create(tx).unwrap();
            array.set(tx, index, tree.handle()).unwrap();
        }
        (Splits(array), Default::default())
    }

    fn open(heap: &Heap, handle: u64) -> Result<Self> {
        Array::open(heap, handle).map(Splits)
    }

    fn handle(&self) -> u64 {
        self.0.handle()
    }

    fn act(&self, tx: &mut Transaction, model: &mut Self::Model, random: &mut Random) {
        change_tree(&self.tree(0), tx, &mut model.0, random);
        if random.one_in(3) {
            let upper = match random.one_in(2) {
                true => self.tree(0).split(tx).unwrap(),
                false => Some(self.tree(0).split_off(tx, b"kk").unwrap()),
            };
            let Some(upper) = upper else { return };
            self.tree(1).destroy(tx).unwrap();
            self.0.set(tx, 1, upper.handle()).unwrap();
            let view = upper.view_in(tx).unwrap();
            let range = view.range(Bound::Unbounded, Bound::Unbounded);
            model.1 = range.map(|e| e.map(|(key, value)| (key.to_vec(), value)).unwrap()).collect();
            for key in model.1.keys() {
                assert!(model.0.remove(key).is_some());
            }
        }
    }

    fn contents(&self) -> Result<(Self::Model, u64)> {
        let (low, high) = (self.tree(0), self.tree(1));
        let blocks = 1 + low.verify()?.blocks + high.verify()?.blocks;
        Ok(((words_in(&low)?, words_in(&high)?), blocks))
    }

    fn view(&self) -> Option<Box<dyn Any>> {
        Some(Box::new(self.tree(0).view().unwrap()))
    }
}

pub(crate) struct RadixMaps(RadixMap);

impl Subject for RadixMaps {
    type Model = Bytes;

    fn create(tx: &mut Transaction) -> (Self, Bytes) {
        (RadixMaps(RadixMap::create(tx).unwrap()), Bytes::new())
    }

    fn open(heap: &Heap, handle: u64) -> Result<Self> {
        RadixMap::open(heap, handle).map(RadixMaps)
    }

    fn handle(&self) -> u64 {
        self.0.handle()
    }

    fn act(&self, tx: &mut Transaction, model: &mut Bytes, random: &mut Random) {
        let key = key(random);
        if random.one_in(3) {
            assert_eq!(self.0.remove(tx, &key).unwrap(), model.remove(&key));
        } else {
            let value = value(random);
            assert_eq!(self.0.put(tx, &key, &value).unwrap(), model.insert(key, value));
        }
    }

    fn contents(&self) -> Result<(Bytes, u64)> {
        let view = self.0.view()?;
        let range = view.range(Bound::Unbounded, Bound::Unbounded);
        let found = range.map(|e| e.map(|(k, v)| (k.to_vec(), v.to_vec()))).collect::<Result<_>>();
        Ok((found?, self.0.verify()?.blocks))
    }

    fn view(&self) -> Option<Box<dyn Any>> {
        Some(Box::new(self.0.view().unwrap()))
    }
}

pub(crate) struct HashMaps(HashMap);

impl Subject for HashMaps {
    type Model = Bytes;

    fn create(tx: &mut Transaction) -> (Self, Bytes) {
        (HashMaps(HashMap::create(tx, 5).unwrap()), Bytes::new())
    }

    fn open(heap: &Heap, handle: u64) -> Result<Self> {
        HashMap::open(heap, handle).map(HashMaps)
    }

    fn handle(&self) -> u64 {
        self.0.handle()
    }

    fn act(&self, tx: &mut Transaction, model: &mut Bytes, random: &mut Random) {
        let key = key(random);
        if random.one_in(3) {
            assert_eq!(self.0.remove(tx, &key).unwrap(), model.remove(&key));
        } else {
            let value = value(random);
            assert_eq!(self.0.put(tx, &key, &value).unwrap(), model.insert(key, value));
        }
    }

    fn contents(&self) -> Result<(Bytes, u64)> {
        let view = self.0.view()?;
        let found = view.iter().map(|e| e.map(|(k, v)| (k.to_vec(), v.to_vec())));
        Ok((found.collect::<Result<_>>()?, self.0.verify()?.blocks))
    }

    fn view(&self) -> Option<Box<dyn Any>> {
        Some(Box::new(self.0.view().unwrap()))
    }
}

pub(crate) struct Arrays(Array);

impl Subject for Arrays {
    type Model = Vec<u64>;

    fn create(tx: &mut Transaction) -> (Self, Vec<u64>) {
        (Arrays(Array::create(tx, Width::U16, 50).unwrap()), vec![0; 50])
    }

    fn open(heap: &Heap, handle: u64) -> Result<Self> {
        Array::open(heap, handle).map(Arrays)
    }

    fn handle(&self) -> u64 {
        self.0.handle()
    }

    fn act(&self, tx: &mut Transaction, model: &mut Vec<u64>, random: &mut Random) {
        let (index, value) = (random.below(50), random.below(1 << 16));
        let count = random.below(51 - index);
        if random.one_in(2) {
            self.0.set(tx, index, value).unwrap();
            model[index as usize] = value;
        } else {
            self.0.fill(tx, index, count, value).unwrap();
            model[index as usize..(index + count) as usize].fill(value);
        }
    }

    fn contents(&self) -> Result<(Vec<u64>, u64)> {
        Ok((self.0.copy(0, 50)?, self.0.verify()?.blocks))
    }
}

pub(crate) struct LinkedLists(LinkedList);

impl Subject for LinkedLists {
    type Model = Vec<u64>;

    fn create(tx: &mut Transaction) -> (Self, Vec<u64>) {
        (LinkedLists(LinkedList::create(tx).unwrap()), Vec::new())
    }

    fn open(heap: &Heap, handle: u64) -> Result<Self> {
        LinkedList::open(heap, handle).map(LinkedLists)
    }

    fn handle(&self) -> u64 {
        self.0.handle()
    }

    fn act(&self, tx: &mut Transaction, model: &mut Vec<u64>, random: &mut Random) {
        let index = random.below(model.len() as u64 + 1);
        match (random.below(5), (index as usize) < model.len()) {
            (0, true) => {
                self.0.remove(tx, index).unwrap();
                model.remove(index as usize);
            }
            (1, true) => {
                self.0.set(tx, index, 77).unwrap();
                model[index as usize] = 77;
            }
            (value, _) => {
                self.0.insert(tx, index, value).unwrap();
                model.insert(index as usize, value);
            }
        }
        if random.one_in(16) {
            self.0.clear(tx).unwrap();
            model.clear();
        }
    }

    fn contents(&self) -> Result<(Vec<u64>, u64)> {
        Ok((self.0.copy()?, self.0.verify()?.blocks))
    }
}

pub(crate) struct Deques(Deque);

impl Subject for Deques {
    type Model = VecDeque<u64>;

    fn create(tx: &mut Transaction) -> (Self, VecDeque<u64>) {
        (Deques(Deque::create(tx).unwrap()), VecDeque::new())
    }

    fn open(heap: &Heap, handle: u64) -> Result<Self> {
        Deque::open(heap, handle).map(Deques)
    }

    fn handle(&self) -> u64 {
        self.0.handle()
    }

    fn act(&self, tx: &mut Transaction, model: &mut VecDeque<u64>, random: &mut Random) {
        let front = random.one_in(2);
        match random.below(5) {
            // Enough for many stretches and another directory.
            0..=1 => {
                for value in 0..random.below(600) {
                    if front {
                        self.0.push_front(tx, value).unwrap();
                        model.push_front(value);
                    } else {
                        self.0.push_back(tx, value).unwrap();
                        model.push_back(value);
                    }
                }
            }
            2..=3 => {
                for _ in 0..random.below(500) {
                    match front {
                        true => assert_eq!(self.0.pop_front(tx).unwrap(), model.pop_front()),
                        false => assert_eq!(self.0.pop_back(tx).unwrap(), model.pop_back()),
                    }
                }
            }
            _ => {
                let index = random.below(model.len() as u64 + 1);
                if let Some(there) = model.get_mut(index as usize) {
                    self.0.set(tx, index, 9).unwrap();
                    *there = 9;
                }
            }
        }
    }

    fn contents(&self) -> Result<(VecDeque<u64>, u64)> {
        let view = self.0.view()?;
        let found = view.range(0..u64::MAX).collect::<Result<_>>()?;
        Ok((found, self.0.verify()?.blocks))
    }

    fn view(&self) -> Option<Box<dyn Any>> {
        Some(Box::new(self.0.view().unwrap()))
    }
}

pub(crate) struct Logs(AppendLog);

impl Subject for Logs {
    type Model = BTreeMap<u64, Vec<u8>>;

    fn create(tx: &mut Transaction) -> (Self, Self::Model) {
        (Logs(AppendLog::create(tx).unwrap()), BTreeMap::new())
    }

    fn open(heap: &Heap, handle: u64) -> Result<Self> {
        AppendLog::open(heap, handle).map(Logs)
    }

    fn handle(&self) -> u64 {
        self.0.handle()
    }

    fn act(&self, tx: &mut Transaction, model: &mut Self::Model, random: &mut Random) {
        for _ in 0..random.below(40) {
            let entry = value(random);
            let number = self.0.append(tx, &entry).unwrap();
            model.insert(number, entry);
        }
        if random.one_in(3) {
            let numbers = self.0.numbers().unwrap();
            let cut = numbers.start + random.below(numbers.end - numbers.start + 1);
            self.0.truncate_front(tx, cut).unwrap();
            model.retain(|number, _| *number >= cut);
        }
    }

    fn contents(&self) -> Result<(Self::Model, u64)> {
        let view = self.0.view()?;
        let found = view.range(0..u64::MAX).map(|e| e.map(|(at, bytes)| (at, bytes.to_vec())));
        Ok((found.collect::<Result<_>>()?, self.0.verify()?.blocks))
    }

    fn view(&self) -> Option<Box<dyn Any>> {
        Some(Box::new(self.0.view().unwrap()))
    }
}
