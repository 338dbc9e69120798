//! Fetches the remote configuration and keeps it on disk.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use unjank_protocol::config::{Document, SCHEMA};

use crate::clock::Moment;
use crate::config::Config;
use crate::random::draw;
use crate::transport::{Request, Response, Transport, send};
use crate::uplink::asked_wait;

const SDK_VERSION: &str = env!("CARGO_PKG_VERSION");
/// Wait after the first failed poll. Each further failure doubles it.
const SHORTEST: Duration = Duration::from_secs(10);
const LONGEST: Duration = Duration::from_secs(6 * 3_600);

/// Identifies the install, the user and the network in a poll, in addition to the [`Config`].
pub(crate) struct Identity {
    pub(crate) install_id: uuid::Uuid,
    pub(crate) user_id: String,
    pub(crate) network: unjank_protocol::Network,
}

/// Polls of the configuration.
pub(crate) struct Remote {
    transport: Arc<dyn Transport>,
    file: Option<PathBuf>,
    etag: Option<String>,
    next: Moment,
    failures: u32,
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
    pub(crate) fn new(transport: Arc<dyn Transport>, file: Option<PathBuf>, first: Moment) -> Self {
        Self {
            transport,
            file,
            etag: None,
            next: first,
            failures: 0,
            announced: None,
        }
    }

    /// Returns the last configuration that an earlier process fetched.
    pub(crate) fn remembered(&mut self) -> Option<Document> {
        let text = std::fs::read(self.file.as_ref()?).ok()?;
        let kept: Kept = serde_json::from_slice(&text).ok()?;
        if kept.document.schema > SCHEMA {
            return None;
        }
        self.etag = (kept.sdk_version == SDK_VERSION).then_some(kept.etag);
        Some(kept.document)
    }

    pub(crate) fn next(&self) -> Moment {
        self.next
    }

    /// Polls at once if a receipt announces a configuration that is not known.
    pub(crate) fn config_announced(&mut self, etag: &str) {
        let known = [&self.etag, &self.announced];
        if known.into_iter().flatten().all(|known| known != etag) {
            self.announced = Some(etag.to_owned());
            self.next = Moment::now();
        }
    }

    /// Polls if it is time to. Returns a new document.
    pub(crate) fn poll(
        &mut self,
        config: &Config,
        identity: &Identity,
        interval_s: u32,
    ) -> Option<Document> {
        if Moment::now() < self.next {
            return None;
        }
        let answer = self.ask(config, identity);
        let changed = match answer {
            Some(Response { status: 304, .. }) => Ok(None),
            Some(response) if response.status == 200 => read(&response).map(Some).ok_or(None),
            Some(response) => Err(response.retry_after.as_deref().and_then(asked_wait)),
            None => Err(None),
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

    fn ask(&self, config: &Config, identity: &Identity) -> Option<Response> {
        let url = url(config, identity);
        let authorization = format!("Bearer {}", config.key.0);
        let mut headers = vec![("authorization", authorization.as_str())];
        if let Some(etag) = &self.etag {
            headers.push(("if-none-match", etag.as_str()));
        }
        let request = Request {
            method: "GET",
            url: &url,
            headers: &headers,
            body: &[],
            timeout: config.request_timeout,
        };
        send(&*self.transport, request).ok()
    }
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

fn url(config: &Config, identity: &Identity) -> String {
    let device = &config.device;
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
        let config = Config::new("http://127.0.0.1:1/", "k")
            .app("com.example.shop", "4.12.0 beta&x")
            .device(crate::Device {
                os_name: "android".to_owned(),
                model: "Pixel 8".to_owned(),
                ..crate::Device::default()
            });
        let identity = Identity {
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

    /// Responds with a document that has this interval.
    struct Server(u32);

    impl Transport for Server {
        fn send(
            &self,
            _request: Request<'_>,
        ) -> Result<Response, crate::transport::TransportError> {
            Ok(Response {
                status: 200,
                etag: Some("\"a\"".to_owned()),
                body: format!(r#"{{"poll_interval_s": {}}}"#, self.0).into_bytes(),
                ..Response::default()
            })
        }
    }

    #[test]
    fn the_next_poll_follows_the_interval_within_a_tenth() {
        let config = Config::new("http://127.0.0.1:1", "k").app("a", "1");
        let identity = Identity {
            install_id: uuid::Uuid::nil(),
            user_id: String::new(),
            network: unjank_protocol::Network::Wifi,
        };
        for interval in [30, 600, 86_400] {
            let mut remote = Remote::new(Arc::new(Server(interval)), None, Moment::now());
            let now = Moment::now();
            assert!(remote.poll(&config, &identity, 900).is_some());
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
