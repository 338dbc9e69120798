//! `unjank token`: API tokens, for scripts, for CI and for the first setup.

use std::io::Write;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use unjank_database::{Actor, ApiToken, ControlError, Role, TokenScope};
use unjank_foundation::clock::UnixTime;
use unjank_foundation::task::Tasks;
use uuid::Uuid;

use super::output::unless_closed;
use super::runtime;
use crate::access::api_tokens::{IssueError, TokenRequest, issue};
use crate::config::Shared;
use crate::serve::existing_control_database;

#[derive(Args, Debug)]
#[command(
    after_help = "Example: unjank token create --name ci --role editor --project shop\n\
                  Works on the control database directly, with or without a running server."
)]
pub(super) struct TokenArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Create a token and print it to standard output. It is shown only once.
    Create(NewToken),
    /// List all tokens: id, first characters, role, project, name, expiry and revocation.
    List(Scope),
    /// Revoke a token permanently. It stops working immediately.
    Revoke(Revocation),
}

#[derive(Args, Debug)]
struct Scope {
    /// The project of the token. Unset: tokens for the whole installation.
    #[arg(long, value_name = "PROJECT")]
    project: Option<String>,
}

#[derive(Args, Debug)]
struct NewToken {
    #[command(flatten)]
    scope: Scope,

    /// A name that describes the token's purpose.
    #[arg(long)]
    name: String,

    /// The role, which sets the token's permissions.
    #[arg(long, value_enum)]
    role: RoleName,

    /// Restrict the token to uploads of symbol files, for build servers. Needs the role editor.
    #[arg(long)]
    only_symbols: bool,

    /// The lifetime in days, 1 to 3650. Unset: until it is revoked.
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u64).range(1..=3_650))]
    days: Option<u64>,
}

#[derive(Args, Debug)]
struct Revocation {
    #[command(flatten)]
    scope: Scope,

    /// The id as listed by `list`.
    id: Uuid,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum RoleName {
    /// Read everything.
    Viewer,
    /// Also change configurations.
    Editor,
    /// Also manage keys and users.
    Admin,
}

impl From<RoleName> for Role {
    fn from(name: RoleName) -> Self {
        match name {
            RoleName::Viewer => Self::Viewer,
            RoleName::Editor => Self::Editor,
            RoleName::Admin => Self::Admin,
        }
    }
}

pub(super) fn run(shared: &Shared, args: &TokenArgs) -> anyhow::Result<()> {
    runtime()?.block_on(async {
        let tasks = Tasks::default();
        let control = existing_control_database(shared, &tasks).await?;
        let (actor, now) = (Actor::cli("unjank token"), shared.now());
        let mut out = std::io::stdout().lock();
        match &args.command {
            Command::Create(new) => {
                let request = TokenRequest {
                    project: new.scope.project.clone(),
                    name: new.name.clone(),
                    role: new.role.into(),
                    scope: match new.only_symbols {
                        true => TokenScope::Symbols,
                        false => TokenScope::All,
                    },
                    expires_at: new
                        .days
                        .map(|days| now + Duration::from_secs(days.saturating_mul(86_400))),
                };
                let issued = issue(&control, request, None, &actor, now).await;
                let (_, credential) =
                    issued.map_err(|error| match (error, &new.scope.project) {
                        (IssueError::Control(ControlError::NotFound), Some(project)) => {
                            anyhow::anyhow!("there is no project `{project}`")
                        }
                        (error, _) => error.into(),
                    })?;
                writeln!(out, "{}", credential.reveal())?;
            }
            Command::List(scope) => {
                let tokens = control.api_tokens(scope.project.as_deref()).await?;
                unless_closed(list(&tokens, &mut out))?;
            }
            Command::Revoke(Revocation { scope, id }) => {
                let project = scope.project.as_deref();
                match control.revoke_api_token(*id, project, &actor, now).await {
                    Err(ControlError::NotFound) => anyhow::bail!(
                        "there is no such token{}, or it is revoked already: see `unjank token list`",
                        project.map_or_else(
                            || " for the whole installation".to_owned(),
                            |project| format!(" of the project `{project}`")
                        )
                    ),
                    revoked => revoked?,
                }
            }
        }
        control.close().await;
        tasks.end(Duration::from_secs(1)).await;
        Ok(())
    })
}

fn list(tokens: &[ApiToken], out: &mut impl Write) -> anyhow::Result<()> {
    writeln!(out, "id\tstarts\trole\tproject\tname\texpires\trevoked")?;
    for token in tokens {
        writeln!(
            out,
            "{}\t{}\t{}\t{}\t{}\t{}\t{}",
            token.id,
            token.prefix,
            token.role.as_str(),
            token.project.as_deref().unwrap_or("*"),
            token.name,
            shown(token.expires_at),
            shown(token.revoked_at),
        )?;
    }
    Ok(())
}

fn shown(at: Option<UnixTime>) -> String {
    at.map_or_else(|| "-".to_owned(), |at| at.to_string())
}
