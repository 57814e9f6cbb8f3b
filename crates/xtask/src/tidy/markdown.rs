//! What rules and the book need to know of a document: its links, its headings, its code.

/// A block of code between fences.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Fence<'a> {
    /// The number of the line that opens it, from 1.
    pub(crate) line: usize,
    /// The line before the one that opens it; empty where there is none.
    pub(crate) before: &'a str,
    /// Lines between the fences.
    pub(crate) code: Vec<&'a str>,
}

/// Targets of links and pictures in a line.
pub(crate) fn targets(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| rest.split(')').next())
}

/// Whether a target is in this repository.
pub(crate) fn is_ours(target: &str) -> bool {
    !target.is_empty() && !target.contains(':')
}

/// `target` as seen from the folder of `document`, from the root.
pub(crate) fn resolved(document: &str, target: &str) -> String {
    let mut folders: Vec<&str> = document.split('/').collect();
    folders.pop();
    for part in target.trim_end_matches('/').split('/') {
        match part {
            "." => {}
            ".." => {
                folders.pop();
            }
            part => folders.push(part),
        }
    }
    folders.join("/")
}

/// Lines outside of fences, with their numbers from 1.
pub(crate) fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut within = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let is_fence = line.trim_start().starts_with("```");
        within ^= is_fence;
        (!within && !is_fence).then_some((index + 1, line))
    })
}

/// The names by which headings of a document can be linked to.
pub(crate) fn anchors(text: &str) -> Vec<String> {
    let mut anchors: Vec<String> = Vec::new();
    for (_, line) in prose(text) {
        let Some(heading) = line.strip_prefix('#') else { continue };
        let plain = slug(heading.trim_start_matches('#').trim());
        let earlier = |name: &String| *name == plain || is_numbered(name, &plain);
        match anchors.iter().filter(|name| earlier(name)).count() {
            0 => anchors.push(plain),
            count => anchors.push(format!("{plain}-{count}")),
        }
    }
    anchors
}

/// All blocks of code.
pub(crate) fn fences(text: &str) -> Vec<Fence<'_>> {
    let mut fences: Vec<Fence<'_>> = Vec::new();
    let (mut within, mut before) = (false, "");
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            within = !within;
            if within {
                fences.push(Fence { line: index + 1, before, code: Vec::new() });
            }
        } else if within && let Some(fence) = fences.last_mut() {
            fence.code.push(line);
        }
        before = line;
    }
    fences
}

/// A heading as hosts of repositories write it in an address.
fn slug(heading: &str) -> String {
    let mut text = String::new();
    // Of a link its text alone is shown.
    for (number, part) in heading.split("](").enumerate() {
        text.push_str(if number == 0 { part } else { part.split_once(')').map_or("", |p| p.1) });
    }
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    text.chars()
        .filter(kept)
        .flat_map(char::to_lowercase)
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

fn is_numbered(name: &str, plain: &str) -> bool {
    let rest = name.strip_prefix(plain).and_then(|rest| rest.strip_prefix('-'));
    rest.is_some_and(|rest| !rest.is_empty() && rest.chars().all(|c| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_become_the_names_that_links_use() {
        let text = "# Where `we` lose\n```sh\n# no heading\n```\n## [A](b.md), B\n## A, B\n";
        assert_eq!(anchors(text), ["where-we-lose", "a-b", "a-b-1"]);
    }

    #[test]
    fn code_is_told_from_prose_and_knows_what_stands_before_it() {
        let text = "one\n<!-- two -->\n```sh\nthree\n```\nfour";
        let lines: Vec<_> = prose(text).collect();
        assert_eq!(lines, [(1, "one"), (2, "<!-- two -->"), (6, "four")]);
        let fence = Fence { line: 3, before: "<!-- two -->", code: vec!["three"] };
        assert_eq!(fences(text), [fence]);
    }
}
