//! The attributes of a device as a request sends them.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use unjank_foundation::ids::canonical_id;
use unjank_protocol::whole_number;

use super::device::Device;

/// The attributes of a device. All are optional. Conditions about missing attributes are false.
#[derive(
    Clone,
    Debug,
    Default,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    utoipa::IntoParams,
    utoipa::ToSchema,
)]
#[into_params(parameter_in = Query)]
#[schema(as = DeviceAttributes)]
pub struct Attributes {
    pub app_id: Option<String>,
    pub app_version: Option<String>,
    #[serde(default, deserialize_with = "build_number")]
    pub build: Option<u64>,
    pub os_name: Option<String>,
    pub os_version: Option<String>,
    pub device_model: Option<String>,
    pub device_class: Option<String>,
    pub network: Option<String>,
    pub locale: Option<String>,
    pub sdk_version: Option<String>,
    pub user_id: Option<String>,
    pub install_id: Option<String>,
}

impl Attributes {
    /// Writes the install id in the form that conditions and percentages compare.
    #[must_use]
    pub fn canonical(mut self) -> Self {
        self.install_id = self.install_id.as_deref().map(canonical_id);
        self
    }

    #[must_use]
    pub fn device(&self) -> Device<'_> {
        Device {
            app_id: self.app_id.as_deref(),
            app_version: self.app_version.as_deref(),
            build: self.build,
            os_name: self.os_name.as_deref(),
            os_version: self.os_version.as_deref(),
            device_model: self.device_model.as_deref(),
            device_class: self.device_class.as_deref(),
            network: self.network.as_deref(),
            locale: self.locale.as_deref(),
            sdk_version: self.sdk_version.as_deref(),
            user_id: self.user_id.as_deref(),
            install_id: self.install_id.as_deref(),
        }
    }
}

/// Reads a build number: a whole number in any notation of a client's language, or its text. Empty: unknown.
fn build_number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let wrong = || serde::de::Error::custom("`build` is not a whole number");
    let text = match Value::deserialize(deserializer)? {
        Value::Null => return Ok(None),
        Value::String(text) => text,
        Value::Number(number) => number.to_string(),
        _ => return Err(wrong()),
    };
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    whole_number(text).map(Some).ok_or_else(wrong)
}
