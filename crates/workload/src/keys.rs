//! Which key comes next, and what its bytes are.
//!
//! Keys are numbered from 0. Popular ranks are spread over the key space by a permutation, so that
//! every key has exactly its share and no two ranks fall together.

use std::fmt;
use std::str::FromStr;

use entresol_random::{Random, mix64};

/// How often each key is chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Distribution {
    /// All alike.
    Uniform,
    /// The k-th most popular in proportion to 1 / k^theta; popular keys lie scattered.
    Zipf {
        /// Skew, above 0; YCSB's is 0.99.
        theta: f64,
    },
    /// As `Zipf`, the newest keys the most popular.
    Latest {
        /// Skew, above 0.
        theta: f64,
    },
    /// A share of the keys gets a share of the choices, alike within and without.
    Hotspot {
        /// Share of the keys that is hot, 0 to 1.
        keys: f64,
        /// Share of the choices they get, 0 to 1.
        choices: f64,
    },
    /// 0, 1, 2 … and around again.
    Sequential,
}

/// Chooses keys below a number of keys that may grow.
#[derive(Debug, Clone)]
pub struct KeyChooser {
    distribution: Distribution,
    keys: u64,
    next: u64,
    zipf: Option<Zipf>,
    permutation: Permutation,
}

impl KeyChooser {
    /// Chooses among `keys` keys, at least 1.
    pub fn new(distribution: Distribution, keys: u64) -> KeyChooser {
        let keys = keys.max(1);
        let zipf = match distribution {
            Distribution::Zipf { theta } | Distribution::Latest { theta } => {
                Some(Zipf::new(keys, theta))
            }
            _ => None,
        };
        KeyChooser { distribution, keys, next: 0, zipf, permutation: Permutation::new(keys, 1) }
    }

    /// The next key.
    #[inline]
    pub fn next(&mut self, random: &mut Random) -> u64 {
        match (self.distribution, &self.zipf) {
            (Distribution::Zipf { .. }, Some(zipf)) => {
                self.permutation.place(zipf.rank(random) - 1)
            }
            (Distribution::Latest { .. }, Some(zipf)) => self.keys - zipf.rank(random),
            (Distribution::Hotspot { keys, choices }, _) => {
                let hot = ((self.keys as f64 * keys) as u64).clamp(1, self.keys);
                if hot == self.keys || random.fraction() < choices {
                    self.permutation.place(random.below(hot))
                } else {
                    self.permutation.place(hot + random.below(self.keys - hot))
                }
            }
            (Distribution::Sequential, _) => {
                let key = self.next;
                self.next = if key + 1 >= self.keys { 0 } else { key + 1 };
                key
            }
            _ => random.below(self.keys),
        }
    }

    /// Takes keys up to `keys` into the choice; never fewer than before. Only `Latest` and
    /// `Uniform` keep their meaning while keys are added; the others keep to the first ones.
    pub fn grow(&mut self, keys: u64) {
        let grows =
            matches!(self.distribution, Distribution::Latest { .. } | Distribution::Uniform);
        if !grows || keys <= self.keys {
            return;
        }
        self.keys = keys;
        if let Some(zipf) = &mut self.zipf {
            zipf.grow(keys);
        }
    }

    /// Starts a sequential chooser at `key`.
    pub fn start_at(&mut self, key: u64) {
        self.next = key % self.keys;
    }
}

impl FromStr for Distribution {
    type Err = String;

    fn from_str(text: &str) -> Result<Distribution, String> {
        let mut parts = text.split(':');
        let name = parts.next().unwrap_or_default();
        let mut numbers = Vec::new();
        for part in parts {
            let number: f64 =
                part.parse().map_err(|_| format!("'{part}' in '{text}' is no number"))?;
            numbers.push(number);
        }
        let distribution = match (name, numbers.as_slice()) {
            ("uniform", []) => Distribution::Uniform,
            ("sequential", []) => Distribution::Sequential,
            ("zipf", []) => Distribution::Zipf { theta: 0.99 },
            ("zipf", [theta]) if is_skew(*theta) => Distribution::Zipf { theta: *theta },
            ("latest", []) => Distribution::Latest { theta: 0.99 },
            ("latest", [theta]) if is_skew(*theta) => Distribution::Latest { theta: *theta },
            ("hotspot", []) => Distribution::Hotspot { keys: 0.2, choices: 0.8 },
            ("hotspot", [keys, choices]) if is_share(*keys) && is_share(*choices) => {
                Distribution::Hotspot { keys: *keys, choices: *choices }
            }
            _ => {
                return Err(format!(
                    "expected uniform, zipf[:THETA], latest[:THETA] with a skew above 0 and up to \
                     100, hotspot[:KEYS:CHOICES] or sequential, found '{text}'"
                ));
            }
        };
        Ok(distribution)
    }
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Distribution::Uniform => f.write_str("uniform"),
            Distribution::Zipf { theta } => write!(f, "zipf:{theta}"),
            Distribution::Latest { theta } => write!(f, "latest:{theta}"),
            Distribution::Hotspot { keys, choices } => write!(f, "hotspot:{keys}:{choices}"),
            Distribution::Sequential => f.write_str("sequential"),
        }
    }
}

/// A one-to-one scramble of the numbers below `count`: xor-shifts and odd multiplications within
/// the next power of two, walked until the result is in range.
#[derive(Debug, Clone, Copy)]
pub struct Permutation {
    count: u64,
    mask: u64,
    shift: u32,
    multipliers: [u64; 3],
}

impl Permutation {
    /// A permutation of the numbers below `count`, at least 1, drawn from `seed`.
    pub fn new(count: u64, seed: u64) -> Permutation {
        let count = count.max(1);
        let bits = 64 - (count - 1).leading_zeros().min(63);
        let mask = if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
        let multipliers = std::array::from_fn(|i| mix64(seed.wrapping_add(i as u64 + 1)) | 1);
        Permutation { count, mask, shift: bits.div_ceil(2).max(1), multipliers }
    }

    /// Where `number`, which is below `count`, goes.
    #[inline]
    pub fn place(&self, number: u64) -> u64 {
        let mut x = number;
        loop {
            for multiplier in self.multipliers {
                x = x.wrapping_add(multiplier >> 17) & self.mask;
                x = x.wrapping_mul(multiplier) & self.mask;
                x ^= x >> self.shift;
            }
            if x < self.count {
                return x;
            }
        }
    }
}

/// How the number of a key lies in its bytes, and so which keys are neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KeyLayout {
    /// Text: as [`key_bytes`] makes it.
    #[default]
    Text,
    /// The number, then its hash: numbers in a row are keys in a row.
    Ascending,
    /// The hash of the number, then the number: neighbours have nothing to do with each other.
    Scattered,
}

impl KeyLayout {
    /// The bytes of key `id`. With `Text`, `id` is below 2^60.
    #[inline]
    pub fn key(self, id: u64) -> [u8; 16] {
        let (high, low) = match self {
            KeyLayout::Text => return key_bytes(id),
            KeyLayout::Ascending => (id, mix64(id)),
            KeyLayout::Scattered => (mix64(id), id),
        };
        let mut key = [0; 16];
        key[..8].copy_from_slice(&high.to_be_bytes());
        key[8..].copy_from_slice(&low.to_be_bytes());
        key
    }

    /// The number that [`KeyLayout::key`] made `key` of, if it did.
    pub fn id(self, key: &[u8]) -> Option<u64> {
        let half = |at: usize| Some(u64::from_be_bytes(key.get(at..at + 8)?.try_into().ok()?));
        let id = match self {
            KeyLayout::Text => return key_id(key),
            KeyLayout::Ascending => half(0)?,
            KeyLayout::Scattered => half(8)?,
        };
        (self.key(id) == key).then_some(id)
    }
}

/// The bytes of key `id`: `k` and fifteen hexadecimal digits. `id` is below 2^60.
#[inline]
pub fn key_bytes(id: u64) -> [u8; 16] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut bytes = [b'k'; 16];
    for (i, byte) in bytes.iter_mut().enumerate().skip(1) {
        *byte = DIGITS[((id >> (60 - 4 * i)) & 15) as usize];
    }
    bytes
}

/// The id that [`key_bytes`] made `bytes` of, if it did.
pub fn key_id(bytes: &[u8]) -> Option<u64> {
    let digits = bytes.strip_prefix(b"k")?;
    if digits.len() != 15 {
        return None;
    }
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// Exact Zipf ranks for any number of keys by rejection-inversion (W. Hörmann and G. Derflinger,
/// «Rejection-inversion to generate variates from monotone discrete distributions», 1996).
#[derive(Debug, Clone)]
struct Zipf {
    count: u64,
    theta: f64,
    integral_first: f64,
    integral_last: f64,
    accept: f64,
}

impl Zipf {
    fn new(count: u64, theta: f64) -> Zipf {
        let mut zipf = Zipf { count, theta, integral_first: 0.0, integral_last: 0.0, accept: 0.0 };
        zipf.integral_first = zipf.integral(1.5) - 1.0;
        zipf.accept = 2.0 - zipf.integral_inverse(zipf.integral(2.5) - zipf.density(2.0));
        zipf.grow(count);
        zipf
    }

    fn grow(&mut self, count: u64) {
        self.count = count;
        self.integral_last = self.integral(count as f64 + 0.5);
    }

    /// A rank from 1 to `count`.
    #[inline]
    fn rank(&self, random: &mut Random) -> u64 {
        loop {
            let u =
                self.integral_last + random.fraction() * (self.integral_first - self.integral_last);
            let x = self.integral_inverse(u);
            let k = (x + 0.5).floor().clamp(1.0, self.count as f64);
            if k - x <= self.accept || u >= self.integral(k + 0.5) - self.density(k) {
                return k as u64;
            }
        }
    }

    fn density(&self, x: f64) -> f64 {
        (-self.theta * x.ln()).exp()
    }

    /// The integral of the density from 1 to x; right also where theta is 1.
    fn integral(&self, x: f64) -> f64 {
        let ln = x.ln();
        let t = (1.0 - self.theta) * ln;
        let ratio = if t.abs() > 1e-8 { t.exp_m1() / t } else { 1.0 + t / 2.0 };
        ratio * ln
    }

    fn integral_inverse(&self, u: f64) -> f64 {
        let t = (u * (1.0 - self.theta)).max(-1.0);
        let ratio = if t.abs() > 1e-8 { t.ln_1p() / t } else { 1.0 - t / 2.0 };
        (ratio * u).exp()
    }
}

/// A skew of which ranks can be drawn.
fn is_skew(x: f64) -> bool {
    x > 0.0 && x <= 100.0
}

fn is_share(x: f64) -> bool {
    (0.0..=1.0).contains(&x)
}
