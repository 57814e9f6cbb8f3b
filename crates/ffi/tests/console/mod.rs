//! The console of stores, called as C calls it: its figures are those of the stores.

use entresol_ffi::console::*;
use entresol_ffi::store::*;
use serde_json::{Value, json};

use crate::support::*;

const PAGE: i64 = 1;
const NOW: i64 = 2;
const HOSTILE: &str = "<img/src=x>\"'&<script>\u{202E}";
const ESCAPED: &str = "&lt;img/src=x&gt;&quot;'&amp;&lt;script&gt;\\xe2\\x80\\xae";

/// A console that goes with the test.
struct Console(i64);

impl Console {
    fn new() -> Console {
        let title = "Stores of n0";
        // SAFETY: the bytes are there.
        Console(unsafe { entresol_console_open(title.as_ptr() as i64, title.len() as i64) })
    }

    fn take(&self, figures: &Value, now: i64) {
        let text = figures.to_string();
        let (at, length) = (text.as_ptr() as i64, text.len() as i64);
        // SAFETY: the console is open, the bytes are there.
        assert_eq!(unsafe { entresol_console_take(self.0, at, length, now) }, 0);
    }

    fn show(&self, part: i64, look: &str, now: i64) -> i64 {
        // SAFETY: as above.
        unsafe { entresol_console_show(self.0, part, look.as_ptr() as i64, look.len() as i64, now) }
    }

    fn page(&self, part: i64, look: &Value, now: i64) -> String {
        text_at(self.show(part, &look.to_string(), now))
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        // SAFETY: for the last time.
        unsafe { entresol_console_release(self.0) };
    }
}

fn statistics(store: &Store) -> Value {
    // SAFETY: the store is open.
    let text = text_at(unsafe { entresol_store_statistics(store.address) });
    serde_json::from_str(&text).unwrap()
}

fn segments(store: &Store) -> Value {
    // SAFETY: the store is open.
    let text = text_at(unsafe { entresol_store_segments(store.address, 480) });
    serde_json::from_str(&text).unwrap()
}

/// The figures that a page has: of which other node and cache, path, value.
fn figures(page: &str) -> Vec<[String; 4]> {
    let (mut node, mut store, mut is_node) = (String::new(), String::new(), false);
    let mut found = Vec::new();
    for piece in page.split(" data-").skip(1) {
        let value = |name: &str| {
            piece.strip_prefix(name).and_then(|rest| rest.split('"').next()).map(str::to_owned)
        };
        // A row of a node names the node, then the store.
        let was_node = std::mem::take(&mut is_node);
        if let Some(name) = value("node=\"") {
            (node, is_node) = (name, true);
        } else if let Some(name) = value("store=\"") {
            store = name;
            if !was_node {
                node.clear();
            }
        } else if let Some(path) = value("stat=\"") {
            let value = piece.split("value=\"").nth(1).unwrap().split('"').next().unwrap();
            found.push([node.clone(), store.clone(), path, value.to_owned()]);
        }
    }
    found
}

/// What a figure of the page is to be, two seconds after the first look: 250 reads came since.
fn expected(store: &Value, path: &str) -> String {
    match path {
        "/second/reads" | "/second/calls" => "125.0".to_owned(),
        "/second/memory_hits" | "/second/writes" => "0.0".to_owned(),
        "/second/read_us/p50" => "0.2".to_owned(),
        "/second/read_us/p99" => "0.25".to_owned(),
        path if path.starts_with("/second/write_us/") => "0.0".to_owned(),
        path if path.starts_with("/second/") => {
            let key = path.rsplit('/').next().unwrap();
            json!(store["store"][key].as_u64().unwrap() as f64 / 2.0).to_string()
        }
        path => store.pointer(path).unwrap_or_else(|| panic!("{path}")).to_string(),
    }
}

#[test]
fn every_figure_of_the_page_is_that_of_the_statistics() {
    let folder = Folder::new("console");
    let options = format!("capacity={}\ncache=0", 64 * MIB);
    let mut store = Store::open(&folder.file(), &options).unwrap();
    let console = Console::new();
    let counted = |reads: u64| {
        json!({"reads": reads, "hits": 7, "misses": 2, "writes": 500,
        "removes": 0, "evictions": 3, "in_heap": 4, "read_us": 12.5, "write_us": 30.25})
    };
    let of = |store: &Store, reads: u64| {
        let (store, cache) = (statistics(store), counted(reads));
        json!({"name": "prices", "store": store, "cache": cache})
    };
    console.take(&json!({"stores": [of(&store, 0)]}), 5_000);
    for number in 0..500 {
        store.run(PUT, 0, format!("{number}").as_bytes(), &value_of(number, 1000));
        store.run(GET, 0, format!("{}", number * 2).as_bytes(), b"");
    }
    let mut taken = of(&store, 250);
    taken["took"] = json!({"reads": [[200, 98], [250, 2], ["no pair"]], "writes": 3});
    console.take(&json!({"stores": [taken]}), 7_000);
    let mut shown = of(&store, 250);
    shown["template"] = json!("flash,partitioned");
    shown["device"] = json!("/flash/prices");
    shown["memory"] = json!({"cap_bytes": 64 << 20});
    shown["segments"] = segments(&store);
    let elsewhere = json!({"name": "prices", "store": {"entries": 77, "flash_live_bytes": 1000,
        "capacity_bytes": 4000, "poisoned": false}});
    let look = json!({
        "node": "n0", "cluster": "c", "uptime_seconds": 61, "stores": [shown],
        "nodes": [
            {"node": "n0", "page": "127.0.0.1:1", "stores": [shown]},
            {"node": "n1", "page": "127.0.0.1:2", "stores": [elsewhere]},
        ],
    });
    let page = console.page(PAGE, &look, 7_000);
    let found = figures(&page);
    assert!(found.len() > 50, "{}", found.len());
    for [node, cache, path, value] in &found {
        assert_eq!(cache, "prices", "{path}");
        let all = if node == "n1" { &elsewhere } else { &shown };
        assert_eq!(value, &expected(all, path), "{node} {path}");
    }
    assert!(found.iter().any(|[node, _, path, value]| {
        (node.as_str(), path.as_str(), value.as_str()) == ("n1", "/store/entries", "77")
    }));
    for text in [
        "Healthy",
        "Stores of n0",
        "Device full",
        "Where gets are answered",
        "Memory by use",
        "Segments on flash",
        "Writing and reclaim",
        "Infinispan's cache above",
        "<polyline",
        "href=\"//127.0.0.1:2/\"",
        "up for 1 min 1 s",
        "25.0 %",
        "/flash/prices",
    ] {
        assert!(page.contains(text), "{text}");
    }
    assert!(!page.contains("127.0.0.1:1"), "the page leads to itself");
}

#[test]
fn names_and_sentences_are_text_wherever_they_are_shown() {
    let console = Console::new();
    let store = json!({
        "name": HOSTILE, "template": HOSTILE, "device": HOSTILE, "store": {"entries": 1},
        "trouble": {"what": HOSTILE, "next": HOSTILE},
    });
    let gone = json!({"name": HOSTILE, "withdrew": HOSTILE});
    let look = json!({
        "node": HOSTILE, "cluster": HOSTILE, "foot": HOSTILE, "stores": [store, gone],
        "nodes": [
            {"node": "n1", "page": "x/\" onclick=\"", "stores": [store]},
            {"node": "n2", "page": "javascript:1", "failed": HOSTILE},
        ],
        "cache": null,
    });
    console.take(&look, 1);
    console.take(&look, 1001);
    let page = console.page(PAGE, &look, 1001);
    assert!(page.matches(ESCAPED).count() > 15, "{}", page.matches(ESCAPED).count());
    let mut one = look;
    one["cache"] = json!(HOSTILE);
    let one = console.page(PAGE, &one, 1001);
    let encoded: String = HOSTILE
        .bytes()
        .map(|byte| match byte {
            letter if letter.is_ascii_alphabetic() => char::from(letter).to_string(),
            other => format!("%{other:02X}"),
        })
        .collect();
    let address = format!("/?cache={encoded}&amp;span=day");
    assert!(one.contains(&address));
    for page in [page, one] {
        for unwanted in ["<img", "onclick=", "href=\"javascript", " style=", "<style", "\u{202E}"] {
            assert!(!page.contains(unwanted), "{unwanted}");
        }
        assert_eq!(page.matches("<script").count(), 1);
    }
}

#[test]
fn a_store_that_its_node_withdrew_from_is_shown_as_failing_and_others_are_shown_beside() {
    let console = Console::new();
    let well = json!({"name": "well", "store": {"entries": 1, "poisoned": false}});
    let gone = json!({"name": "gone", "withdrew": "its disk failed"});
    let look = json!({"node": "n0", "stores": [gone, well]});
    let page = console.page(NOW, &look, 1);
    assert!(page.contains("Failing") && !page.contains("Healthy"), "{page}");
    assert_eq!(page.matches("The node withdrew: its disk failed.").count(), 2, "{page}");
    let row = "<code>gone</code></a></td><td><span class=\"wrong\">withdrew</span></td>";
    assert!(page.contains(row), "{page}");
    assert!(page.contains("Cache gone: ") && !page.contains("Cache well: "));
    assert!(page.contains("<section class=\"store\" data-store=\"well\">"));
    // The one that is chosen, and one that is not there.
    let chosen = |name: &str| {
        let mut look = look.clone();
        look["cache"] = json!(name);
        console.page(NOW, &look, 1)
    };
    assert!(!chosen("well").contains("data-store=\"gone\""));
    assert!(chosen("other").contains("No cache <code>other</code> of this node is on flash."));
}

#[test]
fn more_stores_than_are_shown_at_length_are_in_the_table() {
    let console = Console::new();
    let stores: Vec<Value> = (0..100)
        .map(|number| json!({"name": format!("c{number}"), "store": {"entries": number}}))
        .collect();
    let look = json!({"node": "n0", "stores": stores});
    console.take(&look, 0);
    console.take(&look, 1000);
    let page = console.page(NOW, &look, 1000);
    assert_eq!(page.matches("<section class=\"store\"").count(), 4);
    assert_eq!(page.matches("<tr data-store=").count(), 100);
    assert!(page.contains("The first 4 stores are shown."));
}

#[test]
fn what_is_no_part_and_no_json_is_refused() {
    let console = Console::new();
    for (part, look, expected) in
        [(5, "{}", "expected 1 to 4"), (PAGE, "{", "figures as a JSON object"), (3, "", "")]
    {
        let shown = console.show(part, look, 1);
        assert_eq!(shown < 0, !expected.is_empty(), "{part}");
        let text = text_at(shown.abs());
        assert!(text.contains(expected), "{text}");
    }
    for (part, piece) in [(3, "color-scheme"), (4, "/console/now")] {
        assert!(text_at(console.show(part, "", 1)).contains(piece), "{part}");
    }
}
