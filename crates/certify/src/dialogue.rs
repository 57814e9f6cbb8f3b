//! Questions and answers that end in a configuration, for a person at a terminal.

use std::io::{self, BufRead, Write};

use crate::config::{SizeHistogram, Storage};
use crate::derive::Step;
use crate::sizing::{STANDARD_READS, STANDARD_WRITES, Sizing};

/// What the answers amount to.
#[derive(Debug, Clone, PartialEq)]
pub struct Answers {
    /// The configuration.
    pub configuration: Storage,
    /// A file's name that tells the load and the duration.
    pub file_name: String,
    /// What it is, for the file's first line.
    pub title: String,
    /// Is it to be saved under that name?
    pub destination: Destination,
}

/// Where the configuration goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Destination {
    /// Into a file.
    File,
    /// Onto the screen.
    Screen,
}

const HOUR_SECONDS: u32 = 3600;
const DAY_HOURS: u32 = 24;

/// Asks on `output` and reads answers from `input`. A wrong answer is asked for again.
///
/// # Errors
/// Those of reading and writing; `UnexpectedEof` if the answers end too early.
pub fn ask(input: &mut dyn BufRead, output: &mut dyn Write) -> io::Result<Answers> {
    let mut talk = Talk { input, output };
    let devices = talk.number("Number of devices to test", None, 1..=128)?;
    talk.say(
        "Name whole devices where the controller is over-provisioned, or partitions where only \
         part of a device is used.\nEverything on them will be overwritten.\n",
    )?;
    let mut it = Storage::default();
    while it.device_names.len() < devices as usize {
        let number = it.device_names.len() + 1;
        let name = talk.line(&format!("Device {number}, such as /dev/nvme0n1: "))?;
        if name.is_empty() || name.contains([',', ';', ' ', '\t', '#']) {
            talk.say("A name has no blanks, commas, semicolons or number signs.\n")?;
        } else if it.device_names.contains(&name) {
            talk.say("That device is in the list already.\n")?;
        } else {
            it.device_names.push(name);
        }
    }
    let mut hours = DAY_HOURS;
    if talk.confirms("Test for other than 24 hours?")? {
        hours = talk.number("Hours", None, 1..=100_000)?;
    }
    it.test_duration_sec = hours * HOUR_SECONDS;
    let duration = match hours % DAY_HOURS {
        0 => format!("{}d", hours / DAY_HOURS),
        _ => format!("{hours}h"),
    };
    let (title, name) = if talk.confirms("Use a load of your own instead of the standard one?")? {
        if talk.confirms("Is it that of a namespace in use, as its nodes count it?")? {
            talk.namespace_load(&mut it, devices)?
        } else {
            talk.own_load(&mut it, devices)?
        }
    } else {
        talk.standard_load(&mut it, devices)?
    };
    let file_name = format!("actconfig_{name}_{duration}.txt");
    let saves = talk.confirms(&format!("Save as {file_name}?"))?;
    Ok(Answers {
        configuration: it,
        file_name,
        title: format!("{devices} device(s), {title}"),
        destination: if saves { Destination::File } else { Destination::Screen },
    })
}

/// The two ends of a conversation.
struct Talk<'a> {
    input: &'a mut dyn BufRead,
    output: &'a mut dyn Write,
}

impl Talk<'_> {
    /// So many times the load that ACT's authors defined. Returns what it is, in words and for the
    /// name of a file; so do the other two.
    fn standard_load(&mut self, it: &mut Storage, devices: u32) -> io::Result<(String, String)> {
        self.say("The load 1x is 2000 reads and 1000 writes a second.\n")?;
        let most = u32::MAX / STANDARD_READS / devices;
        let load = self.number("How many x for each device", None, 1..=most)?;
        it.read_reqs_per_sec = load * devices * STANDARD_READS;
        it.write_reqs_per_sec = load * devices * STANDARD_WRITES;
        Ok((format!("{load}x load"), format!("{load}x")))
    }

    fn own_load(&mut self, it: &mut Storage, devices: u32) -> io::Result<(String, String)> {
        let most = u32::MAX / devices;
        let reads = self.number("Reads a second, each device", Some(STANDARD_READS), 0..=most)?;
        let least = u32::from(reads == 0);
        let writes =
            self.number("Writes a second, each device", Some(STANDARD_WRITES), least..=most)?;
        it.record_bytes = self.number("Bytes of a record", Some(it.record_bytes), 1..=8 << 20)?;
        it.service_threads = self.number(
            "Threads, 0 for five of each processor; they count with `engine: psync` only",
            Some(0),
            0..=100_000,
        )?;
        it.read_reqs_per_sec = reads * devices;
        it.write_reqs_per_sec = writes * devices;
        let title = format!("{reads} reads and {writes} writes a second each");
        Ok((title, format!("{reads}r{writes}w")))
    }

    /// The sizing paper's arithmetic: from what a namespace does to what each drive must.
    fn namespace_load(&mut self, it: &mut Storage, devices: u32) -> io::Result<(String, String)> {
        let requests = loop {
            let reads = self.number("Reads a second, all nodes together", None, 0..=u32::MAX)?;
            let least = u32::from(reads == 0);
            let writes =
                self.number("Writes a second, all nodes together", None, least..=u32::MAX)?;
            let mut count = |question: &str| self.number(question, Some(1), 1..=1_000_000);
            let sizing = Sizing {
                reads: f64::from(reads),
                writes: f64::from(writes),
                nodes: count("Nodes that these were counted on")?,
                drives_per_namespace: count("Drives that the namespace has on a node")?,
                namespaces_per_drive: count("Namespaces with such a load that share a drive")?,
                load: f64::from(count("How many times this load")?),
                devices,
            };
            match sizing.requests() {
                Ok(requests) if requests.reads > 0 || requests.writes > 0 => break requests,
                Ok(_) => self.say("That is less than one request a second; once more.\n")?,
                Err(error) => self.say(&format!("That cannot be: {error}; once more.\n"))?,
            }
        };
        for step in &requests.steps {
            let Step { name, formula, value, unit } = step;
            self.say(&format!("  {name} = {value:.2} {unit} = {formula}\n"))?;
        }
        (it.read_reqs_per_sec, it.write_reqs_per_sec) = (requests.reads, requests.writes);
        let sizes = "as `100,100,85.78,0`, of {ns}-device-";
        if let Some(read) = self.sizes(&format!("Sizes read, {sizes}read-size; empty: one size"))? {
            it.record_bytes = 0;
            it.paper.read_histogram = Some(read);
            while it.paper.write_histogram.is_none() {
                it.paper.write_histogram =
                    self.sizes(&format!("Sizes written, {sizes}write-size"))?;
            }
        } else {
            it.record_bytes =
                self.number("Bytes of a record", Some(it.record_bytes), 1..=8 << 20)?;
        }
        let (reads, writes) = (requests.reads / devices, requests.writes / devices);
        let title = format!("a namespace's {reads} reads and {writes} writes a second each");
        Ok((title, format!("{reads}r{writes}w")))
    }

    /// Shares of sizes; `None`: nothing was answered.
    fn sizes(&mut self, question: &str) -> io::Result<Option<SizeHistogram>> {
        loop {
            let answer = self.line(&format!("{question}: "))?;
            if answer.is_empty() {
                return Ok(None);
            }
            match SizeHistogram::parse(&answer) {
                Ok(sizes) => return Ok(Some(sizes)),
                Err(problem) => self.say(&format!("That is no list of shares: {problem}.\n"))?,
            }
        }
    }

    fn say(&mut self, words: &str) -> io::Result<()> {
        self.output.write_all(words.as_bytes())?;
        self.output.flush()
    }

    fn line(&mut self, question: &str) -> io::Result<String> {
        self.say(question)?;
        let mut line = String::new();
        if self.input.read_line(&mut line)? == 0 {
            let problem = "the answers ended before the last question";
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, problem));
        }
        Ok(line.trim().to_owned())
    }

    /// An empty answer is no.
    fn confirms(&mut self, question: &str) -> io::Result<bool> {
        loop {
            match self.line(&format!("{question} (y/N): "))?.to_lowercase().as_str() {
                "y" | "yes" => return Ok(true),
                "" | "n" | "no" => return Ok(false),
                _ => self.say("Answer y or n.\n")?,
            }
        }
    }

    fn number(
        &mut self,
        question: &str,
        default: Option<u32>,
        range: std::ops::RangeInclusive<u32>,
    ) -> io::Result<u32> {
        let shown = default.map_or(String::new(), |default| format!(" [{default}]"));
        loop {
            let answer = self.line(&format!("{question}{shown}: "))?;
            if answer.is_empty()
                && let Some(default) = default
            {
                return Ok(default);
            }
            match answer.parse() {
                Ok(number) if range.contains(&number) => return Ok(number),
                _ => {
                    let (least, most) = (range.start(), range.end());
                    self.say(&format!("Answer a whole number from {least} to {most}.\n"))?;
                }
            }
        }
    }
}
