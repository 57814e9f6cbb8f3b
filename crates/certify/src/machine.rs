//! The machine of a test: processor, memory, kernel, and the hardware of each target.
//!
//! Everything comes from the system's own files; values that they lack stay `None`. Nothing here
//! fails, because a report with gaps is better than none.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// A machine and the targets of a test.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Machine {
    /// Its name in the network.
    pub host: Option<String>,
    /// `Linux 6.1.0 x86_64`.
    pub kernel: Option<String>,
    /// Model of the processor.
    pub processor: Option<String>,
    /// Processors that the system runs on.
    pub processors: usize,
    /// Bytes of RAM.
    pub memory_bytes: Option<u64>,
    /// In the order in which they were asked for.
    pub targets: Vec<TargetHardware>,
}

/// What a target is and lies on.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TargetHardware {
    /// As configured.
    pub name: String,
    /// `file`, `block device`, `partition`, `loop device`, …
    pub kind: String,
    /// The block device that it is or lies on: `nvme0n1`.
    pub device: Option<String>,
    /// Its model.
    pub model: Option<String>,
    /// Version of its firmware.
    pub firmware: Option<String>,
    /// Its serial number.
    pub serial: Option<String>,
    /// The driver that the system uses for it.
    pub driver: Option<String>,
    /// Bytes of the whole device.
    pub bytes: Option<u64>,
    /// The scheduler of its queue.
    pub scheduler: Option<String>,
    /// Requests that its queue holds.
    pub queue_requests: Option<u64>,
    /// Does it turn?
    pub rotational: Option<String>,
    /// `write back` or `write through`.
    pub write_cache: Option<String>,
    /// Bytes of its logical and its physical sector.
    pub sector_bytes: Option<(u64, u64)>,
    /// For files: type of the file system, where it is mounted, with which options.
    pub file_system: Option<String>,
    /// For loop devices: the file.
    pub backing_file: Option<String>,
}

/// Where the system's files are.
#[derive(Debug, Clone)]
struct Roots {
    proc: PathBuf,
    sys: PathBuf,
}

impl Machine {
    /// This machine, and what its system says of `targets`.
    pub fn look<T: AsRef<str>>(targets: &[T]) -> Machine {
        let roots = Roots { proc: PathBuf::from("/proc"), sys: PathBuf::from("/sys") };
        let mut machine = roots.machine();
        machine.targets = targets.iter().map(|name| roots.target(name.as_ref())).collect();
        machine
    }
}

impl TargetHardware {
    /// In a few words: model, firmware, size.
    pub fn summary(&self) -> String {
        let mut words: Vec<String> = Vec::new();
        words.extend(self.model.clone());
        words.extend(self.firmware.as_ref().map(|version| format!("firmware {version}")));
        words.extend(self.bytes.map(|bytes| format!("{:.1} GB", bytes as f64 / 1e9)));
        if words.is_empty() { "not told by the system".to_owned() } else { words.join(", ") }
    }
}

impl Roots {
    fn machine(&self) -> Machine {
        let kernel = |name: &str| text(&self.proc.join("sys/kernel").join(name));
        let kernel_words = [kernel("ostype"), kernel("osrelease"), kernel("arch")];
        let kernel_words: Vec<String> = kernel_words.into_iter().flatten().collect();
        let cpuinfo = fs::read_to_string(self.proc.join("cpuinfo")).unwrap_or_default();
        let value = |wanted: &str| {
            let line = cpuinfo.lines().find(|line| line.starts_with(wanted))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        };
        Machine {
            host: kernel("hostname"),
            kernel: (!kernel_words.is_empty()).then(|| kernel_words.join(" ")),
            processor: value("model name").or_else(|| value("CPU part")),
            processors: cpuinfo.lines().filter(|line| line.starts_with("processor")).count(),
            memory_bytes: self.memory_bytes(),
            targets: Vec::new(),
        }
    }

    fn memory_bytes(&self) -> Option<u64> {
        let meminfo = fs::read_to_string(self.proc.join("meminfo")).ok()?;
        entresol_device::memory_bytes_in(&meminfo)
    }

    fn target(&self, name: &str) -> TargetHardware {
        let mut found = TargetHardware { name: name.to_owned(), ..TargetHardware::default() };
        let Ok(metadata) = fs::metadata(name) else {
            found.kind = "not there yet".to_owned();
            return found;
        };
        let number = if metadata.file_type().is_block_device() {
            found.kind = "block device".to_owned();
            metadata.rdev()
        } else {
            found.kind = "file".to_owned();
            found.file_system = self.file_system(name);
            metadata.dev()
        };
        self.describe(number, &mut found);
        found
    }

    fn describe(&self, number: u64, found: &mut TargetHardware) {
        let (major, minor) = (nix::sys::stat::major(number), nix::sys::stat::minor(number));
        let link = self.sys.join(format!("dev/block/{major}:{minor}"));
        let Ok(mut directory) = fs::canonicalize(link) else { return };
        let is_target = found.kind == "block device";
        if directory.join("partition").exists() {
            if is_target {
                found.kind = "partition".to_owned();
            }
            directory.pop();
        }
        let own = |file: &str| text(&directory.join(file));
        if is_target && directory.join("loop").exists() {
            found.kind = "loop device".to_owned();
            found.backing_file = own("loop/backing_file");
        }
        found.device = directory.file_name().map(|name| name.to_string_lossy().into_owned());
        let vendor = own("device/vendor").filter(|vendor| !vendor.starts_with("0x"));
        let model = own("device/model");
        let words: Vec<String> = vendor.into_iter().chain(model).collect();
        found.model = (!words.is_empty()).then(|| words.join(" "));
        found.firmware = own("device/firmware_rev").or_else(|| own("device/rev"));
        found.serial = own("device/serial").or_else(|| own("serial"));
        found.driver = fs::read_link(directory.join("device/driver"))
            .ok()
            .and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
        let number = |file: &str| own(file).and_then(|text| text.parse::<u64>().ok());
        found.bytes = number("size").map(|sectors| sectors * 512);
        found.scheduler = own("queue/scheduler").map(|list| chosen(&list));
        found.queue_requests = number("queue/nr_requests");
        found.rotational = number("queue/rotational")
            .map(|turns| if turns == 0 { "no" } else { "yes" }.to_owned());
        found.write_cache = own("queue/write_cache");
        found.sector_bytes =
            number("queue/logical_block_size").zip(number("queue/physical_block_size"));
    }

    /// The mount that a file lies in: the one with the longest mount point.
    fn file_system(&self, name: &str) -> Option<String> {
        let path = fs::canonicalize(name).ok()?;
        let mounts = fs::read_to_string(self.proc.join("self/mountinfo")).ok()?;
        let parsed = mounts.lines().filter_map(|line| {
            let (mount, kind) = line.split_once(" - ")?;
            let mut mount = mount.split(' ').skip(4);
            let (point, options) = (mount.next()?, mount.next()?);
            path.starts_with(point).then(|| (point, options, kind.split(' ').next().unwrap_or("")))
        });
        let (point, options, kind) = parsed.max_by_key(|(point, ..)| point.len())?;
        Some(format!("{kind} on {point} ({options})"))
    }
}

/// The trimmed text of a small file, if there is any.
fn text(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// The scheduler in brackets of `none [mq-deadline] bfq`.
fn chosen(list: &str) -> String {
    let inside = list.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    inside.map_or(list, |(name, _)| name).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn write(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn a_partition_is_described_by_its_device() {
        let root = std::env::temp_dir().join(format!("entresol-machine-{}", std::process::id()));
        let sys = root.join("sys");
        let device = sys.join("devices/nvme/nvme0n1");
        write(&device.join("device/model"), "  Fast Drive 9 \n");
        write(&device.join("device/firmware_rev"), "1.0b\n");
        write(&device.join("device/vendor"), "0x1af4\n");
        write(&device.join("size"), "2048\n");
        write(&device.join("queue/scheduler"), "[none] mq-deadline\n");
        write(&device.join("queue/logical_block_size"), "512\n");
        write(&device.join("queue/physical_block_size"), "4096\n");
        write(&device.join("nvme0n1p1/partition"), "1\n");
        fs::create_dir_all(sys.join("dev/block")).unwrap();
        symlink(device.join("nvme0n1p1"), sys.join("dev/block/259:1")).unwrap();
        let roots = Roots { proc: root.join("proc"), sys };
        let kind = "block device".to_owned();
        let mut found = TargetHardware { kind, ..TargetHardware::default() };
        roots.describe(nix::sys::stat::makedev(259, 1), &mut found);
        fs::remove_dir_all(&root).unwrap();
        assert_eq!(found.kind, "partition");
        assert_eq!(found.device.as_deref(), Some("nvme0n1"));
        assert_eq!(found.summary(), "Fast Drive 9, firmware 1.0b, 0.0 GB");
        assert_eq!(found.scheduler.as_deref(), Some("none"));
        assert_eq!((found.bytes, found.sector_bytes), (Some(1_048_576), Some((512, 4096))));
    }

    #[test]
    fn what_the_system_does_not_tell_stays_open() {
        let nowhere = PathBuf::from("/nowhere");
        let roots = Roots { proc: nowhere.clone(), sys: nowhere };
        assert_eq!(roots.machine(), Machine::default());
        let gone = roots.target("/nowhere/device");
        assert_eq!(gone.kind, "not there yet");
        assert_eq!(gone.summary(), "not told by the system");
    }

    #[test]
    fn this_machine_has_processors_and_memory() {
        let name = std::env::current_exe().unwrap();
        let machine = Machine::look(&[name.to_string_lossy()]);
        assert!(machine.processors > 0 && machine.memory_bytes > Some(0));
        assert_eq!(machine.targets[0].kind, "file");
        assert!(machine.targets[0].file_system.is_some());
    }
}
