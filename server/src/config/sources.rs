//! Where settings come from: the command line, the environment and a TOML file.

use std::path::PathBuf;

use clap::Parser;

use super::DATA_DIR;

const DEMO_DATA_DIR: &str = "demo-data";

/// Parses the command line, the environment and the TOML file into one command.
pub fn parse<C: Parser>() -> Result<C, clap::Error> {
    let arguments: Vec<_> = std::env::args_os().collect();
    let command = without_empty_variables(C::command());
    // The file must be read before the arguments are parsed, because it changes their defaults.
    #[expect(clippy::disallowed_methods, reason = "settings are read here, once")]
    let from_environment = std::env::var("UNJANK_CONFIG").ok();
    let from_environment = from_environment.filter(|file| !file.is_empty());
    let file = config_argument(&arguments).or(from_environment.map(PathBuf::from));
    let command = match file {
        Some(file) => with_file(command, &file)?,
        None => command,
    };
    // Finds the subcommand even if the arguments ask for help.
    let lenient = command.clone().ignore_errors(true).disable_help_flag(true);
    let matches = lenient.try_get_matches_from(&arguments)?;
    let command = if matches.subcommand_name() == Some("demo") && !is_set(&matches, "data_dir") {
        // A demo has its own default data folder, so that it does not mix with real data.
        set_default(command, "data_dir", DEMO_DATA_DIR).0
    } else {
        command
    };
    C::from_arg_matches(&command.try_get_matches_from(arguments)?)
}

/// Removes variables that are empty, such as those of `${NAME:-}` in a Compose file: an empty variable is no setting.
fn without_empty_variables(command: clap::Command) -> clap::Command {
    let is_empty = |argument: &clap::Arg| {
        let value = argument.get_env().and_then(std::env::var_os);
        value.is_some_and(|value| value.is_empty())
    };
    let command = command.mut_args(|argument| match is_empty(&argument) {
        true => argument.env(None::<&'static str>),
        false => argument,
    });
    command.mut_subcommands(without_empty_variables)
}

/// Whether a flag, the environment or the file sets the argument.
fn is_set(matches: &clap::ArgMatches, id: &str) -> bool {
    let built_in = matches
        .get_one::<PathBuf>(id)
        .is_some_and(|folder| folder.as_os_str() == DATA_DIR);
    matches.value_source(id) != Some(clap::parser::ValueSource::DefaultValue) || !built_in
}

fn config_argument(arguments: &[std::ffi::OsString]) -> Option<PathBuf> {
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let argument = argument.to_str()?;
        if argument == "--config" {
            return arguments.next().map(PathBuf::from);
        }
        if let Some(file) = argument.strip_prefix("--config=") {
            return Some(PathBuf::from(file));
        }
    }
    None
}

/// Makes the settings of the file the defaults of their flags, in every command that has them.
fn with_file(
    mut command: clap::Command,
    file: &std::path::Path,
) -> Result<clap::Command, clap::Error> {
    let failed = |command: &mut clap::Command, error: String| {
        command.error(
            clap::error::ErrorKind::ValueValidation,
            format!("{}: {error}", file.display()),
        )
    };
    let text =
        std::fs::read_to_string(file).map_err(|error| failed(&mut command, error.to_string()))?;
    let table: toml::Table = text
        .parse()
        .map_err(|error: toml::de::Error| failed(&mut command, error.to_string()))?;
    for (key, value) in table {
        let value = match value {
            toml::Value::String(text) => text,
            toml::Value::Integer(number) => number.to_string(),
            toml::Value::Boolean(flag) => flag.to_string(),
            other => {
                return Err(failed(
                    &mut command,
                    format!(
                        "`{key}` is of type {}, but a setting must be a text, a whole number or true/false",
                        other.type_str()
                    ),
                ));
            }
        };
        let id = key.replace('-', "_");
        let (changed, known) = set_default(command, &id, &value);
        command = changed;
        if !known {
            return Err(failed(
                &mut command,
                format!("there is no setting `{key}`: see `unjank serve --help`"),
            ));
        }
    }
    Ok(command)
}

fn set_default(mut command: clap::Command, id: &str, value: &str) -> (clap::Command, bool) {
    let mut known = command
        .get_arguments()
        .any(|argument| argument.get_id() == id);
    if known {
        let value = value.to_owned();
        command = command.mut_arg(id, |argument| argument.default_value(value));
    }
    let names: Vec<String> = command
        .get_subcommands()
        .map(|command| command.get_name().to_owned())
        .collect();
    for name in names {
        command = command.mut_subcommand(name, |subcommand| {
            let (subcommand, has) = set_default(subcommand, id, value);
            known |= has;
            subcommand
        });
    }
    (command, known)
}
