//! The nouns of the block cache.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, ErrorKind};
use crate::policy::admission::HITS_MAX;

/// Nanoseconds since some fixed moment. Time is always an argument: the cache reads no clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Moment(pub u64);

/// A volume of an open cache; its number is kept for the life of the volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VolumeId(pub u16);

/// What a volume's reads and writes do with the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Writes are answered when the backing has them; reads and writes are cached.
    #[default]
    WriteThrough,
    /// Writes are answered when the cache has them, and written back later, in order.
    WriteBack,
    /// As write-through, but a write is cached only where the block is cached already.
    WriteAround,
    /// As write-back, but reads that miss are not cached.
    WriteOnly,
    /// The cache is not used.
    PassThrough,
}

impl Mode {
    /// All modes.
    pub const ALL: [Mode; 5] = [
        Mode::WriteThrough,
        Mode::WriteBack,
        Mode::WriteAround,
        Mode::WriteOnly,
        Mode::PassThrough,
    ];

    /// Its short name: `wt`, `wb`, `wa`, `wo` or `pt`.
    pub fn name(self) -> &'static str {
        match self {
            Mode::WriteThrough => "wt",
            Mode::WriteBack => "wb",
            Mode::WriteAround => "wa",
            Mode::WriteOnly => "wo",
            Mode::PassThrough => "pt",
        }
    }

    /// Whether writes are answered before the backing has them.
    pub fn is_lazy(self) -> bool {
        matches!(self, Mode::WriteBack | Mode::WriteOnly)
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Mode {
    type Err = Error;

    fn from_str(text: &str) -> Result<Mode, Error> {
        Mode::ALL.into_iter().find(|mode| mode.name() == text).ok_or_else(|| {
            let detail = format!("mode: expected wt, wb, wa, wo or pt, found '{text}'");
            Error::new(ErrorKind::InvalidInput, detail)
        })
    }
}

/// Quality of service of a volume, by mClock (Gulati, Merchant and Varman, OSDI 2010).
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Qos {
    /// I/Os a second it gets whatever the others ask; 0: none.
    pub reservation: f64,
    /// I/Os a second it never exceeds; 0: no limit.
    pub limit: f64,
    /// Its part of what is left, relative to the others' weights; 0 counts as 1.
    pub weight: f64,
}

impl Qos {
    /// Refuses rates that contradict each other.
    ///
    /// # Errors
    /// `InvalidInput` if more is reserved than the limit allows.
    pub fn check(&self) -> Result<(), Error> {
        let Qos { reservation, limit, .. } = *self;
        if limit == 0.0 || reservation <= limit {
            return Ok(());
        }
        let detail = format!(
            "reservation {reservation}: expected at most the limit, which is {limit}; lower the \
             one or raise the other"
        );
        Err(Error::new(ErrorKind::InvalidInput, detail))
    }
}

/// How a volume is made.
#[derive(Debug, Clone, PartialEq)]
pub struct VolumeOptions {
    /// Its name: 1 to 255 bytes; the export's name over NBD.
    pub name: String,
    /// Where its backing is: a path or an NBD URI, as the user gave it.
    pub backing: String,
    /// What it does with the cache.
    pub mode: Mode,
    /// Most bytes of the cache that its clean blocks may take; 0: all.
    pub share_bytes: u64,
    /// Its quality of service.
    pub qos: Qos,
    /// Reads and writes of a stream longer than this go around the cache. Blocks that a shorter
    /// stream reads are cached at their second miss. 0: streams are cached as everything is.
    pub sequential_cutoff_bytes: u64,
    /// Misses of a block until it is cached: 1 caches at the first; at most 15.
    pub admission_hits: u8,
    /// Bytes read ahead of a sequential reader, into memory; 0: none.
    pub read_ahead_bytes: u32,
    /// What people are told of it, of at most 4096 bytes; may be empty.
    pub description: String,
}

/// Longest text that people are told of a volume: the longest that NBD has.
const DESCRIPTION_BYTES_MAX: usize = 4096;

impl VolumeOptions {
    /// Refuses what no volume can be made with, whatever the cache and its backing are.
    ///
    /// # Errors
    /// `InvalidInput` if a value is out of range, or values contradict each other.
    pub fn check(&self) -> Result<(), Error> {
        let invalid = |detail| Err(Error::new(ErrorKind::InvalidInput, detail));
        if self.name.is_empty() || self.name.len() > 255 {
            let found = self.name.len();
            return invalid(format!("a volume's name is 1 to 255 bytes, not {found}"));
        }
        if self.admission_hits > HITS_MAX {
            let found = self.admission_hits;
            return invalid(format!("admission hits: expected at most {HITS_MAX}, found {found}"));
        }
        if self.description.len() > DESCRIPTION_BYTES_MAX {
            let found = self.description.len();
            let detail = format!(
                "description: expected at most {DESCRIPTION_BYTES_MAX} bytes, found {found}"
            );
            return invalid(detail);
        }
        self.qos.check()
    }
}

/// What of a volume's options changes while it serves; what is `None` stays.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Tuning {
    /// [`VolumeOptions::share_bytes`].
    pub share_bytes: Option<u64>,
    /// [`Qos::reservation`].
    pub reservation: Option<f64>,
    /// [`Qos::limit`].
    pub limit: Option<f64>,
    /// [`Qos::weight`].
    pub weight: Option<f64>,
    /// [`VolumeOptions::sequential_cutoff_bytes`].
    pub sequential_cutoff_bytes: Option<u64>,
    /// [`VolumeOptions::admission_hits`].
    pub admission_hits: Option<u8>,
    /// [`VolumeOptions::read_ahead_bytes`].
    pub read_ahead_bytes: Option<u32>,
    /// [`VolumeOptions::description`].
    pub description: Option<String>,
}

/// Rates are numbers, whoever makes them: none is unequal to itself.
impl Eq for Tuning {}

impl Tuning {
    /// What `options` become.
    ///
    /// # Errors
    /// `InvalidInput` if no volume can have them.
    pub fn of(&self, options: &VolumeOptions) -> Result<VolumeOptions, Error> {
        let qos = options.qos;
        let tuned = VolumeOptions {
            share_bytes: self.share_bytes.unwrap_or(options.share_bytes),
            qos: Qos {
                reservation: self.reservation.unwrap_or(qos.reservation),
                limit: self.limit.unwrap_or(qos.limit),
                weight: self.weight.unwrap_or(qos.weight),
            },
            sequential_cutoff_bytes: self
                .sequential_cutoff_bytes
                .unwrap_or(options.sequential_cutoff_bytes),
            admission_hits: self.admission_hits.unwrap_or(options.admission_hits),
            read_ahead_bytes: self.read_ahead_bytes.unwrap_or(options.read_ahead_bytes),
            description: self.description.as_ref().unwrap_or(&options.description).clone(),
            ..options.clone()
        };
        tuned.check().map(|()| tuned)
    }
}

impl Default for VolumeOptions {
    fn default() -> VolumeOptions {
        VolumeOptions {
            name: String::new(),
            backing: String::new(),
            mode: Mode::WriteThrough,
            share_bytes: 0,
            qos: Qos::default(),
            sequential_cutoff_bytes: 4 << 20,
            admission_hits: 1,
            read_ahead_bytes: 256 << 10,
            description: String::new(),
        }
    }
}
