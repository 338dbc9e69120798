//! The page of the settings of `unjank serve`, from the definitions of its flags.

use clap::{Arg, Command, CommandFactory};

use super::{code, table};
use crate::cli::Cli;

const INTRODUCTION: &str = "\
# Settings of `unjank serve`

<!-- Generated from server/src/config.rs and server/src/config by `make reference`. -->

Every setting has three forms: a flag, a variable of the environment, and a line of a TOML file that `--config` names. The line has the \
name of the flag without the leading dashes: `data-dir = \"/var/lib/unjank\"`. A flag overrides the environment, the environment overrides \
the file, and the file overrides the default. A variable that is empty is like none. A file may contain settings of other commands; a name that no command has is an error. The server warns at its start of unknown variables that begin like settings.

";

const IN_ENVIRONMENT_ONLY: &str = "
## Only in the environment

These passwords are not flags, because other users of the machine can see flags.

| variable | meaning |
| --- | --- |
| `UNJANK_ENGINE_READER_PASSWORD` | The password of the embedded ClickHouse's user `reader`, which can only read. Unset: a random one. |
| `UNJANK_ENGINE_WRITER_PASSWORD` | The password of its user `writer`. Unset: a random one. |
| `UNJANK_ENGINE_PASSWORD` | The password of its user `admin`. Unset: there is no such user. |
| `AWS_…` | The variables of a bucket, for `--symbols-url` and for backups: `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_REGION`, `AWS_ENDPOINT`. |
";

/// The sections after the first one, each with the starts of the names of its flags.
const SECTIONS: [(&str, &[&str]); 8] = [
    ("Databases", &["clickhouse-", "database-url", "secret"]),
    ("Embedded ClickHouse", &["engine-", "cache-dir"]),
    (
        "Ingest and limits",
        &[
            "body-timeout-",
            "dead-letter-",
            "flush-",
            "log-max-",
            "max-",
            "min-free-",
            "shutdown-",
        ],
    ),
    ("Retention", &["retention-"]),
    ("Stacks and roll-ups", &["books-", "late-stacks-", "rules"]),
    ("Symbol files", &["symbols-"]),
    (
        "Alerts and notifications",
        &["alerts-", "mail-", "notify-", "smtp-"],
    ),
    ("Login with an identity provider", &["oidc-"]),
];

pub(super) fn page() -> String {
    let command = Cli::command();
    let serve = command.find_subcommand("serve");
    let own = serve.into_iter().flat_map(Command::get_arguments);
    let all = command.get_arguments().chain(own);
    let settings: Vec<_> = all.filter_map(Setting::of).collect();
    let section = |name: &str, place: Option<usize>| {
        let rows = settings
            .iter()
            .filter(|setting| setting.section() == place)
            .map(Setting::row);
        let table = table(["flag", "variable", "default", "meaning"], rows);
        format!("## {name}\n\n{table}")
    };
    let mut sections = vec![section("Addresses, files and keys", None)];
    for (place, (name, _)) in SECTIONS.iter().enumerate() {
        sections.push(section(name, Some(place)));
    }
    format!("{INTRODUCTION}{}{IN_ENVIRONMENT_ONLY}", sections.join("\n"))
}

/// A setting with a flag that `--help` shows.
struct Setting<'a> {
    flag: &'a str,
    argument: &'a Arg,
}

impl<'a> Setting<'a> {
    fn of(argument: &'a Arg) -> Option<Self> {
        let flag = argument.get_long()?;
        (!argument.is_hide_set()).then_some(Self { flag, argument })
    }

    /// Returns the place of its section in [`SECTIONS`], or `None` for the first section of the page.
    fn section(&self) -> Option<usize> {
        let is_of = |start: &&str| self.flag.starts_with(*start);
        SECTIONS
            .iter()
            .position(|(_, starts)| starts.iter().any(is_of))
    }

    fn row(&self) -> [String; 4] {
        let variable = self.argument.get_env().map(|name| name.to_string_lossy());
        [
            self.usage(),
            variable.map(|name| code(&name)).unwrap_or_default(),
            self.default(),
            self.meaning(),
        ]
    }

    fn takes_value(&self) -> bool {
        self.argument.get_action().takes_values()
    }

    /// Returns the flag with the name of its value.
    fn usage(&self) -> String {
        let names = self.argument.get_value_names().unwrap_or_default();
        match names.first() {
            Some(name) if self.takes_value() => code(&format!("--{} <{name}>", self.flag)),
            _ => code(&format!("--{}", self.flag)),
        }
    }

    fn default(&self) -> String {
        if !self.takes_value() {
            return "off".to_owned();
        }
        let values = self.argument.get_default_values().iter();
        let values: Vec<_> = values.map(|value| value.to_string_lossy()).collect();
        let value = values.join(",");
        match readable(self.flag, &value) {
            _ if value.is_empty() => "unset".to_owned(),
            Some(text) => format!("{} ({text})", code(&value)),
            None => code(&value),
        }
    }

    /// Returns the help, with the period that clap removes from its end, and the values to choose from.
    fn meaning(&self) -> String {
        let help = self.argument.get_long_help();
        let help = help.or_else(|| self.argument.get_help());
        let help = help.map(ToString::to_string).unwrap_or_default();
        let help = help.trim_end().trim_end_matches('.');
        let values = self.argument.get_possible_values();
        // The name of the value may list the values: `<text|json>`.
        if values.is_empty() || self.usage().contains('|') || !self.takes_value() {
            return format!("{help}.");
        }
        let values: Vec<_> = values.iter().map(|value| code(value.get_name())).collect();
        format!("{help}. Values: {}.", values.join(", "))
    }
}

/// Returns a number of bytes or milliseconds in a larger unit, if it is a whole number of them.
fn readable(flag: &str, value: &str) -> Option<String> {
    const BYTES: [(u64, &str); 2] = [(1 << 30, "GiB"), (1 << 20, "MiB")];
    const MILLISECONDS: [(u64, &str); 2] = [(60_000, "min"), (1_000, "s")];
    let number: u64 = value.parse().ok()?;
    let units = if flag.ends_with("-bytes") {
        BYTES
    } else if flag.ends_with("-ms") {
        MILLISECONDS
    } else {
        return None;
    };
    let is_whole = |(unit, _): &(u64, &str)| number >= *unit && number.is_multiple_of(*unit);
    let (unit, name) = units.into_iter().find(is_whole)?;
    Some(format!("{} {name}", number / unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_milliseconds_are_also_in_larger_units() {
        for (flag, value, text) in [
            ("log-max-bytes", "8589934592", Some("8 GiB")),
            ("min-free-bytes", "268435456", Some("256 MiB")),
            ("books-interval-ms", "600000", Some("10 min")),
            ("alerts-lease-ms", "90000", Some("90 s")),
            ("retention-days", "30", None),
            ("listen", "127.0.0.1:8080", None),
        ] {
            assert_eq!(readable(flag, value).as_deref(), text, "{flag}");
        }
    }

    #[test]
    fn every_setting_has_a_variable_and_is_in_one_section() {
        let page = page();
        let rows: Vec<_> = page.lines().filter(|line| line.contains("| `--")).collect();
        assert!(rows.len() > 60, "{page}");
        for row in &rows {
            assert!(row.contains("| `UNJANK_"), "{row}");
            let flag = row.split_whitespace().nth(1).unwrap();
            let others = rows
                .iter()
                .filter(|row| row.split_whitespace().nth(1) == Some(flag));
            assert_eq!(others.count(), 1, "{row}");
        }
        assert!(page.contains("| `--books-rebuild <ON\\|OFF>` |"), "{page}");
    }
}
