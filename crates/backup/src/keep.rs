//! Removes the oldest backups, and what no backup needs any more.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use crate::error::{Error, Result};
use crate::format::{Id, ManifestName, StoreId, is_object_name};
use crate::marks::{Mark, Work};
use crate::repository::Repository;

/// What was removed, and what is left.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Kept {
    /// Backups that were removed, the oldest first.
    pub removed: Vec<Id>,
    /// Backups that are left.
    pub backups: u64,
    /// Objects that were removed.
    pub objects_removed: u64,
    /// Bytes of these objects.
    pub bytes_removed: u64,
}

/// Keeps the newest `count` backups of each store, and the objects that they need.
pub fn keep(repository: &Repository, count: usize, now_seconds: u64) -> Result<Kept> {
    let mut mark = Mark::set(repository, Work::Removing, Id::next(now_seconds, None))?;
    let mut stores: BTreeMap<StoreId, Vec<ManifestName>> = BTreeMap::new();
    let mut needed = HashSet::new();
    let (mut kept, mut removed) = (Kept::default(), Vec::new());
    for name in repository.backups()? {
        stores.entry(name.store).or_default().push(name);
    }
    for names in stores.into_values() {
        let (oldest, newest) = names.split_at(names.len().saturating_sub(count));
        removed.extend_from_slice(oldest);
        for name in newest {
            // What a manifest needs that cannot be read is not known, so nothing may go.
            let manifest = repository.manifest(name).map_err(|error| {
                let next = "nothing was removed; `entresol backup --verify` says more";
                Error::new(error.kind(), format!("{error}: {next}"))
            })?;
            needed.extend(manifest.rows.into_iter().map(|row| row.object));
            kept.backups += 1;
        }
    }
    removed.sort_unstable();
    // Manifests first: no moment shows a backup whose objects are gone.
    for name in removed {
        repository.remove(&name.to_string())?;
        kept.removed.push(name.id);
    }
    for object in repository.list("segments")? {
        if is_object_name(&object.name) && !needed.contains(&object.name) {
            mark.renew()?;
            repository.remove(&object.name)?;
            kept.objects_removed += 1;
            kept.bytes_removed += object.bytes;
        }
    }
    if let Some(folder) = repository.folder() {
        remove_unfinished(folder)?;
    }
    Ok(kept)
}

/// Removes files that a killed process was writing: they have the name of an object, `#` and a
/// number, and lists do not show them.
fn remove_unfinished(folder: &Path) -> Result<()> {
    let failed = |error| Error::failed(format!("cannot clean up {}", folder.display()), error);
    let mut folders = vec![folder.join("manifests")];
    if let Ok(stores) = folder.join("segments").read_dir() {
        folders.extend(stores.filter_map(|store| Some(store.ok()?.path())));
    }
    for files in folders.iter().filter_map(|folder| folder.read_dir().ok()) {
        for file in files {
            let file = file.map_err(failed)?;
            let name = file.file_name();
            let name = format!("segments/0123456789abcdef/{}", name.to_string_lossy());
            let is_unfinished = name.split_once('#').is_some_and(|(object, number)| {
                let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
                let manifest = object.replacen("segments/0123456789abcdef", "manifests", 1);
                is_number && (is_object_name(object) || ManifestName::parse(&manifest).is_some())
            });
            if is_unfinished {
                std::fs::remove_file(file.path()).map_err(failed)?;
            }
        }
    }
    Ok(())
}
