//! Lines over time as SVG.
//!
//! The drawing library writes colours as attributes. The style sheet replaces exactly these values
//! by those of the light or the dark theme and gives each line its dashes, so the constants here
//! and `style.css` belong together.

use plotters::coord::Shift;
use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;

use crate::words::{Unit, amount, shown};

/// Lines over the time that has passed.
#[derive(Debug)]
pub struct Chart<'a> {
    /// How far back it goes, seconds.
    pub seconds: f64,
    /// What goes up.
    pub unit: Unit,
    /// As many as there are colours or fewer; each has points of seconds (0 is now, before is
    /// negative) and values, the oldest first.
    pub lines: &'a [Vec<(f64, f64)>],
}

/// Colours of lines in the light theme.
pub const COLOURS: [RGBColor; 4] = [
    RGBColor(0x1D, 0x5F, 0xD1),
    RGBColor(0xC2, 0x57, 0x0C),
    RGBColor(0x0B, 0x7A, 0x6B),
    RGBColor(0x8A, 0x3F, 0xC4),
];
/// The colour of words in a drawing.
pub const INK: RGBColor = RGBColor(0x50, 0x58, 0x63);
/// The colour of axes and of the lines across.
pub const GRID: RGBColor = RGBColor(0xE3, 0xE6, 0xEA);
/// The drawing library divides it by 1.24.
const FONT: i32 = 17;
const SIZE: (u32, u32) = (500, 220);

type Drawn = Result<(), ()>;

/// How many seconds, and how much of what goes up, one unit of an axis is.
#[derive(Debug, Clone, Copy)]
struct Scales {
    time: f64,
    size: f64,
}

impl Chart<'_> {
    /// The drawing; `None` where there is nothing to draw.
    pub fn drawing(&self) -> Option<String> {
        let (low, high) = self.vertical()?;
        // Ticks are at round numbers of these.
        let size = match self.unit {
            Unit::Bytes | Unit::ByteRate => 1024f64.powf(high.max(1.0).log(1024.0).floor()),
            _ => 1.0,
        };
        let scales = Scales { time: if self.seconds > 7200.0 { 3600.0 } else { 60.0 }, size };
        let mut text = String::new();
        let area = SVGBackend::with_string(&mut text, SIZE).into_drawing_area();
        // Drawing into a string fails only where a label has no font; then there is no chart.
        let drawn = match self.unit {
            Unit::Latency => self.draw_on(&area, (low..high).log_scale(), scales),
            _ => self.draw_on(&area, low / size..high / size, scales),
        };
        let drawn = drawn.is_ok();
        drop(area);
        drawn.then_some(text)
    }

    fn draw_on<V>(
        &self,
        area: &DrawingArea<SVGBackend<'_>, Shift>,
        vertical: V,
        scales: Scales,
    ) -> Drawn
    where
        V: AsRangedCoord<Value = f64>,
        V::CoordDescType: ValueFormatter<f64>,
    {
        let mut chart = ChartBuilder::on(area)
            .margin_top(12)
            .margin_right(22)
            .x_label_area_size(28)
            .y_label_area_size(84)
            .build_cartesian_2d(-self.seconds / scales.time..0.0, vertical)
            .map_err(drop)?;
        let text = ("sans-serif", FONT).into_font().color(&INK);
        chart
            .configure_mesh()
            .disable_x_mesh()
            .x_labels(6)
            .y_labels(5)
            .x_label_formatter(&|value| ago(*value * scales.time))
            .y_label_formatter(&|value| shown(*value * scales.size, self.unit))
            .light_line_style(TRANSPARENT)
            .bold_line_style(GRID)
            .axis_style(GRID)
            .label_style(text)
            .draw()
            .map_err(drop)?;
        for (line, colour) in self.lines.iter().zip(COLOURS) {
            // A time without a latency is a gap.
            for piece in line.split(|(_, value)| !self.shows(*value)) {
                let points =
                    piece.iter().map(|(at, value)| (at / scales.time, value / scales.size));
                let series = LineSeries::new(points, colour.stroke_width(2));
                chart.draw_series(series).map_err(drop)?;
            }
        }
        area.present().map_err(drop)
    }

    fn shows(&self, value: f64) -> bool {
        value.is_finite() && (self.unit != Unit::Latency || value > 0.0)
    }

    /// The range that shows all values.
    fn vertical(&self) -> Option<(f64, f64)> {
        let values = self.lines.iter().flatten().map(|point| point.1);
        let (mut low, mut high) = (f64::MAX, f64::MIN);
        for value in values.filter(|value| self.shows(*value)) {
            low = low.min(value);
            high = high.max(value);
        }
        if low > high {
            return None;
        }
        if self.unit == Unit::Latency {
            return Some(decades(low, high));
        }
        Some((0.0, if high > 0.0 { high * 1.08 } else { 1.0 }))
    }
}

/// The powers of ten around a range.
pub fn decades(low: f64, high: f64) -> (f64, f64) {
    let power = |value: f64| 10f64.powf(value);
    let low = power(low.log10().floor());
    (low, power(high.log10().ceil()).max(low * 10.0))
}

/// A time before now, seconds.
fn ago(seconds: f64) -> String {
    match -seconds {
        past if past < 1.0 => "now".to_owned(),
        past if past > 7200.0 => format!("−{} h", amount(past / 3600.0)),
        past => format!("−{} min", amount(past / 60.0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawing(lines: &[Vec<(f64, f64)>], unit: Unit) -> Option<String> {
        Chart { seconds: 600.0, unit, lines }.drawing()
    }

    #[test]
    fn the_style_sheet_knows_every_colour_and_the_drawing_has_no_style_of_its_own() {
        let style = include_str!("style.css");
        let line: Vec<(f64, f64)> = (0..50).map(|t| (f64::from(t - 49), f64::from(t))).collect();
        let lines = vec![line; COLOURS.len()];
        let drawing = drawing(&lines, Unit::Rate).expect("there are points");
        let colours: Vec<&str> =
            drawing.match_indices('#').map(|(at, _)| &drawing[at..at + 7]).collect();
        assert!(colours.len() > 10);
        for colour in colours {
            assert!(style.contains(&format!("\"{colour}\"")), "{colour}");
        }
        assert!(!drawing.contains("style="), "{drawing}");
        for colour in COLOURS {
            let text = format!("\"#{:02X}{:02X}{:02X}\"", colour.0, colour.1, colour.2);
            assert!(style.contains(&text) && drawing.contains(&text), "{text}");
        }
    }

    #[test]
    fn odd_points_make_a_chart_or_none_and_no_panic() {
        for unit in [Unit::Latency, Unit::Rate, Unit::ByteRate] {
            assert!(drawing(&[vec![(0.0, 3.0)]], unit).is_some());
            assert!(drawing(&[vec![(-5.0, f64::NAN), (0.0, f64::INFINITY)]], unit).is_none());
            assert!(drawing(&[vec![(-1.0, 1e18), (0.0, 1e-9)]], unit).is_some());
            assert!(drawing(&[Vec::new()], unit).is_none());
        }
        assert!(drawing(&[vec![(-1.0, 0.0), (0.0, 0.0)]], Unit::Rate).is_some());
        assert!(drawing(&[vec![(-1.0, 0.0), (0.0, 0.0)]], Unit::Latency).is_none());
    }

    #[test]
    fn a_time_without_a_latency_is_a_gap() {
        let line = vec![(-4.0, 2.0), (-3.0, 3.0), (-2.0, 0.0), (-1.0, 4.0), (0.0, 5.0)];
        let drawing = drawing(&[line], Unit::Latency).expect("there are points");
        let lines = drawing.matches("<polyline").count();
        let meshes = self::drawing(&[vec![(0.0, 2.0)]], Unit::Latency).expect("there is a point");
        assert_eq!(lines - meshes.matches("<polyline").count(), 1, "{drawing}");
    }
}
