//! Settings of logins with OpenID Connect: the identity provider, and the permissions that it controls.

use anyhow::{Context, bail, ensure};
use clap::Args;
use reqwest::Url;
use unjank_foundation::clock::HOUR;
use unjank_foundation::secret::Secret;

use super::Switch;
use crate::openid_connect::{ProviderSettings, RoleMap, RoleMapping, is_safe};

/// A part of the settings of `unjank serve`.
#[derive(Args, Clone, Debug)]
pub struct Oidc {
    /// The issuer of the identity provider, exactly as the provider writes it: <https://sso.example.com/realms/main>. Requires
    /// `--public-url`; register `<public URL>/api/v1/session/oidc/callback` at the provider. Unset: users log in with passwords
    /// only.
    #[arg(long, env = "UNJANK_OIDC_ISSUER", value_name = "URL")]
    pub oidc_issuer: Option<String>,

    /// The client id that is registered for this server at the identity provider.
    #[arg(long, env = "UNJANK_OIDC_CLIENT_ID", value_name = "ID")]
    pub oidc_client_id: Option<String>,

    /// The secret of the client. Unset: a public client.
    #[arg(
        long,
        env = "UNJANK_OIDC_CLIENT_SECRET",
        value_name = "SECRET",
        hide_env_values = true
    )]
    pub oidc_client_secret: Option<Secret>,

    /// The name of the provider on the login page: "Continue with …".
    #[arg(long, env = "UNJANK_OIDC_NAME", value_name = "NAME", default_value = "single sign-on", value_parser = label)]
    pub oidc_name: String,

    /// The scopes to request from the provider, separated by spaces.
    #[arg(
        long,
        env = "UNJANK_OIDC_SCOPES",
        value_name = "SCOPES",
        default_value = "openid email profile"
    )]
    pub oidc_scopes: String,

    /// The claim that maps to roles: a text or a list of texts, in the ID token or otherwise in the user info.
    #[arg(
        long,
        env = "UNJANK_OIDC_ROLES_CLAIM",
        value_name = "CLAIM",
        default_value = "groups"
    )]
    pub oidc_roles_claim: String,

    /// The role for a value of the claim: `shop-developers=shop:editor`, or `unjank-admins=operator` for an admin of the installation.
    /// Repeatable; in the environment and in files, separate several with `;`. With at least one mapping, each login replaces the user's roles
    /// with the roles of the claim. Unset: roles are assigned in unjank.
    #[arg(
        long = "oidc-role",
        env = "UNJANK_OIDC_ROLE",
        value_name = "VALUE=PROJECT:ROLE",
        value_delimiter = ';'
    )]
    pub oidc_role: Vec<RoleMapping>,

    /// Whether the first login of an unknown person creates an account. Unset: on if roles are mapped, for people with a role;
    /// otherwise off, so that people must be invited first.
    #[arg(
        long,
        env = "UNJANK_OIDC_CREATE_PEOPLE",
        value_name = "ON|OFF",
        value_enum,
        ignore_case = true
    )]
    pub oidc_create_people: Option<Switch>,

    /// The maximum duration of a login through the provider, in hours. After it, the user must log in through the provider again,
    /// which ends revoked roles.
    #[arg(long, env = "UNJANK_OIDC_SESSION_HOURS", value_name = "HOURS", default_value_t = 24, value_parser = clap::value_parser!(u32).range(1..=8_760))]
    pub oidc_session_hours: u32,
}

impl Oidc {
    /// Returns the provider if one is configured.
    ///
    /// # Errors
    /// Returns an error that names the missing or invalid setting.
    pub fn provider(&self, public_url: Option<&str>) -> anyhow::Result<Option<ProviderSettings>> {
        let Some(issuer) = self.oidc_issuer.as_deref().filter(|url| !url.is_empty()) else {
            ensure!(
                self.oidc_client_id.is_none() && self.oidc_role.is_empty(),
                "--oidc-client-id and --oidc-role need --oidc-issuer, the URL of the identity provider"
            );
            return Ok(None);
        };
        let client_id = self.oidc_client_id.as_deref().filter(|id| !id.is_empty());
        let client_id = client_id.context(
            "--oidc-issuer needs --oidc-client-id, the client that is registered for this server at the identity provider",
        )?;
        check_issuer(issuer)?;
        let roles = RoleMap::new(self.oidc_role.clone());
        let creates_people = match self.oidc_create_people {
            Some(switch) => switch == Switch::On,
            None => !roles.is_empty(),
        };
        let scopes = self.oidc_scopes.split_whitespace().map(str::to_owned);
        let secret = self.oidc_client_secret.clone();
        Ok(Some(ProviderSettings {
            issuer: issuer.to_owned(),
            client_id: client_id.to_owned(),
            client_secret: secret.filter(|secret| !secret.reveal().is_empty()),
            name: self.oidc_name.clone(),
            scopes: scopes.collect(),
            roles_claim: self.oidc_roles_claim.clone(),
            roles,
            creates_people,
            session_life: HOUR * self.oidc_session_hours,
            public_url: public(public_url)?,
        }))
    }
}

fn check_issuer(issuer: &str) -> anyhow::Result<()> {
    let url: Url = issuer
        .parse()
        .with_context(|| format!("--oidc-issuer {issuer} is not a URL"))?;
    ensure!(
        is_safe(&url),
        "--oidc-issuer {issuer} must begin with https://. Only a provider on this machine may use http://"
    );
    ensure!(
        url.query().is_none() && url.fragment().is_none() && url.username().is_empty(),
        "--oidc-issuer {issuer} must not have a user name, a query or a fragment: copy `issuer` from the provider's \
         .well-known/openid-configuration"
    );
    Ok(())
}

fn public(url: Option<&str>) -> anyhow::Result<Url> {
    let Some(text) = url else {
        bail!(
            "--oidc-issuer needs --public-url, the URL of unjank in the browser: the identity provider redirects to it"
        );
    };
    let url: Url = text
        .parse()
        .with_context(|| format!("--public-url {text} is not a URL"))?;
    ensure!(
        is_safe(&url),
        "--public-url {text} must begin with https:// for logins with --oidc-issuer: browsers keep the cookies of a session only \
         over TLS, or on the same machine"
    );
    ensure!(
        url.path() == "/" && url.query().is_none() && url.fragment().is_none(),
        "--public-url {text} must have no path for logins with --oidc-issuer"
    );
    Ok(url)
}

fn label(name: &str) -> Result<String, String> {
    let name = name.trim();
    if name.is_empty() || name.chars().count() > 60 || name.contains(char::is_control) {
        return Err("the name must have 1 to 60 characters".to_owned());
    }
    Ok(name.to_owned())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        oidc: Oidc,
    }

    const ISSUER: &str = "https://sso.example.com/realms/main";

    fn provider(
        arguments: &[&str],
        public_url: Option<&str>,
    ) -> anyhow::Result<Option<ProviderSettings>> {
        let line = Line::try_parse_from(["unjank"].iter().chain(arguments))?;
        line.oidc.provider(public_url)
    }

    fn complete(more: &[&str]) -> ProviderSettings {
        let mut arguments = vec!["--oidc-issuer", ISSUER, "--oidc-client-id", "unjank"];
        arguments.extend(more);
        let public_url = Some("https://unjank.example.com");
        provider(&arguments, public_url).unwrap().unwrap()
    }

    #[test]
    fn unknown_people_get_accounts_if_roles_are_mapped_or_the_setting_is_on() {
        assert!(!complete(&[]).creates_people);
        for on in ["on", "ON", "true", "yes", "1"] {
            assert!(complete(&["--oidc-create-people", on]).creates_people);
        }
        let mapped = ["--oidc-role", "a=operator;b=shop:viewer"];
        let settings = complete(&mapped);
        assert!(settings.creates_people);
        let given = settings.roles.given(&["b".to_owned()]);
        assert!(!given.operator && given.projects.len() == 1);
        for off in ["off", "Off", "false", "no", "0"] {
            let mapped = [&mapped[..], &["--oidc-create-people", off]].concat();
            assert!(!complete(&mapped).creates_people);
        }
    }

    #[test]
    fn errors_in_settings_name_the_fix() {
        let own = Some("https://unjank.example.com");
        let client = ["--oidc-client-id", "unjank"];
        for (issuer, public_url, reason) in [
            (ISSUER, None, "needs --public-url"),
            (
                ISSUER,
                Some("http://unjank.example.com"),
                "must begin with https://",
            ),
            (
                ISSUER,
                Some("https://example.com/unjank"),
                "must have no path",
            ),
            ("http://sso.example.com", own, "must begin with https://"),
            ("sso.example.com", own, "is not a URL"),
            ("https://sso.example.com?a=b", own, "must not have"),
        ] {
            let arguments = [&["--oidc-issuer", issuer], &client[..]].concat();
            let refused = provider(&arguments, public_url).unwrap_err().to_string();
            assert!(refused.contains(reason), "{refused}");
        }
        let refused = provider(&client, own).unwrap_err().to_string();
        assert!(refused.contains("need --oidc-issuer"), "{refused}");
        let refused = provider(&["--oidc-issuer", ISSUER], own).unwrap_err();
        assert!(refused.to_string().contains("needs --oidc-client-id"));
        assert!(provider(&[], None).unwrap().is_none());
    }

    #[test]
    fn a_provider_on_this_machine_may_use_http() {
        let arguments = [
            "--oidc-issuer",
            "http://127.0.0.1:9",
            "--oidc-client-id",
            "x",
        ];
        assert!(provider(&arguments, Some("http://127.0.0.1:8080")).is_ok());
    }
}
