//! Readable names of obfuscated functions.
//!
//! Spans of obfuscated functions are stored with the key of the function (see `ingest::functions`), so that a mapping that arrives later
//! needs no change of rows: queries look up the names in `function_names`.

/// Maximum number of functions of a project that queries can name. The latest symbolicated functions take precedence.
const MOST: u32 = 100_000;

/// The part of a span's function that a dimension names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OfFunction {
    /// The class and the function.
    Name,
    Class,
    Function,
    Package,
    File,
}

impl OfFunction {
    /// The readable text, as SQL over a row of `function_names`.
    fn readable(self) -> String {
        match self {
            Self::Name => "concat(class, '.', function)".to_owned(),
            Self::Class => "class".to_owned(),
            Self::Function => "function".to_owned(),
            Self::File => "file".to_owned(),
            Self::Package => package("class"),
        }
    }

    /// The column with the key.
    fn key(self) -> &'static str {
        match self {
            Self::Name => "s.name",
            Self::Class | Self::Function | Self::Package | Self::File => "s.code_function",
        }
    }

    /// The value that rows are grouped by before the few groups are translated: the key if the function is obfuscated, otherwise the reported
    /// text.
    pub(super) fn key_or(self, reported: &str) -> String {
        match self {
            Self::Name | Self::Function => reported.to_owned(),
            _ => format!("if({IS_OBFUSCATED}, s.code_function, {reported})"),
        }
    }

    /// Translates a text of [`Self::key_or`].
    pub(super) fn of_group(self, group: &str, database: &str) -> String {
        let class = format!(
            "replaceRegexpOne({group}, '(?s)^([^(]*)\\\\.[^.(]*(?:\\\\(.*)?@[0-9a-f]{{12}}$', '\\\\1')"
        );
        let otherwise = match self {
            Self::Class => class,
            Self::Package => package(&class),
            Self::Name | Self::Function | Self::File => group.to_owned(),
        };
        self.translated(group, &otherwise, database)
    }

    /// The readable text of a row, or the reported one.
    pub(super) fn of_row(self, reported: &str, database: &str) -> String {
        self.translated(self.key(), reported, database)
    }

    fn translated(self, key: &str, otherwise: &str, database: &str) -> String {
        // Sorted, because each of the two subqueries may read the rows in another order.
        let names = format!(
            "(SELECT arraySort(groupArray((name, readable))) FROM (\
                 SELECT toString(name) AS name, toString({}) AS readable FROM `{database}`.function_names FINAL \
                 WHERE project = {{project:String}} AND function != '' ORDER BY symbolicated_at DESC LIMIT {MOST}))",
            self.readable()
        );
        format!("transform(toString({key}), {names}.1, {names}.2, toString({otherwise}))")
    }

    /// Selects the rows whose readable text meets a condition.
    pub(super) fn matches(self, database: &str, condition: impl Fn(&str) -> String) -> String {
        format!(
            "{} IN (SELECT name FROM `{database}`.function_names FINAL \
                 WHERE project = {{project:String}} AND function != '' AND {})",
            self.key(),
            condition(&self.readable())
        )
    }
}

/// Whether the code of a span is an obfuscated function.
pub(super) const IS_OBFUSCATED: &str = "match(s.code_function, '@[0-9a-f]{12}$')";

/// The owner of a class: the first three segments of a Java package, or the crate of a Rust path. That of one of several classes,
/// `shop.{Cart, Prices}`, is what they have in common. It uses only functions that ClickHouse evaluates once per dictionary entry instead of
/// once per row; array functions do not qualify.
pub(super) fn package(class: &str) -> String {
    format!("substringIndex(replaceRegexpOne({class}, '(?s)(?:::|[.]?[{{]).*', ''), '.', 3)")
}
