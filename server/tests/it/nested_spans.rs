//! Time by span and by package: sampled children have their weight, and children count by time if no link names their parent.

use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::server::{Server, batch};

/// A span of a test: its name, parent, start and end in milliseconds, and sample rate.
struct Made {
    name: &'static str,
    class: &'static str,
    parent: Option<u64>,
    from: u32,
    to: u32,
    rate: f64,
    thread: &'static str,
}

const MADE: Made = Made {
    name: "checkout",
    class: "",
    parent: None,
    from: 0,
    to: 100,
    rate: 1.0,
    thread: "main",
};

/// The JSON of the spans of one trace. The ids of spans are 1, 2, 3, …
fn trace(spans: &[Made]) -> Vec<Value> {
    let trace = format!("{:032x}", Uuid::new_v4().as_u128());
    let spans = spans.iter().zip(1_u64..);
    let span = |(made, id): (&Made, u64)| {
        json!({
            "trace_id": trace, "span_id": format!("{id:016x}"),
            "parent_span_id": made.parent.map(|parent| format!("{parent:016x}")),
            "name": made.name, "kind": "manual", "start": format!("2026-11-20T11:59:58.{:03}Z", made.from),
            "duration_us": (made.to - made.from) * 1_000, "thread": made.thread, "on_main_thread": made.thread == "main",
            "code": {"class": made.class, "function": "run"}, "sample_rate": made.rate,
        })
    };
    spans.map(span).collect()
}

/// The batch of one session with these traces.
fn session(traces: impl IntoIterator<Item = Vec<Value>>) -> Value {
    let mut batch = batch();
    batch["spans"] = traces.into_iter().flatten().collect();
    batch
}

/// A batch and a session for each trace: two spans cannot run on one main thread at the same time.
fn sessions(traces: impl IntoIterator<Item = Vec<Value>>) -> Vec<Value> {
    traces.into_iter().map(|trace| session([trace])).collect()
}

/// Asks a server that has these batches.
async fn answer(batches: &[Value], path: &str) -> Value {
    let server = Server::start().await;
    server.ready().await;
    for batch in batches {
        assert_eq!(server.send(batch).await.status, 202);
    }
    server.drained().await;
    let token = server.token("viewer --project default").await;
    let path = format!("/api/v1/projects/default/spans/{path}");
    let answer = server.call(&token, Method::GET, &path, None).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    answer.body
}

/// Returns the rows with their first text and these numbers.
fn rows<'a, const N: usize>(
    answer: &'a Value,
    key: &str,
    of: [&str; N],
) -> Vec<(&'a str, [u64; N])> {
    let rows = answer["rows"].as_array().unwrap().iter();
    rows.map(|row| {
        (
            row[key].as_str().unwrap(),
            of.map(|number| row[number].as_u64().unwrap()),
        )
    })
    .collect()
}

const NUMBERS: [&str; 5] = ["calls", "recorded", "by_time", "total_us", "self_us"];

#[tokio::test(flavor = "multi_thread")]
async fn a_child_with_a_lower_rate_stands_for_those_that_were_not_recorded() {
    let child = || Made {
        name: "parse",
        parent: Some(1),
        from: 10,
        to: 50,
        rate: 0.1,
        ..MADE
    };
    let traces = (0..10).map(|number| match number {
        0 => trace(&[MADE, child()]),
        _ => trace(&[MADE]),
    });
    let inside = answer(&sessions(traces), "inside?name=checkout").await;
    assert_eq!(
        rows(&inside, "name", NUMBERS),
        [
            ("checkout", [10, 10, 0, 1_000_000, 600_000]),
            ("parse", [10, 1, 0, 400_000, 400_000]),
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parent_with_a_higher_rate_than_the_span_adds_no_weight() {
    let span = || Made { rate: 0.1, ..MADE };
    let child = || Made {
        name: "parse",
        parent: Some(1),
        to: 40,
        ..MADE
    };
    let grandchild = || Made {
        name: "read",
        parent: Some(2),
        to: 10,
        rate: 0.05,
        ..MADE
    };
    let traces = [
        trace(&[span(), child(), grandchild()]),
        trace(&[span(), child()]),
    ];
    let inside = answer(&sessions(traces), "inside?name=checkout").await;
    assert_eq!(
        rows(&inside, "name", NUMBERS),
        [
            ("checkout", [2, 2, 0, 200_000, 120_000]),
            ("parse", [2, 2, 0, 80_000, 60_000]),
            ("read", [2, 1, 0, 20_000, 20_000]),
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_span_between_parent_and_child_that_is_not_always_recorded_is_not_counted_twice() {
    let between = || Made {
        name: "load",
        parent: Some(1),
        to: 60,
        rate: 0.5,
        ..MADE
    };
    let inner = |parent| Made {
        name: "parse",
        parent: Some(parent),
        from: 20,
        to: 40,
        ..MADE
    };
    // In the second trace the device did not record `load`, so `parse` is linked to `checkout`.
    let traces = [
        trace(&[MADE, between(), inner(2)]),
        trace(&[MADE, inner(1)]),
    ];
    let inside = answer(&sessions(traces), "inside?name=checkout").await;
    assert_eq!(
        rows(&inside, "name", NUMBERS),
        [
            ("checkout", [2, 2, 0, 200_000, 80_000]),
            ("load", [2, 1, 0, 120_000, 80_000]),
            ("parse", [2, 2, 0, 40_000, 40_000]),
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn spans_without_a_link_are_inside_by_time_on_the_same_thread() {
    let unlinked = |name, from, to, thread| {
        trace(&[Made {
            name,
            from,
            to,
            thread,
            ..MADE
        }])
    };
    let lost_parent = Made {
        name: "decode",
        parent: Some(99),
        from: 72,
        to: 80,
        thread: "worker",
        ..MADE
    };
    let work = Made {
        name: "work",
        parent: Some(1),
        from: 70,
        to: 90,
        thread: "worker",
        ..MADE
    };
    let draw = Made {
        name: "draw",
        from: 10,
        to: 40,
        ..MADE
    };
    let of_draw = Made {
        name: "measure",
        parent: Some(1),
        from: 20,
        to: 30,
        ..MADE
    };
    let one = session([
        trace(&[MADE, work, lost_parent]),
        trace(&[draw, of_draw]),
        unlinked("on another thread", 10, 20, "worker"),
        unlinked("longer than the span", 50, 130, "main"),
    ]);
    let other = session([unlinked("in another session", 10, 20, "main")]);
    let inside = answer(&[one, other], "inside?name=checkout").await;
    assert_eq!(
        rows(&inside, "name", NUMBERS),
        [
            ("checkout", [1, 1, 0, 100_000, 50_000]),
            ("draw", [1, 1, 1, 30_000, 20_000]),
            ("measure", [1, 1, 0, 10_000, 10_000]),
            ("work", [1, 1, 0, 20_000, 12_000]),
            ("decode", [1, 1, 1, 8_000, 8_000]),
        ]
    );
}

/// A trace of an app that uses `tracing`. `serde_json` is recorded in half of the cases, and `reqwest` runs on another thread.
fn instrumented(is_parsing_recorded: bool, parsing_ms: u32) -> Vec<Value> {
    let request = Made {
        name: "send",
        class: "reqwest::client",
        parent: Some(1),
        to: 50,
        thread: "net",
        ..MADE
    };
    let parse = Made {
        name: "parse",
        class: "serde_json::de",
        parent: Some(1),
        from: 10,
        to: 10 + parsing_ms,
        rate: 0.5,
        ..MADE
    };
    let of_shop = Made {
        class: "shop::cart",
        ..MADE
    };
    if is_parsing_recorded {
        trace(&[of_shop, request, parse])
    } else {
        trace(&[of_shop, request])
    }
}

const OF_PACKAGES: [&str; 4] = ["calls", "recorded", "self_us", "main_thread_us"];

#[tokio::test(flavor = "multi_thread")]
async fn a_package_has_the_own_time_of_its_spans_of_all_kinds() {
    let mut before = sessions([instrumented(true, 20), instrumented(false, 20)]);
    for batch in &mut before {
        batch["resource"]["app_version"] = json!("4.11.0");
    }
    let now = sessions([instrumented(true, 30), instrumented(false, 30)]);
    let path = "packages?app_version=4.12.0&base_app_version=4.11.0";
    let packages = answer(&[before, now].concat(), path).await;
    assert_eq!(packages["share"], 1.0);
    assert_eq!(
        rows(&packages, "package", OF_PACKAGES),
        [
            ("shop", [2, 2, 140_000, 140_000]),
            ("reqwest", [2, 2, 100_000, 0]),
            ("serde_json", [2, 1, 60_000, 60_000]),
        ]
    );
    let base = &packages["rows"][2]["base"];
    assert_eq!(
        *base,
        json!({"calls": 2, "recorded": 1, "self_us": 40_000, "main_thread_us": 40_000})
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn spans_around_the_filtered_ones_are_not_counted_but_cover_their_time() {
    let traces = [instrumented(true, 30)];
    let path = "packages?code_class=shop::cart&thread=main";
    let packages = answer(&[session(traces)], path).await;
    assert_eq!(
        rows(&packages, "package", OF_PACKAGES),
        [("shop", [1, 1, 40_000, 40_000])],
        "the parsing of the recorded span represents the parsing of two spans"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn many_spans_are_estimated_from_a_share_of_the_sessions() {
    // 60,000 spans of 60 sessions: more than are counted.
    let of_shop = || {
        trace(&[Made {
            class: "shop::cart",
            thread: "worker",
            ..MADE
        }])
    };
    let batches: Vec<Value> = (0..60)
        .map(|_| session((0..1_000).map(|_| of_shop())))
        .collect();
    let packages = answer(&batches, "packages").await;
    let share = packages["share"].as_f64().unwrap();
    assert!((0.6..1.0).contains(&share), "{share}");
    let rows = rows(&packages, "package", OF_PACKAGES);
    let (package, [calls, recorded, own, _]) = rows[0];
    assert_eq!((package, recorded, rows.len()), ("shop", 50_000, 1));
    assert!((50_000..83_000).contains(&calls), "{calls}");
    // Rounding the estimates moves the mean a little.
    assert!(own.abs_diff(calls * 100_000) <= 100_000, "{own} of {calls}");
}
