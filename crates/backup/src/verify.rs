//! Reads everything that backups need, and says what is damaged.

use std::collections::BTreeMap;

use crate::error::{Error, ErrorKind, Result};
use crate::format::{Id, Row, decode, object_bytes_max};
use crate::parallel;
use crate::repository::Repository;

/// What was read.
#[derive(Debug, Clone, Default)]
pub struct Verified {
    /// Backups whose manifests can be read.
    pub backups: u64,
    /// Objects that they name.
    pub objects: u64,
    /// Raw bytes of these objects.
    pub bytes: u64,
    /// What is not as it was.
    pub damaged: Vec<Damage>,
}

/// Something that is not as it was.
#[derive(Debug, Clone)]
pub struct Damage {
    /// The object or manifest.
    pub name: String,
    /// What is expected there, and what was found.
    pub what: String,
    /// The backups that need it, the oldest first.
    pub backups: Vec<Id>,
}

/// An object, and who needs it.
struct Needed {
    row: Row,
    backups: Vec<Id>,
}

/// Reads all manifests and all objects that they name. Tells `progress` of so many objects, of all.
pub fn verify(
    repository: &Repository,
    progress: &mut (dyn FnMut(u64, u64) + Send),
) -> Result<Verified> {
    let mut verified = Verified::default();
    let mut needed: BTreeMap<String, Needed> = BTreeMap::new();
    for (name, manifest) in repository.manifests()? {
        let manifest = match manifest {
            Ok(manifest) => manifest,
            Err(error) if error.kind() == ErrorKind::Damaged => {
                verified.damaged.push(Damage {
                    name: name.to_string(),
                    what: error.to_string(),
                    backups: vec![name.id],
                });
                continue;
            }
            Err(error) => return Err(error),
        };
        verified.backups += 1;
        for row in manifest.rows {
            let id = manifest.id.clone();
            let needed = needed
                .entry(row.object.clone())
                .or_insert_with(|| Needed { row, backups: Vec::new() });
            needed.backups.push(id);
        }
    }
    let needed: Vec<Needed> = needed.into_values().collect();
    let total = needed.len() as u64;
    parallel::each(
        &needed,
        |needed| read(repository, &needed.row),
        |needed, outcome| {
            match outcome {
                Ok(raw) => verified.bytes += raw.len() as u64,
                Err(error) if error.kind() == ErrorKind::Damaged => {
                    verified.damaged.push(Damage {
                        name: needed.row.object.clone(),
                        what: error.to_string(),
                        backups: needed.backups.clone(),
                    });
                }
                Err(error) => return Err(error),
            }
            verified.objects += 1;
            progress(verified.objects, total);
            Ok(())
        },
    )?;
    verified.damaged.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(verified)
}

/// The raw bytes of a segment, verified.
pub(crate) fn read(repository: &Repository, row: &Row) -> Result<Vec<u8>> {
    let object = repository.get(&row.object, object_bytes_max(row.segment.bytes))?;
    decode(&object, row.segment.bytes, row.digest)
        .map_err(|what| Error::damaged(format!("object {}: {what}", row.object)))
}
