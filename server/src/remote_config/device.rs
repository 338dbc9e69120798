//! What is known of a device when its configuration is resolved.

use super::version::Version;

/// What a device says of itself in its poll. What it does not say, or leaves empty, is not known: no condition about it
/// holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Device<'a> {
    /// The app's identifier.
    pub app_id: Option<&'a str>,
    /// The version people see.
    pub app_version: Option<&'a str>,
    /// The build number.
    pub build: Option<u64>,
    /// `android`, `ios`, ….
    pub os_name: Option<&'a str>,
    /// The system's version.
    pub os_version: Option<&'a str>,
    /// The device's model, as the system names it.
    pub device_model: Option<&'a str>,
    /// `low`, `mid`, `high`, or a year class.
    pub device_class: Option<&'a str>,
    /// The network it is on.
    pub network: Option<&'a str>,
    /// Language and region, such as `de-DE`.
    pub locale: Option<&'a str>,
    /// The version of the SDK that asks.
    pub sdk_version: Option<&'a str>,
    /// The user, as the app names it.
    pub user_id: Option<&'a str>,
    /// The install.
    pub install_id: Option<&'a str>,
}

/// A device with its versions read: once for all conditions.
pub(super) struct Facts<'a> {
    pub(super) device: Device<'a>,
    pub(super) app_version: Option<Version<'a>>,
    pub(super) os_version: Option<Version<'a>>,
    pub(super) sdk_version: Option<Version<'a>>,
}

impl<'a> Facts<'a> {
    pub(super) fn of(device: &Device<'a>) -> Self {
        Self {
            device: *device,
            app_version: device.app_version.and_then(Version::parse),
            os_version: device.os_version.and_then(Version::parse),
            sdk_version: device.sdk_version.and_then(Version::parse),
        }
    }
}
