//! A configuration read with care: the files are those of ACT, but text that ACT would silently
//! misread is an error that names the line, the item, and what was expected and found.

use std::collections::BTreeMap;
use std::fmt;

use super::grammar::{self, Line};
use super::histogram::SizeHistogram;
use super::items::{Item, ItemValue, Subject};
use super::legacy::{self, LegacyItem};
use super::validate::{self, Violation};
use super::{ArrivalKind, EngineKind, Index, LoadModel, Storage};

/// A configuration that could be read.
#[derive(Debug, Clone, PartialEq)]
pub struct Parsed<T> {
    /// What the file says.
    pub configuration: T,
    /// What in it has no effect, or another one than it had.
    pub warnings: Vec<Finding>,
}

/// One thing about one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// 1 is the first; `None`: what is missing has no line.
    pub line: Option<usize>,
    /// A sentence.
    pub text: String,
}

/// Everything that is wrong with a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// At least one, by line.
    pub findings: Vec<Finding>,
}

impl Storage {
    /// Reads a configuration file.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn parse(file: &[u8]) -> Result<Parsed<Storage>, ConfigError> {
        let mut reader = Reader::<Storage>::read(file)?;
        reader.warn_of_idle_items();
        reader.warn_of_items_of_the_other_engine();
        reader.finish(|it| {
            let block = || {
                let wrong = it.large_block_op_kbytes == 0 || it.large_block_op_kbytes > 8192;
                let expected = "a power of two from 1 to 8192 KiB";
                wrong.then_some(Violation { item: "large-block-op-kbytes", expected })
            };
            // A granule that is no multiple of sectors would make every write fail.
            let granule = || {
                let bytes = it.commit_min_bytes;
                let good = bytes == 0 || (bytes.is_power_of_two() && bytes <= 8 << 20);
                let expected = "0, or a power of two up to 8388608 bytes";
                (!good).then_some(Violation { item: "commit-min-bytes", expected })
            };
            let all = validate::devices(&it.device_names).or_else(|| validate::storage(it));
            all.or_else(block).or_else(granule)
        })
    }
}

impl Index {
    /// Reads a configuration file.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn parse(file: &[u8]) -> Result<Parsed<Index>, ConfigError> {
        let mut reader = Reader::<Index>::read(file)?;
        if reader.it.test.model != LoadModel::Act {
            reader.warn_of_idle("model", "what is modelled are blocks of data devices");
        }
        reader.warn_of_items_of_the_other_engine();
        reader.finish(|it| validate::devices(&it.device_names).or_else(|| validate::index(it)))
    }
}

/// Items that have no effect where sizes come from histograms, which count them in already.
const IN_HISTOGRAMS: [&str; 3] = ["replication-factor", "update-pct", "record-bytes-range-max"];
/// Items that have no effect where the rates of large blocks emerge.
const OF_FORMULAS: [&str; 4] =
    ["lbr-req-offset", "lbw-req-offset", "direct-frees", "total-lbw-per-sec"];
/// Items that only have an effect there.
const WITH_HISTOGRAMS: [&str; 4] =
    ["storage-read-histogram", "storage-write-histogram", "read-size-offset", "write-size-offset"];

impl Reader<Storage> {
    fn warn_of_idle_items(&mut self) {
        let (idle, why): (&[&str], &str) = match self.it.sizes_from_histograms() {
            true => (&IN_HISTOGRAMS, "sizes come from the histograms, which have it in them"),
            false => (&WITH_HISTOGRAMS, "`record-bytes` is not 0, so sizes come from it"),
        };
        for name in idle {
            self.warn_of_idle(name, why);
        }
        if self.it.test.model != LoadModel::Act {
            for name in OF_FORMULAS {
                self.warn_of_idle(name, "`model` works the rates of large blocks out by itself");
            }
        }
        let kbytes = self.it.large_block_op_kbytes;
        if self.it.test.model == LoadModel::Entresol && kbytes != 1024 {
            let line = self.lines.get("large-block-op-kbytes").or(self.lines.get("model"));
            let text = format!(
                "blocks of `model: entresol` are segments of 1024 KiB, not of {kbytes}; with \
                 `large-block-op-kbytes: 1024` the derived rates are those of segments too"
            );
            self.warn(line.copied().unwrap_or(0), text);
        }
        let (frees, total) = (self.it.paper.direct_frees, self.it.paper.total_lbw_per_sec);
        if frees != 0 && total == 0 {
            let line = self.lines.get("direct-frees").copied().unwrap_or(0);
            let text = "`direct-frees` has no effect without `total-lbw-per-sec`";
            self.warn(line, text.to_owned());
        }
    }
}

struct Reader<T> {
    it: T,
    lines: BTreeMap<String, usize>,
    /// As they are written.
    values: BTreeMap<String, String>,
    queues: [Option<u32>; 2],
    errors: Vec<Finding>,
    warnings: Vec<Finding>,
}

impl<T: Subject> Reader<T> {
    fn read(file: &[u8]) -> Result<Reader<T>, ConfigError> {
        let mut reader = Reader {
            it: T::default(),
            lines: BTreeMap::new(),
            values: BTreeMap::new(),
            queues: [None; 2],
            errors: Vec::new(),
            warnings: Vec::new(),
        };
        let mut text = file;
        if let Some(after) = file.strip_prefix(b"\xef\xbb\xbf") {
            text = after;
            let sentence = "the file begins with a byte order mark, which ACT takes for part of an \
                            item's name; save it as plain UTF-8";
            reader.error(1, sentence.to_owned());
        }
        let mut too_long = None;
        for line in grammar::lines(text, T::PIECE_BYTES) {
            if line.cut {
                if too_long.replace(line.number) != Some(line.number) {
                    let most = T::PIECE_BYTES - 1;
                    reader.error(
                        line.number,
                        format!(
                            "the line is longer than the {most} bytes that ACT reads; split it"
                        ),
                    );
                }
                continue;
            }
            if let Err(sentence) = reader.line(&line) {
                reader.error(line.number, sentence);
            }
        }
        Ok(reader)
    }

    fn line(&mut self, line: &Line<'_>) -> Result<(), String> {
        if line.raw.contains(&0) {
            return Err("the line holds a NUL byte, at which ACT stops reading it".to_owned());
        }
        let raw = str::from_utf8(line.raw).map_err(|_| "the line is not UTF-8 text".to_owned())?;
        if raw.trim_start().starts_with(legacy::HELPER_LINE) {
            return Ok(());
        }
        let text = raw.split_once('#').map_or(raw, |(text, _)| text).trim_ascii();
        if let Some(found) = text.chars().find(|c| c.is_whitespace() && !c.is_ascii_whitespace()) {
            return Err(format!(
                "the line has a blank that is none for ACT (U+{:04X}), which makes ACT read 0 \
                 behind it; write a plain one",
                u32::from(found)
            ));
        }
        // A name ends at a colon or at white space; a colon may follow white space only for us.
        let end = text.find(|c: char| c == ':' || c.is_whitespace()).unwrap_or(text.len());
        let (name, after) = text.split_at(end);
        let Some(item) = T::item(name) else {
            return Err(unknown::<T>(name));
        };
        let value = match after.trim_start().strip_prefix(':') {
            Some(_) if after.starts_with(char::is_whitespace) => {
                return Err(format!(
                    "`{name}` has a blank before its colon, which makes ACT read the colon as the \
                     value; write `{name}: …`"
                ));
            }
            Some(value) => value.trim(),
            None => after.trim(),
        };
        if let Some(first) = self.lines.insert(name.to_owned(), line.number)
            && !matches!(item.value, ItemValue::Devices)
        {
            return Err(format!("`{name}` was given in line {first} already; keep one of the two"));
        }
        if value.is_empty() {
            return Err(format!("`{name}` has no value; write `{name}: VALUE`"));
        }
        self.values.insert(name.to_owned(), value.to_owned());
        self.fill(&item, value, line.number)
            .map_err(|expected| format!("`{name}` is `{value}`; expected {expected}"))
    }

    /// Stores a value, or says what was expected.
    fn fill(&mut self, item: &Item<T>, value: &str, number: usize) -> Result<(), String> {
        match item.value {
            ItemValue::Devices => return self.devices(value),
            ItemValue::Count(field) => *field(&mut self.it) = count(value)?,
            ItemValue::Flag(field) => *field(&mut self.it) = flag(value)?,
            ItemValue::Sizes(field) => {
                let sizes = SizeHistogram::parse(value).map_err(|problem| {
                    format!(
                        "the share of objects above 1, 2, 4, … bytes in percent, as \
                         `100,100,85.78,0`; {problem}"
                    )
                })?;
                *field(&mut self.it) = Some(sizes);
            }
            ItemValue::Test(read) => read(self.it.test(), value)?,
            ItemValue::Legacy(LegacyItem::Ignored(why)) => {
                self.warn(number, format!("`{}` has no effect: {why}", item.name));
            }
            ItemValue::Legacy(LegacyItem::Queues) => self.queues[0] = Some(count(value)?),
            ItemValue::Legacy(LegacyItem::QueueThreads) => self.queues[1] = Some(count(value)?),
            ItemValue::Legacy(legacy) => {
                let value = count(value)?;
                self.it.legacy(legacy, value);
            }
        }
        Ok(())
    }

    fn devices(&mut self, value: &str) -> Result<(), String> {
        for name in value.split([',', ';', ' ', '\t']).filter(|name| !name.is_empty()) {
            if self.it.devices().iter().any(|device| device == name) {
                return Err(format!("every device once; `{name}` is there twice"));
            }
            self.it.devices().push(name.to_owned());
        }
        let count = self.it.devices().len();
        if count > T::DEVICES_MAX {
            return Err(format!("at most {} devices; there are {count}", T::DEVICES_MAX));
        }
        Ok(())
    }

    fn finish(
        mut self,
        validate: impl FnOnce(&T) -> Option<Violation>,
    ) -> Result<Parsed<T>, ConfigError> {
        self.settle_queues();
        if self.errors.is_empty()
            && let Some(Violation { item, expected }) = validate(&self.it)
        {
            let line = self.lines.get(item).copied();
            let text = match self.values.get(item) {
                Some(found) => format!("`{item}` is `{found}`; expected {expected}"),
                None => format!("`{item}` is missing; expected {expected}"),
            };
            self.errors.push(Finding { line, text });
        }
        if self.errors.is_empty() {
            Ok(Parsed { configuration: self.it, warnings: self.warnings })
        } else {
            Err(ConfigError { findings: self.errors })
        }
    }

    /// Queues times threads was the number of reads in flight, which threads are today.
    fn settle_queues(&mut self) {
        let [Some(queues), Some(threads)] = self.queues else { return };
        if self.lines.contains_key("service-threads") {
            return;
        }
        let product = queues.saturating_mul(threads);
        let threads = T::ACT_ITEMS.iter().find(|item| item.name == "service-threads");
        if let Some(Item { value: ItemValue::Count(field), .. }) = threads {
            *field(&mut self.it) = product;
        }
        let number = self.lines.get("num-queues").copied().unwrap_or(0);
        self.warn(
            number,
            format!(
                "`num-queues` times `threads-per-queue` is taken as `service-threads: {product}`"
            ),
        );
    }

    /// Items that say how an open schedule is issued.
    fn warn_of_items_of_the_other_engine(&mut self) {
        let test = self.it.test();
        if test.engine == EngineKind::Uring {
            return;
        }
        let (paced, deep) = (test.arrivals != ArrivalKind::Even, test.queue_depth != 0);
        if paced {
            self.warn_of_idle("arrivals", "each thread of `engine: psync` has an even schedule");
        }
        if deep {
            let why = "each thread of `engine: psync` has one transfer in flight";
            self.warn_of_idle("queue-depth", why);
        }
    }

    fn warn_of_idle(&mut self, name: &str, why: &str) {
        if let Some(&line) = self.lines.get(name) {
            self.warn(line, format!("`{name}` has no effect: {why}"));
        }
    }

    fn error(&mut self, line: usize, text: String) {
        self.errors.push(Finding { line: Some(line), text });
    }

    fn warn(&mut self, line: usize, text: String) {
        self.warnings.push(Finding { line: Some(line), text });
    }
}

/// Reads `yes` or `no`, or says that they were expected.
pub(super) fn flag(value: &str) -> Result<bool, String> {
    match value {
        "yes" | "y" => Ok(true),
        "no" | "n" => Ok(false),
        _ => Err("`yes` or `no`, in lower case; ACT takes everything else for no".to_owned()),
    }
}

fn count(value: &str) -> Result<u32, String> {
    let digits = value.bytes().all(|byte| byte.is_ascii_digit());
    match value.parse() {
        Ok(count) if digits => Ok(count),
        _ => Err("a whole number from 0 to 4294967295, without a unit".to_owned()),
    }
}

fn unknown<T: Subject>(name: &str) -> String {
    let known = T::ACT_ITEMS.iter().chain(T::PAPER_ITEMS).map(|item| item.name);
    let (others, advice) = T::OTHERS;
    if others().iter().any(|(other, _)| *other == name) {
        return format!("there is no item `{name}` here; {advice}");
    }
    let near = known.map(|known| (distance(name, known), known)).min();
    match near {
        Some((distance, known)) if distance <= 3 => {
            format!("there is no item `{name}`; did you mean `{known}`?")
        }
        _ => format!("there is no item `{name}`"),
    }
}

/// Levenshtein's distance, bytes.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, left) in a.bytes().enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, right) in b.bytes().enumerate() {
            let changed = diagonal + usize::from(left != right);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.text),
            None => f.write_str(&self.text),
        }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, finding) in self.findings.iter().enumerate() {
            let separator = if number == 0 { "" } else { "\n  " };
            write!(f, "{separator}{finding}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigError {}
