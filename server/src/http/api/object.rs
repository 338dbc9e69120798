//! The bodies of people and their tools: JSON, within limits of size, time and memory.

use std::sync::Arc;

use axum::extract::{FromRequest, FromRequestParts, Request};
use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use unjank_foundation::shares::{Holder, Memory};

use super::body::receive_plain;
use super::client_address::ClientAddress;
use super::json_value::{self, Unread};
use super::problem::Problem;
use crate::app::App;
use crate::ingest::Body;

/// The largest body of a request without an identity, such as a login.
pub(crate) const CREDENTIALS: usize = 8 << 10;
/// The largest body of most requests.
const SMALL: usize = 64 << 10;
/// The largest body with a set of public keys.
pub(crate) const KEY_SET: usize = 160 << 10;
/// The largest body of all requests: a configuration with a thousand overrides, or thousands of classification rules.
pub(crate) const DOCUMENT: usize = 2 << 20;

/// Memory that a decoded body may take: a multiple of its size, within these bounds.
const EXPANSION: usize = 40;
const LEAST_MEMORY: usize = 64 << 10;
const MOST_MEMORY: usize = 32 << 20;

/// A body that is a JSON object with the members of `T`, of at most `MOST` bytes. Serde alone would also accept the members as a list, in their
/// order, and a list that was sent by mistake must not change anything. The memory is reserved until the handler ends: write `Object(body, ..)`.
pub(crate) struct Object<T, const MOST: usize = SMALL, const EXACT: bool = false>(
    pub(crate) T,
    #[expect(dead_code, reason = "the memory is released when the handler ends")] pub(crate) Memory,
);

/// An [`Object`] with passwords, keys or patterns. Bad characters are refused and not replaced: a replaced character would change the secret,
/// or what the pattern matches.
pub(crate) type Exact<T, const MOST: usize = SMALL> = Object<T, MOST, true>;

/// A body with any JSON.
pub(crate) struct AnyJson<const MOST: usize = SMALL>(
    pub(crate) Value,
    #[expect(dead_code, reason = "the memory is released when the handler ends")] pub(crate) Memory,
);

impl<T, const MOST: usize, const EXACT: bool> FromRequest<Arc<App>> for Object<T, MOST, EXACT>
where
    T: DeserializeOwned + Send + 'static,
{
    type Rejection = Problem;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, Problem> {
        let characters = if EXACT {
            Characters::AsSent
        } else {
            Characters::Repaired
        };
        let (body, held) = read(request, app, MOST, characters, members).await?;
        Ok(Self(body, held))
    }
}

impl<const MOST: usize> FromRequest<Arc<App>> for AnyJson<MOST> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, Problem> {
        let (body, held) = read(request, app, MOST, Characters::Repaired, Ok).await?;
        Ok(Self(body, held))
    }
}

fn members<T: DeserializeOwned>(value: Value) -> Result<T, Problem> {
    if !value.is_object() {
        return Err(Problem::unfit_body("the body is not a JSON object"));
    }
    serde_path_to_error::deserialize(value).map_err(|error| Problem::unfit_body(error.to_string()))
}

/// What happens to half characters, bytes that are not UTF-8 and a byte order mark.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Characters {
    Repaired,
    AsSent,
}

async fn read<T: Send + 'static>(
    request: Request,
    app: &Arc<App>,
    most: usize,
    characters: Characters,
    typed: impl FnOnce(Value) -> Result<T, Problem> + Send + 'static,
) -> Result<(T, Memory), Problem> {
    let (mut parts, body) = request.into_parts();
    let Ok(ClientAddress(address)) = ClientAddress::from_request_parts(&mut parts, app).await;
    let share = app.management_bodies.begin(Holder::address(address));
    let received = receive_plain(&parts.headers, body, most, app.body_timeout, share).await?;
    let (json, mut held) = received;
    let memory = (json.len() * EXPANSION).clamp(LEAST_MEMORY, MOST_MEMORY);
    if !held.try_grow_to(json.len() + memory) {
        return Err(Problem::overloaded());
    }
    let is_small = json.len() <= SMALL;
    let work = move || {
        let value = match json_value::read(&json, memory) {
            Err(Unread::NotJson(error)) if characters == Characters::Repaired => {
                repaired(&json, memory, &error, &mut held)?
            }
            read => read.map_err(|unread| unfit(&unread, memory))?,
        };
        Ok((typed(value)?, held))
    };
    if is_small {
        return work();
    }
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| Problem::overloaded())?
}

/// Reads a body that is not JSON as it is, but may be without its bad characters: a name from a device may be cut within a character.
fn repaired(
    json: &[u8],
    memory: usize,
    error: &serde_json::Error,
    held: &mut Memory,
) -> Result<Value, Problem> {
    // The repaired text has at most three times as many bytes.
    if !held.try_grow_to(4 * json.len() + memory) {
        return Err(Problem::overloaded());
    }
    let text = Body::new(json).with_whole_characters();
    let text = text.ok_or_else(|| Problem::unfit_json(error))?;
    json_value::read(text.as_bytes(), memory).map_err(|unread| unfit(&unread, memory))
}

fn unfit(unread: &Unread, memory: usize) -> Problem {
    match unread {
        Unread::NotJson(error) => Problem::unfit_json(error),
        Unread::TooLarge => Problem::expands_too_far(memory),
    }
}

/// Rejects a list in place of an object within a body: `#[serde(deserialize_with = "no_list")]`.
pub(crate) fn no_list<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    let value = Value::deserialize(deserializer)?;
    if value.is_array() {
        return Err(D::Error::custom("invalid type: a list, expected an object"));
    }
    T::deserialize(value).map_err(D::Error::custom)
}
