//! Fetches the remote configuration and keeps it on disk.

use std::fmt::Write as _;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use unjank_protocol::config::{Document, SCHEMA};

use super::back_off::asked_wait;
use super::exchange::{Answer, Outgoing};
use super::problem::{self, Problem};
use super::transport::Response;
use crate::clock::Moment;
use crate::config::{Config, Device};
use crate::random::draw;

const SDK_VERSION: &str = env!("CARGO_PKG_VERSION");
/// Wait after the first failed poll. Each further failure doubles it.
const SHORTEST: Duration = Duration::from_secs(10);
const LONGEST: Duration = Duration::from_secs(6 * 3_600);

/// Identifies the device, the install, the user and the network in a poll, in addition to the [`Config`].
pub(crate) struct Identity<'a> {
    pub(crate) device: &'a Device,
    pub(crate) install_id: uuid::Uuid,
    pub(crate) user_id: String,
    pub(crate) network: unjank_protocol::Network,
}

/// Polls of the configuration.
pub(crate) struct Remote {
    file: Option<PathBuf>,
    etag: Option<String>,
    next: Moment,
    failures: u32,
    has_polled: bool,
    /// An `ETag` that a receipt announced and that the poll did not return. Another receipt with it does not cause a poll.
    announced: Option<String>,
}

/// The last accepted response, as kept on disk.
#[derive(Serialize, Deserialize)]
struct Kept {
    etag: String,
    document: Document,
    /// The SDK version that kept it. Another version may read more from the same response.
    #[serde(default)]
    sdk_version: String,
}

impl Remote {
    /// `first` is when to poll first.
    pub(crate) fn new(file: Option<PathBuf>, first: Moment) -> Self {
        Self {
            file,
            etag: None,
            next: first,
            failures: 0,
            has_polled: false,
            announced: None,
        }
    }

    /// Returns the last configuration that an earlier process fetched.
    pub(crate) fn remembered(&mut self) -> Option<Document> {
        let kept = kept_in(self.file.as_ref()?)?;
        self.etag = (kept.sdk_version == SDK_VERSION).then_some(kept.etag);
        Some(kept.document)
    }

    pub(crate) fn next(&self) -> Moment {
        self.next
    }

    /// Returns whether the configuration is due for a poll: this process has not polled, and the last poll of any process is older than this.
    pub(crate) fn is_old(&self, interval: Duration) -> bool {
        let Some(file) = &self.file else { return false };
        let age = || {
            let modified = std::fs::metadata(file).ok()?.modified().ok()?;
            modified.elapsed().ok()
        };
        !self.has_polled && age().is_none_or(|age| age >= interval)
    }

    /// Whether this process has polled, with or without success.
    pub(crate) fn has_polled(&self) -> bool {
        self.has_polled
    }

    /// Lets the next poll be due now.
    pub(crate) fn hurry(&mut self) {
        self.next = Moment::now();
    }

    /// Polls at once if a receipt announces a configuration that is not known.
    pub(crate) fn config_announced(&mut self, etag: &str) {
        let known = [&self.etag, &self.announced];
        if known.into_iter().flatten().all(|known| known != etag) {
            self.announced = Some(etag.to_owned());
            self.next = Moment::now();
        }
    }

    /// Returns the request of a poll if one is due.
    pub(crate) fn request(&mut self, config: &Config, identity: &Identity<'_>) -> Option<Outgoing> {
        if Moment::now() < self.next {
            return None;
        }
        let mut headers = vec![("authorization", format!("Bearer {}", config.key.0))];
        if let Some(etag) = &self.etag {
            headers.push(("if-none-match", etag.clone()));
        }
        Some(Outgoing {
            method: "GET",
            url: url(config, identity),
            headers,
            body: Vec::new(),
            timeout: config.request_timeout,
        })
    }

    /// Handles the response to a poll. Returns a new document.
    pub(crate) fn answered(
        &mut self,
        answer: Answer,
        (config, problem): (&Config, &Problem),
        interval_s: u32,
    ) -> Option<Document> {
        self.has_polled = true;
        let changed = match answer {
            Ok(Response { status: 304, .. }) => {
                self.mark_as_current();
                Ok(None)
            }
            Ok(response) if response.status == 200 => read(&response).map(Some).ok_or(None),
            Ok(response) => {
                problem.set(problem::of_response(&config.endpoint, &response));
                Err(response.retry_after.as_deref().and_then(asked_wait))
            }
            Err(error) => {
                problem.set(problem::of_connection(&config.endpoint, &error));
                Err(None)
            }
        };
        let interval = Duration::from_secs(u64::from(interval_s.max(30)));
        match changed {
            Ok(changed) => {
                self.failures = 0;
                let document = changed.map(|kept| self.keep(kept));
                let interval = document.as_ref().map_or(interval, |document| {
                    Duration::from_secs(u64::from(document.poll_interval_s.max(30)))
                });
                self.next = Moment::now().after(interval.mul_f64(0.9 + draw() * 0.2));
                document
            }
            Err(asked) => {
                let doubled = SHORTEST.saturating_mul(2_u32.saturating_pow(self.failures.min(12)));
                self.failures = self.failures.saturating_add(1);
                let wait = asked.unwrap_or(doubled).min(LONGEST);
                self.next = Moment::now().after(
                    wait.mul_f64(0.5 + draw() / 2.0)
                        .max(asked.unwrap_or_default().min(LONGEST)),
                );
                None
            }
        }
    }

    /// Keeps a configuration for the next start. If that fails, the next start polls once more.
    fn keep(&mut self, kept: Kept) -> Document {
        if let Some(file) = &self.file
            && let Ok(text) = serde_json::to_vec(&kept)
        {
            let new = file.with_extension("new");
            let _failed = std::fs::write(&new, text)
                .and_then(|()| std::fs::rename(&new, file))
                .is_err();
        }
        self.etag = Some(kept.etag);
        kept.document
    }

    /// Notes that the kept configuration is the current one. If that fails, a short process polls once more.
    #[expect(
        clippy::disallowed_methods,
        reason = "the age of a file, by the clock of the file system"
    )]
    fn mark_as_current(&self) {
        let opened = self
            .file
            .as_ref()
            .map(|file| File::options().append(true).open(file));
        if let Some(Ok(file)) = opened {
            let _failed = file.set_modified(std::time::SystemTime::now()).is_err();
        }
    }
}

/// Returns the last configuration that an earlier process fetched.
pub(crate) fn remembered(file: &Path) -> Option<Document> {
    kept_in(file).map(|kept| kept.document)
}

fn kept_in(file: &Path) -> Option<Kept> {
    let text = std::fs::read(file).ok()?;
    let kept: Kept = serde_json::from_slice(&text).ok()?;
    (kept.document.schema <= SCHEMA).then_some(kept)
}

/// Parses a response. A document of a later schema may give its fields another meaning, so the current configuration is kept.
fn read(response: &Response) -> Option<Kept> {
    let document: Document = serde_json::from_slice(&response.body).ok()?;
    let etag = response.etag.clone()?;
    (document.schema <= SCHEMA).then(|| Kept {
        etag,
        document,
        sdk_version: SDK_VERSION.to_owned(),
    })
}

fn url(config: &Config, identity: &Identity<'_>) -> String {
    let device = identity.device;
    let build = (config.build > 0).then(|| config.build.to_string());
    let install_id = identity.install_id.to_string();
    let pairs = [
        ("app_id", config.app_id.as_str()),
        ("app_version", &config.app_version),
        ("build", build.as_deref().unwrap_or_default()),
        ("os_name", &device.os_name),
        ("os_version", &device.os_version),
        ("device_model", &device.model),
        ("device_class", &device.class),
        ("locale", &device.locale),
        ("network", identity.network.as_str()),
        ("sdk_version", SDK_VERSION),
        ("user_id", &identity.user_id),
        ("install_id", &install_id),
    ];
    let mut url = format!("{}/v1/config", config.endpoint);
    let mut separator = '?';
    for (name, value) in pairs.into_iter().filter(|(_, value)| !value.is_empty()) {
        url.push(separator);
        url.push_str(name);
        url.push('=');
        encode(value, &mut url);
        separator = '&';
    }
    url
}

fn encode(value: &str, url: &mut String) {
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            url.push(char::from(byte));
        } else {
            // Writing to a string does not fail.
            let _written = write!(url, "%{byte:02X}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_poll_identifies_the_device_as_batches_do_and_omits_unknown_fields() {
        let config =
            Config::new("http://127.0.0.1:1/", "k").app("com.example.shop", "4.12.0 beta&x");
        let device = Device {
            os_name: "android".to_owned(),
            model: "Pixel 8".to_owned(),
            ..Device::default()
        };
        let identity = Identity {
            device: &device,
            install_id: uuid::Uuid::nil(),
            user_id: String::new(),
            network: unjank_protocol::Network::Wifi,
        };
        assert_eq!(
            url(&config, &identity),
            format!(
                "http://127.0.0.1:1/v1/config?app_id=com.example.shop&app_version=4.12.0%20beta%26x&os_name=android\
                 &device_model=Pixel%208&network=wifi&sdk_version={SDK_VERSION}\
                 &install_id=00000000-0000-0000-0000-000000000000"
            )
        );
    }

    #[test]
    fn the_next_poll_follows_the_interval_within_a_tenth() {
        let config = Config::new("http://127.0.0.1:1", "k").app("a", "1");
        let device = Device::default();
        let identity = Identity {
            device: &device,
            install_id: uuid::Uuid::nil(),
            user_id: String::new(),
            network: unjank_protocol::Network::Wifi,
        };
        for interval in [30, 600, 86_400] {
            let mut remote = Remote::new(None, Moment::now());
            let now = Moment::now();
            assert!(remote.request(&config, &identity).is_some());
            let answer = Response {
                status: 200,
                etag: Some("\"a\"".to_owned()),
                body: format!(r#"{{"poll_interval_s": {interval}}}"#).into_bytes(),
                ..Response::default()
            };
            let document = remote.answered(Ok(answer), (&config, &Problem::default()), 900);
            assert!(document.is_some());
            assert!(remote.request(&config, &identity).is_none());
            let wait = remote.next().since(now).as_secs_f64() / f64::from(interval);
            assert!((0.89..1.12).contains(&wait), "{wait}");
        }
    }

    #[test]
    fn a_document_of_a_later_schema_is_rejected() {
        let response = |schema: u32| Response {
            status: 200,
            etag: Some("\"a\"".to_owned()),
            body: format!(r#"{{"schema": {schema}, "revision": 9}}"#).into_bytes(),
            ..Response::default()
        };
        assert!(read(&response(SCHEMA)).is_some());
        assert!(read(&response(SCHEMA + 1)).is_none());
    }
}
