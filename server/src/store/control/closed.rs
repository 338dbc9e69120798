//! Closed sets of names: an enum in Rust, a text with a CHECK in the database.

/// Makes an enum whose variants have the names they are kept under.
macro_rules! closed {
    ($(#[$doc:meta])* $set:ident { $($variant:ident = $name:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $set { $($variant),* }

        impl $set {
            /// Every name.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }
        }

        impl std::str::FromStr for $set {
            type Err = $crate::store::control::ControlError;

            fn from_str(name: &str) -> Result<Self, Self::Err> {
                match name {
                    $($name => Ok(Self::$variant),)*
                    _ => Err($crate::store::control::checks::invalid(concat!("this is no ", stringify!($set)))),
                }
            }
        }
    };
}
pub(super) use closed;
