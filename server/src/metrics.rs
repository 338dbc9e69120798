//! All metrics of the server, each declared once. Labels have a closed set of values.

mod description;
mod forward;
mod freshness;
mod symbols;

use std::cell::RefCell;

use prometheus::core::Collector;
use prometheus::{
    Encoder, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge,
    IntGaugeVec, Opts, Registry, TextEncoder,
};

pub use self::description::{Label, MetricDescription};
pub use self::forward::{ForwardMetrics, ForwardOutcome};
pub use self::freshness::{Delays, Freshness};
pub use self::symbols::{StackOutcome, SymbolMetrics};

/// All metrics, in their own registry: two servers in one process do not mix.
pub struct Metrics {
    registry: Registry,
    /// The same metrics as in the registry, which does not list metrics without a value.
    declared: Vec<Box<dyn Collector>>,
    pub ingest: IngestMetrics,
    pub log: LogMetrics,
    pub writer: WriterMetrics,
    pub reclassification: ReclassificationMetrics,
    pub books: BooksMetrics,
    pub alerts: AlertMetrics,
    pub notifications: NotificationMetrics,
    pub forward: ForwardMetrics,
    pub symbols: SymbolMetrics,
    pub engine_restarts: IntCounter,
    pub last_backup_seconds: IntGauge,
}

#[derive(Clone)]
pub struct IngestMetrics {
    /// By HTTP status and problem code. `accepted` and `duplicate` for 202.
    pub requests: IntCounterVec,
    /// By signal and outcome, as acknowledged.
    pub events: IntCounterVec,
    pub body_bytes: IntCounter,
    /// From the head of the request to its answer.
    pub seconds: Histogram,
    pub decode_seconds: Histogram,
    /// New stacks for which slow classification rules had no time.
    pub unclassified_stacks: IntCounter,
    /// For batches that contain the time when they were sent.
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
    /// Of all projects.
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
                "Bytes of request bodies as sent by clients.",
            ),
            unclassified_stacks: make.counter(
                "unjank_ingest_unclassified_stacks_total",
                "New stacks for which slow classification rules had no time. They are classified later.",
            ),
            seconds: make.histogram(
                "unjank_ingest_request_seconds",
                "Time from the head of a request to its answer.",
            ),
            decode_seconds: make.histogram(
                "unjank_ingest_decode_seconds",
                "Time to decompress, decode and check a body, including the wait for a thread.",
            ),
            clock_skew_seconds: make.clock_skews(
                "unjank_clock_skew_seconds",
                "Absolute difference between the clock of a device and the clock of the server when the device sent a batch.",
            ),
        }
    }
}

impl LogMetrics {
    fn new(make: &Maker) -> Self {
        Self {
            bytes: make.gauge("unjank_log_bytes", "Size of the ingest log on disk, in bytes."),
            max_bytes: make.gauge(
                "unjank_log_max_bytes",
                "Maximum size of the ingest log on disk, in bytes.",
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
                "Time to sync a group of records to disk.",
            ),
            damaged_ranges: make.counter(
                "unjank_log_damaged_ranges_total",
                "Damaged ranges found in the ingest log.",
            ),
            torn_bytes: make.counter(
                "unjank_log_torn_bytes_total",
                "Bytes of interrupted writes removed from the end of the ingest log at start.",
            ),
            disk_free_bytes: make.gauge(
                "unjank_disk_free_bytes",
                "Free space on the disk of the data folder, in bytes.",
            ),
            min_free_bytes: make.gauge(
                "unjank_disk_min_free_bytes",
                "Free space on the disk of the data folder below which batches are rejected, in bytes.",
            ),
        }
    }
}

#[derive(Clone, Debug)]
pub struct AlertMetrics {
    pub rounds: IntCounter,
    pub round_seconds: Histogram,
    /// In seconds since the epoch, for rounds of this server.
    pub last_round: IntGauge,
    /// By the state of the rule after its evaluation.
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
        // The counters exist before the first rule, because alerts query them.
        for outcome in ["ok", "pending", "firing", "no_data", "failed"] {
            rules.with_label_values(&[outcome]).reset();
        }
        Self {
            rounds: make.counter(
                "unjank_alert_rounds_total",
                "Evaluation rounds of all alert rules.",
            ),
            round_seconds: make.histogram(
                "unjank_alert_round_seconds",
                "Time of a round that evaluates all alert rules.",
            ),
            last_round: make.gauge(
                "unjank_alert_last_round_timestamp_seconds",
                "Time of the last round in which this server evaluated all alert rules; 0 if there was none.",
            ),
            rules,
            firing: make.gauge(
                "unjank_alert_firing_incidents",
                "Firing incidents at the last evaluation by this server.",
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
                "Missing or surplus events that two checks have found, by signal and kind of books.",
            ),
            &["signal", "books"],
        ));
        Self {
            difference_events,
            checked: make.gauge(
                "unjank_books_checked_timestamp_seconds",
                "Time of this server's last comparison of the books; 0 if there was none since its start.",
            ),
            rebuilt_hours: make.counters(
                "unjank_books_rebuilt_hours_total",
                "Hours of roll-ups that this server has rebuilt from raw rows because they differed, by signal.",
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
                "Stored stacks that are not yet classified by the latest rules.",
            ),
            stacks: make.counter(
                "unjank_reclassified_stacks_total",
                "Stored stacks that were reclassified.",
            ),
            failures: make.counter(
                "unjank_reclassification_failures_total",
                "Failed attempts to reclassify stored stacks. They are retried.",
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
            "Attempts to send a notification, by kind of channel and outcome: delivered, later (will be retried), refused.",
            &["kind", "outcome"],
        );
        // Alerts compare outcomes, so outcomes that have not happened yet are zero instead of missing.
        for kind in ["webhook", "alertmanager", "slack", "email"] {
            for outcome in ["delivered", "later", "refused"] {
                attempts.with_label_values(&[kind, outcome]);
            }
        }
        Self {
            attempts,
            waiting: make.gauge(
                "unjank_notifications_waiting",
                "Notifications of the whole installation that are not delivered yet.",
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

/// Registers metrics. Names are constants, so a failed registration is a bug that every test finds.
struct Maker {
    registry: Registry,
    declared: RefCell<Vec<Box<dyn Collector>>>,
}

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
        reason = "names and labels are constants: every test would find a mistake"
    )]
    fn register<M: Collector + Clone + 'static>(&self, metric: prometheus::Result<M>) -> M {
        let metric = metric.expect("a valid metric");
        self.registry
            .register(Box::new(metric.clone()))
            .expect("a metric registered once");
        self.declared.borrow_mut().push(Box::new(metric.clone()));
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
        let make = Maker {
            registry: Registry::new(),
            declared: RefCell::default(),
        };
        let build = make.register(IntGaugeVec::new(
            Opts::new("unjank_build_info", "The running version."),
            &["version"],
        ));
        build.with_label_values(&[env!("CARGO_PKG_VERSION")]).set(1);
        #[cfg(target_os = "linux")]
        let _already = make
            .registry
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
                    "Ranges of the ingest log that were drained.",
                ),
                failures: make.counter(
                    "unjank_writer_failures_total",
                    "Failed attempts to drain a range. They are retried.",
                ),
                insert_seconds: make.histograms(
                    "unjank_clickhouse_insert_seconds",
                    "Time of an INSERT, by table.",
                    &["table"],
                ),
                dead_letter_rows: make.counter(
                    "unjank_dead_letter_rows_total",
                    "Rows that ClickHouse rejected because of their content.",
                ),
                unfolded_rows: make.gauge(
                    "unjank_writer_unfolded_rows",
                    "Rows in ClickHouse that are not yet in the roll-ups.",
                ),
                fold_seconds: make.histogram(
                    "unjank_writer_fold_seconds",
                    "Time of a round that rolls up all waiting folds.",
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
            forward: ForwardMetrics::new(&make),
            symbols: SymbolMetrics::new(&make),
            engine_restarts: make.counter(
                "unjank_engine_restarts_total",
                "Restarts of the embedded engine.",
            ),
            last_backup_seconds: make.gauge(
                "unjank_last_backup_timestamp_seconds",
                "The time up to which the last backup by `unjank backup` is complete, in seconds since the epoch. 0 if there is none.",
            ),
            registry: make.registry,
            declared: make.declared.into_inner(),
        }
    }

    /// Returns what each metric is, sorted by name, including metrics that have no value yet. The metrics of the process, which the
    /// library of Prometheus adds, are not in the list.
    #[must_use]
    pub fn descriptions(&self) -> Vec<MetricDescription> {
        let declared = self.declared.iter();
        let mut descriptions: Vec<_> = declared
            .filter_map(|metric| MetricDescription::of(metric.as_ref()))
            .collect();
        descriptions.sort_by(|one, other| one.name.cmp(&other.name));
        descriptions
    }

    /// Returns all metrics in the text format of Prometheus.
    #[must_use]
    pub fn render(&self) -> Vec<u8> {
        let mut text = Vec::new();
        if let Err(error) = TextEncoder::new().encode(&self.registry.gather(), &mut text) {
            tracing::error!(%error, "cannot render the metrics");
        }
        text
    }
}
