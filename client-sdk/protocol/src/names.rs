//! The closed sets of names on the wire. An unknown name is read as `Other`.

use std::fmt;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

macro_rules! names {
    ($(#[$doc:meta])* $name:ident, absent $absent:ident { $($(#[$variant_doc:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)+
            /// A name that this version does not know.
            Other,
        }

        impl Default for $name {
            /// The value of a missing or `null` field.
            fn default() -> Self {
                Self::$absent
            }
        }

        impl $name {
            /// All values, `Other` last.
            pub const ALL: &[Self] = &[$(Self::$variant,)+ Self::Other];

            /// The name on the wire and in storage.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                    Self::Other => "other",
                }
            }

            /// Parses a name in any case. An unknown one is `Other`.
            #[must_use]
            pub fn from_name(name: &str) -> Self {
                match name {
                    $($text => Self::$variant,)+
                    _ if name.bytes().any(|byte| byte.is_ascii_uppercase()) => {
                        Self::from_name(&name.to_ascii_lowercase())
                    }
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
                        Ok(if name.is_empty() { $name::default() } else { $name::from_name(name) })
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
    /// The kind of work that a span measures.
    SpanKind, absent Manual {
        /// An operation between two points in the code, possibly across functions and threads.
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
    /// The outcome of a span.
    SpanStatus, absent Unset {
        /// Success.
        Ok = "ok",
        /// An error.
        Error = "error",
        /// The operation was given up before its end.
        Cancelled = "cancelled",
        /// Not set.
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
        /// 2G: GPRS, EDGE.
        Cellular2g = "cellular_2g",
        /// 3G: UMTS, HSPA.
        Cellular3g = "cellular_3g",
        /// 4G: LTE.
        Cellular4g = "cellular_4g",
        /// 5G: NR.
        Cellular5g = "cellular_5g",
        /// Mobile, of unknown generation.
        Cellular = "cellular",
        /// Not connected.
        None = "none",
        /// Unknown to the device.
        Unknown = "unknown",
    }
}

names! {
    /// The severity of a block of the main loop.
    JankKind, absent Jank {
        /// Longer than the threshold of a rule.
        Jank = "jank",
        /// Application not responding: at least five seconds by default.
        Anr = "anr",
    }
}

names! {
    /// How a block of the main loop ended.
    JankEnd, absent Finished {
        /// The loop went on.
        Finished = "finished",
        /// The process ended during the block, so the block was longer than its duration says.
        Killed = "killed",
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
    /// The outcome of a page load.
    PageOutcome, absent Completed {
        /// The page was drawn completely.
        Completed = "completed",
        /// The user left before.
        Aborted = "aborted",
        /// A required request failed.
        Failed = "failed",
    }
}

names! {
    /// The kind of an app start.
    ///
    /// ```
    /// let start = unjank_protocol::AppStartKind::from_name("warm");
    /// assert_eq!(start, unjank_protocol::AppStartKind::Warm);
    /// ```
    AppStartKind, absent Other {
        /// The process was created.
        Cold = "cold",
        /// The process existed, and the screen was created.
        Warm = "warm",
        /// Process and screen existed.
        Hot = "hot",
    }
}
