//! Closed sets of names: an enum in Rust, and a text column with a CHECK in the database.

/// Defines an enum whose variants have the given names in the database and the API.
macro_rules! text_enum {
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
            type Err = $crate::ControlError;

            fn from_str(name: &str) -> Result<Self, Self::Err> {
                match name {
                    $($name => Ok(Self::$variant),)*
                    _ => Err($crate::checks::invalid(concat!("not a valid ", stringify!($set)))),
                }
            }
        }
    };
}
pub(super) use text_enum;
