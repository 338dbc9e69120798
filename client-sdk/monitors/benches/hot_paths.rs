//! The cost of the SDK where an app is busy: frames, messages of the main loop, and requests. Numbers are per call.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use unjank_monitors::{
    FrameMeter, LoopClock, MetricWindows, Recompositions, Scene, TrafficMeter, Transfer, Uptime,
};
use unjank_protocol::{Timestamp, config};

fn frames(bench: &mut Criterion) {
    for (name, pause, took) in [
        ("in time", 16_667_u64, 9_000_u64),
        ("pipelined", 16_667, 30_000),
        ("dropping", 66_667, 60_000),
    ] {
        let mut meter = FrameMeter::new(&config::Frames::default(), 60, Scene::new("Feed"));
        let mut vsync = Uptime::default();
        bench.bench_function(&format!("frame, {name}"), |bencher| {
            bencher.iter(|| {
                vsync = vsync.plus(pause);
                black_box(meter.frame(vsync, vsync.plus(black_box(took))).is_some())
            });
        });
    }
    let mut meter = FrameMeter::new(&config::Frames::default(), 60, Scene::new("Feed"));
    let mut at = Uptime::default();
    bench.bench_function("tick", |bencher| {
        bencher.iter(|| {
            at = at.plus(16_667);
            black_box(meter.tick(black_box(at)).is_some())
        });
    });
}

fn messages(bench: &mut Criterion) {
    let clock = LoopClock::default();
    let mut at = Uptime::default();
    bench.bench_function("message, begin and end", |bencher| {
        bencher.iter(|| {
            at = at.plus(1_000);
            clock.begin(black_box(at));
            clock.end(black_box(at.plus(500)));
        });
    });
}

fn others(bench: &mut Criterion) {
    let sources = [("api", "*.example.com"), ("cdn", "*.examplecdn.net")];
    let config = config::Traffic {
        sources: sources
            .map(|(source, host)| config::TrafficSource {
                source: source.to_owned(),
                hosts: vec![host.to_owned()],
            })
            .into(),
        ..config::Traffic::default()
    };
    let mut meter = TrafficMeter::new(&config);
    let transfer = Transfer {
        host: "img.examplecdn.net",
        mime_type: "image/webp",
        rx_bytes: 20_000,
        answered: true,
        ..Transfer::default()
    };
    bench.bench_function("request", |bencher| {
        bencher.iter(|| meter.count(black_box(&transfer), Timestamp::from_micros(0), 3_600));
    });

    let mut redraws = Recompositions::new(10_000, Scene::new("Feed"));
    bench.bench_function("redraw", |bencher| {
        bencher.iter(|| redraws.redrawn(black_box("CartList"), "items", Uptime::default()));
    });

    let monitors = config::Document::default().monitors;
    let mut metrics = MetricWindows::new(&monitors, Scene::new("Feed"));
    bench.bench_function("sample", |bencher| {
        bencher.iter(|| metrics.sample("cpu", "cpu_percent", black_box(7.0), Uptime::default()));
    });
}

criterion_group!(benches, frames, messages, others);
criterion_main!(benches);
