//! An app that forks. Runs without the test harness, whose threads a child would not have.
#![expect(clippy::unwrap_used, reason = "these are tests")]

#[cfg(not(unix))]
fn main() {}

#[cfg(unix)]
fn main() {
    unix::a_child_can_start_the_sdk_and_repeats_no_id();
    unix::a_child_without_init_records_nothing_and_ends_at_once();
    #[cfg(target_os = "linux")]
    unix::a_child_has_a_main_loop_of_its_own();
}

#[cfg(unix)]
mod unix {
    use std::collections::HashSet;
    use std::io::{PipeWriter, Read, Write};
    use std::time::{Duration, Instant};

    use fork::Fork;
    use serde_json::Value;
    use unjank::testing::CollectingTransport;
    use unjank::{Config, Guard, Mode};

    /// Longer than any test takes, so that a test fails if a child waits for a thread that it does not have.
    const LONG: Duration = Duration::from_secs(20);
    const SPANS: usize = 200;

    fn start(server: &CollectingTransport) -> Guard {
        let config = Config::new("http://127.0.0.1:1", "key")
            .app("com.example.shop", "4.12.0")
            .mode(Mode::Test)
            .start_jitter(Duration::ZERO)
            .shutdown_timeout(LONG)
            .transport(server.clone());
        let guard = unjank::init(config);
        assert_eq!(guard.problem(), None);
        guard
    }

    fn record_spans(name: &'static str) {
        (0..SPANS).for_each(|_| drop(unjank::span(name)));
    }

    fn ids(spans: &[Value]) -> HashSet<String> {
        let id = |span: &Value| span["span_id"].as_str().unwrap().to_owned();
        spans.iter().map(id).collect()
    }

    fn named<'s>(spans: &'s [Value], name: &str) -> Vec<&'s Value> {
        spans.iter().filter(|span| span["name"] == name).collect()
    }

    /// Checks that an inherited SDK is off and can be dropped.
    fn assert_off(guard: Guard) {
        assert!(!unjank::span("of_child").is_recorded());
        unjank::set_enabled(true);
        assert!(
            !unjank::span("of_child").is_recorded(),
            "nothing would send it"
        );
        let since = Instant::now();
        assert!(!unjank::flush(LONG));
        drop(guard);
        assert!(since.elapsed() < LONG / 2, "{:?}", since.elapsed());
    }

    /// Runs `child` in a child of this process and returns what it writes.
    fn in_child(child: impl FnOnce(&mut PipeWriter)) -> Option<String> {
        let (mut reader, mut writer) = std::io::pipe().unwrap();
        match fork::fork().unwrap() {
            Fork::Child => {
                let run = std::panic::AssertUnwindSafe(|| child(&mut writer));
                let failed = std::panic::catch_unwind(run).is_err();
                #[expect(clippy::exit, reason = "the child must not return into the test")]
                std::process::exit(i32::from(failed));
            }
            Fork::Parent(process) => {
                drop(writer);
                let mut written = String::new();
                reader.read_to_string(&mut written).unwrap();
                let status = fork::waitpid(process).unwrap();
                (status == 0).then_some(written)
            }
        }
    }

    pub(super) fn a_child_can_start_the_sdk_and_repeats_no_id() {
        let server = CollectingTransport::new();
        let mut guard = Some(start(&server));
        record_spans("before");
        let mut over = Some(unjank::span("over_the_fork"));
        let written = in_child(|writer| {
            assert_off(guard.take().unwrap());
            let theirs = CollectingTransport::new();
            let of_child = start(&theirs);
            drop(over.take());
            record_spans("of_child");
            drop(of_child);
            let spans = theirs.events("spans");
            assert_eq!(named(&spans, "of_child").len(), SPANS);
            assert!(
                named(&spans, "over_the_fork").is_empty(),
                "its parent records it"
            );
            for id in ids(&spans) {
                writeln!(writer, "{id}").unwrap();
            }
        });
        let of_child: HashSet<String> = written.unwrap().lines().map(str::to_owned).collect();
        assert_eq!(of_child.len(), SPANS);
        record_spans("after");
        drop((over, guard));
        let spans = server.events("spans");
        for (name, expected) in [("before", SPANS), ("after", SPANS), ("over_the_fork", 1)] {
            assert_eq!(named(&spans, name).len(), expected, "{name}");
        }
        assert!(ids(&spans).is_disjoint(&of_child));
    }

    pub(super) fn a_child_without_init_records_nothing_and_ends_at_once() {
        let server = CollectingTransport::new();
        let mut guard = Some(start(&server));
        let written = in_child(|_| {
            let over = unjank::span("never");
            assert_off(guard.take().unwrap());
            drop(over);
        });
        assert!(written.is_some(), "the child failed");
        drop(guard);
        assert!(named(&server.events("spans"), "never").is_empty());
    }

    /// Blocks the main loop for as long as a stall lasts by default.
    #[cfg(target_os = "linux")]
    #[inline(never)]
    fn stall(main_loop: &unjank::MainLoop) {
        std::thread::sleep(Duration::from_millis(700));
        main_loop.begin();
        std::thread::sleep(Duration::from_millis(2_300));
        main_loop.end();
        std::thread::sleep(Duration::from_millis(700));
    }

    #[cfg(target_os = "linux")]
    pub(super) fn a_child_has_a_main_loop_of_its_own() {
        let server = CollectingTransport::new();
        let mut guard = Some(start(&server));
        let _of_parent = unjank::MainLoop::of_this_thread();
        let written = in_child(|writer| {
            assert_off(guard.take().unwrap());
            let theirs = CollectingTransport::new();
            let of_child = start(&theirs);
            stall(&unjank::MainLoop::of_this_thread());
            drop(of_child);
            for jank in theirs.events("janks") {
                write!(writer, "{}", jank["stack"]).unwrap();
            }
        });
        assert!(written.unwrap().contains("stall"), "the stall has a stack");
        drop(guard);
    }
}
