//! The envelope of a batch: everything that applies to all of its events.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::lenient::{build, is_default, not_empty, null_as_default};
use crate::scalar::{scalar, scalar_or_default};
use crate::{Events, Text, Timestamp, for_each_signal};

macro_rules! batch {
    ({} $($variant:ident $name:literal $list:ident: $many:ident<$event:ident>, $doc:literal;)+) => {
        /// The body of `POST /v1/ingest`: one upload of one session of one install.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
        pub struct Batch<'a> {
            /// The id of the batch, the same on every retry. UUID v7 is recommended, because the server remembers it at less cost. The nil UUID is rejected.
            pub batch_id: Uuid,
            /// The time on the device's clock when it sent this attempt. The server uses it to correct the times of events. Missing: no correction.
            #[serde(default, deserialize_with = "not_empty", skip_serializing_if = "Option::is_none")]
            pub sent_at: Option<Timestamp>,
            /// App, device and install.
            #[serde(borrow)]
            pub resource: Resource<'a>,
            /// The session of all events; nil if missing. The server then takes all batches of an install on a day (UTC) for one session.
            #[serde(default, deserialize_with = "null_as_default")]
            pub session_id: Uuid,
            /// The revision of the configuration that is active on the device.
            #[serde(default, deserialize_with = "scalar", skip_serializing_if = "Option::is_none")]
            pub config_revision: Option<u64>,
            /// The ids of the batches from which this one was split because they were too large: the oldest first, the direct parent last. At most 16;
            /// missing if the batch was not split. If one of them is stored, the events of this batch are stored already, and are not stored again; the
            /// receipt counts them as accepted, and its `duplicate` can be false. The batch's own id is rejected (400 `invalid_envelope`).
            #[serde(
                default,
                deserialize_with = "null_as_default",
                skip_serializing_if = "Vec::is_empty"
            )]
            #[cfg_attr(feature = "openapi", schema(max_items = 16))]
            pub split_from: Vec<Uuid>,
            /// The modules that frames of this batch refer to by index, at most 1,024. Needed for symbolication only.
            #[serde(
                borrow,
                default,
                deserialize_with = "null_as_default",
                skip_serializing_if = "Vec::is_empty"
            )]
            #[cfg_attr(feature = "openapi", schema(max_items = 1024))]
            pub modules: Vec<crate::Module<'a>>,
            $(
                #[doc = $doc]
                #[serde(borrow, default, deserialize_with = "null_as_default", skip_serializing_if = "Events::is_empty")]
                pub $list: $many<crate::$event<'a>>,
            )+
        }
    };
}

crate::with_signals!([batch] {});

impl Batch<'_> {
    /// The maximum number of ids in [`split_from`](Self::split_from): 14 splits turn a batch of 10,000 into single events.
    pub const MAX_SPLIT_FROM: usize = 16;

    /// The maximum number of [`modules`](Self::modules). Large apps load some hundred libraries.
    pub const MAX_MODULES: usize = 1024;

    /// Returns the number of events of all signals.
    #[must_use]
    pub fn events(&self) -> usize {
        let mut events = 0;
        for_each_signal!(&self, |_, list| events += Events::len(list));
        events
    }
}

/// App, device and install: the same for every event of a batch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Resource<'a> {
    /// The app's identifier, such as `com.example.shop`. Never empty.
    #[serde(borrow)]
    pub app_id: Text<'a>,
    /// The version that users see, preferably a semantic version.
    #[serde(borrow, default)]
    pub app_version: Text<'a>,
    /// The build number.
    #[serde(default, deserialize_with = "build")]
    pub build: u64,
    /// The distribution channel, such as `play`.
    #[serde(borrow, default)]
    pub channel: Text<'a>,
    /// What the app runs for: `production`, `test` or `development`. Stored in lower case. Missing if the device does not say.
    #[serde(borrow, default, skip_serializing_if = "is_default")]
    pub mode: Text<'a>,
    /// The operating system, such as `android` or `ios`. Stored in lower case.
    #[serde(borrow, default)]
    pub os_name: Text<'a>,
    /// The system's version.
    #[serde(borrow, default)]
    pub os_version: Text<'a>,
    /// The device model as the system reports it.
    #[serde(borrow, default)]
    pub device_model: Text<'a>,
    /// The manufacturer of the device.
    #[serde(borrow, default)]
    pub device_manufacturer: Text<'a>,
    /// The performance class: `low`, `mid`, `high`, or a year class. Stored in lower case.
    #[serde(borrow, default)]
    pub device_class: Text<'a>,
    /// The refresh rate of the display in hertz; 0 if unknown.
    #[serde(default, deserialize_with = "scalar_or_default")]
    pub refresh_hz: u16,
    /// Language and region, such as `de-DE`.
    #[serde(borrow, default)]
    pub locale: Text<'a>,
    /// A random id created at installation. Never a hardware id. All devices that send the nil UUID count as one install.
    pub install_id: Uuid,
    /// The id of the user, hashed by the app. Optional.
    #[serde(borrow, default)]
    pub user_id: Text<'a>,
    /// The SDK that sent the batch.
    #[serde(borrow, default)]
    pub sdk_name: Text<'a>,
    /// The version of the SDK.
    #[serde(borrow, default)]
    pub sdk_version: Text<'a>,
}
