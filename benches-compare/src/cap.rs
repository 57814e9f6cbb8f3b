//! A memory cap for a contestant: a cgroup of its own, page cache included. Version 1 and version 2
//! of the interface; where neither can be made the run is uncapped and the report says so.

use std::fs;
use std::path::{Path, PathBuf};

/// A cgroup with a memory limit; removed when dropped.
#[derive(Debug)]
pub struct Cap {
    directory: PathBuf,
    version: Version,
    /// The group that counts reads and writes of devices, and its file of counts.
    io: Option<(PathBuf, &'static str)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

impl Cap {
    /// A cap of `bytes`; `None` where no cgroup can be made.
    pub fn new(name: &str, bytes: u64) -> Option<Cap> {
        let places = [
            (Version::One, "/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            (Version::Two, "/sys/fs/cgroup", "memory.max"),
        ];
        for (version, root, limit) in places {
            let directory = Path::new(root).join(name);
            if fs::create_dir_all(&directory).is_err() {
                continue;
            }
            let io = match version {
                Version::One => {
                    let directory = Path::new("/sys/fs/cgroup/blkio").join(name);
                    let made = fs::create_dir_all(&directory);
                    made.ok().map(|()| {
                        count_transfers(&directory);
                        (directory, "blkio.throttle.io_serviced")
                    })
                }
                Version::Two => Some((directory.clone(), "io.stat")),
            };
            let cap = Cap { directory, version, io };
            if fs::write(cap.directory.join(limit), bytes.to_string()).is_ok() {
                return Some(cap);
            }
        }
        None
    }

    /// The files to which a process writes 0 to come under the cap.
    pub fn entrances(&self) -> Vec<PathBuf> {
        let io = self.io.iter().map(|(directory, _)| directory);
        let mut entrances: Vec<_> = [&self.directory].into_iter().chain(io).collect();
        entrances.dedup();
        entrances.into_iter().map(|directory| directory.join("cgroup.procs")).collect()
    }

    /// The file that counts the processes' reads and writes of devices.
    pub fn io_counts(&self) -> Option<PathBuf> {
        self.io.as_ref().map(|(directory, file)| directory.join(file))
    }

    /// The most memory used so far, page cache included, bytes.
    pub fn peak_bytes(&self) -> u64 {
        let file = match self.version {
            Version::One => "memory.max_usage_in_bytes",
            Version::Two => "memory.peak",
        };
        let text = fs::read_to_string(self.directory.join(file)).unwrap_or_default();
        text.trim().parse().unwrap_or(0)
    }

    /// Processes the kernel killed for want of memory.
    pub fn kills(&self) -> u64 {
        let file = match self.version {
            Version::One => "memory.oom_control",
            Version::Two => "memory.events",
        };
        let text = fs::read_to_string(self.directory.join(file)).unwrap_or_default();
        let words: Vec<&str> = text.split_whitespace().collect();
        let kills = words.windows(2).find(|pair| pair[0] == "oom_kill");
        kills.and_then(|pair| pair[1].parse().ok()).unwrap_or(0)
    }
}

/// Has the kernel count the group's transfers: some count them only where a rate is limited. The
/// limit is one that no device reaches.
fn count_transfers(directory: &Path) {
    let Ok(devices) = fs::read_dir("/sys/block") else { return };
    for device in devices.flatten() {
        if let Ok(number) = fs::read_to_string(device.path().join("dev")) {
            let limit = format!("{} {}", number.trim(), u32::MAX);
            for file in ["blkio.throttle.read_iops_device", "blkio.throttle.write_iops_device"] {
                // Where it is refused, the report has no reads.
                let _ = fs::write(directory.join(file), &limit);
            }
        }
    }
}

impl Drop for Cap {
    fn drop(&mut self) {
        // A cgroup that still holds a dying process refuses; the next run takes it over.
        let _ = fs::remove_dir(&self.directory);
        if let Some((directory, _)) = &self.io {
            let _ = fs::remove_dir(directory);
        }
    }
}
