//! Bodies of people and their tools: JSON objects.

use std::sync::Arc;

use axum::Json;
use axum::extract::{FromRequest, Request};
use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::problem::Problem;
use crate::app::App;

/// A body that is a JSON object with the members of `T`. Serde alone would also take them from a list, by their order, and a list
/// that was sent by mistake must not change anything.
pub(super) struct Object<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequest<Arc<App>> for Object<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, Problem> {
        let Json(members) = Json::<Map<String, Value>>::from_request(request, app).await?;
        serde_path_to_error::deserialize(Value::Object(members))
            .map(Self)
            .map_err(|error| Problem::unfit_body(error.to_string()))
    }
}

/// The same for an object within a body: `#[serde(deserialize_with = "no_list")]`.
pub(super) fn no_list<'de, D, T>(deserializer: D) -> Result<T, D::Error>
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
