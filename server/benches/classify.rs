//! Cost of classifying a stack, in time per frame: `cargo bench -p unjank-server --bench classify`.
//!
//! `-- --quick` finishes within seconds. The goal is less than 100 ns per frame with 507 rules. The server hashes every stack
//! that arrives, and classifies only stacks that are new.

use std::fmt::Write as _;
use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{Bencher, Criterion, criterion_group, criterion_main};
use unjank_protocol::Frame;
use unjank_stacks::{Rules, parse_text, stack_hash};

const RULES: usize = 507;
const FRAMES: usize = 64;

const ROOTS: [&str; 8] = [
    "com", "org", "io", "net", "de", "androidx", "kotlinx", "android",
];
const WORDS: [&str; 12] = [
    "shop", "cart", "feed", "search", "media", "widget", "database", "network", "internal",
    "adapter", "view", "core",
];

fn word(seed: usize) -> &'static str {
    WORDS[seed % WORDS.len()]
}

/// Packages share their prefixes, as real ones do.
fn package(seed: usize) -> String {
    format!(
        "{}.{}.{}{}",
        ROOTS[seed % ROOTS.len()],
        word(seed / 3),
        word(seed / 7),
        seed
    )
}

/// Most rules are prefixes, a few name a function, and a few end with a glob, as in the built-in rules.
fn rule_file() -> String {
    let mut file = String::new();
    for index in 0..RULES - 7 {
        let package = package(index);
        let rule = match index % 10 {
            0 => format!(
                "match = \"{package}.\"\nmeans = \"category\"\ncategory = \"{}\"",
                word(index)
            ),
            1 if index % 40 == 1 => {
                format!("match = \"{package}.\"\nfunction = \"native*\"\nmeans = \"ignore\"")
            }
            2 if index % 40 == 2 => format!(
                "match = \"{package}.\"\nmeans = \"in_app\"\nowner = \"team-{}\"",
                word(index)
            ),
            _ => format!("match = \"{package}.\"\nmeans = \"ignore\""),
        };
        writeln!(file, "[[rule]]\n{rule}").expect("writing to a string");
    }
    for index in 0..7 {
        writeln!(
            file,
            "[[rule]]\nglob = \"*$$generated{index}\"\nmeans = \"ignore\""
        )
        .expect("writing to a string");
    }
    file
}

/// System and library frames followed by one frame of the app, so that every frame has to be matched.
fn deep_stack() -> Vec<Frame<'static>> {
    let frame = |index: usize| Frame {
        class: format!(
            "{}.{}Controller$Holder",
            package(index * 10 + 3),
            word(index)
        )
        .into(),
        function: format!("on{}Changed", word(index + 1)).into(),
        file: "Controller.java".into(),
        line: 42,
        ..Frame::default()
    };
    let mut frames: Vec<_> = (0..FRAMES - 1).map(|index| frame(index % 49)).collect();
    frames.push(Frame {
        class: format!("{}.Main", package(2)).into(),
        function: "run".into(),
        ..Frame::default()
    });
    frames
}

/// A typical stack from a phone: a few system frames, a dozen of the app, the looper.
const TYPICAL: &str = "\
at android.database.sqlite.SQLiteConnection.nativeExecuteForLastInsertedRowId(Native Method)
at android.database.sqlite.SQLiteConnection.executeForLastInsertedRowId(SQLiteConnection.java:782)
at android.database.sqlite.SQLiteSession.executeForLastInsertedRowId(SQLiteSession.java:788)
at android.database.sqlite.SQLiteStatement.executeInsert(SQLiteStatement.java:86)
at androidx.room.EntityInsertionAdapter.insert(EntityInsertionAdapter.kt:61)
at com.example.shop.db.OrderDao_Impl.insert(OrderDao_Impl.java:112)
at com.example.shop.orders.OrderRepository.save(OrderRepository.kt:58)
at com.example.shop.orders.OrderRepository.access$save(OrderRepository.kt:20)
at com.example.shop.orders.OrderRepository$refresh$2.invokeSuspend(OrderRepository.kt:41)
at com.example.shop.orders.OrdersFragment.onViewCreated$lambda$1(OrdersFragment.kt:77)
at com.example.shop.orders.OrdersFragment$$ExternalSyntheticLambda0.onClick(D8$$SyntheticClass:0)
at android.view.View.performClick(View.java:7506)
at android.view.View.performClickInternal(View.java:7483)
at android.os.Handler.handleCallback(Handler.java:942)
at android.os.Handler.dispatchMessage(Handler.java:99)
at android.os.Looper.loopOnce(Looper.java:201)
at android.os.Looper.loop(Looper.java:288)
at android.app.ActivityThread.main(ActivityThread.java:7918)
at java.lang.reflect.Method.invoke(Native Method)
at com.android.internal.os.ZygoteInit.main(ZygoteInit.java:936)";

/// Reports the time of `work` divided by the frames it handles.
fn per_frame<T>(bencher: &mut Bencher<'_>, frames: usize, mut work: impl FnMut() -> T) {
    bencher.iter_custom(|iterations| {
        let start = Instant::now();
        for _ in 0..iterations {
            black_box(work());
        }
        start.elapsed() / u32::try_from(frames).expect("stacks are short")
    });
}

fn classify(criterion: &mut Criterion) {
    let rules = Rules::parse(&rule_file()).expect("the benchmark's rules are invalid");
    assert_eq!(rules.len(), RULES);
    let built_in = Rules::built_in();
    let deep = deep_stack();
    let typical = parse_text(TYPICAL).expect("the benchmark's stack is invalid");
    assert!(
        rules.classify(&deep).culprit.ends_with("Main.run"),
        "not every frame was matched"
    );

    let mut group = criterion.benchmark_group("time per frame");
    group
        .warm_up_time(Duration::from_secs(1))
        .measurement_time(Duration::from_secs(3));
    group.bench_function("classify, 507 rules, 64 frames all walked", |bencher| {
        per_frame(bencher, deep.len(), || rules.classify(black_box(&deep)));
    });
    group.bench_function(
        "classify, built-in rules, a typical stack of 20",
        |bencher| {
            per_frame(bencher, typical.len(), || {
                built_in.classify(black_box(&typical))
            });
        },
    );
    group.bench_function("hash, a typical stack of 20", |bencher| {
        per_frame(bencher, typical.len(), || stack_hash(black_box(&typical)));
    });
    group.finish();
}

criterion_group!(benches, classify);
criterion_main!(benches);
