//! The types of values. Each is a pair of files: how a value lies in its entry, and the commands of
//! the type. Another one takes a label and a name here, its pair, and its rows in the tables of
//! commands ([`super::table`], [`super::dispatch`]).

pub(crate) mod hash;
pub(crate) mod hash_value;
pub(crate) mod string;
pub(crate) mod string_bits;
pub(crate) mod string_value;

/// The label of entries that hold a string.
pub(crate) const STRING: u8 = 0;
/// The label of entries that hold a hash.
pub(crate) const HASH: u8 = 1;

/// The name of the type that `label` stands for.
pub(crate) fn type_name(label: u8) -> &'static str {
    match label {
        STRING => "string",
        HASH => "hash",
        _ => "unknown",
    }
}
