//! The attributes of a device for which a configuration is resolved.

use std::cell::OnceCell;

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

/// A device with its versions, each parsed once for all conditions.
pub(super) struct Facts<'a> {
    pub(super) device: Device<'a>,
    pub(super) app_version: Parsed<'a>,
    pub(super) os_version: Parsed<'a>,
    pub(super) sdk_version: Parsed<'a>,
}

impl<'a> Facts<'a> {
    pub(super) fn new(device: &Device<'a>) -> Self {
        Self {
            device: *device,
            app_version: Parsed::new(device.app_version),
            os_version: Parsed::new(device.os_version),
            sdk_version: Parsed::new(device.sdk_version),
        }
    }
}

/// A version that is parsed when the first condition asks for it.
pub(super) struct Parsed<'a> {
    text: Option<&'a str>,
    version: OnceCell<Option<Version<'a>>>,
}

impl<'a> Parsed<'a> {
    fn new(text: Option<&'a str>) -> Self {
        let version = OnceCell::new();
        Self { text, version }
    }

    /// Returns `None` if the text is missing or not a version.
    pub(super) fn get(&self) -> Option<&Version<'a>> {
        let parse = || self.text.and_then(Version::parse);
        self.version.get_or_init(parse).as_ref()
    }
}
