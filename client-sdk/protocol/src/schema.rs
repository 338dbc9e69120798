//! Schemas of types with their own serialization, for the server's API document. Requires the feature `openapi`, which devices
//! do not need.
//!
//! They describe what a client should send. The server accepts more: `null` for fields with a default, numbers in
//! attributes, and unknown names.

use std::borrow::Cow;

use utoipa::openapi::schema::{AdditionalProperties, Object, ObjectBuilder, SchemaType};
use utoipa::openapi::{KnownFormat, RefOr, Schema, SchemaFormat, Type};
use utoipa::{PartialSchema, ToSchema};

use crate::{
    AppStartKind, Attributes, Day, Histogram, JankEnd, JankKind, LaunchKind, Network, PageOutcome,
    Signal, SpanId, SpanKind, SpanStatus, Text, Timestamp, TraceId,
};

macro_rules! schemas {
    ($($type:ty, $name:literal => $schema:expr;)+) => {
        $(
            impl PartialSchema for $type {
                fn schema() -> RefOr<Schema> {
                    $schema.build().into()
                }
            }

            impl ToSchema for $type {
                fn name() -> Cow<'static, str> {
                    Cow::Borrowed($name)
                }
            }
        )+
    };
}

/// A set of names to which other versions may add.
macro_rules! names {
    ($($type:ident: $doc:literal;)+) => {
        $(
            impl PartialSchema for $type {
                fn schema() -> RefOr<Schema> {
                    let known: Vec<_> = $type::ALL.iter().map(|name| name.as_str()).collect();
                    let doc = format!(
                        "{} `{}`. Any other name reads as `other`.",
                        $doc,
                        known.join("`, `"),
                    );
                    text(None).description(Some(doc)).examples(known).build().into()
                }
            }

            impl ToSchema for $type {
                fn name() -> Cow<'static, str> {
                    Cow::Borrowed(stringify!($type))
                }
            }
        )+
    };
}

fn text(pattern: Option<&str>) -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(SchemaType::new(Type::String))
        .pattern(pattern)
}

fn formatted(format: KnownFormat) -> ObjectBuilder {
    text(None).format(Some(SchemaFormat::KnownFormat(format)))
}

fn map_of(values: Object) -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(SchemaType::new(Type::Object))
        .additional_properties(Some(AdditionalProperties::RefOr(RefOr::T(Schema::Object(
            values,
        )))))
}

fn counts() -> Object {
    ObjectBuilder::new()
        .schema_type(SchemaType::new(Type::Integer))
        .minimum(Some(0))
        .maximum(Some(u32::MAX))
        .build()
}

schemas! {
    Text<'_>, "Text" => text(None).description(Some("Longer than 1,024 bytes it is cut, and ends in `…`."));
    TraceId, "TraceId" => text(Some("^[0-9a-fA-F]{32}$")).description(Some("32 hex digits, not all zero."));
    SpanId, "SpanId" => text(Some("^[0-9a-fA-F]{16}$")).description(Some("16 hex digits, not all zero."));
    Timestamp, "Timestamp" => formatted(KnownFormat::DateTime).description(Some("RFC 3339."));
    Day, "Day" => formatted(KnownFormat::Date).description(Some("A day of the device's own calendar."));
    Attributes<'_>, "Attributes" => map_of(text(None).build()).description(Some("By name."));
    Histogram, "Histogram" => map_of(counts())
        .property_names(Some(text(Some("^[0-9]{1,9}$")).build()))
        .description(Some("The lower bound of a bucket in milliseconds → how many."));
}

names! {
    Signal: "The list of a batch that contains the event:";
    SpanKind: "The kind of work that a span measures:";
    SpanStatus: "How a span ended:";
    Network: "The network a device was on:";
    JankEnd: "How a block of the main loop ended:";
    JankKind: "How badly the main loop was blocked:";
    LaunchKind: "Whether a page was loaded for the first time in this process:";
    PageOutcome: "How a page load ended:";
    AppStartKind: "How an app was started:";
}
