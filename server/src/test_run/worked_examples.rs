//! Runs whose numbers can be verified by hand.

use unjank_stacks::Rules;

use super::*;

fn run(lines: &str) -> TestRun {
    let rules = Rules::built_in();
    let mut collector = Collector::new(&rules);
    collector.read(lines.as_bytes()).unwrap();
    collector.finish()
}

#[test]
fn frames_of_a_page_are_summed_and_ordered_by_time() {
    let run = run(r#"
{"signal":"frame_window","event":{"page":"Cart","start":"2026-11-20T12:00:10Z","duration_ms":10000,"frames_drawn":300,"frames_dropped":200,"slow_frames":30,"frozen_frames":3,"longest_drop":20,"jank_ms":1500}}
{"signal":"frame_window","event":{"page":"Cart","start":"2026-11-20T12:00:00Z","duration_ms":10000,"frames_drawn":600,"slow_frames":6,"longest_drop":2}}
{"signal":"frame_window","event":{"page":"Home","start":"2026-11-20T12:00:20Z","duration_ms":1000,"frames_drawn":60}}
"#);
    let cart = run.pages[0].frames.as_ref().unwrap();
    assert_eq!(run.pages[0].name, "Cart");
    // 1,100 frames were wanted, which takes 18.3 s at 60 Hz.
    let fps = cart.fps().unwrap();
    assert!((fps - 900.0 * 60.0 / 1_100.0).abs() < 1e-9, "{fps}");
    assert_eq!(cart.slow_share(), Some(0.04));
    assert_eq!(
        (cart.dropped, cart.longest_drop, cart.jank_share()),
        (200.0, 20, Some(0.075))
    );
    let speeds: Vec<f64> = cart.over_time.iter().map(|(_, fps)| *fps).collect();
    assert_eq!(speeds, [60.0, 36.0]);
    assert_eq!(run.frames().unwrap().drawn, 960.0);
    let lasted = run.lasted.unwrap();
    assert_eq!(lasted.to - lasted.from, 21_000_000);
}

#[test]
fn memory_growth_is_from_the_first_sample_to_the_last_in_any_order_of_lines() {
    let run = run(r#"
{"signal":"metric","event":{"name":"memory_used_bytes","time":"2026-11-20T12:00:02Z","value":500,"page":"Cart"}}
{"signal":"metric","event":{"name":"memory_used_bytes","time":"2026-11-20T12:00:01Z","value":100,"page":"Cart"}}
{"signal":"metric","event":{"name":"memory_used_bytes","time":"2026-11-20T12:00:03Z","value":200,"max":900,"min":150,"count":2,"page":"Cart"}}
{"signal":"metric","event":{"name":"battery_percent","time":"2026-11-20T12:00:03Z","value":80}}
"#);
    let memory = run.pages[0].memory.as_ref().unwrap();
    assert_eq!(
        (memory.mean, memory.max, memory.min, memory.growth),
        (250.0, 900.0, 100.0, 100.0)
    );
    assert_eq!(run.metrics[0].0, "battery_percent");
    assert!(run.pages[0].cpu.is_none());
}

#[test]
fn a_stall_is_classified_and_the_longest_comes_first() {
    let stall = |ms: u32, kind: &str| {
        format!(
            r#"{{"signal":"jank","event":{{"kind":"{kind}","start":"2026-11-20T12:00:00Z","duration_ms":{ms},"page":"Cart","stack":[{{"class":"com.google.gson.Gson","function":"toJson"}},{{"class":"com.example.Cart","function":"pay"}}],"run_log":[{{"time":"2026-11-20T11:59:59Z","message":"paying"}}]}}}}"#
        )
    };
    let run = run(&[stall(700, "jank"), stall(5_600, "anr"), stall(900, "jank")].join("\n"));
    let durations: Vec<i64> = run
        .stalls
        .longest
        .iter()
        .map(|one| one.duration_ms)
        .collect();
    assert_eq!(durations, [5_600, 900, 700]);
    assert_eq!(
        (run.stalls.janks, run.stalls.anrs, run.stalls.sum_ms),
        (2.0, 1.0, 7_200.0)
    );
    assert_eq!(
        run.stalls.longest[0].class.title,
        "JSON on main thread in Cart.pay"
    );
    assert_eq!(
        (run.pages[0].stalls, run.pages[0].stalled_ms),
        (3.0, 7_200.0)
    );
}

#[test]
fn stalls_beyond_the_limit_are_counted() {
    let lines: Vec<String> = (0..1_000)
        .map(|ms| format!(r#"{{"signal":"jank","event":{{"start":"2026-11-20T12:00:00Z","duration_ms":{ms}}}}}"#))
        .collect();
    let run = run(&lines.join("\n"));
    assert_eq!((run.stalls.longest.len(), run.stalls.left_out), (200, 800));
    assert_eq!(run.stalls.longest[199].duration_ms, 800);
    assert_eq!(run.stalls.janks, 1_000.0);
}

#[test]
fn loads_spans_traffic_and_losses_are_summed() {
    let run = run(r#"
{"signal":"resource","event":{"app_id":"com.example.shop","app_version":"4.12.0","build":7,"install_id":"5c0c7e0e-6c6b-4a3e-8a0e-0f6f8d3b2a11","os_name":"android","os_version":"15","device_model":"Pixel 8","sdk_name":"unjank","sdk_version":"1.0.0"}}
{"signal":"page_load","event":{"page":"Cart","start":"2026-11-20T12:00:00Z","t1_ms":100,"total_ms":900}}
{"signal":"page_load","event":{"page":"Cart","start":"2026-11-20T12:00:00Z","total_ms":300,"outcome":"aborted"}}
{"signal":"span","event":{"trace_id":"00000000000000000000000000000001","span_id":"0000000000000001","name":"pay","start":"2026-11-20T12:00:00Z","duration_us":3000,"on_main_thread":true}}
{"signal":"span","event":{"trace_id":"00000000000000000000000000000001","span_id":"0000000000000002","name":"pay","start":"2026-11-20T12:00:00Z","duration_us":1000,"status":"error"}}
{"signal":"traffic","event":{"day":"2026-11-20","source":"api","network":"wifi","tx_bytes":1,"rx_bytes":2,"requests":3}}
{"signal":"traffic","event":{"day":"2026-11-21","source":"api","network":"wifi","tx_bytes":10,"rx_bytes":20,"requests":30}}
{"signal":"sdk_health","event":{"dropped":[{"signal":"spans","reason":"queue_full","count":4}],"overhead_us":1200}}
"#);
    let loads = run.pages[0].loads.as_ref().unwrap();
    assert_eq!(
        (
            loads.count,
            loads.t1_ms.unwrap().p50,
            loads.total_ms.unwrap().max
        ),
        (2.0, 100.0, 900.0)
    );
    assert!(loads.t2_ms.is_none());
    assert_eq!(loads.outcomes.get("aborted"), Some(&1.0));
    let pay = &run.spans[0];
    assert_eq!(
        (
            pay.durations_us.count,
            pay.durations_us.p50,
            pay.main_thread_share,
            pay.errors
        ),
        (2.0, 1_000.0, 0.75, 1.0)
    );
    assert_eq!(
        (
            run.traffic.len(),
            run.traffic[0].tx_bytes,
            run.traffic[0].requests
        ),
        (1, 11, 33)
    );
    assert_eq!(
        run.losses.dropped.get(&("spans", "queue_full".to_owned())),
        Some(&4)
    );
    assert_eq!(run.app.apps.first().unwrap(), "com.example.shop 4.12.0 (7)");
    assert_eq!(run.events, 7);
}

#[test]
fn losses_too_large_to_add_up_have_the_largest_sum() {
    let report = r#"{"signal":"sdk_health","event":{"dropped":[{"signal":"spans","reason":"queue_full","count":18446744073709551615},
        {"signal":"spans","reason":"queue_full","count":2}],"overhead_us":18446744073709551615,"upload_bytes":18446744073709551615}}"#;
    let report = report.replace('\n', "");
    let losses = run(&format!("{report}\n{report}")).losses;
    let dropped = losses.dropped.into_values().collect::<Vec<_>>();
    assert_eq!(
        (losses.overhead_us, losses.upload_bytes, dropped),
        (u64::MAX, u64::MAX, vec![u64::MAX])
    );
}

#[test]
fn unreadable_lines_are_skipped_and_counted() {
    let run = run(
        "not json\n{\"signal\":\"of_tomorrow\",\"event\":{}}\n\n{\"signal\":\"span\",\"event\":{\"name\":1}}\n{\"signal\":\"span\",\"ev",
    );
    assert_eq!((run.skipped, run.events), (4, 0));
    assert!(run.is_empty());
}

#[test]
fn a_file_written_by_the_sdk_is_read_completely() {
    let run = run(include_str!("written_by_the_sdk.jsonl"));
    assert_eq!((run.skipped, run.events), (0, 2));
    assert_eq!(run.spans[0].name, "checkout");
    assert_eq!(run.pages[0].name, "Cart");
    assert_eq!(run.app.apps.first().unwrap(), "com.example.shop 4.12.0");
    assert_eq!(run.app.sdks.first().unwrap(), "unjank 0.1.0");
}
