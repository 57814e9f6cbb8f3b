//! A hash as the value of one entry.
//!
//! ```text
//! field length u32 | value length u32 | field | value   … once for each field, in order
//! ```
//!
//! Lengths are little-endian. Fields are distinct. The order is that in which fields were first
//! set, which is the order small hashes of redis-server have.

/// Bytes of the two lengths.
const LENGTHS: usize = 8;

/// The fields of an encoded hash.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HashValue<'a>(&'a [u8]);

/// A field with its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Field<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) value: &'a [u8],
}

impl<'a> HashValue<'a> {
    /// The hash encoded in `bytes`. What is damaged at the end is left out.
    pub(crate) fn new(bytes: &'a [u8]) -> HashValue<'a> {
        HashValue(bytes)
    }

    /// All fields.
    pub(crate) fn fields(self) -> Fields<'a> {
        Fields(self.0)
    }

    /// How many fields there are.
    pub(crate) fn len(self) -> usize {
        self.fields().count()
    }

    /// The value of field `name`.
    pub(crate) fn get(self, name: &[u8]) -> Option<&'a [u8]> {
        self.fields().find(|field| field.name == name).map(|field| field.value)
    }
}

/// The fields of a hash, one after the other.
#[derive(Debug, Clone)]
pub(crate) struct Fields<'a>(&'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = Field<'a>;

    fn next(&mut self) -> Option<Field<'a>> {
        let (name_length, rest) = self.0.split_first_chunk::<4>()?;
        let (value_length, rest) = rest.split_first_chunk::<4>()?;
        let (name, rest) = rest.split_at_checked(u32::from_le_bytes(*name_length) as usize)?;
        let (value, rest) = rest.split_at_checked(u32::from_le_bytes(*value_length) as usize)?;
        self.0 = rest;
        Some(Field { name, value })
    }
}

/// Appends a field to the encoding of a hash that does not have it.
pub(crate) fn push(encoded: &mut Vec<u8>, field: Field<'_>) {
    encoded.reserve(LENGTHS + field.name.len() + field.value.len());
    encoded.extend_from_slice(&(field.name.len() as u32).to_le_bytes());
    encoded.extend_from_slice(&(field.value.len() as u32).to_le_bytes());
    encoded.extend_from_slice(field.name);
    encoded.extend_from_slice(field.value);
}

/// Sets a field, in its old place if there is one; whether it is new.
pub(crate) fn set(encoded: &mut Vec<u8>, field: Field<'_>) -> IsNew {
    let Some((start, value_start, end)) = find(encoded, field.name) else {
        push(encoded, field);
        return IsNew::Yes;
    };
    let length = (field.value.len() as u32).to_le_bytes();
    encoded[start + 4..start + LENGTHS].copy_from_slice(&length);
    encoded.splice(value_start..end, field.value.iter().copied());
    IsNew::No
}

/// Whether a field was not there before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IsNew {
    Yes,
    No,
}

/// Removes field `name`; whether it was there.
pub(crate) fn remove(encoded: &mut Vec<u8>, name: &[u8]) -> Option<()> {
    let (start, _, end) = find(encoded, name)?;
    encoded.drain(start..end);
    Some(())
}

/// Where field `name` starts, where its value starts, and where it ends.
fn find(encoded: &[u8], name: &[u8]) -> Option<(usize, usize, usize)> {
    let mut start = 0;
    for field in HashValue(encoded).fields() {
        let value_start = start + LENGTHS + field.name.len();
        let end = value_start + field.value.len();
        if field.name == name {
            return Some((start, value_start, end));
        }
        start = end;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(encoded: &[u8]) -> Vec<(String, String)> {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        HashValue::new(encoded).fields().map(|f| (text(f.name), text(f.value))).collect()
    }

    #[test]
    fn a_field_keeps_its_place_when_set_again() {
        let mut encoded = Vec::new();
        for (name, value) in [("a", "1"), ("b", ""), ("c", "333"), ("b", "long value"), ("a", "")] {
            set(&mut encoded, Field { name: name.as_bytes(), value: value.as_bytes() });
        }
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(shown(&encoded), [pair("a", ""), pair("b", "long value"), pair("c", "333")]);
        assert_eq!(remove(&mut encoded, b"b"), Some(()));
        assert_eq!(remove(&mut encoded, b"b"), None);
        assert_eq!(shown(&encoded), [pair("a", ""), pair("c", "333")]);
    }

    #[test]
    fn damaged_bytes_are_no_fields() {
        let mut encoded = Vec::new();
        push(&mut encoded, Field { name: b"a", value: b"1" });
        encoded.extend_from_slice(&[255; 9]);
        assert_eq!(HashValue::new(&encoded).len(), 1);
    }
}
