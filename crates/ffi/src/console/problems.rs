//! What is wrong with stores, and what to do about it.

use entresol_page::{Figures, Grade, Problem, Unit, shown, store, text_of};
use serde_json::Value;

use super::look::{said, stores};

/// From when on a device counts as one that does not answer, seconds.
const STALLED_SECONDS: f64 = 30.0;

/// Everything that is wrong with the stores of all nodes, the worst first.
pub(super) fn find(look: &Value) -> Vec<Problem> {
    let here = stores(look).iter().flat_map(|store| named(store, ""));
    let mut found: Vec<Problem> = here.collect();
    for node in others(look) {
        let name = said(&node["node"]);
        if let Some(failed) = node["failed"].as_str() {
            found.push(Problem {
                grade: Grade::Warning,
                what: format!(
                    "Node {name} did not say how its stores are: {}.",
                    text_of(failed.as_bytes())
                ),
                next: "see whether its process runs, and its log".to_owned(),
            });
        }
        found.extend(
            stores(node).iter().flat_map(|store| named(store, &format!(" on node {name}"))),
        );
    }
    found.sort_by_key(|problem| std::cmp::Reverse(problem.grade));
    found
}

/// What is wrong with a store, each with the name of its cache.
fn named(store: &Value, place: &str) -> Vec<Problem> {
    let cache = said(&store["name"]);
    let named = |problem: Problem| Problem {
        what: format!("Cache {cache}{place}: {}", problem.what),
        ..problem
    };
    of(store).into_iter().map(named).collect()
}

/// What is wrong with a store, the worst first.
pub(super) fn of(one: &Value) -> Vec<Problem> {
    let figures = Figures(one);
    let failure =
        |what: String, next: &str| Problem { grade: Grade::Failure, what, next: next.to_owned() };
    if let Some(reason) = one["withdrew"].as_str() {
        let what = format!("The node withdrew: {}.", ended(reason));
        return vec![failure(what, "replace the device or mend it, then start the cache again")];
    }
    let mut found = Vec::new();
    if let Some(what) = one["trouble"]["what"].as_str() {
        let next = one["trouble"]["next"].as_str().unwrap_or_default();
        found.push(failure(format!("{}.", ended(what)), &ended(next)));
    } else if one["store"]["poisoned"] == true {
        let what = "A write or sync failed: writes are refused, reads go on.".to_owned();
        found.push(failure(what, "check the device, then start the cache again"));
    } else if figures.number("/store/ground_lost") > 0.0 {
        let what = "Files of the store or its write buffers are not where they were.".to_owned();
        found.push(failure(
            what,
            "put back what is missing before the node stops; its log says what",
        ));
    }
    let waits = figures.number("/store/oldest_pending_io_seconds");
    if waits >= STALLED_SECONDS {
        let what = format!("The device has not answered for {}.", shown(waits, Unit::Seconds));
        found.push(failure(what, "check it; what needs it waits, the rest goes on"));
    }
    let verify = "stop the node and run `entresol store verify`, which says where they are";
    found.extend(store::damaged(figures, verify));
    let more = "remove entries, or start the node again with a larger capacity";
    found.extend(store::nearly_full(figures, more));
    found
}

/// The nodes but this one.
fn others(look: &Value) -> impl Iterator<Item = &Value> {
    let all = look["nodes"].as_array().into_iter().flatten();
    all.filter(|node| node["node"] != look["node"])
}

/// A sentence without its point.
fn ended(sentence: &str) -> String {
    text_of(sentence.trim_end_matches('.').as_bytes())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn store(more: Value) -> Value {
        let mut store = json!({"name": "a", "store": {
            "poisoned": false, "damaged": 0, "flash_live_bytes": 10, "capacity_bytes": 100,
            "ground_lost": 0, "oldest_pending_io_seconds": 0,
        }});
        for (key, value) in more.as_object().into_iter().flatten() {
            match value.as_object() {
                Some(figures) if key == "store" => {
                    figures.iter().for_each(|(key, value)| store["store"][key] = value.clone());
                }
                _ => store[key] = value.clone(),
            }
        }
        store
    }

    #[test]
    fn each_thing_that_is_wrong_with_a_store_is_told_with_the_next_step() {
        assert!(of(&store(json!({}))).is_empty());
        for (more, expected) in [
            (json!({"withdrew": "its disk failed."}), "The node withdrew: its disk failed."),
            (json!({"trouble": {"what": "it is full", "next": "remove some"}}), "it is full."),
            (json!({"store": {"poisoned": true}}), "A write or sync failed: "),
            (json!({"store": {"ground_lost": 1}}), "Files of the store "),
            (json!({"store": {"oldest_pending_io_seconds": 45}}), "has not answered for 45 s."),
            (json!({"store": {"damaged": 3}}), "Damaged records were met 3 times."),
            (json!({"store": {"flash_live_bytes": 90}}), "nearly full: 90.0 % of it is live."),
        ] {
            let found = of(&store(more));
            assert_eq!(found.len(), 1, "{expected}: {found:?}");
            assert!(found[0].what.contains(expected), "{expected}: {found:?}");
            assert!(found[0].next.len() > 5, "{found:?}");
        }
    }

    #[test]
    fn stores_of_other_nodes_count_and_those_of_this_one_once() {
        let sick = store(json!({"withdrew": "its disk failed"}));
        let look = json!({
            "node": "n0", "stores": [store(json!({"store": {"damaged": 1}}))],
            "nodes": [
                {"node": "n0", "stores": [store(json!({"store": {"damaged": 1}}))]},
                {"node": "n1", "stores": [sick]},
                {"node": "n2", "failed": "it does not answer"},
            ],
        });
        let found: Vec<String> = find(&look).into_iter().map(|problem| problem.what).collect();
        assert_eq!(
            found,
            [
                "Cache a on node n1: The node withdrew: its disk failed.",
                "Cache a: Damaged records were met 1 times.",
                "Node n2 did not say how its stores are: it does not answer.",
            ]
        );
    }
}
