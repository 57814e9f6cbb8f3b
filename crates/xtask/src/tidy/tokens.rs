//! A Rust source as a flat row of tokens with their lines: comments and the insides of strings are
//! gone, documentation comments are gone too, and every token knows whether it belongs to a test.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

/// The tokens of one file.
#[derive(Debug, Default)]
pub(crate) struct Tokens {
    pub(crate) list: Vec<Token>,
    /// Why the file could not be read as Rust.
    pub(crate) error: Option<String>,
    /// Lines that belong to `#[cfg(test)]` items, from 1, both ends included.
    test_lines: Vec<(usize, usize)>,
}

/// One token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) text: String,
    pub(crate) line: usize,
    pub(crate) is_word: bool,
    pub(crate) in_test: bool,
}

impl Tokens {
    pub(crate) fn of(text: &str) -> Tokens {
        let mut tokens = Tokens::default();
        match text.parse::<TokenStream>() {
            Ok(stream) => tokens.append(stream, false),
            Err(error) => tokens.error = Some(error.to_string()),
        }
        tokens
    }

    /// How many lines belong to `#[cfg(test)]` items.
    pub(crate) fn test_line_count(&self) -> usize {
        self.test_lines.iter().map(|(first, last)| last - first + 1).sum()
    }

    /// Tokens whose texts follow one another as in `pattern`; yields the first of each match.
    pub(crate) fn matches<'a>(&'a self, pattern: &'a [&str]) -> impl Iterator<Item = &'a Token> {
        self.list
            .windows(pattern.len())
            .filter(move |window| {
                window.iter().zip(pattern).all(|(token, text)| token.text == *text)
            })
            .map(|window| &window[0])
    }

    /// Names of functions that carry `#[test]`, with their lines.
    pub(crate) fn tests(&self) -> Vec<(&str, usize)> {
        let mut names = Vec::new();
        for (index, window) in self.list.windows(4).enumerate() {
            let texts: Vec<&str> = window.iter().map(|token| token.text.as_str()).collect();
            if texts == ["#", "[", "test", "]"] {
                let rest = &self.list[index..];
                let name = rest.iter().skip_while(|token| token.text != "fn").nth(1);
                names.extend(name.map(|token| (token.text.as_str(), token.line)));
            }
        }
        names
    }

    fn append(&mut self, stream: TokenStream, in_test: bool) {
        // The line of a `#[cfg(test)]` whose item has not ended yet.
        let mut test_from: Option<usize> = None;
        let mut after_hash = false;
        for tree in stream {
            let line = tree.span().start().line;
            let last = tree.span().end().line;
            let marked = in_test || test_from.is_some();
            match tree {
                TokenTree::Group(group) => {
                    if after_hash && is_doc(&group) {
                        self.drop_hash();
                        after_hash = false;
                        continue;
                    }
                    if after_hash && test_from.is_none() && !in_test && is_test_cfg(&group) {
                        test_from = Some(line);
                    }
                    let ends = group.delimiter() == Delimiter::Brace;
                    self.append_group(group, marked);
                    if ends && let Some(first) = test_from.take() {
                        self.test_lines.push((first, last));
                    }
                    after_hash = false;
                }
                TokenTree::Punct(punct) => {
                    let sign = punct.as_char();
                    self.push(sign.to_string(), line, false, marked);
                    if sign == ';'
                        && let Some(first) = test_from.take()
                    {
                        self.test_lines.push((first, last));
                    }
                    after_hash = sign == '#' || (after_hash && sign == '!');
                }
                TokenTree::Ident(ident) => {
                    self.push(ident.to_string(), line, true, marked);
                    after_hash = false;
                }
                TokenTree::Literal(_) => {
                    self.push("literal".to_string(), line, false, marked);
                    after_hash = false;
                }
            }
        }
    }

    fn append_group(&mut self, group: Group, in_test: bool) {
        let (open, close) = match group.delimiter() {
            Delimiter::Parenthesis => ("(", ")"),
            Delimiter::Brace => ("{", "}"),
            Delimiter::Bracket => ("[", "]"),
            Delimiter::None => ("", ""),
        };
        self.push(open.to_string(), group.span_open().start().line, false, in_test);
        self.append(group.stream(), in_test);
        self.push(close.to_string(), group.span_close().start().line, false, in_test);
    }

    fn push(&mut self, text: String, line: usize, is_word: bool, in_test: bool) {
        self.list.push(Token { text, line, is_word, in_test });
    }

    /// Takes back the `#` (and `!`) of a documentation comment.
    fn drop_hash(&mut self) {
        while self.list.pop().is_some_and(|token| token.text == "!") {}
    }
}

fn first_words(group: &Group) -> Vec<String> {
    group.stream().into_iter().take(2).map(|tree| tree.to_string()).collect()
}

fn is_doc(group: &Group) -> bool {
    first_words(group) == ["doc", "="]
}

fn is_test_cfg(group: &Group) -> bool {
    let words: String = group.stream().to_string().split_whitespace().collect();
    words == "cfg(test)" || words.starts_with("cfg(all(test,") || words == "test"
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = r#"//! About unsafe things.
/// Says dbg.
fn one() { let text = "unsafe"; } // unsafe

#[cfg(test)]
mod tests {
    #[test]
    fn a_property_holds() {
        sleep(1);
    }
}
fn two() {}
"#;

    #[test]
    fn comments_and_strings_hold_no_words() {
        let tokens = Tokens::of(SOURCE);
        assert_eq!(tokens.error, None);
        assert!(!tokens.list.iter().any(|token| token.text == "unsafe" || token.text == "doc"));
        assert_eq!(tokens.list[0].text, "fn");
        assert_eq!(tokens.matches(&["two", "(", ")"]).count(), 1);
    }

    #[test]
    fn modules_of_tests_are_known_by_lines_and_tokens() {
        let tokens = Tokens::of(SOURCE);
        assert_eq!(tokens.test_line_count(), 7);
        assert_eq!(tokens.tests(), vec![("a_property_holds", 8)]);
        let in_test = |word: &str| {
            tokens.list.iter().find(|token| token.text == word).is_some_and(|token| token.in_test)
        };
        assert!(in_test("sleep") && !in_test("one") && !in_test("two"));
        assert!(Tokens::of("fn broken( {").error.is_some());
    }
}
