//! A transport that keeps what it receives and responds as a test requires. Tests run one at a time, because a process has one
//! SDK.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use unjank::{Config, Guard, Mode, Request, Response, Transport, TransportError};

/// Responds to a batch.
type Answering = dyn FnMut(&Value) -> Result<Response, TransportError> + Send;

#[derive(Clone)]
pub(crate) struct Collector(Arc<Mutex<State>>);

struct State {
    batches: Vec<Value>,
    polls: Vec<String>,
    /// The revision in the response to the last poll.
    answered: u64,
    /// Whether receipts carry the `ETag` of the configuration.
    announces: bool,
    document: Value,
    revision: u64,
    answer: Box<Answering>,
}

impl Transport for Collector {
    fn send(&self, request: Request<'_>) -> Result<Response, TransportError> {
        let mut state = self.lock();
        if request.method == "GET" {
            return Ok(state.poll(&request));
        }
        let json = zstd::stream::decode_all(request.body).unwrap();
        let batch: Value = serde_json::from_slice(&json).unwrap();
        let mut answer = (state.answer)(&batch);
        if let Ok(answer) = &mut answer
            && state.announces
            && answer.status == 202
        {
            let mut receipt: Value = serde_json::from_slice(&answer.body).unwrap();
            receipt["config_etag"] = json!(format!("\"{}\"", state.revision));
            answer.body = receipt.to_string().into_bytes();
        }
        if answer.as_ref().is_ok_and(|answer| answer.status == 202) {
            state.batches.push(batch);
        }
        answer
    }
}

impl State {
    fn poll(&mut self, request: &Request<'_>) -> Response {
        self.polls.push(request.url.to_owned());
        self.answered = self.revision;
        let etag = format!("\"{}\"", self.revision);
        let known = request.headers.contains(&("if-none-match", &etag));
        Response {
            status: if known { 304 } else { 200 },
            body: if known {
                Vec::new()
            } else {
                self.document.to_string().into_bytes()
            },
            etag: Some(etag),
            ..Response::default()
        }
    }
}

pub(crate) fn receipt(batch: &Value) -> Response {
    Response {
        status: 202,
        body: json!({"batch_id": batch["batch_id"], "accepted": 1})
            .to_string()
            .into_bytes(),
        ..Response::default()
    }
}

pub(crate) fn status(status: u16) -> Response {
    Response {
        status,
        ..Response::default()
    }
}

/// A refusal of the server, whose code says whether it is final.
pub(crate) fn refusal(status: u16, code: &str) -> Response {
    Response {
        status,
        body: json!({"status": status, "code": code, "detail": "for a test"})
            .to_string()
            .into_bytes(),
        ..Response::default()
    }
}

impl Collector {
    pub(crate) fn new() -> Self {
        let state = State {
            batches: Vec::new(),
            polls: Vec::new(),
            answered: 0,
            announces: false,
            // The SDK's own monitors would add events.
            document: json!({"revision": 1, "monitors": {}}),
            revision: 1,
            answer: Box::new(|batch| Ok(receipt(batch))),
        };
        Self(Arc::new(Mutex::new(state)))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn answer(
        &self,
        answer: impl FnMut(&Value) -> Result<Response, TransportError> + Send + 'static,
    ) {
        self.lock().answer = Box::new(answer);
    }

    /// Sets the configuration that the next poll returns.
    pub(crate) fn configure(&self, mut document: Value) {
        let mut state = self.lock();
        state.revision += 1;
        document["revision"] = json!(state.revision);
        if document["monitors"].is_null() {
            document["monitors"] = json!({});
        }
        state.document = document;
    }

    /// Returns whether the app has received the latest configuration.
    fn is_known(&self) -> bool {
        let state = self.lock();
        state.answered == state.revision
    }

    /// From now on, receipts carry the `ETag` of the configuration.
    pub(crate) fn announce(&self) {
        self.lock().announces = true;
    }

    pub(crate) fn etag(&self) -> String {
        format!("\"{}\"", self.lock().revision)
    }

    pub(crate) fn polls(&self) -> usize {
        self.lock().polls.len()
    }

    pub(crate) fn batches(&self) -> Vec<Value> {
        self.lock().batches.clone()
    }

    /// Returns all events of a signal that arrived. Spans get the names of the kind and the status that they leave out.
    pub(crate) fn events(&self, signal: &str) -> Vec<Value> {
        let batches = self.batches();
        let lists = batches.iter().filter_map(|batch| batch[signal].as_array());
        let mut events: Vec<Value> = lists.flatten().cloned().collect();
        if signal == "spans" {
            events.iter_mut().for_each(fill_in);
        }
        events
    }
}

fn fill_in(span: &mut Value) {
    for (field, left_out) in [("kind", "manual"), ("status", "unset")] {
        if span[field].is_null() {
            span[field] = json!(left_out);
        }
    }
}

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// The SDK, running for one test.
pub(crate) struct Running {
    pub(crate) guard: Option<Guard>,
    pub(crate) collector: Collector,
    _alone: MutexGuard<'static, ()>,
}

pub(crate) fn config(collector: &Collector) -> Config {
    Config::new("http://127.0.0.1:1", "key")
        .app("com.example.shop", "4.12.0")
        .mode(Mode::Production)
        .start_jitter(Duration::ZERO)
        .first_wait(Duration::from_millis(1))
        .transport(collector.clone())
}

impl Running {
    /// Starts in test mode, which collects everything.
    pub(crate) fn start() -> Self {
        Self::with(|config| config.mode(Mode::Test))
    }

    pub(crate) fn with(change: impl FnOnce(Config) -> Config) -> Self {
        let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let collector = Collector::new();
        Self::on(collector, alone, change)
    }

    /// Starts with the built-in HTTP client.
    #[cfg(feature = "ureq")]
    pub(crate) fn at(endpoint: &str, change: impl FnOnce(Config) -> Config) -> Self {
        let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let config = Config::new(endpoint, "key").app("com.example.shop", "4.12.0");
        let guard = unjank::init(change(config));
        assert_eq!(guard.problem(), None);
        Self {
            guard: Some(guard),
            collector: Collector::new(),
            _alone: alone,
        }
    }

    pub(crate) fn on(
        collector: Collector,
        alone: MutexGuard<'static, ()>,
        change: impl FnOnce(Config) -> Config,
    ) -> Self {
        let guard = unjank::init(change(config(&collector)));
        assert_eq!(guard.problem(), None);
        Self {
            guard: Some(guard),
            collector,
            _alone: alone,
        }
    }

    /// Stops the SDK and starts it again, as another process would.
    pub(crate) fn restart(&mut self, change: impl FnOnce(Config) -> Config) {
        drop(self.guard.take());
        self.guard = Some(unjank::init(change(config(&self.collector))));
    }

    pub(crate) fn flush(&self) {
        // The collector may refuse or fail, but the call ends in time.
        let begun = std::time::Instant::now();
        let _sent = unjank::flush(Duration::from_secs(10));
        assert!(
            begun.elapsed() < Duration::from_secs(10),
            "the flush did not finish"
        );
    }

    /// Changes the configuration. The running app learns of it from the receipt of its next batch, and polls.
    pub(crate) fn learns(&self, document: Value) {
        self.collector.configure(document);
        self.collector.announce();
        unjank::traffic(unjank::Transferred {
            host: "cause.of.a.batch",
            ..unjank::Transferred::default()
        });
        let begun = std::time::Instant::now();
        while !self.collector.is_known() {
            assert!(begun.elapsed() < Duration::from_secs(10), "no poll");
            self.flush();
        }
        self.flush();
    }

    /// Waits until a poll was served and its configuration is in force.
    pub(crate) fn polled(&self, polls: usize) {
        let begun = std::time::Instant::now();
        while self.collector.polls() < polls {
            assert!(begun.elapsed() < Duration::from_secs(10), "no poll");
            std::thread::sleep(Duration::from_millis(2));
        }
        self.flush();
    }
}
