//! The attributes of a device for which a configuration is resolved.

use super::version::Version;

/// The attributes a device sends with its poll. Missing or empty attributes are unknown: no condition on them holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Device<'a> {
    /// The app's identifier.
    pub app_id: Option<&'a str>,
    /// The app's version, as users see it.
    pub app_version: Option<&'a str>,
    /// The build number.
    pub build: Option<u64>,
    /// `android`, `ios`, ….
    pub os_name: Option<&'a str>,
    /// The operating system's version.
    pub os_version: Option<&'a str>,
    /// The device's model, as the system names it.
    pub device_model: Option<&'a str>,
    /// `low`, `mid`, `high`, or a year class.
    pub device_class: Option<&'a str>,
    /// The current network.
    pub network: Option<&'a str>,
    /// Language and region, such as `de-DE`.
    pub locale: Option<&'a str>,
    /// The version of the SDK.
    pub sdk_version: Option<&'a str>,
    /// The app's id for the user.
    pub user_id: Option<&'a str>,
    /// The id of the install.
    pub install_id: Option<&'a str>,
}

/// A device with its versions parsed once for all conditions.
pub(super) struct Facts<'a> {
    pub(super) device: Device<'a>,
    pub(super) app_version: Option<Version<'a>>,
    pub(super) os_version: Option<Version<'a>>,
    pub(super) sdk_version: Option<Version<'a>>,
}

impl<'a> Facts<'a> {
    pub(super) fn new(device: &Device<'a>) -> Self {
        Self {
            device: *device,
            app_version: device.app_version.and_then(Version::parse),
            os_version: device.os_version.and_then(Version::parse),
            sdk_version: device.sdk_version.and_then(Version::parse),
        }
    }
}
