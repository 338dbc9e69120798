//! How a struct of settings is declared: each field with its default, which also stands for a missing field and `null`.

/// Declares a struct whose `Default` is the values given and whose fields read as these when missing or `null`.
///
/// `#[serde(default)]` alone would refuse `null`, and reading `null` as the type's own default would make 0 of an interval.
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
