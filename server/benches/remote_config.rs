//! Cost of a poll of the remote configuration: `cargo bench -p unjank-server --bench remote_config`.
//!
//! `-- --quick` finishes within seconds. The goal is less than 20 µs with 200 overrides if the response is cached, which is the
//! usual case: a million devices that poll every 15 minutes are 1,100 polls per second.

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use serde_json::{Value, json};
use unjank_foundation::clock::UnixTime;
use unjank_remote_config::{Compiled, Configuration, Device};

const OVERRIDES: usize = 200;

/// Conditions as teams write them: a version, a model, a region, a percentage, or a combination.
fn condition(index: usize) -> Value {
    let minor = index % 20;
    match index % 8 {
        0 => json!({"app_version": format!(">=4.{minor}, <5")}),
        1 => {
            json!({"all": [{"os_name": ["android"]}, {"os_version": format!("<{}", 8 + minor % 8)}]})
        }
        2 => json!({"device_model": [format!("SM-G9{minor}*"), "Pixel 4*", "*Lite*"]}),
        3 => {
            json!({"all": [{"percentage": {"percent": 10.0}}, {"app_version": "^4.10"}, {"os_name": ["android"]}]})
        }
        4 => {
            json!({"percentage": {"percent": 5.0 * f64::from(u32::try_from(minor).expect("below 20"))}})
        }
        5 => {
            json!({"any": [{"locale": ["fr", "it", "de-CH"]}, {"network": ["cellular_2g", "cellular_3g"]}]})
        }
        6 => {
            json!({"all": [{"app_id": ["com.example.shop"]}, {"not": {"device_class": ["high"]}}, {"build": {"min": 41_000 + index}}]})
        }
        _ => {
            json!({"install_id": (0..20).map(|id| format!("00000000-0000-4000-8000-{index:06}{id:06}")).collect::<Vec<_>>()})
        }
    }
}

fn configuration() -> Configuration {
    let one = |index: usize| {
        json!({"id": format!("override-{index}"), "when": condition(index),
               "patch": {"sampling": {"spans": {"default": 0.05}}, "toggles": {format!("toggle_{index}"): true}}})
    };
    let overrides: Vec<_> = (0..OVERRIDES).map(one).collect();
    let configuration =
        json!({"base": {"tracing": {"allow": ["com\\.example\\..*"]}}, "overrides": overrides});
    Configuration::from_value(configuration).expect("the benchmark's configuration is invalid")
}

fn device(install_id: &str) -> Device<'_> {
    Device {
        app_id: Some("com.example.shop"),
        app_version: Some("4.12.0"),
        build: Some(41_200),
        os_name: Some("android"),
        os_version: Some("15"),
        device_model: Some("Pixel 8"),
        device_class: Some("high"),
        network: Some("wifi"),
        locale: Some("de-DE"),
        sdk_version: Some("0.1.0"),
        user_id: None,
        install_id: Some(install_id),
    }
}

fn resolve(criterion: &mut Criterion) {
    let configuration = configuration();
    let compiled = Compiled::new(&configuration, 1).expect("the configuration is invalid");
    let install_id = "5c0c7e0e-6c6b-4a3e-8a0e-0f6f8d3b2a11";
    let matched = compiled
        .resolve(&device(install_id), UnixTime::default())
        .matched
        .len();
    assert!(
        (10..OVERRIDES / 2).contains(&matched),
        "{matched} overrides match"
    );

    let mut group = criterion.benchmark_group("200 overrides");
    group
        .warm_up_time(Duration::from_secs(1))
        .measurement_time(Duration::from_secs(3));
    group.bench_function("a poll, answer known", |bencher| {
        let device = device(install_id);
        bencher.iter(|| compiled.resolve(black_box(&device), black_box(UnixTime::default())));
    });
    let mut counter = 0_u64;
    group.bench_function("a poll, answer mostly new", |bencher| {
        bencher.iter(|| {
            counter += 1;
            let id = format!("5c0c7e0e-6c6b-4a3e-8a0e-{counter:012}");
            compiled.resolve(black_box(&device(&id)), black_box(UnixTime::default()))
        });
    });
    group.bench_function("check and compile", |bencher| {
        bencher.iter(|| Compiled::new(black_box(&configuration), 1));
    });
    group.finish();
}

criterion_group!(benches, resolve);
criterion_main!(benches);
