//! Comparisons that can be verified by hand.

use super::*;
use crate::test_run::Quantity;

fn page(name: &str) -> Measurable {
    Measurable::Page(name.to_owned())
}

fn span(name: &str) -> Measurable {
    Measurable::Span(name.to_owned())
}

/// A side with one run per list of values.
fn side(label: &str, runs: &[Vec<(Measurable, Quantity, f64)>]) -> Side {
    let run = |values: &Vec<(Measurable, Quantity, f64)>| {
        let mut measured = Measured::default();
        for (of, quantity, value) in values {
            measured.add(of, *quantity, *value, 1.0);
        }
        measured
    };
    Side {
        label: label.to_owned(),
        runs: runs.iter().map(run).collect(),
        ..Side::default()
    }
}

/// Returns `count` different values around the middle.
fn around(
    of: &Measurable,
    quantity: Quantity,
    middle: f64,
    count: u32,
) -> Vec<(Measurable, Quantity, f64)> {
    let value = |number: u32| middle * (0.9 + 0.2 * f64::from(number) / f64::from(count));
    (0..count)
        .map(|number| (of.clone(), quantity, value(number)))
        .collect()
}

fn verdict_of(comparison: &Comparison, of: &Measurable, quantity: Quantity) -> Verdict {
    let row = comparison
        .rows
        .iter()
        .find(|row| row.of == *of && row.metric.quantity == quantity);
    row.unwrap().verdict
}

fn verdict(base: (f64, u32), head: (f64, u32)) -> Verdict {
    let of = span("pay");
    let made = |(middle, count)| side("", &[around(&of, Quantity::DurationMs, middle, count)]);
    let comparison = compare(&made(base), &made(head), &Budgets::default());
    verdict_of(&comparison, &of, Quantity::DurationMs)
}

#[test]
fn a_regression_needs_samples_and_significance_and_a_change_beyond_both_tolerances() {
    assert_eq!(verdict((100.0, 50), (150.0, 50)), Verdict::Regressed);
    assert_eq!(verdict((150.0, 50), (100.0, 50)), Verdict::Improved);
    // Highly significant, but only 8 %.
    assert_eq!(verdict((100.0, 4_000), (108.0, 4_000)), Verdict::Unchanged);
    // 50 % more, but only 0.05 ms.
    assert_eq!(verdict((0.1, 400), (0.15, 400)), Verdict::Unchanged);
    // A large change, but few values.
    assert_eq!(verdict((100.0, 10), (900.0, 10)), Verdict::NotEnoughSamples);
    // The medians differ by chance: the values are scattered.
    let of = page("Cart");
    let wild = |step: u32| {
        let value = move |number: u32| f64::from(number * step % 101) * 10.0;
        let values = (0..24).map(move |number| (page("Cart"), Quantity::T3Ms, value(number)));
        side("", &[values.collect()])
    };
    let comparison = compare(&wild(37), &wild(53), &Budgets::default());
    assert_eq!(
        verdict_of(&comparison, &of, Quantity::T3Ms),
        Verdict::Unchanged
    );
}

#[test]
fn fewer_frames_per_second_are_worse() {
    let of = page("Feed");
    let made = |fps| side("", &[around(&of, Quantity::Fps, fps, 40)]);
    let comparison = compare(&made(58.0), &made(40.0), &Budgets::default());
    assert_eq!(
        verdict_of(&comparison, &of, Quantity::Fps),
        Verdict::Regressed
    );
    assert_eq!(comparison.gate(), Gate::Fail);
}

#[test]
fn a_longer_tail_is_found_if_the_median_is_unchanged() {
    let of = span("pay");
    let made = |tail: f64| {
        let mut values = around(&of, Quantity::DurationMs, 100.0, 270);
        values.extend(around(&of, Quantity::DurationMs, tail, 30));
        side("", &[values])
    };
    let comparison = compare(&made(100.0), &made(400.0), &Budgets::default());
    let verdict = |percent| {
        let metric = Metric {
            quantity: Quantity::DurationMs,
            statistic: Statistic::Percentile(percent),
        };
        let row = comparison.rows.iter().find(|row| row.metric == metric);
        row.unwrap().verdict
    };
    assert_eq!(
        (verdict(50), verdict(95)),
        (Verdict::Unchanged, Verdict::Regressed)
    );
}

#[test]
fn runs_are_compared_if_there_are_enough_and_a_single_outlier_is_no_regression() {
    let of = page("Cart");
    let runs = |middles: &[f64]| -> Vec<_> {
        middles
            .iter()
            .map(|middle| around(&of, Quantity::T1Ms, *middle, 30))
            .collect()
    };
    let steady = [100.0, 101.0, 102.0, 103.0, 104.0, 105.0];
    let base = side("", &runs(&steady));
    let slower = side("", &runs(&steady.map(|middle| middle * 1.5)));
    let comparison = compare(&base, &slower, &Budgets::default());
    let row = &comparison.rows[0];
    assert_eq!(
        (row.verdict, row.counted, row.head_count),
        (Verdict::Regressed, Counted::Runs, 6)
    );
    // Two of three runs are unchanged: the third one is an outlier of the machine.
    let base = side("", &runs(&[100.0, 101.0, 102.0]));
    let odd = side("", &runs(&[100.0, 101.0, 400.0]));
    let comparison = compare(&base, &odd, &Budgets::default());
    assert_eq!(comparison.rows[0].counted, Counted::Values);
    assert_eq!(comparison.rows[0].verdict, Verdict::Unchanged);
}

#[test]
fn a_metric_with_one_value_per_run_needs_several_runs() {
    let run = |stalls: f64| vec![(page("Cart"), Quantity::Stalls, stalls)];
    let verdict = |count: usize| {
        let base = side("", &vec![run(1.0); count]);
        let head = side("", &vec![run(9.0); count]);
        compare(&base, &head, &Budgets::default()).rows[0].verdict
    };
    assert_eq!(verdict(4), Verdict::NotEnoughSamples);
    assert_eq!(verdict(6), Verdict::Regressed);
}

const BUDGETS: &str = r#"
[defaults]
on_missing = "fail"
[[budget]]
page = "Cart"
metric = "t3_ms"
statistic = "p75"
at_most = 80
[[budget]]
page = "Home"
metric = "fps"
at_least = 50
gate = "warn"
[[budget]]
span = "gone"
metric = "duration_ms"
at_most = 1
"#;

#[test]
fn a_budget_applies_regardless_of_the_base_and_chooses_the_gate() {
    let values = [
        around(&page("Cart"), Quantity::T3Ms, 90.0, 40),
        around(&page("Home"), Quantity::Fps, 30.0, 40),
    ];
    let made = || side("same", &[values.concat()]);
    let comparison = compare(&made(), &made(), &Budgets::parse(BUDGETS).unwrap());
    let outcomes: Vec<_> = comparison
        .rows
        .iter()
        .map(|row| (row.metric.label(), row.verdict, row.gate))
        .collect();
    assert_eq!(
        outcomes,
        [
            ("t3_ms p75".to_owned(), Verdict::OverBudget, Gate::Fail),
            ("fps".to_owned(), Verdict::OverBudget, Gate::Warn),
            ("t3_ms p50".to_owned(), Verdict::Unchanged, Gate::Pass),
        ]
    );
    assert_eq!(comparison.missing, ["duration_ms of gone"]);
    assert_eq!(comparison.gate(), Gate::Fail);
}

/// A comparison with every verdict and with hostile names.
fn example() -> Comparison {
    let evil = page("<img src=x>|`a`\n@all");
    let base = [
        around(&page("Cart"), Quantity::T3Ms, 100.0, 100),
        around(&page("Cart"), Quantity::Fps, 58.0, 100),
        around(&evil, Quantity::TotalMs, 400.0, 100),
        around(&span("left"), Quantity::DurationMs, 5.0, 100),
    ];
    let head = [
        around(&page("Cart"), Quantity::T3Ms, 200.0, 100),
        around(&page("Cart"), Quantity::Fps, 58.0, 100),
        around(&evil, Quantity::TotalMs, 100.0, 100),
        around(&span("pay"), Quantity::DurationMs, 5.0, 5),
    ];
    compare(
        &side("main.jsonl", &[base.concat()]),
        &side("branch.jsonl", &[head.concat()]),
        &Budgets::default(),
    )
}

#[test]
fn the_markdown_report() {
    insta::assert_snapshot!(markdown(&example()), @r##"
    <!-- unjank:report -->
    ### ❌ unjank: 1 regressed, 2 improved

    Base: main.jsonl (1 run). Head: branch.jsonl (1 run).

    | what | metric | base | head | Δ | Δ % | n | p | verdict |
    |---|---|--:|--:|--:|--:|--:|--:|---|
    | Cart | t3_ms p50 | 99.8 ms | 200 ms | +99.8 ms | +100 % | 100 / 100 | < 0.001 | ❌ regressed |
    | &#60;img src=x&#62;\|\`a\` &#64;all | total_ms p50 | 399 ms | 99.8 ms | −299 ms | −75.0 % | 100 / 100 | < 0.001 | ✅ improved |
    | &#60;img src=x&#62;\|\`a\` &#64;all | total_ms p95 | 435 ms | 109 ms | −326 ms | −75.0 % | 100 / 100 | 0.002 | ✅ improved |

    <details><summary>5 more: 1 unchanged, 2 new, 2 gone</summary>

    | what | metric | base | head | Δ | Δ % | n | p | verdict |
    |---|---|--:|--:|--:|--:|--:|--:|---|
    | span pay | duration_ms p50 | – | 4.90 ms | – | – | 0 / 5 | – | ➕ new |
    | span pay | duration_ms p95 | – | 5.30 ms | – | – | 0 / 5 | – | ➕ new |
    | span left | duration_ms p50 | 4.99 ms | – | – | – | 100 / 0 | – | ➖ gone |
    | span left | duration_ms p95 | 5.44 ms | – | – | – | 100 / 0 | – | ➖ gone |
    | Cart | fps | 57.9 fps | 57.9 fps | 0 fps | 0 % | 100 / 100 | 1.000 | ▫️ unchanged |

    </details>

    <sub>p: Mann–Whitney, corrected (Holm) for 4 tests; a regression needs p ≤ 0.01 and a change beyond the tolerance. n is the number of values, or of runs where noted.</sub>
    "##);
}

#[test]
fn the_json_report() {
    let mut document: serde_json::Value = serde_json::from_str(&json(&example()).unwrap()).unwrap();
    let rows = document["rows"].as_array_mut().unwrap();
    rows.truncate(1);
    insta::assert_snapshot!(serde_json::to_string_pretty(&document).unwrap(), @r##"
    {
      "base": {
        "label": "main.jsonl",
        "runs": 1
      },
      "gate": "fail",
      "head": {
        "label": "branch.jsonl",
        "runs": 1
      },
      "improved": 2,
      "missing": [],
      "over_budget": 0,
      "regressed": 1,
      "rows": [
        {
          "base": 99.8,
          "base_count": 100,
          "better": "lower",
          "change": 99.8,
          "change_percent": 100.0,
          "cliffs_delta": 1.0,
          "counted": "values",
          "gate": "fail",
          "head": 199.6,
          "head_count": 100,
          "limit": null,
          "metric": "t3_ms",
          "name": "Cart",
          "of": "page",
          "p": 4e-15,
          "statistic": "p50",
          "unit": "ms",
          "verdict": "regressed"
        }
      ],
      "schema_version": 1,
      "significance": 0.01
    }
    "##);
}

#[test]
fn a_report_with_thousands_of_long_names_fits_into_a_comment() {
    let pages = (0..3_000).map(|number| {
        let name = format!("{number}{}", "|<@😀".repeat(100));
        around(&page(&name), Quantity::TotalMs, 100.0, 1)
    });
    let made = side("many", &[pages.collect::<Vec<_>>().concat()]);
    let report = markdown(&compare(&made, &made, &Budgets::default()));
    assert!(report.chars().count() < 65_536);
    assert!(report.contains("more rows are in the JSON") && report.contains("</details>"));
}

proptest::proptest! {
    #[test]
    fn swapping_the_sides_turns_regressions_into_improvements(
        base in proptest::collection::vec(proptest::collection::vec(1.0_f64..1_000.0, 15..30), 1..8),
        head in proptest::collection::vec(proptest::collection::vec(1.0_f64..1_000.0, 15..30), 1..8),
        factor in 0.3_f64..3.0,
    ) {
        let run = |values: &Vec<f64>, factor: f64| -> Vec<_> {
            values.iter().map(|value| (page("Cart"), Quantity::TotalMs, value * factor)).collect()
        };
        let base: Vec<_> = base.iter().map(|values| run(values, 1.0)).collect();
        let head: Vec<_> = head.iter().map(|values| run(values, factor)).collect();
        let (base, head) = (side("", &base), side("", &head));
        let verdicts = |base: &Side, head: &Side| -> Vec<_> {
            let comparison = compare(base, head, &Budgets::default());
            let mut rows = comparison.rows;
            rows.sort_by_key(|row| row.metric);
            rows.iter().map(|row| row.verdict).collect()
        };
        let mirrored = |verdict: &Verdict| match verdict {
            Verdict::Regressed => Verdict::Improved,
            Verdict::Improved => Verdict::Regressed,
            other => *other,
        };
        let there = verdicts(&base, &head);
        let back = verdicts(&head, &base);
        proptest::prop_assert_eq!(there, back.iter().map(mirrored).collect::<Vec<_>>());
    }
}
