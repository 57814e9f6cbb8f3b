//! Patterns of keys: `*`, `?`, `[a-c]`, `[^x]` and `\` as in the shell, over bytes.
//!
//! Matching takes at most (length of pattern) × (length of text) steps: only the last `*` is ever
//! tried again, which suffices because an earlier one could not match more than a later one can.

/// Whether all of `text` matches `pattern`.
pub(crate) fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while t < text.len() {
        if pattern.get(p) == Some(&b'*') {
            p += 1;
            retry = Some((p, t));
        } else if let Some(next) = one(pattern, p, text[t]) {
            p = next;
            t += 1;
        } else if let Some((star, from)) = retry {
            p = star;
            t = from + 1;
            retry = Some((star, t));
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

/// Where the pattern goes on if its element at `p` matches `byte`.
fn one(pattern: &[u8], p: usize, byte: u8) -> Option<usize> {
    match *pattern.get(p)? {
        b'?' => Some(p + 1),
        b'[' => set(pattern, p + 1, byte),
        b'\\' if p + 1 < pattern.len() => (pattern[p + 1] == byte).then_some(p + 2),
        literal => (literal == byte).then_some(p + 1),
    }
}

/// A set whose elements start at `p`; one that does not end is taken to end with the pattern.
fn set(pattern: &[u8], mut p: usize, byte: u8) -> Option<usize> {
    let negated = pattern.get(p) == Some(&b'^');
    p += usize::from(negated);
    let mut found = false;
    loop {
        match pattern.get(p..).unwrap_or_default() {
            [] => break,
            [b']', ..] => {
                p += 1;
                break;
            }
            [b'\\', escaped, ..] => {
                found |= *escaped == byte;
                p += 2;
            }
            [low, b'-', high, ..] => {
                let (low, high) = (low.min(high), low.max(high));
                found |= (*low..=*high).contains(&byte);
                p += 3;
            }
            [literal, ..] => {
                found |= *literal == byte;
                p += 1;
            }
        }
    }
    (found != negated).then_some(p)
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns_match_what_they_say() {
        for (pattern, text, expected) in [
            ("*", "", true),
            ("*", "abc", true),
            ("", "", true),
            ("", "a", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("a*c", "abbbc", true),
            ("a*c", "abbbd", false),
            ("*a*b*", "xaxbx", true),
            ("h[ae]llo", "hello", true),
            ("h[^e]llo", "hello", false),
            ("h[a-c]llo", "hbllo", true),
            ("h[c-a]llo", "hbllo", true),
            ("\\*", "*", true),
            ("\\*", "x", false),
            ("[\\]]", "]", true),
            ("user:*:name", "user:1:2:name", true),
        ] {
            assert_eq!(matches(pattern.as_bytes(), text.as_bytes()), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn many_stars_take_bounded_time() {
        let pattern = b"*a".repeat(200);
        let text = b"b".repeat(20_000);
        assert!(!matches(&pattern, &text));
    }
}
