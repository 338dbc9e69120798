//! The closed sets of names on the wire. A name this version does not know reads as `Other`.

use std::fmt;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

macro_rules! names {
    ($(#[$doc:meta])* $name:ident, absent $absent:ident { $($(#[$variant_doc:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)+
            /// A name this version does not know.
            Other,
        }

        impl Default for $name {
            /// What a left-out or `null` field means.
            fn default() -> Self {
                Self::$absent
            }
        }

        impl $name {
            /// Every value, `Other` last.
            pub const ALL: &[Self] = &[$(Self::$variant,)+ Self::Other];

            /// The name on the wire and in storage.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                    Self::Other => "other",
                }
            }

            /// Reads a name; an unknown one is `Other`.
            #[must_use]
            pub fn from_name(name: &str) -> Self {
                match name {
                    $($text => Self::$variant,)+
                    _ => Self::Other,
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct NameVisitor;
                impl Visitor<'_> for NameVisitor {
                    type Value = $name;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str("a name")
                    }
                    fn visit_str<E: Error>(self, name: &str) -> Result<$name, E> {
                        Ok($name::from_name(name))
                    }
                    fn visit_unit<E: Error>(self) -> Result<$name, E> {
                        Ok($name::default())
                    }
                }
                deserializer.deserialize_any(NameVisitor)
            }
        }
    };
}

macro_rules! signal_names {
    ({} $($variant:ident $name:literal $list:ident: $many:ident<$event:ident>, $doc:literal;)+) => {
        names! {
            /// A kind of event. Its name is also the name of its list in a batch.
            ///
            /// ```
            /// assert_eq!(unjank_protocol::Signal::FrameWindows.as_str(), "frame_windows");
            /// ```
            Signal, absent Other { $(#[doc = $doc] $variant = $name,)+ }
        }
    };
}

crate::with_signals!([signal_names] {});

names! {
    /// What a span stands for.
    SpanKind, absent Manual {
        /// A logical operation from one mark to another, maybe across functions and threads.
        Manual = "manual",
        /// One function, traced automatically.
        Method = "method",
        /// The construction of an injected object.
        Init = "init",
        /// A page (screen).
        Page = "page",
        /// A network request.
        Network = "network",
        /// The start of the app.
        AppStart = "app_start",
    }
}

names! {
    /// How a span ended.
    SpanStatus, absent Unset {
        /// As intended.
        Ok = "ok",
        /// With an error.
        Error = "error",
        /// Nobody said.
        Unset = "unset",
    }
}

names! {
    /// The network a device was on.
    ///
    /// ```
    /// use unjank_protocol::Network;
    ///
    /// assert_eq!(Network::default(), Network::Unknown);
    /// assert_eq!(Network::from_name("cellular_5g"), Network::Cellular5g);
    /// ```
    Network, absent Unknown {
        /// Wireless LAN.
        Wifi = "wifi",
        /// Wired.
        Ethernet = "ethernet",
        /// GPRS, EDGE and their kin.
        Cellular2g = "cellular_2g",
        /// UMTS, HSPA and their kin.
        Cellular3g = "cellular_3g",
        /// LTE and its kin.
        Cellular4g = "cellular_4g",
        /// NR.
        Cellular5g = "cellular_5g",
        /// Mobile, generation not known.
        Cellular = "cellular",
        /// Not connected.
        None = "none",
        /// The device does not know.
        Unknown = "unknown",
    }
}

names! {
    /// How badly the main loop was blocked.
    JankKind, absent Jank {
        /// Over the threshold of a strategy.
        Jank = "jank",
        /// Application not responding: five seconds by default.
        Anr = "anr",
    }
}

names! {
    /// Whether a page was loaded for the first time in this process.
    ///
    /// ```
    /// let visits = 0;
    /// let launch = match visits {
    ///     0 => unjank_protocol::LaunchKind::Cold,
    ///     _ => unjank_protocol::LaunchKind::Warm,
    /// };
    /// assert_eq!(launch.as_str(), "cold");
    /// ```
    LaunchKind, absent Other {
        /// For the first time.
        Cold = "cold",
        /// Again.
        Warm = "warm",
    }
}

names! {
    /// How a page load ended.
    PageOutcome, absent Completed {
        /// The final draw came.
        Completed = "completed",
        /// The user left first.
        Aborted = "aborted",
        /// A request the page needs failed.
        Failed = "failed",
    }
}

names! {
    /// How an app was started.
    ///
    /// ```
    /// let start = unjank_protocol::AppStartKind::from_name("warm");
    /// assert_eq!(start, unjank_protocol::AppStartKind::Warm);
    /// ```
    AppStartKind, absent Other {
        /// The process was created.
        Cold = "cold",
        /// The process lived, its screen was created.
        Warm = "warm",
        /// The screen lived too.
        Hot = "hot",
    }
}
