//! How a function gets its two names, and what becomes of errors and panics.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::text;
use crate::text::Failure;

/// A function of longs under its C name and its Java one.
macro_rules! export {
    ($(#[$attribute:meta])* $name:ident, $java:ident ($($argument:ident),*) $body:block) => {
        $(#[$attribute])*
        ///
        /// # Safety
        /// Addresses must be live ones that this library gave out for the purpose, or point to as
        /// many readable bytes as the arguments say.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: i64),*) -> i64 {
            $crate::export::guarded(move || $body)
        }

        /// The same, as Java's native interface calls it.
        ///
        /// # Safety
        /// As above.
        #[unsafe(no_mangle)]
        pub unsafe extern "system" fn $java(
            _environment: *mut std::ffi::c_void,
            _class: *mut std::ffi::c_void,
            $($argument: i64),*
        ) -> i64 {
            // SAFETY: the caller keeps to the same contract.
            unsafe { $name($($argument),*) }
        }
    };
}

/// The result of `body`, or the negated address of a text that says why there is none.
pub(crate) fn guarded(body: impl FnOnce() -> Result<i64, Failure>) -> i64 {
    let failure = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(result)) => return result,
        Ok(Err(failure)) => failure,
        Err(panic) => Failure::defect(panic.as_ref()),
    };
    -text::leak(failure.kind, &failure.sentence)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panics_become_failures_with_their_sentence() {
        let result = guarded(|| panic!("a plan went wrong"));
        assert!(result < 0);
        let (kind, sentence) = text::take(-result);
        assert_eq!(kind, text::DEFECT);
        assert!(sentence.contains("a plan went wrong"), "{sentence}");
    }
}
