//! What ClickHouse calls its formats' content types.

/// The `Content-Type` of an answer in `format`.
pub(crate) fn content_type(format: &str) -> &'static str {
    match format {
        "JSON"
        | "JSONCompact"
        | "JSONStrings"
        | "JSONCompactStrings"
        | "JSONColumns"
        | "JSONCompactColumns"
        | "JSONColumnsWithMetadata"
        | "JSONObjectEachRow" => "application/json; charset=UTF-8",
        "XML" => "application/xml; charset=UTF-8",
        "Markdown" => "text/markdown; charset=UTF-8",
        "SQLInsert" => "text/plain; charset=UTF-8",
        "Parquet"
        | "Arrow"
        | "ArrowStream"
        | "ORC"
        | "Avro"
        | "Native"
        | "RowBinary"
        | "RowBinaryWithNames"
        | "RowBinaryWithNamesAndTypes"
        | "RowBinaryWithDefaults"
        | "MsgPack"
        | "BSONEachRow"
        | "Npy"
        | "RawBLOB"
        | "Protobuf"
        | "ProtobufList"
        | "CapnProto" => "application/octet-stream",
        "CSV" => "text/csv; charset=UTF-8; header=absent",
        "CSVWithNames" | "CSVWithNamesAndTypes" => "text/csv; charset=UTF-8; header=present",
        "TabSeparated"
        | "TSV"
        | "TabSeparatedRaw"
        | "TSVRaw"
        | "TabSeparatedWithNames"
        | "TSVWithNames"
        | "TabSeparatedWithNamesAndTypes"
        | "TSVWithNamesAndTypes"
        | "TSKV" => "text/tab-separated-values; charset=UTF-8",
        other if other.starts_with("JSON") => "application/x-ndjson; charset=UTF-8",
        _ => "text/plain; charset=UTF-8",
    }
}
