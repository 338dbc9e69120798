//! What a request asks for: its URL parameters and headers, sorted into query, settings, parameters and delivery.

use std::time::Duration;

use base64::Engine as _;
use hyper::http::request::Parts;
use hyper::{HeaderMap, Method};
use uuid::Uuid;

use crate::exception::Exception;
use crate::input::Packing;
use crate::options::EngineOptions;
use crate::output::Delivery;

/// The longest `session_timeout`, as ClickHouse has it.
const LONGEST_SESSION: u64 = 3600;

/// A request without its body.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) query_id: String,
    /// The part of the statement that came in the URL or in a form.
    pub(crate) query: Option<String>,
    pub(crate) database: Option<String>,
    pub(crate) format: Option<String>,
    pub(crate) settings: Vec<(String, String)>,
    pub(crate) parameters: Vec<(String, String)>,
    pub(crate) roles: Vec<String>,
    pub(crate) session: Option<SessionAsk>,
    /// A GET may not change anything.
    pub(crate) reads_only: bool,
    pub(crate) body_packing: Packing,
    pub(crate) body_in_blocks: bool,
    pub(crate) delivery: Delivery,
}

/// What a request says about its session.
#[derive(Clone, Debug)]
pub(crate) struct SessionAsk {
    pub(crate) id: String,
    pub(crate) timeout: Duration,
    /// It must exist already.
    pub(crate) check: bool,
    pub(crate) close: bool,
}

/// Parameters as they came, before they are sorted.
pub(crate) type Pairs = Vec<(String, String)>;

/// Decodes the query of a URL.
pub(crate) fn pairs(url_query: &str) -> Result<Pairs, Exception> {
    url_query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Ok((decode(name)?, decode(value)?))
        })
        .collect()
}

fn decode(text: &str) -> Result<String, Exception> {
    let broken =
        || Exception::bad_arguments("The URL's parameters are not valid percent-encoded UTF-8");
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
                let (high, low) = (digit(rest.next()), digit(rest.next()));
                let value = high
                    .zip(low)
                    .map(|(high, low)| high * 16 + low)
                    .ok_or_else(broken)?;
                u8::try_from(value).map_err(|_| broken())?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).map_err(|_| broken())
}

/// Who asks.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Credentials {
    pub(crate) user: String,
    pub(crate) password: String,
}

/// By the headers `X-ClickHouse-User` and `-Key`, by Basic authentication, or by the URL; the default user without any.
pub(crate) fn credentials(headers: &HeaderMap, pairs: &Pairs) -> Credentials {
    let named = |name: &str| {
        pairs
            .iter()
            .find(|pair| pair.0 == name)
            .map(|pair| pair.1.clone())
    };
    let (user, password) = (
        header(headers, "x-clickhouse-user"),
        header(headers, "x-clickhouse-key"),
    );
    let (user, password) = if user.is_some() || password.is_some() {
        (user, password)
    } else if let Some((user, password)) = basic(headers) {
        (Some(user), Some(password))
    } else {
        (named("user"), named("password"))
    };
    let user = user
        .filter(|user| !user.is_empty())
        .unwrap_or_else(|| "default".to_owned());
    Credentials {
        user,
        password: password.unwrap_or_default(),
    }
}

fn basic(headers: &HeaderMap) -> Option<(String, String)> {
    let value = header(headers, "authorization")?;
    let (scheme, encoded) = value.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let decoded = base64::engine::general_purpose::STANDARD
        .decode(encoded.trim())
        .ok()?;
    let (user, password) = std::str::from_utf8(&decoded).ok()?.split_once(':')?;
    Some((user.to_owned(), password.to_owned()))
}

fn header(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name)?.to_str().ok().map(str::to_owned)
}

impl Request {
    /// Sorts what a request says.
    pub(crate) fn read(
        parts: &Parts,
        pairs: Pairs,
        options: &EngineOptions,
    ) -> Result<Self, Exception> {
        let headers = &parts.headers;
        let mut request = Self {
            query_id: Uuid::new_v4().to_string(),
            query: None,
            database: header(headers, "x-clickhouse-database"),
            format: header(headers, "x-clickhouse-format"),
            settings: Vec::new(),
            parameters: Vec::new(),
            roles: Vec::new(),
            session: None,
            reads_only: matches!(parts.method, Method::GET | Method::HEAD),
            body_packing: Packing::of(&header(headers, "content-encoding").unwrap_or_default())?,
            body_in_blocks: false,
            delivery: Delivery {
                packing: accepted(&header(headers, "accept-encoding").unwrap_or_default()),
                in_blocks: false,
                wait_for_end: false,
                buffer: None,
                stall: options.stall,
                largest_held: options.largest_held_answer,
                folder: options.data_dir.clone(),
            },
        };
        let mut session = SessionAsk {
            id: String::new(),
            timeout: Duration::from_secs(60),
            check: false,
            close: false,
        };
        for (name, value) in pairs {
            request.take(name, value, &mut session)?;
        }
        if !session.id.is_empty() {
            request.session = Some(session);
        }
        Ok(request)
    }

    fn take(
        &mut self,
        name: String,
        value: String,
        session: &mut SessionAsk,
    ) -> Result<(), Exception> {
        match name.as_str() {
            "query" => self.query.get_or_insert_default().push_str(&value),
            "query_id" if value.is_empty() => {}
            "query_id" => {
                if value.len() > 256 || !value.bytes().all(|byte| (0x20..0x7f).contains(&byte)) {
                    return Err(Exception::bad_arguments(
                        "A query_id is 1 to 256 printable ASCII characters",
                    ));
                }
                self.query_id = value;
            }
            "database" => self.database = Some(value).filter(|name| !name.is_empty()),
            "default_format" => self.format = Some(value).filter(|name| !name.is_empty()),
            "role" => self.roles.push(value),
            "session_id" => session.id = value,
            "session_timeout" => {
                let seconds = value
                    .parse::<u64>()
                    .ok()
                    .filter(|seconds| (1..=LONGEST_SESSION).contains(seconds));
                session.timeout = Duration::from_secs(seconds.ok_or_else(|| {
                    Exception::new(374, "INVALID_SESSION_TIMEOUT", format!("Session timeout {value:?} is not between 1 and {LONGEST_SESSION} seconds"))
                })?);
            }
            "session_check" => session.check = flag(&value),
            "close_session" => session.close = flag(&value),
            "decompress" => self.body_in_blocks = flag(&value),
            "compress" => {
                self.delivery.in_blocks = flag(&value);
                if self.delivery.in_blocks {
                    self.delivery.packing = Packing::Plain;
                }
            }
            "enable_http_compression" if !flag(&value) => self.delivery.packing = Packing::Plain,
            "wait_end_of_query" => self.delivery.wait_for_end = flag(&value),
            "buffer_size" => self.delivery.buffer = value.parse().ok(),
            // Credentials are read elsewhere; the rest has no meaning here.
            "user"
            | "password"
            | "quota_key"
            | "stacktrace"
            | "client_protocol_version"
            | "enable_http_compression"
            | "http_zlib_compression_level"
            | "send_progress_in_http_headers"
            | "http_headers_progress_interval_ms"
            | "cancel_http_readonly_queries_on_client_close"
            | "http_write_exception_in_output_format" => {}
            _ => match name.strip_prefix("param_") {
                Some(parameter) => self.parameters.push((parameter.to_owned(), value)),
                None => self.settings.push((name, value)),
            },
        }
        Ok(())
    }
}

fn flag(value: &str) -> bool {
    !matches!(value, "" | "0" | "false")
}

/// The best packing that an `Accept-Encoding` allows.
fn accepted(header: &str) -> Packing {
    let takes = |name: &str| {
        header.split(',').any(|part| {
            let mut pieces = part.split(';').map(str::trim);
            pieces
                .next()
                .is_some_and(|encoding| encoding.eq_ignore_ascii_case(name))
                && !pieces.any(|weight| matches!(weight, "q=0" | "q=0.0"))
        })
    };
    [
        ("zstd", Packing::Zstd),
        ("lz4", Packing::Lz4),
        ("gzip", Packing::Gzip),
        ("deflate", Packing::Deflate),
    ]
    .into_iter()
    .find(|(name, _)| takes(name))
    .map_or(Packing::Plain, |(_, packing)| packing)
}

/// Whether `name` is a setting's name that can stand in a SET as it is.
pub(crate) fn is_setting_name(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && !name.starts_with(|first: char| first.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_decoded() {
        let found = pairs("query=SELECT+1%2B1&&param_a=%C3%A4&flag").unwrap();
        let expected = [("query", "SELECT 1+1"), ("param_a", "ä"), ("flag", "")];
        assert_eq!(
            found,
            expected.map(|(name, value)| (name.to_owned(), value.to_owned()))
        );
        assert!(pairs("a=%").is_err() && pairs("a=%zz").is_err() && pairs("a=%ff").is_err());
    }

    #[test]
    fn the_best_accepted_packing_is_taken() {
        assert_eq!(accepted("gzip, deflate, zstd;q=0"), Packing::Gzip);
        assert_eq!(accepted("lz4"), Packing::Lz4);
        assert_eq!(accepted("br"), Packing::Plain);
    }

    #[test]
    fn credentials_come_from_headers_before_the_url() {
        let mut headers = HeaderMap::new();
        let url = pairs("user=a&password=b").unwrap();
        assert_eq!(credentials(&headers, &url).user, "a");
        headers.insert("authorization", "Basic Yzp4Onk=".parse().unwrap());
        assert_eq!(
            credentials(&headers, &url),
            Credentials {
                user: "c".to_owned(),
                password: "x:y".to_owned()
            }
        );
        headers.insert("x-clickhouse-key", "k".parse().unwrap());
        assert_eq!(
            credentials(&headers, &url),
            Credentials {
                user: "default".to_owned(),
                password: "k".to_owned()
            }
        );
    }
}
