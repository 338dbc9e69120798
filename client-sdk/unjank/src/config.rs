//! The configuration that the app starts the SDK with.

mod hooks;
mod settings;
mod system;

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use uuid::Uuid;

use self::hooks::Hooks;
use crate::deliver::transport::Transport;
use crate::measure::metric_provider::MetricProvider;
use crate::report::Reporter;

/// Presets for development, test runs and production.
///
/// ```
/// use unjank::Mode;
///
/// assert_eq!(Mode::default(), Mode::Production);
/// let mode = if cfg!(debug_assertions) { Mode::Development } else { Mode::Production };
/// # drop(unjank::Config::new("http://127.0.0.1:1", "demo").mode(mode));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Keeps every event, whatever sample rates the server sets, reports each stall of 100 ms or more, and prints events, uploads and
    /// problems to standard error.
    Development,
    /// Keeps every event, whatever sample rates the server sets. For test runs whose results are compared.
    Test,
    /// The remote configuration decides what is collected. Until the first one is fetched, one session in ten is collected.
    #[default]
    Production,
}

/// The configuration that the app passes to [`crate::init`]. Every app needs [`Config::new`] and [`Config::app`]; everything else
/// has a default.
///
/// ```
/// use unjank::{Config, Mode};
///
/// let config = Config::new("http://127.0.0.1:8080", "demo")
///     .app("com.example.shop", "4.12.0")
///     .mode(Mode::Production)
///     .start_disabled(true); // until the user agrees
/// ```
///
/// Everything that has a default can be set, too:
///
/// ```
/// # use std::time::Duration;
/// # use unjank::{Config, Device};
/// let config = Config::new("http://127.0.0.1:8080", "demo")
///     .app("com.example.shop", "4.12.0")
///     .build(41_200)
///     .device(Device { refresh_hz: 120, locale: "de-DE".to_owned(), ..Device::default() })
///     .install_id("0190163d-8694-739b-aea5-966c26f8ad91".parse()?)
///     .data_dir("/data/data/com.example.shop/files/unjank")
///     .queue_events(4_096)
///     .request_timeout(Duration::from_secs(10))
///     .shutdown_timeout(Duration::from_millis(500))
///     .start_jitter(Duration::from_secs(30))
///     .first_wait(Duration::from_secs(60));
/// # Ok::<(), uuid::Error>(())
/// ```
#[derive(Clone)]
pub struct Config {
    pub(crate) endpoint: String,
    pub(crate) key: Secret,
    pub(crate) app_id: String,
    pub(crate) app_version: String,
    pub(crate) build: u64,
    pub(crate) device: Device,
    pub(crate) install_id: Option<Uuid>,
    pub(crate) data_dir: Option<PathBuf>,
    pub(crate) mode: Mode,
    pub(crate) start_disabled: bool,
    pub(crate) queue_events: usize,
    pub(crate) request_timeout: Duration,
    pub(crate) shutdown_timeout: Duration,
    pub(crate) start_jitter: Duration,
    pub(crate) first_wait: Duration,
    pub(crate) hooks: Hooks,
    pub(crate) reporters: Vec<Arc<dyn Reporter>>,
    pub(crate) transport: Option<Arc<dyn Transport>>,
    local_settings: serde_json::Value,
    local_wins: bool,
    pub(crate) keep_on_sigterm: bool,
    pub(crate) offline: bool,
    pub(crate) report_panics: bool,
    pub(crate) system_trace: Option<PathBuf>,
    /// In PEM format; empty: the public ones.
    pub(crate) root_certificates: Vec<u8>,
    /// Taken by the background thread.
    providers: Arc<Mutex<Vec<Box<dyn MetricProvider>>>>,
}

/// The device the app runs on, as far as the app knows it. An empty field means unknown, and no condition of the remote
/// configuration on that field holds. The server cuts texts at 1 KiB.
///
/// ```
/// use unjank::Device;
///
/// let device = Device {
///     os_version: "15".to_owned(),
///     model: "Pixel 9".to_owned(),
///     class: "high".to_owned(),
///     refresh_hz: 120,
///     ..Device::default()
/// };
/// # drop(unjank::Config::new("http://127.0.0.1:1", "demo").device(device));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// `android`, `ios`, `linux`, …. The default is the system that the program was built for.
    pub os_name: String,
    /// The version of the operating system.
    pub os_version: String,
    /// The model of the device, as the system names it.
    pub model: String,
    /// The manufacturer of the device.
    pub manufacturer: String,
    /// The device class: `low`, `mid`, `high`, or a year class.
    pub class: String,
    /// The refresh rate of the display in hertz, at most 1,000. 0, the default, means unknown: frames are then measured as at 60
    /// Hz.
    pub refresh_hz: u16,
    /// Language and region, such as `de-DE`.
    pub locale: String,
    /// The store or channel the app was installed from, such as `play`.
    pub channel: String,
}

impl Default for Device {
    /// Every field is empty except the name of the operating system. The SDK fills the version of the system, model, manufacturer and
    /// locale when it begins to collect, on Linux, Android and Apple's systems, as far as the system knows them.
    fn default() -> Self {
        Self {
            os_name: std::env::consts::OS.to_owned(),
            os_version: String::new(),
            model: String::new(),
            manufacturer: String::new(),
            class: String::new(),
            refresh_hz: 0,
            locale: String::new(),
            channel: String::new(),
        }
    }
}

/// A key that `Debug` does not print.
#[derive(Clone)]
pub(crate) struct Secret(pub(crate) String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("endpoint", &self.endpoint)
            .field("key", &self.key)
            .field("app_id", &self.app_id)
            .field("app_version", &self.app_version)
            .field("mode", &self.mode)
            .finish_non_exhaustive()
    }
}

impl Config {
    /// Creates a configuration. `endpoint` is the server's address without a path, such as `https://perf.example.com`. `key` is
    /// an ingest key of the project or a device token. Neither is validated here: with a wrong one, the server rejects the
    /// requests.
    #[must_use]
    pub fn new(endpoint: impl Into<String>, key: impl Into<String>) -> Self {
        Self {
            endpoint: endpoint.into().trim_end_matches('/').to_owned(),
            key: Secret(key.into()),
            app_id: String::new(),
            app_version: String::new(),
            build: 0,
            device: Device::default(),
            install_id: None,
            data_dir: None,
            mode: Mode::default(),
            start_disabled: false,
            queue_events: 8_192,
            request_timeout: Duration::from_secs(15),
            shutdown_timeout: Duration::from_secs(2),
            start_jitter: Duration::from_secs(5),
            first_wait: Duration::from_secs(15),
            hooks: Hooks::default(),
            reporters: Vec::new(),
            transport: None,
            local_settings: serde_json::Value::Null,
            local_wins: false,
            keep_on_sigterm: false,
            offline: false,
            report_panics: false,
            system_trace: None,
            root_certificates: Vec::new(),
            providers: Arc::default(),
        }
    }

    /// Sets the app's identifier, such as `com.example.shop`, and the version that users see. Without an identifier nothing is
    /// collected.
    #[must_use]
    pub fn app(mut self, id: impl Into<String>, version: impl Into<String>) -> Self {
        (self.app_id, self.app_version) = (id.into(), version.into());
        self
    }

    /// Sets the build number. The default, 0, means none.
    #[must_use]
    pub fn build(mut self, build: u64) -> Self {
        self.build = build;
        self
    }

    /// Describes the device.
    #[must_use]
    pub fn device(mut self, device: Device) -> Self {
        self.device = device;
        self
    }

    /// Sets the install id, if the app already has one. By default the SDK generates a random id and keeps it in the [data
    /// directory](Config::data_dir). Never use a hardware id.
    #[must_use]
    pub fn install_id(mut self, install_id: Uuid) -> Self {
        self.install_id = Some(install_id);
        self
    }

    /// Sets the directory for unsent events, the install id and the last remote configuration. It must belong to the app, and
    /// only one process may use it. Without a directory, nothing outlives the process: events wait in memory, and every start
    /// counts as a new install.
    #[must_use]
    pub fn data_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.data_dir = Some(folder.into());
        self
    }

    /// Selects a preset for development, tests or production. The default is [`Mode::Production`].
    #[must_use]
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// Collects, writes and sends nothing until [`crate::set_enabled`] is called with `true`. Use it to wait for consent. The
    /// default is `false`.
    #[must_use]
    pub fn start_disabled(mut self, disabled: bool) -> Self {
        self.start_disabled = disabled;
        self
    }

    /// Sets how many events may wait in memory, and how many spans may wait besides, in the buffers of the threads that recorded
    /// them; a span with one or two attributes takes the room of two there, one with three or four that of three. Any further event is
    /// dropped and counted. The default is 8,192; values below 64 count as 64.
    #[must_use]
    pub fn queue_events(mut self, events: usize) -> Self {
        self.queue_events = events.max(64);
        self
    }

    /// Sets the time limit of one request, from connecting to the last byte of the response. The default is 15 s.
    #[must_use]
    pub fn request_timeout(mut self, timeout: Duration) -> Self {
        self.request_timeout = timeout;
        self
    }

    /// Sets how long dropping the guard waits for events to be sent and for the background thread to end, both together. The default
    /// is 2 s; zero waits for neither. With a [data directory](Config::data_dir), events that are not sent by then are sent at
    /// the next start.
    #[must_use]
    pub fn shutdown_timeout(mut self, timeout: Duration) -> Self {
        self.shutdown_timeout = timeout;
        self
    }

    /// Sets the longest random delay before the first request, so that a million devices that start at nine do not connect at
    /// once. The default is 5 s; zero sends the first request at once.
    #[must_use]
    pub fn start_jitter(mut self, longest: Duration) -> Self {
        self.start_jitter = longest;
        self
    }

    /// Sets the wait after the first failed upload. Each further failure doubles it, up to 15 minutes. The actual wait is a
    /// random one between half of this time and all of it. The default is 15 s.
    #[must_use]
    pub fn first_wait(mut self, wait: Duration) -> Self {
        self.first_wait = wait;
        self
    }

    /// Adds a reporter. It sees every event that is sent, and runs on the background thread.
    ///
    /// ```
    /// let config = unjank::Config::new("http://127.0.0.1:8080", "demo").reporter(unjank::Console);
    /// ```
    #[must_use]
    pub fn reporter(mut self, reporter: impl Reporter + 'static) -> Self {
        self.reporters.push(Arc::new(reporter));
        self
    }

    /// Sets what carries requests, instead of the built-in HTTP client: on phones, the HTTP stack of the system. See
    /// [`Transport`] for an example.
    ///
    /// ```
    /// # use unjank::{Request, Response, TransportError};
    /// struct Offline;
    ///
    /// impl unjank::Transport for Offline {
    ///     fn send(&self, _request: Request<'_>) -> Result<Response, TransportError> {
    ///         Err(TransportError("there is no network".to_owned()))
    ///     }
    /// }
    ///
    /// let config = unjank::Config::new("http://127.0.0.1:8080", "demo").transport(Offline);
    /// ```
    #[must_use]
    pub fn transport(mut self, transport: impl Transport + 'static) -> Self {
        self.transport = Some(Arc::new(transport));
        self
    }

    /// Sets settings of the remote configuration in the app: any of its keys, as JSON. They apply until a configuration is fetched, and with
    /// [`Config::local_wins`] also after that. They override the presets of the [`Mode`]. Without a server, this is how to list the
    /// requests of a page.
    ///
    /// ```
    /// use serde_json::json;
    /// use unjank::Config;
    ///
    /// let config = Config::new("http://127.0.0.1:8080", "demo").local_settings(json!({
    ///     "jank": {"strategies": [{"threshold_ms": 500, "count": 1, "period_ms": 0}]},
    ///     "pages": [{"page": "MainActivity", "api": ["/home/head"]}],
    ///     "monitors": {"cpu": {"interval_ms": 1_000}},
    /// }));
    /// ```
    ///
    /// An unknown key or a value of the wrong type is a problem: [`crate::Guard::problem`] names it, and nothing is collected.
    #[must_use]
    pub fn local_settings(mut self, settings: serde_json::Value) -> Self {
        self.local_settings = settings;
        self
    }

    /// Whether [`Config::local_settings`] override the remote configuration, too. The default is `false`.
    ///
    /// ```
    /// # use serde_json::json;
    /// let config = unjank::Config::new("http://127.0.0.1:8080", "demo")
    ///     .local_settings(json!({"upload": {"wifi_only": true}}))
    ///     .local_wins(true);
    /// ```
    #[must_use]
    pub fn local_wins(mut self, wins: bool) -> Self {
        self.local_wins = wins;
        self
    }

    /// Writes what is recorded to the [data directory](Config::data_dir) when the process gets `SIGTERM`. The signal then ends the process,
    /// at most half a second later. The default is `false`, because an app may handle the signal itself: then call [`crate::keep`] there. Unix
    /// only.
    ///
    /// ```
    /// let config = unjank::Config::new("http://127.0.0.1:8080", "demo").keep_on_sigterm(true);
    /// ```
    #[must_use]
    pub fn keep_on_sigterm(mut self, keep: bool) -> Self {
        self.keep_on_sigterm = keep;
        self
    }

    /// Sends nothing, now or later, and fetches no configuration: for test runs without a server, whose events a
    /// [`Reporter`] receives. The default is `false`.
    ///
    /// ```
    /// # let folder = std::env::temp_dir();
    /// let config = unjank::Config::new("", "")
    ///     .app("com.example.shop", "4.12.0")
    ///     .mode(unjank::Mode::Test)
    ///     .offline(true)
    ///     .reporter(unjank::ReportFile::create(folder.join("run.jsonl"))?);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[must_use]
    pub fn offline(mut self, offline: bool) -> Self {
        self.offline = offline;
        self
    }

    /// Trusts these certificate authorities instead of the public ones, in PEM format: for a server whose certificate a private
    /// authority signed. Only the built-in HTTP client uses them. With the feature `platform-verifier`, the client trusts what the
    /// system trusts, unless you call this.
    ///
    /// ```
    /// # let pem = "";
    /// let config = unjank::Config::new("https://perf.example.com", "ujk_…").root_certificates(pem);
    /// ```
    #[must_use]
    pub fn root_certificates(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.root_certificates = pem.into();
        self
    }

    /// The file with the last remote configuration.
    pub(crate) fn config_file(&self) -> Option<PathBuf> {
        let folder = self.data_dir.as_deref();
        folder.map(|folder| folder.join("config.json"))
    }

    /// Adds a monitor that is sampled at an interval; see [`MetricProvider`] for an example. Clones of a configuration share its
    /// monitors, and the first `init` takes them.
    ///
    /// ```
    /// # struct Battery;
    /// # impl unjank::MetricProvider for Battery {
    /// #     fn name(&self) -> &str { "battery" }
    /// #     fn sample(&mut self, _report: &mut dyn FnMut(&'static str, f64)) {}
    /// # }
    /// let config = unjank::Config::new("http://127.0.0.1:8080", "demo").monitor(Battery);
    /// ```
    #[must_use]
    pub fn monitor(self, provider: impl MetricProvider + 'static) -> Self {
        let mut providers = self
            .providers
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        providers.push(Box::new(provider));
        drop(providers);
        self
    }

    pub(crate) fn take_providers(&self) -> Vec<Box<dyn MetricProvider>> {
        let mut providers = self
            .providers
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *providers)
    }
}
