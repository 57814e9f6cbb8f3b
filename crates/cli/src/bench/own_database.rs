//! The database of a server that a bench fills.
//!
//! A bench drives servers that people use: it takes an empty database alone, and empties it at the
//! end, also where a signal ends the bench. Connections take what is in flight before they heed the
//! signal, so that nothing is put once the database is empty.

use crate::address::Address;
use crate::client::{Client, Reply, refusal};
use crate::failure::{Failure, Outcome};

/// The database that a bench takes where the command line names none: the last that a server has
/// by default.
pub(crate) const DATABASE: u16 = 15;

/// A database that holds the keys of a bench alone.
pub(crate) struct OwnDatabase {
    address: Address,
    is_emptied: bool,
}

impl OwnDatabase {
    /// The database that `address` names.
    ///
    /// # Errors
    /// It holds keys, or the server refuses it.
    pub(crate) fn take(address: &Address) -> Outcome<OwnDatabase> {
        let keys = Client::connect(address)?.call(&[b"DBSIZE"], |reply| match reply {
            Reply::Integer(keys) => Ok(keys),
            Reply::Error(text) => Err(refusal(text)),
            other => Err(format!("unexpected reply {other:?}")),
        })?;
        let found = match keys {
            Ok(0) => return Ok(OwnDatabase { address: address.clone(), is_emptied: false }),
            Ok(keys) => format!("keys in it: {keys}"),
            Err(said) => said,
        };
        Err(Failure::CannotRun(format!(
            "{address}: expected an empty database, for the bench removes all keys of it at the \
             end; found {found}; name an empty one, as in redis://HOST:PORT/9"
        )))
    }

    /// Removes the keys of the bench.
    pub(crate) fn give_back(mut self) -> Outcome<()> {
        self.is_emptied = true;
        Client::connect(&self.address)?.empty_database()
    }
}

impl Drop for OwnDatabase {
    fn drop(&mut self) {
        if !self.is_emptied {
            // The bench was stopped or failed, and says why itself.
            drop(Client::connect(&self.address).and_then(|mut client| client.empty_database()));
        }
    }
}
