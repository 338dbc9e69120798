//! Where settings come from: the command line, the environment and a TOML file.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use clap::Parser;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::DATA_DIR;
use super::engine::PASSWORDS;

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
    let command = match &file {
        Some(file) => with_file(command, file)?,
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
    let matches = command.clone().try_get_matches_from(&arguments);
    let matches =
        matches.map_err(|error| with_origin(error, &command, &arguments, file.as_deref()))?;
    C::from_arg_matches(&matches)
}

/// Adds to the error of a wrong value where the value comes from, unless it is on the command line.
fn with_origin(
    mut error: clap::Error,
    command: &clap::Command,
    arguments: &[OsString],
    file: Option<&Path>,
) -> clap::Error {
    let is_wrong_value = matches!(
        error.kind(),
        ErrorKind::ValueValidation | ErrorKind::InvalidValue
    );
    let usage = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(usage)) => usage.clone(),
        _ => String::new(),
    };
    let flag = usage.split([' ', '=', '[']).next().unwrap_or_default();
    let is_given = |argument: &OsString| {
        let rest = argument.to_str().and_then(|text| text.strip_prefix(flag));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
    };
    if !is_wrong_value || !flag.starts_with("--") || arguments.iter().any(is_given) {
        return error;
    }
    let origin = match (variable_of(command, flag), file) {
        (Some(variable), _) => format!("the value is in the variable {variable}"),
        (None, Some(file)) => format!("the value is in {}", file.display()),
        (None, None) => return error,
    };
    let tips = ContextValue::StyledStrs(vec![origin.into()]);
    error.insert(ContextKind::Suggested, tips);
    error
}

/// Returns the variable of a flag, if it is set.
fn variable_of(command: &clap::Command, flag: &str) -> Option<String> {
    let is_of_flag = |argument: &&clap::Arg| argument.get_long() == flag.strip_prefix("--");
    let variables = command.get_arguments().filter(is_of_flag);
    let set = variables
        .filter_map(clap::Arg::get_env)
        .find(|variable| std::env::var_os(variable).is_some());
    set.map(|variable| variable.to_string_lossy().into_owned())
        .or_else(|| {
            let mut commands = command.get_subcommands();
            commands.find_map(|command| variable_of(command, flag))
        })
}

/// Returns the names of variables that begin like those of settings, but are of no setting.
pub fn unknown_variables<C: Parser>() -> Vec<String> {
    let mut known: BTreeSet<_> = PASSWORDS.map(OsString::from).into();
    collect_variables(&C::command(), &mut known);
    let set = std::env::vars_os().filter(|(_, value)| !value.is_empty());
    let unknown = set.filter(|(name, _)| !known.contains(name));
    let names = unknown.map(|(name, _)| name.to_string_lossy().into_owned());
    let mut names: Vec<_> = names.filter(|name| name.starts_with("UNJANK_")).collect();
    names.sort();
    names
}

fn collect_variables(command: &clap::Command, known: &mut BTreeSet<OsString>) {
    let variables = command.get_arguments().filter_map(clap::Arg::get_env);
    known.extend(variables.map(OsStr::to_owned));
    for command in command.get_subcommands() {
        collect_variables(command, known);
    }
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

fn config_argument(arguments: &[OsString]) -> Option<PathBuf> {
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
fn with_file(mut command: clap::Command, file: &Path) -> Result<clap::Command, clap::Error> {
    let failed = |command: &mut clap::Command, error: String| {
        command.error(
            ErrorKind::ValueValidation,
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
