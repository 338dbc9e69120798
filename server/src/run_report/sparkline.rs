//! A small line chart of values over time, as inline SVG.

use maud::{Markup, html};

const WIDTH: f64 = 240.0;
const HEIGHT: f64 = 36.0;

/// Draws a line between the given bounds, extending the upper one if needed. Returns `None` without at least two points in time.
pub(super) fn sparkline(
    points: &[(i64, f64)],
    bottom: f64,
    top: f64,
    label: &str,
) -> Option<Markup> {
    let (first, last) = (points.first()?.0, points.last()?.0);
    if points.len() < 2 || first == last {
        return None;
    }
    let top = points.iter().fold(top, |top, (_, value)| top.max(*value));
    // A constant line lies at the bottom.
    let range = if top > bottom { top - bottom } else { 1.0 };
    #[expect(clippy::cast_precision_loss, reason = "a place on a line")]
    let x = |time: i64| (time - first) as f64 / (last - first) as f64 * WIDTH;
    let y = |value: f64| HEIGHT - 2.0 - ((value - bottom) / range).clamp(0.0, 1.0) * (HEIGHT - 4.0);
    let line: Vec<String> = points
        .iter()
        .map(|(time, value)| format!("{:.1},{:.1}", x(*time), y(*value)))
        .collect();
    let line = line.join(" ");
    let area = format!("0,{HEIGHT} {line} {WIDTH},{HEIGHT}");
    Some(html! {
        svg viewBox={"0 0 " (WIDTH) " " (HEIGHT)} preserveAspectRatio="none" role="img" aria-label=(label) {
            polygon points=(area) {}
            polyline points=(line) vector-effect="non-scaling-stroke" {}
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_goes_from_edge_to_edge_and_needs_two_points() {
        let drawn = sparkline(&[(0, 0.0), (10, 60.0)], 0.0, 0.0, "fps").unwrap();
        assert!(
            drawn
                .into_string()
                .contains("points=\"0.0,34.0 240.0,2.0\"")
        );
        assert!(sparkline(&[(0, 1.0)], 0.0, 0.0, "fps").is_none());
        assert!(sparkline(&[(0, 1.0), (0, 2.0)], 0.0, 0.0, "fps").is_none());
    }
}
