//! Cost of a span during ingestion, step by step: decompress, decode, prepare a record, join records into a block for ClickHouse.
#![expect(
    clippy::unwrap_used,
    reason = "a benchmark that cannot run should fail"
)]

use std::fmt::Write;
use std::hint::black_box;
use std::sync::Arc;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use prost::Message;
use serde_json::{Value, json};
use unjank_columns::Bounds;
use unjank_foundation::clock::UnixTime;
use unjank_protocol::{Batch, Limits};
use unjank_server::ingest::{self, Context, Device};
use unjank_server::otlp::{self, Form, Kind};
use unjank_server::recent::{RecentNames, RecentStacks};
use unjank_server::records::bench_join;
use unjank_stacks::RuleSet;

const SPANS: u64 = 200;
const NOW: UnixTime = UnixTime::from_micros(1_800_000_000_000_000);

/// A batch like those of an SDK: few names, random ids, an attribute on every other span.
fn batch(seed: u64) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut json = format!(
        r#"{{"batch_id":"{}","sent_at":"2027-01-15T08:00:00.000Z","resource":{{"app_id":"com.example.shop","app_version":"4.12.0","build":41200,"channel":"play","os_name":"android","os_version":"15","device_model":"Pixel 8","device_manufacturer":"Google","device_class":"high","refresh_hz":120,"locale":"de-DE","install_id":"5c0c7e0e-6c6b-4a3e-8a0e-0f6f8d3b2a11","user_id":null,"sdk_name":"unjank","sdk_version":"0.1.0"}},"session_id":"0192f0bf-0000-7000-8000-00000000a001","config_revision":42,"spans":["#,
        uuid::Uuid::from_u64_pair(random(), random())
    );
    for index in 0..SPANS {
        let comma = if index == 0 { "" } else { "," };
        let (trace, span, parent) = (random(), random(), random());
        let name = [
            "checkout",
            "CartActivity.onCreate",
            "feed.load",
            "OrderDao.insert",
            "image.decode",
        ][(random() % 5) as usize];
        let attributes = if index % 2 == 0 {
            r#"{"items":"3"}"#
        } else {
            "{}"
        };
        write!(
            json,
            r#"{comma}{{"trace_id":"{trace:016x}{trace:016x}","span_id":"{span:016x}","parent_span_id":"{parent:016x}","name":"{name}","kind":"method","start":"2027-01-15T07:59:{:02}.{:03}Z","duration_us":{},"thread":"main","on_main_thread":true,"status":"ok","page":"CartActivity","network":"wifi","code":{{"class":"com.example.shop.Cart","function":"pay","file":"Cart.kt","line":42}},"attributes":{attributes},"sample_rate":0.1}}"#,
            random() % 60,
            random() % 1000,
            random() % 50_000,
        )
        .unwrap();
    }
    json.push_str("]}");
    json
}

/// The same spans as a request of OpenTelemetry, with the names that instrumented apps use.
fn request(seed: u64) -> Value {
    let json = batch(seed);
    let batch: Batch<'_> = serde_json::from_str(&json).unwrap();
    let text = |key: &str, value: &str| json!({"key": key, "value": {"stringValue": value}});
    let nanos = |at: i64| (at * 1_000).to_string();
    let span = |span: &unjank_protocol::Span<'_>| {
        let mut attributes = vec![
            text("app.screen.name", &span.page),
            text("thread.name", &span.thread),
            text("network.connection.type", "wifi"),
            text("code.function.name", &span.code.function),
            text("code.file.path", &span.code.file),
            json!({"key": "code.line.number", "value": {"intValue": span.code.line}}),
        ];
        if !span.attributes.0.is_empty() {
            attributes.push(json!({"key": "items", "value": {"intValue": 3}}));
        }
        let start = span.start.as_micros();
        json!({
            "traceId": format!("{:032x}", span.trace_id.0), "spanId": format!("{:016x}", span.span_id.0),
            "parentSpanId": format!("{:016x}", span.parent_span_id.map_or(0, |id| id.0)), "name": span.name.as_str(), "kind": 1,
            "startTimeUnixNano": nanos(start), "endTimeUnixNano": nanos(start + span.duration_us),
            "attributes": attributes, "status": {"code": 1},
        })
    };
    let spans: Vec<_> = batch.spans.iter().map(span).collect();
    let resource = [
        ("service.name", "com.example.shop"),
        ("service.version", "4.12.0"),
        (
            "app.installation.id",
            "5c0c7e0e-6c6b-4a3e-8a0e-0f6f8d3b2a11",
        ),
        ("session.id", "0192f0bf-0000-7000-8000-00000000a001"),
        ("os.name", "android"),
        ("os.version", "15"),
        ("device.model.name", "Pixel 8"),
        ("device.manufacturer", "Google"),
        ("telemetry.sdk.name", "opentelemetry"),
        ("telemetry.sdk.language", "java"),
        ("telemetry.sdk.version", "1.6.0"),
    ];
    let resource: Vec<_> = resource
        .iter()
        .map(|(key, value)| text(key, value))
        .collect();
    json!({"resourceSpans": [{
        "resource": {"attributes": resource},
        "scopeSpans": [{"scope": {"name": "com.example.shop", "version": "1.6.0"}, "spans": spans}],
    }]})
}

/// Adds what SDKs find out about a process and its machine. Each span is stored with these attributes.
fn with_long_resource(mut request: Value) -> Value {
    let attributes = &mut request["resourceSpans"][0]["resource"]["attributes"];
    let more = [
        ("host.arch", "arm64"),
        ("host.name", "build-7.shop.example"),
        (
            "os.description",
            "Linux 6.18.2-arch1 #1 SMP PREEMPT_DYNAMIC",
        ),
        ("process.command", "/opt/shop/bin/shop"),
        ("process.executable.name", "shop"),
        ("process.owner", "shop"),
        (
            "process.runtime.description",
            "Eclipse Adoptium OpenJDK 64-Bit Server VM 21.0.9+10-LTS",
        ),
        ("process.runtime.name", "OpenJDK Runtime Environment"),
        ("process.runtime.version", "21.0.9+10-LTS"),
        ("service.namespace", "shop"),
    ];
    for (key, value) in more {
        let one = json!({"key": key, "value": {"stringValue": value}});
        attributes.as_array_mut().unwrap().push(one);
    }
    request
}

fn otlp_steps(group: &mut BenchmarkGroup<'_, WallTime>, context: &Context<'_>, limits: &Limits) {
    let otlp = request(1);
    let protobuf = |request: &Value| {
        let request: ExportTraceServiceRequest = serde_json::from_value(request.clone()).unwrap();
        request.encode_to_vec()
    };
    let forms = [
        ("OTLP protobuf", Form::Protobuf, protobuf(&otlp)),
        (
            "OTLP protobuf, long resource",
            Form::Protobuf,
            protobuf(&with_long_resource(otlp.clone())),
        ),
        ("OTLP JSON", Form::Json, otlp.to_string().into_bytes()),
    ];
    for (name, form, bytes) in &forms {
        let read = |bytes: &[u8]| {
            let body = ingest::Body::new(bytes);
            let request = otlp::read(&body, Kind::Traces, *form, limits.events).unwrap();
            request.batches.iter().map(Batch::events).sum::<usize>()
        };
        group.bench_function(format!("decode {name}"), |bencher| {
            bencher.iter(|| read(black_box(bytes)));
        });
        let prepare = |bytes: &[u8]| {
            let body = ingest::Body::new(bytes);
            let request = otlp::read(&body, Kind::Traces, *form, limits.events).unwrap();
            let (batches, undecoded) = (request.batches, request.undecoded);
            let checked =
                ingest::check_decoded(batches, undecoded, bytes.len(), context.device, limits, NOW);
            checked.unwrap().into_record(context, None)
        };
        assert_eq!(prepare(bytes).receipt.accepted, SPANS);
        group.bench_function(format!("prepare {name}"), |bencher| {
            bencher.iter(|| prepare(black_box(bytes)).record.len());
        });
    }
}

fn columns_steps(group: &mut BenchmarkGroup<'_, WallTime>, context: &Context<'_>, limits: &Limits) {
    let json = batch(1);
    let columns = unjank_columns::write(&serde_json::from_str::<Batch<'_>>(&json).unwrap());
    group.bench_function("decode columns", |bencher| {
        bencher.iter(|| {
            let read = unjank_columns::read(black_box(&columns), &Bounds::default());
            read.unwrap().batch.spans.len()
        });
    });
    let prepare = |columns: &[u8]| {
        let most_bytes = limits.decompressed_bytes;
        let body = ingest::Body::new(columns);
        let checked = ingest::check_columns(&body, most_bytes, context.device, limits, NOW);
        checked.unwrap().into_record(context, None)
    };
    assert_eq!(prepare(&columns).receipt.accepted, SPANS);
    group.bench_function("prepare columns", |bencher| {
        bencher.iter(|| prepare(black_box(&columns)).record.len());
    });
}

fn steps(criterion: &mut Criterion) {
    let json = batch(1);
    let packed = zstd::bulk::compress(json.as_bytes(), 3).unwrap();
    let (rules, limits) = (RuleSet::built_in(), Limits::default());
    let (recent_stacks, recent_names) = (RecentStacks::new(1_000), RecentNames::new(10_000));
    let device = Device {
        project: Arc::from("default"),
        apps: None,
        install_id: None,
    };
    let context = Context {
        device: &device,
        rules: &rules,
        scrubbing: &ingest::Scrubbing::default(),
        recent_stacks: &recent_stacks,
        recent_names: &recent_names,
        forward: None,
        received_at: NOW,
        wire_bytes: packed.len(),
    };
    let prepare = |json: &[u8]| {
        let body = ingest::Body::new(json);
        let batch = ingest::check(&body, &device, &limits, NOW).unwrap();
        batch.into_record(&context, None)
    };
    assert_eq!(prepare(json.as_bytes()).receipt.accepted, SPANS);

    let mut group = criterion.benchmark_group("per_span");
    group.throughput(Throughput::Elements(SPANS));
    let mut decompressor = zstd::bulk::Decompressor::new().unwrap();
    let mut buffer = Vec::with_capacity(json.len());
    group.bench_function("unzstd", |bencher| {
        bencher.iter(|| {
            buffer.clear();
            decompressor
                .decompress_to_buffer(&packed, &mut buffer)
                .unwrap()
        });
    });
    group.bench_function("decode", |bencher| {
        bencher.iter(|| {
            serde_json::from_str::<Batch<'_>>(black_box(&json))
                .unwrap()
                .spans
                .len()
        });
    });
    group.bench_function("prepare", |bencher| {
        bencher.iter(|| prepare(black_box(json.as_bytes())).record.len());
    });
    columns_steps(&mut group, &context, &limits);
    otlp_steps(&mut group, &context, &limits);
    let records: Vec<Vec<u8>> = (0..500)
        .map(|seed| prepare(batch(seed + 1).as_bytes()).record)
        .collect();
    group.throughput(Throughput::Elements(SPANS * records.len() as u64));
    group.bench_function("join", |bencher| {
        bencher.iter(|| bench_join(black_box(&records)));
    });
    group.finish();
}

criterion_group!(benches, steps);
criterion_main!(benches);
