//! The envelope: what is said once for all events of a batch.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::lenient::null_as_default;
use crate::{
    AppStart, Events, FrameWindow, Jank, Metric, PageLoad, Recomposition, SdkHealth, Span, Text,
    Timestamp, Traffic, for_each_signal,
};

macro_rules! batch {
    ({} $($variant:ident $name:literal $list:ident: $many:ident<$event:ident>, $doc:literal;)+) => {
        /// The body of `POST /v1/ingest`: one upload of one session of one install.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
        pub struct Batch<'a> {
            /// Names the batch; the same on every retry. A UUID v7 keeps the server's memory of it cheap, others are taken too, except nil.
            pub batch_id: Uuid,
            /// The device's clock when it sent this attempt; the server corrects event times by it. Left out: no correction.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub sent_at: Option<Timestamp>,
            /// App, device and install.
            #[serde(borrow)]
            pub resource: Resource<'a>,
            /// The session all events belong to; nil when left out.
            #[serde(default, deserialize_with = "null_as_default")]
            pub session_id: Uuid,
            /// The configuration the device was running.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub config_revision: Option<u64>,
            /// Ids of the batches that this one was cut from because they were too large: the oldest first, the direct parent last. At most 16;
            /// left out when the batch was not cut. When one of them is stored, this batch is a duplicate: its events are stored with it. The batch's
            /// own id is refused here (400 `invalid_envelope`).
            #[serde(
                default,
                deserialize_with = "null_as_default",
                skip_serializing_if = "Vec::is_empty"
            )]
            #[cfg_attr(feature = "openapi", schema(max_items = 16))]
            pub split_from: Vec<Uuid>,
            $(
                #[doc = $doc]
                #[serde(borrow, default, deserialize_with = "null_as_default", skip_serializing_if = "Events::is_empty")]
                pub $list: $many<$event<'a>>,
            )+
        }
    };
}

crate::with_signals!([batch] {});

impl Batch<'_> {
    /// The most ids in [`split_from`](Self::split_from): 14 cuts make single events of a batch of 10,000.
    pub const MAX_SPLIT_FROM: usize = 16;

    /// How many events the batch holds, over all signals.
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
    /// The version people see, semver where it parses.
    #[serde(borrow, default)]
    pub app_version: Text<'a>,
    /// The build number.
    #[serde(default, deserialize_with = "null_as_default")]
    pub build: u64,
    /// Where the app came from, such as `play`.
    #[serde(borrow, default)]
    pub channel: Text<'a>,
    /// `android`, `ios`, …; stored in lower case.
    #[serde(borrow, default)]
    pub os_name: Text<'a>,
    /// The system's version.
    #[serde(borrow, default)]
    pub os_version: Text<'a>,
    /// The device's model, as the system names it.
    #[serde(borrow, default)]
    pub device_model: Text<'a>,
    /// Who made the device.
    #[serde(borrow, default)]
    pub device_manufacturer: Text<'a>,
    /// `low`, `mid`, `high`, or a year class.
    #[serde(borrow, default)]
    pub device_class: Text<'a>,
    /// The display's refresh rate in hertz; 0 when not known.
    #[serde(default, deserialize_with = "null_as_default")]
    pub refresh_hz: u16,
    /// Language and region, such as `de-DE`.
    #[serde(borrow, default)]
    pub locale: Text<'a>,
    /// Random, made at install: never a hardware id.
    pub install_id: Uuid,
    /// Optional, hashed by the app.
    #[serde(borrow, default)]
    pub user_id: Text<'a>,
    /// The SDK that sent the batch.
    #[serde(borrow, default)]
    pub sdk_name: Text<'a>,
    /// That SDK's version.
    #[serde(borrow, default)]
    pub sdk_version: Text<'a>,
}
