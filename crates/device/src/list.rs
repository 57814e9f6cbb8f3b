//! A list of devices as people write it: `A,B,C`, with `{n}` for the number of the instance.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::creation;
use crate::device::Device;
use crate::error::{Error, ErrorKind, Result};
use crate::file::{FileDevice, FileOptions, Growth, Progress};
use crate::stripe::{STRIPE_MAGIC, StripeDevice, StripeOptions};

/// Paths of files or block devices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceList {
    paths: Vec<PathBuf>,
}

/// What a list of several devices means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Selection {
    /// The first that exists is used. If none does and a capacity is given, the first is made.
    SearchPath,
    /// All are used, as a stripe. A capacity is that of the stripe.
    Stripe {
        /// Bytes that go to one device before the next, for a new stripe.
        unit_bytes: u64,
    },
}

impl DeviceList {
    /// Reads a list: paths separated by commas, blanks around them ignored, every `{n}` replaced by
    /// `instance`. `InvalidInput` if a path is empty or given twice.
    pub fn parse(text: &str, instance: u32) -> Result<DeviceList> {
        let invalid = |what: &str| {
            let detail = format!("device list {text:?}: {what}; expected paths like A,B,C");
            Error::new(ErrorKind::InvalidInput, detail)
        };
        let mut paths: Vec<PathBuf> = Vec::new();
        for path in text.split(',').map(str::trim) {
            let path = PathBuf::from(path.replace("{n}", &instance.to_string()));
            if path.as_os_str().is_empty() {
                return Err(invalid("a path is empty"));
            }
            if paths.contains(&path) {
                return Err(invalid(&format!("{} is in it twice", path.display())));
            }
            paths.push(path);
        }
        Ok(DeviceList { paths })
    }

    /// The paths, instance number filled in.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.paths.iter().map(PathBuf::as_path)
    }

    /// Opens what the list selects. `report` hears how far the making of files is.
    ///
    /// Errors: `NotFound` if nothing in a search path exists and no capacity is given; else those
    /// of [`FileDevice::open`] and [`StripeDevice::open`].
    pub fn open(
        &self,
        selection: Selection,
        options: &FileOptions,
        report: &mut dyn FnMut(Progress),
    ) -> Result<Arc<dyn Device>> {
        let made = options.made.clone().unwrap_or_default();
        let options = &FileOptions { made: Some(made.clone()), ..options.clone() };
        let opened = match selection {
            Selection::SearchPath => self.open_first(options, report),
            Selection::Stripe { unit_bytes } => self.open_stripe(unit_bytes, options, report),
        };
        opened.inspect_err(|_| made.remove())
    }

    fn open_first(
        &self,
        options: &FileOptions,
        report: &mut dyn FnMut(Progress),
    ) -> Result<Arc<dyn Device>> {
        let found = self.paths.iter().find(|path| path.exists());
        let path = match (found, options.capacity_bytes) {
            (Some(path), _) => path,
            (None, Some(_)) => &self.paths[0],
            (None, None) => {
                creation::check_place(&self.paths[0])?;
                let paths = self.paths.iter().map(|path| path.display().to_string());
                let detail = format!(
                    "none of {} exists: correct the names, or name a capacity to make the first \
                     as a file",
                    paths.collect::<Vec<_>>().join(", ")
                );
                return Err(Error::new(ErrorKind::NotFound, detail));
            }
        };
        Ok(Arc::new(FileDevice::open_with_progress(path, options, report)?))
    }

    fn open_stripe(
        &self,
        unit_bytes: u64,
        options: &FileOptions,
        report: &mut dyn FnMut(Progress),
    ) -> Result<Arc<dyn Device>> {
        let count = self.paths.len() as u64;
        // Each member has a unit for its label besides.
        let of_member = |total: u64| {
            (total.div_ceil(count).div_ceil(unit_bytes.max(1)) + 1).saturating_mul(unit_bytes)
        };
        let options = FileOptions {
            capacity_bytes: options.capacity_bytes.map(of_member),
            own_magics: vec![STRIPE_MAGIC.to_vec()],
            ..options.clone()
        };
        let mut members: Vec<Arc<dyn Device>> = Vec::new();
        for (index, path) in self.paths.iter().enumerate() {
            let done = index as u64;
            let mut report = |progress: Progress| {
                report(Progress {
                    done_bytes: done * progress.total_bytes + progress.done_bytes,
                    total_bytes: count * progress.total_bytes,
                });
            };
            members.push(Arc::new(FileDevice::open_with_progress(path, &options, &mut report)?));
        }
        let FileOptions { force, makes, .. } = options;
        // Where nothing says how large it is to be, it stays as large as it is.
        let growth = options.capacity_bytes.map_or(Growth::Never, |_| options.growth);
        let stripe = StripeOptions { unit_bytes, force, makes, growth };
        Ok(Arc::new(StripeDevice::open(members, stripe)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::creation::MadeFiles;
    use crate::testing::TempDir;

    #[test]
    fn nobody_is_told_to_make_a_file_among_devices() {
        let told = |paths| {
            let list = DeviceList::parse(paths, 1).unwrap();
            let options = FileOptions { capacity_bytes: None, ..FileOptions::default() };
            let error = list.open(Selection::SearchPath, &options, &mut |_| {}).err().unwrap();
            assert_eq!(error.kind(), ErrorKind::NotFound, "{paths}");
            error.to_string()
        };
        assert!(told("/dev/no-such-device").contains("lsblk"));
        assert!(told("/no/such/folder/file").contains("name a capacity"));
    }

    /// The first file of a stripe stayed where there was no room for the second.
    #[test]
    fn a_stripe_that_cannot_be_made_leaves_no_file() {
        let dir = TempDir::new("half-a-stripe");
        let (first, second) = (dir.path().join("first"), dir.path().join("missing/second"));
        let paths = format!("{},{}", first.display(), second.display());
        let list = DeviceList::parse(&paths, 1).unwrap();
        let options = FileOptions { capacity_bytes: Some(4 << 20), ..FileOptions::default() };
        let stripe = Selection::Stripe { unit_bytes: 1 << 20 };
        let error = list.open(stripe, &options, &mut |_| {}).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(!first.exists());
    }

    /// What another process had made at the same name meanwhile was removed.
    #[test]
    fn only_what_was_made_is_removed() {
        let dir = TempDir::new("made-files");
        let path = dir.path().join("file");
        let made = MadeFiles::default();
        let options = |capacity_bytes| FileOptions {
            capacity_bytes,
            made: Some(made.clone()),
            ..FileOptions::default()
        };
        let making = options(Some(1 << 20));
        let list = DeviceList::parse(&path.display().to_string(), 1).unwrap();
        drop(list.open(Selection::SearchPath, &making, &mut |_| {}).unwrap());
        let refused = FileDevice::open(&path, &making).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InUse, "others may have it before it is given up");
        std::fs::rename(&path, dir.path().join("renamed")).unwrap();
        std::fs::write(&path, b"another's").unwrap();
        made.remove();
        assert!(path.exists() && dir.path().join("renamed").exists());

        let other = dir.path().join("renamed");
        drop(FileDevice::open(&other, &options(None)).unwrap());
        made.remove();
        assert!(other.exists(), "it was there before");
    }

    #[test]
    fn lists_name_paths_and_instances() {
        let list = DeviceList::parse("/dev/a{n}, b/{n}/{n} ,c", 7).unwrap();
        let paths: Vec<&Path> = list.paths().collect();
        assert_eq!(paths, ["/dev/a7", "b/7/7", "c"].map(Path::new));
        for wrong in ["", "a,,b", "a,", "a,a", "a1,a{n}"] {
            let error = DeviceList::parse(wrong, 1).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{wrong:?}");
        }
    }
}
