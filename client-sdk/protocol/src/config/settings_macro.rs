//! Declares structs of settings: each field with its default, which also applies if the field is missing or `null`.

/// Declares a struct of settings. A field that is missing or `null` has its default.
///
/// `#[serde(default)]` alone would reject `null`. The default of the field's type would turn a `null` interval into 0.
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
