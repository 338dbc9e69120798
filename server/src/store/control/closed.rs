//! Closed sets of names: an enum in Rust, a text with a CHECK in the database.

/// Makes an enum whose variants have the names they are kept under.
macro_rules! closed {
    ($(#[doc = $doc:literal])* $set:ident { $($variant:ident = $name:literal),* $(,)? }) => {
        $(#[doc = $doc])*
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash,
            serde::Serialize, serde::Deserialize,
        )]
        pub enum $set { $(#[serde(rename = $name)] $variant),* }

        impl $set {
            /// Every name.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }
        }

        impl utoipa::PartialSchema for $set {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
                utoipa::openapi::schema::ObjectBuilder::new()
                    .schema_type(utoipa::openapi::Type::String)
                    .enum_values(Some([$($name),*]))
                    .description(Some(concat!($($doc),*).trim()))
                    .into()
            }
        }

        impl utoipa::ToSchema for $set {}

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
