//! What a visitor of the HTTP interface asks for.

/// A request for something: where it stands, what is wanted of it, and who asks.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// The path.
    pub path: &'a str,
    /// What stands behind it, percent-encoded.
    pub query: &'a str,
    /// Who asks.
    pub standing: Standing,
}

/// What is known of who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Nothing: no token is asked for.
    Anybody,
    /// That the token was shown.
    Known,
}

impl Asked<'_> {
    /// The value of `name` in the query, its percent signs decoded; `None` if it is not there or
    /// not well-formed.
    pub fn value(&self, name: &str) -> Option<Vec<u8>> {
        let mut pairs = self.query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.find(|(key, _)| *key == name).and_then(|(_, value)| decoded(value))
    }
}

/// The bytes that `text` stands for; a plus sign is a space, as forms have it.
fn decoded(text: &str) -> Option<Vec<u8>> {
    let mut bytes = text.bytes();
    let mut out = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'%' => {
                let mut digit = || char::from(bytes.next()?).to_digit(16);
                (digit()? << 4 | digit()?) as u8
            }
            b'+' => b' ',
            other => other,
        });
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_a_query_are_decoded_or_not_there() {
        let query = "key=a%00%ffb+c%2B&space=3&bad=%4&worse=%zz&none";
        let asked = Asked { path: "/", query, standing: Standing::Anybody };
        assert_eq!(asked.value("key").as_deref(), Some(&b"a\0\xFFb c+"[..]));
        assert_eq!(asked.value("space").as_deref(), Some(&b"3"[..]));
        for name in ["bad", "worse", "none", "", "ke"] {
            assert_eq!(asked.value(name), None, "{name}");
        }
    }
}
