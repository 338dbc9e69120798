//! Federated identities: accounts at an identity provider, and the users they belong to.
//!
//! A login with the provider is one transaction: it finds, links or creates the user and sets the roles that the
//! provider assigns.

use std::collections::BTreeMap;

use serde_json::json;
use unjank_foundation::clock::UnixTime;
use uuid::Uuid;

use super::Control;
use super::audit::{Action, Actor};
use super::backend::{Row, values};
use super::change::{Change, Entry};
use super::checks;
use super::error::ControlError;
use super::invitations::END_INVITATIONS;
use super::memberships::{self, Membership};
use super::role::Role;
use super::sessions::REVOKE_ALL_OF_USER;
use super::users::{self, NewUser, User};

/// The maximum length of a subject according to OpenID Connect.
const LONGEST_SUBJECT: usize = 255;

/// A person authenticated by the identity provider.
#[derive(Clone, Debug)]
pub struct FederatedLogin {
    pub issuer: String,
    /// The account's id at the issuer. It never changes.
    pub subject: String,
    pub email: ProviderEmail,
    /// The name for a new user.
    pub name: String,
    /// `None`: the provider does not manage roles.
    pub roles: Option<GivenRoles>,
    /// Whether to create accounts for unknown people.
    pub creates_people: bool,
}

/// The e-mail address from the provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProviderEmail {
    Missing,
    Unverified,
    Verified(String),
}

/// All roles that the provider assigns to a person.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GivenRoles {
    /// Admin of the whole installation.
    pub operator: bool,
    pub projects: BTreeMap<String, Role>,
}

impl GivenRoles {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.operator && self.projects.is_empty()
    }
}

/// The outcome of a login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    Admitted(User),
    Refused(Refusal),
}

/// Why a person authenticated by the provider is not admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    NoEmail,
    UnverifiedEmail,
    /// The user with this e-mail address is linked to another account at the same provider.
    LinkedElsewhere,
    NoAccount,
    NoRole,
    Disabled,
}

const BY_SUBJECT: &str =
    "SELECT user_id FROM federated_identities WHERE issuer = $1 AND subject = $2";
const OF_USER: &str = "SELECT issuer, subject FROM federated_identities WHERE user_id = $1";
/// A page of users, in the order of [`Control::users`].
const LINKED: &str = "
    SELECT id
    FROM users
    WHERE email > $1
      AND EXISTS (SELECT 1 FROM federated_identities WHERE user_id = users.id)
    ORDER BY email
    LIMIT $2";
const LINK: &str = "
    INSERT INTO federated_identities (issuer, subject, user_id, created_at)
    VALUES ($1, $2, $3, $4)";
const UNLINK: &str = "DELETE FROM federated_identities WHERE user_id = $1";
/// Only locks the rows, so that two concurrent logins cannot demote the last two operators.
const LOCK_OPERATORS: &str = "
    UPDATE users
    SET is_admin = is_admin
    WHERE is_admin
      OR id = $1
    RETURNING id, email, name, password_hash, is_admin, created_at, disabled_at";
const SET_OPERATOR: &str = "UPDATE users SET is_admin = $2 WHERE id = $1";
/// A no-op if the project does not exist.
const SET_ROLE: &str = "
    INSERT INTO memberships (user_id, project, role)
    SELECT $1, id, $3
    FROM projects
    WHERE id = $2
    ON CONFLICT (user_id, project) DO UPDATE SET role = excluded.role";

impl Control {
    /// Admits a person authenticated by the identity provider. The user is identified by the linked account, or else by
    /// the verified e-mail address. Roles from the provider replace all of the user's roles.
    pub async fn admit(
        &self,
        login: &FederatedLogin,
        actor: &Actor,
        at: UnixTime,
    ) -> Result<Admission, ControlError> {
        check_subject(&login.subject)?;
        let mut change = Change::begin(self, actor, at).await?;
        let user = match change.identify(login).await? {
            Admission::Admitted(user) => user,
            refused @ Admission::Refused(_) => return Ok(refused),
        };
        let Some(roles) = &login.roles else {
            change.commit_recorded().await?;
            return Ok(Admission::Admitted(user));
        };
        let user = change.set_roles(user, roles).await?;
        let keeps_access = match user.is_admin {
            true => true,
            false => !change.memberships_of(user.id).await?.is_empty(),
        };
        if !keeps_access {
            change.end_sessions_of(user.id).await?;
        }
        change.commit_recorded().await?;
        Ok(if keeps_access {
            Admission::Admitted(user)
        } else {
            Admission::Refused(Refusal::NoRole)
        })
    }

    /// Returns the providers at which the user has accounts.
    pub async fn issuers_of(&self, user: Uuid) -> Result<Vec<String>, ControlError> {
        self.records(OF_USER, values![user], |row| row.get("issuer"))
            .await
    }

    /// Returns the users with an account at a provider, among those on the same page of [`Control::users`].
    pub async fn linked_users(
        &self,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<Uuid>, ControlError> {
        let values = values![after.unwrap_or_default(), checks::page(limit)];
        self.records(LINKED, values, |row| row.id("id")).await
    }

    /// Unlinks all accounts of a user at identity providers, and ends the user's sessions. The next login links the
    /// account with the user's e-mail address.
    pub async fn unlink_identities(
        &self,
        user: Uuid,
        actor: &Actor,
        at: UnixTime,
    ) -> Result<(), ControlError> {
        let mut change = Change::begin(self, actor, at).await?;
        change.execute_found(UNLINK, values![user]).await?;
        change
            .execute(REVOKE_ALL_OF_USER, values![user, at])
            .await?;
        let subject = user.to_string();
        change
            .commit(Entry::of_installation(
                Action::IdentityUnlinked,
                &subject,
                json!({}),
            ))
            .await
    }
}

fn check_subject(subject: &str) -> Result<(), ControlError> {
    let fits =
        (1..=LONGEST_SUBJECT).contains(&subject.len()) && !subject.contains(char::is_control);
    if fits {
        Ok(())
    } else {
        Err(checks::invalid("a subject must have 1 to 255 bytes"))
    }
}

impl Change<'_> {
    /// Returns the user of a login: already linked, now linked by e-mail address, or created.
    async fn identify(&mut self, login: &FederatedLogin) -> Result<Admission, ControlError> {
        let values = values![login.issuer.as_str(), login.subject.as_str()];
        if let Some(linked) = self.row(BY_SUBJECT, values).await? {
            let found = self.row(users::GET, values![linked.id("user_id")?]).await?;
            let user = User::read(&found.ok_or(ControlError::NotFound)?)?;
            return Ok(unless_disabled(user));
        }
        let email = match &login.email {
            ProviderEmail::Missing => return Ok(Admission::Refused(Refusal::NoEmail)),
            ProviderEmail::Unverified => return Ok(Admission::Refused(Refusal::UnverifiedEmail)),
            ProviderEmail::Verified(email) => email,
        };
        let Ok(email) = checks::email(email) else {
            return Ok(Admission::Refused(Refusal::NoEmail));
        };
        let user = match self.row(users::BY_EMAIL, values![email.as_str()]).await? {
            Some(found) => User::read(&found)?,
            None if !login.creates_people => {
                return Ok(Admission::Refused(Refusal::NoAccount));
            }
            None if login.roles.as_ref().is_some_and(GivenRoles::is_empty) => {
                return Ok(Admission::Refused(Refusal::NoRole));
            }
            None => {
                let new = NewUser {
                    email,
                    name: login.name.clone(),
                    password_hash: None,
                    is_admin: false,
                };
                self.add_user(new).await?
            }
        };
        if user.disabled_at.is_some() {
            return Ok(Admission::Refused(Refusal::Disabled));
        }
        for linked in self.rows(OF_USER, values![user.id]).await? {
            if linked.get::<String>("issuer")? != login.issuer {
                continue;
            }
            // A concurrent login of the same account may have just linked it.
            return Ok(match linked.get::<String>("subject")? == login.subject {
                true => Admission::Admitted(user),
                false => Admission::Refused(Refusal::LinkedElsewhere),
            });
        }
        self.link(&user, login).await?;
        Ok(Admission::Admitted(user))
    }

    /// Links an account to a user. Ends the user's open invitations, which are no longer needed.
    async fn link(&mut self, user: &User, login: &FederatedLogin) -> Result<(), ControlError> {
        let at = self.at();
        let (issuer, account) = (login.issuer.as_str(), login.subject.as_str());
        self.execute(LINK, values![issuer, account, user.id, at])
            .await?;
        self.execute(END_INVITATIONS, values![user.id, at]).await?;
        let detail = json!({"issuer": issuer, "subject": account});
        let subject = user.id.to_string();
        self.record(Entry::of_installation(
            Action::IdentityLinked,
            &subject,
            detail,
        ))
        .await
    }

    /// Replaces the roles of a user. The last operator with a password stays one, so that a wrong mapping cannot lock
    /// everyone out of the installation. Tokens are revoked together with the rights they were created with.
    async fn set_roles(&mut self, user: User, given: &GivenRoles) -> Result<User, ControlError> {
        let locked = self.rows(LOCK_OPERATORS, values![user.id]).await?;
        let locked: Vec<User> = locked.iter().map(User::read).collect::<Result<_, _>>()?;
        let (own, others): (Vec<User>, Vec<User>) =
            locked.into_iter().partition(|one| one.id == user.id);
        let mut user = own.into_iter().next().ok_or(ControlError::NotFound)?;
        let has_password =
            |one: &User| one.is_admin && one.disabled_at.is_none() && one.password_hash.is_some();
        let is_last = has_password(&user) && !others.iter().any(has_password);
        let operator = given.operator || is_last;
        if is_last && !given.operator {
            tracing::warn!(
                "the identity provider does not assign the operator role to the last operator with a password; unjank keeps the role"
            );
        }
        if operator != user.is_admin {
            self.execute(SET_OPERATOR, values![user.id, operator])
                .await?;
            // A former operator may have created tokens for any project.
            let revoked = match operator {
                true => 0,
                false => self.revoke_tokens_of(&Actor::user(user.id), None).await?,
            };
            let detail = json!({"is_admin": operator, "tokens_revoked": revoked});
            let subject = user.id.to_string();
            self.record(Entry::of_installation(
                Action::OperatorSet,
                &subject,
                detail,
            ))
            .await?;
            user.is_admin = operator;
        }
        self.set_memberships(&user, &given.projects).await?;
        Ok(user)
    }

    async fn set_memberships(
        &mut self,
        user: &User,
        given: &BTreeMap<String, Role>,
    ) -> Result<(), ControlError> {
        let present = self.memberships_of(user.id).await?;
        for one in present
            .iter()
            .filter(|one| !given.contains_key(&one.project))
        {
            let project = one.project.as_str();
            let values = values![user.id, project];
            self.execute(memberships::REMOVE, values).await?;
            let revoked = self.revoke_tokens_in(user, project).await?;
            let detail = json!({"tokens_revoked": revoked});
            self.record_membership(Action::MembershipRemoved, one, detail)
                .await?;
        }
        for (project, role) in given {
            let wanted = Membership {
                user: user.id,
                project: project.clone(),
                role: *role,
            };
            if !present.contains(&wanted) {
                self.set_membership_of(user, &wanted).await?;
            }
        }
        Ok(())
    }

    async fn set_membership_of(
        &mut self,
        user: &User,
        wanted: &Membership,
    ) -> Result<(), ControlError> {
        let project = wanted.project.as_str();
        let values = values![user.id, project, wanted.role.as_str()];
        if self.execute(SET_ROLE, values).await? == 0 {
            tracing::warn!(
                project,
                "--oidc-role names a project that does not exist; its role is ignored"
            );
            return Ok(());
        }
        let revoked = match wanted.role {
            Role::Admin => 0,
            _ => self.revoke_tokens_in(user, project).await?,
        };
        let detail = json!({"role": wanted.role.as_str(), "tokens_revoked": revoked});
        self.record_membership(Action::MembershipSet, wanted, detail)
            .await
    }

    /// Revokes the user's tokens for a project, unless the user is an operator, whose tokens depend on no project role.
    async fn revoke_tokens_in(&mut self, user: &User, project: &str) -> Result<u64, ControlError> {
        if user.is_admin {
            return Ok(0);
        }
        self.revoke_tokens_of(&Actor::user(user.id), Some(project))
            .await
    }

    async fn record_membership(
        &mut self,
        action: Action,
        membership: &Membership,
        detail: serde_json::Value,
    ) -> Result<(), ControlError> {
        self.record(Entry {
            action,
            project: Some(&membership.project),
            subject: &membership.user.to_string(),
            detail,
        })
        .await
    }

    async fn memberships_of(&mut self, user: Uuid) -> Result<Vec<Membership>, ControlError> {
        let rows: Vec<Row> = self.rows(memberships::OF_USER, values![user]).await?;
        rows.iter().map(Membership::read).collect()
    }

    async fn end_sessions_of(&mut self, user: Uuid) -> Result<(), ControlError> {
        let at = self.at();
        if self.execute(REVOKE_ALL_OF_USER, values![user, at]).await? == 0 {
            return Ok(());
        }
        let subject = user.to_string();
        self.record(Entry::of_installation(
            Action::SessionsOfUserRevoked,
            &subject,
            json!({}),
        ))
        .await
    }
}

fn unless_disabled(user: User) -> Admission {
    match user.disabled_at {
        None => Admission::Admitted(user),
        Some(_) => Admission::Refused(Refusal::Disabled),
    }
}
