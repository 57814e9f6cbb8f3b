//! Which volume has a backing already.

use std::fs;
use std::os::unix::fs::MetadataExt;

use entresol_wire::nbd::Uri;

use crate::error::{Error, ErrorKind};

/// What is said if another than volume `name` has the backing at `place` already. `others` are
/// names of volumes and the places of their backings.
pub(crate) fn refusal(name: &str, place: &str, others: &[(String, String)]) -> Option<Error> {
    let (other, _) = others.iter().find(|(other, at)| other != name && is_same(at, place))?;
    let shown = Uri::parse(place)
        .map_or_else(|_| place.to_owned(), |uri| uri.without_credentials().to_string());
    let detail = format!(
        "volume {name}: {shown} is the backing of volume {other} already, and neither would see \
         what the other writes; use that one, or remove it first (`entresol volume remove {other}`)"
    );
    Some(Error::new(ErrorKind::Unavailable, detail))
}

/// Whether two places are one export, or one file or device by whatever paths.
fn is_same(one: &str, other: &str) -> bool {
    if let (Ok(one), Ok(other)) = (Uri::parse(one), Uri::parse(other)) {
        return one.is_same_export(&other);
    }
    match (fs::metadata(one), fs::metadata(other)) {
        (Ok(one), Ok(other)) if one.rdev() != 0 => one.rdev() == other.rdev(),
        (Ok(one), Ok(other)) => (one.dev(), one.ino()) == (other.dev(), other.ino()),
        _ => false,
    }
}
