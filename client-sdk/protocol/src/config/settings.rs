//! Declares structs of settings: each field with its default, which also applies if the field is missing or `null`.

/// Declares a struct with these defaults, which also apply to fields that are missing or `null`.
///
/// `#[serde(default)]` alone would reject `null`, and the type's own default would turn `null` into an interval of 0.
macro_rules! settings {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty = $default:expr,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Serialize)]
        #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
        #[cfg_attr(feature = "openapi", schema(as = config::$name))]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $type,)+
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $default,)+ }
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                #[derive(serde::Deserialize)]
                struct Read {
                    $($field: Option<$type>,)+
                }
                let read = Read::deserialize(deserializer)?;
                Ok(Self { $($field: read.$field.unwrap_or_else(|| $default),)+ })
            }
        }
    };
}
