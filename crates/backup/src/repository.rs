//! The place of a repository: a folder, or a bucket of S3 with a prefix. Calls wait; several
//! threads may make them at a time.
//!
//! Invariant: names are the format's, relative to the place. What else is there is neither read nor
//! changed.

use std::collections::HashMap;
use std::env;
use std::path::{Path as FilePath, PathBuf};
use std::time::SystemTime;

use futures_util::TryStreamExt;
use object_store::aws::AmazonS3Builder;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, PutMode, PutOptions};
use tokio::runtime::{Builder, Runtime};

use crate::error::{Error, ErrorKind, Result};
use crate::format::{MANIFEST_BYTES_MAX, Manifest, ManifestName};

/// A repository of backups.
#[derive(Debug)]
pub struct Repository {
    objects: Box<dyn ObjectStore>,
    prefix: Path,
    /// The folder, where it is one.
    folder: Option<PathBuf>,
    shown: String,
    runtime: Runtime,
}

/// Whether a folder may be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opening {
    /// A folder that is not there is made.
    Create,
    /// It must be there.
    Existing,
}

/// An object, as a list tells of it.
#[derive(Debug, Clone)]
pub(crate) struct Listed {
    pub(crate) name: String,
    pub(crate) bytes: u64,
    pub(crate) changed: SystemTime,
}

const EXPECTED: &str = "a folder or s3://BUCKET/PREFIX";

impl Repository {
    /// The repository at `place`: a folder, or `s3://BUCKET/PREFIX`, whose endpoint, region and
    /// keys the environment names as it does for other programs (`AWS_…`).
    pub fn open(place: &str, opening: Opening) -> Result<Repository> {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.map_err(|error| Error::failed("cannot start a thread", error))?;
        let (objects, prefix, folder) = match place.split_once("://") {
            Some(("s3", rest)) => {
                let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
                (bucket_of(place, bucket)?, Path::from(prefix), None)
            }
            Some((scheme, _)) => {
                return Err(Error::new(
                    ErrorKind::Refused,
                    format!("place {place}: expected {EXPECTED}, found {scheme}://"),
                ));
            }
            None => {
                let (objects, folder) = folder_of(place, opening)?;
                (objects, Path::default(), Some(folder))
            }
        };
        Ok(Repository { objects, prefix, folder, shown: place.to_owned(), runtime })
    }

    /// The place, as it was named.
    pub fn place(&self) -> &str {
        &self.shown
    }

    /// The names of all backups, the oldest first.
    pub fn backups(&self) -> Result<Vec<ManifestName>> {
        let listed = self.list("manifests")?;
        let names = listed.iter().filter_map(|object| ManifestName::parse(&object.name));
        let mut names: Vec<ManifestName> = names.collect();
        names.sort_unstable();
        Ok(names)
    }

    /// The manifest of that name.
    pub fn manifest(&self, name: &ManifestName) -> Result<Manifest> {
        let text = self.get(&name.to_string(), MANIFEST_BYTES_MAX)?;
        Manifest::decode(name, &text)
            .map_err(|what| Error::damaged(format!("{name} in {}: {what}", self.shown)))
    }

    /// All manifests, the oldest first, each with its name; what is wrong with one in its place.
    pub fn manifests(&self) -> Result<Vec<(ManifestName, Result<Manifest>)>> {
        let names = self.backups()?.into_iter();
        Ok(names.map(|name| (name.clone(), self.manifest(&name))).collect())
    }

    /// The objects whose names begin with `folder/`.
    pub(crate) fn list(&self, folder: &str) -> Result<Vec<Listed>> {
        let below = self.path(folder);
        let listing = self.objects.list(Some(&below)).try_collect::<Vec<_>>();
        let metas = self.runtime.block_on(listing);
        let metas =
            metas.map_err(|error| Error::failed(format!("cannot list {}", self.shown), error))?;
        let skipped = self.prefix.as_ref().len();
        let listed = metas.into_iter().filter_map(|meta| {
            let name = meta.location.as_ref().get(skipped..)?.trim_start_matches('/');
            Some(Listed {
                name: name.to_owned(),
                bytes: meta.size,
                changed: meta.last_modified.into(),
            })
        });
        Ok(listed.collect())
    }

    /// Lengths of the objects whose names begin with `folder/`.
    pub(crate) fn lengths(&self, folder: &str) -> Result<HashMap<String, u64>> {
        let listed = self.list(folder)?.into_iter();
        Ok(listed.map(|object| (object.name, object.bytes)).collect())
    }

    /// The bytes of an object, which has at most `bytes_max`.
    pub(crate) fn get(&self, name: &str, bytes_max: u64) -> Result<bytes::Bytes> {
        let wrong = |error: object_store::Error| match error {
            object_store::Error::NotFound { .. } => Error::damaged(format!(
                "object {name}: expected it in {}, found nothing",
                self.shown
            )),
            error => Error::failed(format!("cannot read {name} from {}", self.shown), error),
        };
        self.runtime.block_on(async {
            let found = self.objects.get(&self.path(name)).await.map_err(wrong)?;
            let length = found.meta.size;
            if length > bytes_max {
                return Err(Error::damaged(format!(
                    "object {name} in {}: expected at most {bytes_max} bytes, found {length}",
                    self.shown
                )));
            }
            found.bytes().await.map_err(wrong)
        })
    }

    /// Writes an object: whole, or not at all.
    pub(crate) fn put(&self, name: &str, bytes: Vec<u8>) -> Result<()> {
        self.put_by(name, bytes, PutMode::Overwrite).map(drop)
    }

    /// As [`Repository::put`], where none has the name. Whether it was written.
    pub(crate) fn put_new(&self, name: &str, bytes: Vec<u8>) -> Result<bool> {
        self.put_by(name, bytes, PutMode::Create)
    }

    fn put_by(&self, name: &str, bytes: Vec<u8>, mode: PutMode) -> Result<bool> {
        let options = PutOptions { mode, ..PutOptions::default() };
        let path = self.path(name);
        match self.runtime.block_on(self.objects.put_opts(&path, bytes.into(), options)) {
            Ok(_) => Ok(true),
            Err(object_store::Error::AlreadyExists { .. }) => Ok(false),
            Err(error) => {
                Err(Error::failed(format!("cannot write {name} into {}", self.shown), error))
            }
        }
    }

    /// Removes an object, if it is there.
    pub(crate) fn remove(&self, name: &str) -> Result<()> {
        match self.runtime.block_on(self.objects.delete(&self.path(name))) {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => {
                Err(Error::failed(format!("cannot remove {name} from {}", self.shown), error))
            }
        }
    }

    /// The folder, where the repository is one.
    pub(crate) fn folder(&self) -> Option<&FilePath> {
        self.folder.as_deref()
    }

    fn path(&self, name: &str) -> Path {
        Path::from(format!("{}/{name}", self.prefix))
    }
}

fn folder_of(place: &str, opening: Opening) -> Result<(Box<dyn ObjectStore>, PathBuf)> {
    let folder = PathBuf::from(place);
    if place.is_empty() {
        let sentence = format!("place: expected {EXPECTED}, found nothing");
        return Err(Error::new(ErrorKind::Refused, sentence));
    }
    if opening == Opening::Create {
        std::fs::create_dir_all(&folder)
            .map_err(|error| Error::failed(format!("cannot make the folder {place}"), error))?;
    }
    if !folder.is_dir() {
        return Err(Error::new(
            ErrorKind::Refused,
            format!("place {place}: expected {EXPECTED}, found no folder of that name"),
        ));
    }
    // A backup that was told to be there outlives a loss of power.
    let objects = LocalFileSystem::new_with_prefix(&folder)
        .map_err(|error| Error::failed(format!("cannot open the folder {place}"), error))?
        .with_fsync(true);
    Ok((Box::new(objects), folder))
}

fn bucket_of(place: &str, bucket: &str) -> Result<Box<dyn ObjectStore>> {
    if bucket.is_empty() {
        let sentence = format!("place {place}: expected {EXPECTED}, found no bucket");
        return Err(Error::new(ErrorKind::Refused, sentence));
    }
    // Where a library of this program was first, it chose the same.
    let _others = rustls::crypto::ring::default_provider().install_default();
    let mut builder = AmazonS3Builder::from_env().with_bucket_name(bucket);
    let names_plain_http = |name| env::var(name).is_ok_and(|url| url.starts_with("http://"));
    if ["AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT"].into_iter().any(names_plain_http)
    {
        builder = builder.with_allow_http(true);
    }
    let objects = builder.build();
    let objects = objects.map_err(|error| Error::failed(format!("cannot use {place}"), error))?;
    Ok(Box::new(objects))
}
