//! `unjank user`: creates users, and lets users in who lost access.

use std::io::Write;
use std::time::Duration;

use clap::{Args, Subcommand};
use unjank_database::{Actor, Control, ControlError, NewUser, User};
use unjank_foundation::task::Tasks;

use super::output::unless_closed;
use super::runtime;
use crate::access::logins as people;
use crate::config::Shared;
use crate::serve::existing_control_database;

#[derive(Args, Debug)]
#[command(
    after_help = "Example: unjank user add --email ann@example.com --name Ann --admin\n\
                  Works on the control database directly, with or without a running server."
)]
pub(super) struct UserArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Add a user and print an invitation to standard output. Its holder can set the password, once, within 7 days.
    Add(NewPerson),
    /// Print a new invitation to standard output, for a user who has none or has forgotten the password.
    Invite(Address),
    /// Let a disabled user log in again.
    Enable(Address),
    /// Remove the link to a user's account at the identity provider. The user's sessions end. The next login through the provider
    /// links the account with the same e-mail address.
    Unlink(Address),
    /// List all users: id, e-mail address, name, and whether they are admin, have a password, and are disabled.
    List,
}

#[derive(Args, Debug)]
struct NewPerson {
    /// The e-mail address, which is also the login name.
    #[arg(long)]
    email: String,

    /// The display name.
    #[arg(long)]
    name: String,

    /// Make the user an admin of the whole installation, with all permissions in all projects.
    #[arg(long)]
    admin: bool,
}

#[derive(Args, Debug)]
struct Address {
    /// The e-mail address.
    #[arg(long)]
    email: String,
}

const PAGE: u32 = 100;

pub(super) fn run(shared: &Shared, args: &UserArgs) -> anyhow::Result<()> {
    runtime()?.block_on(async {
        let tasks = Tasks::default();
        let control = existing_control_database(shared, &tasks).await?;
        let (actor, now) = (Actor::cli("unjank user"), shared.now());
        let mut out = std::io::stdout().lock();
        match &args.command {
            Command::Add(new) => {
                let new = NewUser {
                    email: new.email.clone(),
                    name: new.name.clone(),
                    password_hash: None,
                    is_admin: new.admin,
                };
                let user = match control.create_user(new.clone(), &actor, now).await {
                    Err(ControlError::AlreadyExists) => anyhow::bail!(
                        "there is already a user with the address {0}: `unjank user invite --email {0}` prints a new invitation",
                        new.email
                    ),
                    created => created?,
                };
                let invitation = people::invite(&control, user.id, &actor, now).await?;
                print(invitation.secret.reveal(), &mut out)?;
            }
            Command::Invite(Address { email }) => {
                let user = existing_user(&control, email).await?;
                anyhow::ensure!(
                    user.disabled_at.is_none(),
                    "the user {email} is disabled: enable the user on the page People, or with `unjank user enable --email {email}`"
                );
                let invitation = people::invite(&control, user.id, &actor, now).await?;
                print(invitation.secret.reveal(), &mut out)?;
            }
            Command::Unlink(Address { email }) => {
                let user = existing_user(&control, email).await?;
                match control.unlink_identities(user.id, &actor, now).await {
                    Err(ControlError::NotFound) => anyhow::bail!(
                        "the user {email} is not linked to an account at an identity provider"
                    ),
                    unlinked => unlinked?,
                }
            }
            Command::Enable(Address { email }) => {
                let user = existing_user(&control, email).await?;
                anyhow::ensure!(
                    user.disabled_at.is_some(),
                    "the user {email} is not disabled"
                );
                control.enable_user(user.id, &actor, now).await?;
            }
            Command::List => unless_closed(list(&control, &mut out).await)?,
        }
        control.close().await;
        tasks.end(Duration::from_secs(1)).await;
        Ok(())
    })
}

/// Returns the user with an e-mail address.
async fn existing_user(control: &Control, email: &str) -> anyhow::Result<User> {
    match control.user_by_email(email).await {
        Err(ControlError::NotFound) => {
            anyhow::bail!("there is no user with the address {email}: see `unjank user list`")
        }
        found => Ok(found?),
    }
}

/// Prints the secret to standard output, and how to use it to standard error, which may be a file or a journal.
fn print(secret: &str, out: &mut impl Write) -> anyhow::Result<()> {
    writeln!(out, "{secret}")?;
    writeln!(
        std::io::stderr(),
        "The invitation is valid for 7 days. Open /invitation at the address of your server, and paste it"
    )?;
    Ok(())
}

async fn list(control: &Control, out: &mut impl Write) -> anyhow::Result<()> {
    writeln!(out, "id\temail\tname\tadmin\tpassword\tdisabled")?;
    let mut users = control.users(None, PAGE).await?;
    while let Some(last) = users.last().map(|user| user.email.clone()) {
        for user in &users {
            writeln!(
                out,
                "{}\t{}\t{}\t{}\t{}\t{}",
                user.id,
                user.email,
                user.name,
                user.is_admin,
                user.password_hash.is_some(),
                user.disabled_at.is_some(),
            )?;
        }
        users = control.users(Some(&last), PAGE).await?;
    }
    Ok(())
}
