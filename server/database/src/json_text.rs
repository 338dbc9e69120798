//! JSON text whose type this layer does not know.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::backend::{Row, Value};
use super::error::ControlError;

/// A value as JSON text. The text is never reformatted, so that it can be compared with the text in the database.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct JsonText(String);

impl JsonText {
    #[must_use]
    pub fn new(value: &impl Serialize) -> Self {
        Self(json!(value).to_string())
    }

    /// Parses the text.
    ///
    /// # Errors
    /// If the text is not a `T`, for example because a newer version wrote it.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, ControlError> {
        serde_json::from_str(&self.0).map_err(|error| {
            ControlError::Unavailable(format!("a stored JSON text is not readable: {error}"))
        })
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(super) fn from_column(row: &Row, column: &str) -> Result<Self, ControlError> {
        Ok(Self(row.get(column)?))
    }

    pub(super) fn from_optional_column(
        row: &Row,
        column: &str,
    ) -> Result<Option<Self>, ControlError> {
        Ok(row.get::<Option<String>>(column)?.map(Self))
    }
}

impl From<JsonText> for Value {
    fn from(text: JsonText) -> Self {
        text.0.into()
    }
}

impl From<Option<JsonText>> for Value {
    fn from(text: Option<JsonText>) -> Self {
        text.map(|text| text.0).into()
    }
}
