//! All metrics of the server, declared once. The first sentence of each is its HELP text; labels come from closed sets.

mod freshness;

use prometheus::{
    Encoder, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge,
    IntGaugeVec, Opts, Registry, TextEncoder,
};

pub use self::freshness::{Delays, Freshness};

/// Every metric, on a registry of its own: two servers in one process do not mix.
pub struct Metrics {
    registry: Registry,
    pub ingest: IngestMetrics,
    pub log: LogMetrics,
    pub writer: WriterMetrics,
    pub reclassification: ReclassificationMetrics,
    pub books: BooksMetrics,
    pub alerts: AlertMetrics,
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
    pub decode_seconds: Histogram,
    /// New stacks that slow rules had no time for.
    pub unclassified_stacks: IntCounter,
    /// Of batches that say when they were sent.
    pub clock_skew_seconds: Histogram,
}

#[derive(Clone)]
pub struct LogMetrics {
    pub bytes: IntGauge,
    pub max_bytes: IntGauge,
    pub pending_records: IntGauge,
    pub wait_seconds: Histogram,
    pub write_seconds: Histogram,
    pub sync_seconds: Histogram,
    pub damaged_ranges: IntCounter,
    pub torn_bytes: IntCounter,
    pub disk_free_bytes: IntGauge,
    pub min_free_bytes: IntGauge,
}

#[derive(Clone)]
pub struct WriterMetrics {
    pub rows: IntCounter,
    pub ranges: IntCounter,
    pub failures: IntCounter,
    pub insert_seconds: HistogramVec,
    pub dead_letter_rows: IntCounter,
    pub unfolded_rows: IntGauge,
    pub fold_seconds: Histogram,
    pub freshness: Freshness,
}

#[derive(Clone, Debug)]
pub struct ReclassificationMetrics {
    /// Of all projects together.
    pub pending: IntGauge,
    pub stacks: IntCounter,
    pub failures: IntCounter,
}

impl IngestMetrics {
    fn new(make: &Maker) -> Self {
        Self {
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
            unclassified_stacks: make.counter(
                "unjank_ingest_unclassified_stacks_total",
                "New stacks for which slow classification rules had no time. They are classified later.",
            ),
            seconds: make.histogram(
                "unjank_ingest_request_seconds",
                "Time from a request's head to its answer.",
            ),
            decode_seconds: make.histogram(
                "unjank_ingest_decode_seconds",
                "Time to decompress, decode and check a body, with the wait for a thread.",
            ),
            clock_skew_seconds: make.clock_skews(
                "unjank_clock_skew_seconds",
                "How far the clock of a device was off when it sent a batch, in either direction, against the clock of this machine.",
            ),
        }
    }
}

impl LogMetrics {
    fn new(make: &Maker) -> Self {
        Self {
            bytes: make.gauge("unjank_log_bytes", "Bytes the ingest log takes on disk."),
            max_bytes: make.gauge(
                "unjank_log_max_bytes",
                "Bytes the ingest log may take on disk.",
            ),
            pending_records: make.gauge(
                "unjank_log_pending_records",
                "Records of the ingest log that are not in ClickHouse yet.",
            ),
            wait_seconds: make.histogram(
                "unjank_log_wait_seconds",
                "Time that a record waits for the thread of the ingest log.",
            ),
            write_seconds: make.histogram(
                "unjank_log_write_seconds",
                "Time to write a group of records.",
            ),
            sync_seconds: make.histogram(
                "unjank_log_sync_seconds",
                "Time of a written group of records to become durable.",
            ),
            damaged_ranges: make.counter(
                "unjank_log_damaged_ranges_total",
                "Damaged places found in the ingest log.",
            ),
            torn_bytes: make.counter(
                "unjank_log_torn_bytes_total",
                "Bytes of interrupted writes cut from the end of the ingest log at start.",
            ),
            disk_free_bytes: make.gauge(
                "unjank_disk_free_bytes",
                "Bytes free on the disk of the data folder.",
            ),
            min_free_bytes: make.gauge(
                "unjank_disk_min_free_bytes",
                "Bytes that must be free on the disk of the data folder: below, batches are refused.",
            ),
        }
    }
}

#[derive(Clone, Debug)]
pub struct AlertMetrics {
    pub rounds: IntCounter,
    pub round_seconds: Histogram,
    /// In seconds since the epoch, on the server that evaluates.
    pub last_round: IntGauge,
    /// By how it stands after its evaluation.
    pub rules: IntCounterVec,
    pub firing: IntGauge,
}

impl AlertMetrics {
    fn new(make: &Maker) -> Self {
        let rules = make.counters(
            "unjank_alert_evaluations_total",
            "Evaluations of alert rules, by outcome.",
            &["outcome"],
        );
        // They are there before the first rule is: alerts ask for them.
        for outcome in ["ok", "pending", "firing", "no_data", "failed"] {
            rules.with_label_values(&[outcome]).reset();
        }
        Self {
            rounds: make.counter(
                "unjank_alert_rounds_total",
                "Times all alert rules were evaluated.",
            ),
            round_seconds: make.histogram(
                "unjank_alert_round_seconds",
                "Time of an evaluation of all alert rules.",
            ),
            last_round: make.gauge(
                "unjank_alert_last_round_timestamp_seconds",
                "When this server evaluated all alert rules last; 0 when it did not.",
            ),
            rules,
            firing: make.gauge(
                "unjank_alert_firing_incidents",
                "Incidents that go on, as of the last evaluation by this server.",
            ),
        }
    }
}

#[derive(Clone, Debug)]
pub struct BooksMetrics {
    pub difference_events: IntGaugeVec,
    /// In seconds since the epoch.
    pub checked: IntGauge,
    /// By signal.
    pub rebuilt_hours: IntCounterVec,
}

impl BooksMetrics {
    fn new(make: &Maker) -> Self {
        let difference_events = make.register(IntGaugeVec::new(
            Opts::new(
                "unjank_books_difference_events",
                "Events that are missing or too many, by signal and the books that were compared: two checks have found them.",
            ),
            &["signal", "books"],
        ));
        Self {
            difference_events,
            checked: make.gauge(
                "unjank_books_checked_timestamp_seconds",
                "When this server compared the books last; 0 when it did not since it started.",
            ),
            rebuilt_hours: make.counters(
                "unjank_books_rebuilt_hours_total",
                "Hours of roll-ups that this server rebuilt from raw rows because they differed, by signal.",
                &["signal"],
            ),
        }
    }
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

    fn clock_skews(&self, name: &str, help: &str) -> Histogram {
        let buckets = [1., 5., 30., 60., 300., 3_600., 86_400., 604_800.];
        self.histogram_of(name, help, &buckets)
    }

    fn delays(&self, name: &str, help: &str) -> Histogram {
        let buckets = [
            0.05, 0.1, 0.2, 0.3, 0.5, 1., 2., 3., 5., 10., 30., 60., 300., 3_600.,
        ];
        self.histogram_of(name, help, &buckets)
    }

    fn histogram_of(&self, name: &str, help: &str, buckets: &[f64]) -> Histogram {
        let options = HistogramOpts::new(name, help).buckets(buckets.to_vec());
        self.register(Histogram::with_opts(options))
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
        let build = make.register(IntGaugeVec::new(
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
            ingest: IngestMetrics::new(&make),
            log: LogMetrics::new(&make),
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
                unfolded_rows: make.gauge(
                    "unjank_writer_unfolded_rows",
                    "Rows in ClickHouse that the roll-ups do not hold yet.",
                ),
                fold_seconds: make.histogram(
                    "unjank_writer_fold_seconds",
                    "Time to roll up the rows of some seconds together.",
                ),
                freshness: Freshness::new(make.delays(
                    "unjank_freshness_seconds",
                    "Time from the arrival of a batch until its rows can be queried.",
                )),
            },
            books: BooksMetrics::new(&make),
            alerts: AlertMetrics::new(&make),
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
