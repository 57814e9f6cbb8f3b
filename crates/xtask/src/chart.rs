//! `cargo x chart`: draws the chart of README.md from measured figures.
//!
//! The figures are in `docs/concepts/figures.json` and nowhere in this file; the drawing in the
//! repository is compared with them by a test, so that neither changes alone.

use std::fs;

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use serde_json::Value;

use crate::Verdict;

const FIGURES: &str = "docs/concepts/figures.json";
const DRAWING: &str = "docs/images/comparison.svg";

/// Pixels.
const WIDTH: i32 = 760;
const HEAD: i32 = 66;
const BAR: i32 = 15;
const BETWEEN_BARS: i32 = 4;
const BETWEEN_GROUPS: i32 = 14;
/// Where bars begin, and the longest that one may be.
const LEFT: i32 = 250;
const LONGEST: i32 = 440;
/// The drawing library divides it by 1.24.
const FONT: i32 = 15;

const INK: RGBColor = RGBColor(0x1F, 0x24, 0x2B);
const FAINT: RGBColor = RGBColor(0x5B, 0x64, 0x70);
/// The first contestant's, and the others'.
const COLOURS: [RGBColor; 2] = [RGBColor(0x1D, 0x5F, 0xD1), RGBColor(0xB4, 0xBE, 0xCA)];

/// What the file of figures says.
#[derive(Debug, PartialEq)]
struct Comparison {
    title: String,
    setting: String,
    contestants: Vec<String>,
    phases: Vec<Phase>,
}

/// One row of bars for each contestant.
#[derive(Debug, PartialEq)]
struct Phase {
    name: String,
    /// In the order of the contestants.
    over_probe: Vec<f64>,
}

/// `cargo x chart`.
pub(crate) fn perform(arguments: &[String]) -> Result<Verdict, String> {
    if !arguments.is_empty() {
        return Err("it takes no arguments".to_string());
    }
    let path = crate::root().join(DRAWING);
    fs::write(&path, drawn()?).map_err(|error| format!("{DRAWING}: {error}"))?;
    println!("wrote {DRAWING} from {FIGURES}");
    Ok(Verdict::Passed)
}

/// The chart of the figures in the repository.
fn drawn() -> Result<String, String> {
    let text = fs::read_to_string(crate::root().join(FIGURES))
        .map_err(|error| format!("{FIGURES}: {error}"))?;
    Comparison::parse(&text)?.draw()
}

impl Comparison {
    fn parse(text: &str) -> Result<Comparison, String> {
        let value: Value =
            serde_json::from_str(text).map_err(|error| format!("{FIGURES}: {error}"))?;
        let contestants = texts(&value["contestants"]);
        let phase = |value: &Value| -> Result<Phase, String> {
            let name = word(&value["name"]);
            let numbers = value["over_probe"].as_array().cloned().unwrap_or_default();
            let over_probe: Vec<f64> = numbers.iter().filter_map(Value::as_f64).collect();
            if over_probe.len() != contestants.len() {
                let (found, expected) = (over_probe.len(), contestants.len());
                return Err(format!("{FIGURES}: `{name}` has {found} numbers, not {expected}"));
            }
            Ok(Phase { name, over_probe })
        };
        let phases = value["phases"].as_array().cloned().unwrap_or_default();
        Ok(Comparison {
            title: word(&value["title"]),
            setting: word(&value["setting"]),
            phases: phases.iter().map(phase).collect::<Result<_, _>>()?,
            contestants,
        })
    }

    fn draw(&self) -> Result<String, String> {
        let mut text = String::new();
        let area = SVGBackend::with_string(&mut text, (WIDTH.unsigned_abs(), self.height()))
            .into_drawing_area();
        self.draw_on(&area).map_err(|error| format!("{DRAWING}: {error}"))?;
        drop(area);
        Ok(text)
    }

    fn height(&self) -> u32 {
        let bars = i32::try_from(self.contestants.len()).unwrap_or(0);
        let phases = i32::try_from(self.phases.len()).unwrap_or(0);
        (HEAD + phases * (bars * (BAR + BETWEEN_BARS) + BETWEEN_GROUPS)).unsigned_abs()
    }

    fn draw_on(&self, area: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>) -> Drawn {
        area.fill(&WHITE)?;
        let style = |size: i32, colour: RGBColor, to: HPos| {
            ("sans-serif", size).into_font().color(&colour).pos(Pos::new(to, VPos::Center))
        };
        area.draw_text(&self.title, &style(FONT + 2, INK, HPos::Left), (16, 20))?;
        area.draw_text(&self.setting, &style(FONT - 2, FAINT, HPos::Left), (16, 42))?;
        let values = self.phases.iter().flat_map(|phase| &phase.over_probe);
        let most = values.copied().fold(f64::MIN_POSITIVE, f64::max);
        let mut top = HEAD;
        for phase in &self.phases {
            let name = style(FONT, INK, HPos::Left);
            area.draw_text(&phase.name, &name, (16, top + BAR / 2))?;
            for (number, contestant) in self.contestants.iter().enumerate() {
                let value = phase.over_probe.get(number).copied().unwrap_or_default();
                let length = length_of(value / most);
                let colour = COLOURS[usize::from(number > 0)];
                let label = style(FONT - 1, if number > 0 { FAINT } else { INK }, HPos::Right);
                area.draw_text(contestant, &label, (LEFT - 10, top + BAR / 2))?;
                let corners = [(LEFT, top), (LEFT + length, top + BAR)];
                area.draw(&Rectangle::new(corners, colour.filled()))?;
                let figure = style(FONT - 1, INK, HPos::Left);
                let place = (LEFT + length + 6, top + BAR / 2);
                area.draw_text(&value.to_string(), &figure, place)?;
                top += BAR + BETWEEN_BARS;
            }
            top += BETWEEN_GROUPS;
        }
        area.present()
    }
}

type Drawn = Result<(), DrawingAreaErrorKind<std::io::Error>>;

/// Pixels of a bar that is `share` of the longest; one is always seen.
fn length_of(share: f64) -> i32 {
    (1..LONGEST).find(|&pixels| f64::from(pixels) >= share * f64::from(LONGEST)).unwrap_or(LONGEST)
}

fn word(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_string()
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().map(|values| values.iter().map(word).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chart_in_the_repository_is_the_one_that_its_figures_give() {
        let there = fs::read_to_string(crate::root().join(DRAWING)).unwrap();
        assert!(there == drawn().unwrap(), "{DRAWING} is another one: run `cargo x chart`");
    }

    #[test]
    fn a_phase_without_a_number_for_each_contestant_is_refused() {
        let text =
            r#"{"contestants": ["a", "b"], "phases": [{"name": "load", "over_probe": [1]}]}"#;
        let refused = Comparison::parse(text).unwrap_err();
        assert!(refused.ends_with("`load` has 1 numbers, not 2"), "{refused}");
    }

    #[test]
    fn bars_are_in_proportion_and_never_vanish() {
        assert_eq!([0.0, 0.5, 1.0].map(length_of), [1, LONGEST / 2, LONGEST]);
    }
}
