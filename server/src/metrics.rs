//! All metrics of the server, declared once. The first sentence of each is its HELP text; labels come from closed sets.

use prometheus::{
    Encoder, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, Opts,
    Registry, TextEncoder,
};

/// Every metric, on a registry of its own: two servers in one process do not mix.
pub struct Metrics {
    registry: Registry,
    pub ingest: IngestMetrics,
    pub log: LogMetrics,
    pub writer: WriterMetrics,
    pub reclassification: ReclassificationMetrics,
    pub notifications: NotificationMetrics,
    pub engine_restarts: IntCounter,
}

#[derive(Clone)]
pub struct IngestMetrics {
    /// By HTTP status and code of the problem (`accepted`, `duplicate` for 202).
    pub requests: IntCounterVec,
    /// By signal and outcome, as acknowledged.
    pub events: IntCounterVec,
    pub body_bytes: IntCounter,
    /// From the request's head to its answer.
    pub seconds: Histogram,
}

#[derive(Clone)]
pub struct LogMetrics {
    pub bytes: IntGauge,
    pub max_bytes: IntGauge,
    pub pending_records: IntGauge,
    pub sync_seconds: Histogram,
    pub damaged_ranges: IntCounter,
}

#[derive(Clone)]
pub struct WriterMetrics {
    pub rows: IntCounter,
    pub ranges: IntCounter,
    pub failures: IntCounter,
    pub insert_seconds: HistogramVec,
    pub dead_letter_rows: IntCounter,
}

#[derive(Clone, Debug)]
pub struct ReclassificationMetrics {
    /// Of all projects together.
    pub pending: IntGauge,
    pub stacks: IntCounter,
    pub failures: IntCounter,
}

impl ReclassificationMetrics {
    fn new(make: &Maker) -> Self {
        Self {
            pending: make.gauge(
                "unjank_reclassification_pending_stacks",
                "Stored stacks that wait for their class by the latest rules.",
            ),
            stacks: make.counter(
                "unjank_reclassified_stacks_total",
                "Stored stacks that were classified anew.",
            ),
            failures: make.counter(
                "unjank_reclassification_failures_total",
                "Attempts to classify stored stacks that failed and are repeated.",
            ),
        }
    }
}

#[derive(Clone, Debug)]
pub struct NotificationMetrics {
    attempts: IntCounterVec,
    pub waiting: IntGauge,
    pub oldest_seconds: IntGauge,
}

impl NotificationMetrics {
    fn new(make: &Maker) -> Self {
        let attempts = make.counters(
            "unjank_notification_attempts_total",
            "Attempts to send a notification, by kind of channel and outcome: delivered, later (it is tried again), refused.",
            &["kind", "outcome"],
        );
        // Alerts compare outcomes: those that never happened are zero, not absent.
        for kind in ["webhook", "alertmanager", "slack", "email"] {
            for outcome in ["delivered", "later", "refused"] {
                attempts.with_label_values(&[kind, outcome]);
            }
        }
        Self {
            attempts,
            waiting: make.gauge(
                "unjank_notifications_waiting",
                "Notifications that are not delivered yet, of the whole installation.",
            ),
            oldest_seconds: make.gauge(
                "unjank_notifications_oldest_seconds",
                "Age of the oldest notification that is not delivered yet.",
            ),
        }
    }

    pub fn count(&self, kind: &str, outcome: &str) {
        self.attempts.with_label_values(&[kind, outcome]).inc();
    }
}

/// Registers metrics; names are constants, so failing to register is a bug found by the first test.
struct Maker(Registry);

impl Maker {
    fn counter(&self, name: &str, help: &str) -> IntCounter {
        self.register(IntCounter::new(name, help))
    }

    fn counters(&self, name: &str, help: &str, labels: &[&str]) -> IntCounterVec {
        self.register(IntCounterVec::new(Opts::new(name, help), labels))
    }

    fn gauge(&self, name: &str, help: &str) -> IntGauge {
        self.register(IntGauge::new(name, help))
    }

    fn histogram(&self, name: &str, help: &str) -> Histogram {
        self.register(Histogram::with_opts(Self::latency(name, help)))
    }

    fn histograms(&self, name: &str, help: &str, labels: &[&str]) -> HistogramVec {
        self.register(HistogramVec::new(Self::latency(name, help), labels))
    }

    fn latency(name: &str, help: &str) -> HistogramOpts {
        let buckets = [
            0.000_5, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0,
        ];
        HistogramOpts::new(name, help).buckets(buckets.to_vec())
    }

    #[expect(
        clippy::expect_used,
        reason = "names and labels are constants: a mistake shows in every test"
    )]
    fn register<M: prometheus::core::Collector + Clone + 'static>(
        &self,
        metric: prometheus::Result<M>,
    ) -> M {
        let metric = metric.expect("a valid metric");
        self.0
            .register(Box::new(metric.clone()))
            .expect("a metric registered once");
        metric
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    #[must_use]
    pub fn new() -> Self {
        let make = Maker(Registry::new());
        let build = make.register(prometheus::IntGaugeVec::new(
            Opts::new("unjank_build_info", "The running version."),
            &["version"],
        ));
        build.with_label_values(&[env!("CARGO_PKG_VERSION")]).set(1);
        #[cfg(target_os = "linux")]
        let _already = make
            .0
            .register(Box::new(
                prometheus::process_collector::ProcessCollector::for_self(),
            ))
            .is_err();
        Self {
            ingest: IngestMetrics {
                requests: make.counters(
                    "unjank_ingest_requests_total",
                    "Requests to the ingest endpoint, by HTTP status and code.",
                    &["status", "code"],
                ),
                events: make.counters(
                    "unjank_ingest_events_total",
                    "Events received, by signal and outcome as acknowledged.",
                    &["signal", "outcome"],
                ),
                body_bytes: make.counter(
                    "unjank_ingest_body_bytes_total",
                    "Bytes of request bodies as sent.",
                ),
                seconds: make.histogram(
                    "unjank_ingest_request_seconds",
                    "Time from a request's head to its answer.",
                ),
            },
            log: LogMetrics {
                bytes: make.gauge("unjank_log_bytes", "Bytes the ingest log takes on disk."),
                max_bytes: make.gauge(
                    "unjank_log_max_bytes",
                    "Bytes the ingest log may take on disk.",
                ),
                pending_records: make.gauge(
                    "unjank_log_pending_records",
                    "Records of the ingest log that are not in ClickHouse yet.",
                ),
                sync_seconds: make.histogram(
                    "unjank_log_sync_seconds",
                    "Time of a group of records to become durable.",
                ),
                damaged_ranges: make.counter(
                    "unjank_log_damaged_ranges_total",
                    "Damaged places found in the ingest log.",
                ),
            },
            writer: WriterMetrics {
                rows: make.counter("unjank_writer_rows_total", "Rows inserted into ClickHouse."),
                ranges: make.counter(
                    "unjank_writer_ranges_total",
                    "Ranges of the ingest log drained.",
                ),
                failures: make.counter(
                    "unjank_writer_failures_total",
                    "Attempts to drain a range that failed and are repeated.",
                ),
                insert_seconds: make.histograms(
                    "unjank_clickhouse_insert_seconds",
                    "Time of an INSERT, by table.",
                    &["table"],
                ),
                dead_letter_rows: make.counter(
                    "unjank_dead_letter_rows_total",
                    "Rows that ClickHouse refused for their content.",
                ),
            },
            reclassification: ReclassificationMetrics::new(&make),
            notifications: NotificationMetrics::new(&make),
            engine_restarts: make.counter(
                "unjank_engine_restarts_total",
                "Times the embedded engine was started again.",
            ),
            registry: make.0,
        }
    }

    /// Prometheus text.
    #[must_use]
    pub fn render(&self) -> Vec<u8> {
        let mut text = Vec::new();
        if let Err(error) = TextEncoder::new().encode(&self.registry.gather(), &mut text) {
            tracing::error!(%error, "metrics do not render");
        }
        text
    }
}
