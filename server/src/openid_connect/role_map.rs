//! Maps the values of a claim to roles, as configured by `--oidc-role`. Pure.

use std::str::FromStr;

use unjank_database::{GivenRoles, Role};

/// An entry of the mapping: `shop-developers=shop:editor` or `unjank-admins=operator`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoleMapping {
    value: String,
    right: Right,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Right {
    /// Admin of the whole installation.
    Operator,
    Role {
        project: String,
        role: Role,
    },
}

impl FromStr for RoleMapping {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // Splits at the last `=`, because group names may contain others: `cn=admins,dc=example`.
        let (value, right) = text.rsplit_once('=').ok_or_else(|| fault(text))?;
        let (value, right) = (value.trim(), right.trim());
        if value.is_empty() {
            return Err(fault(text));
        }
        let right = if right == "operator" {
            Right::Operator
        } else {
            let (project, role) = right.rsplit_once(':').ok_or_else(|| fault(text))?;
            Right::Role {
                project: project_id(project)?,
                role: role
                    .parse()
                    .map_err(|_| format!("`{role}` is not a role; use viewer, editor or admin"))?,
            }
        };
        Ok(Self {
            value: value.to_owned(),
            right,
        })
    }
}

fn fault(text: &str) -> String {
    format!(
        "`{text}` is not a role mapping; write `shop-developers=shop:editor` (claim value, project, role) or `unjank-admins=operator`"
    )
}

fn project_id(project: &str) -> Result<String, String> {
    if project == "*" {
        return Err("a role cannot apply to all projects; name each project, or use `operator`, the admin of the installation".to_owned());
    }
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if project.is_empty() || !project.bytes().all(plain) {
        return Err(format!("`{project}` is not a valid project id"));
    }
    Ok(project.to_owned())
}

/// All entries. Of several roles in a project, the highest one applies.
#[derive(Clone, Debug, Default)]
pub struct RoleMap(Vec<RoleMapping>);

impl RoleMap {
    #[must_use]
    pub fn new(lines: Vec<RoleMapping>) -> Self {
        Self(lines)
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the roles of a person with these claim values.
    #[must_use]
    pub fn given(&self, values: &[String]) -> GivenRoles {
        let mut given = GivenRoles::default();
        for line in self.0.iter().filter(|line| values.contains(&line.value)) {
            match &line.right {
                Right::Operator => given.operator = true,
                Right::Role { project, role } => {
                    let best = given.projects.entry(project.clone()).or_insert(*role);
                    *best = (*best).max(*role);
                }
            }
        }
        given
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(lines: &[&str], values: &[&str]) -> GivenRoles {
        let lines = lines.iter().map(|line| line.parse().unwrap()).collect();
        let values: Vec<String> = values.iter().map(|value| (*value).to_owned()).collect();
        RoleMap::new(lines).given(&values)
    }

    #[test]
    fn the_highest_role_in_a_project_applies_and_unknown_values_grant_nothing() {
        let lines = [
            "devs=shop:viewer",
            "leads=shop:admin",
            "devs=app:editor",
            "ops=operator",
        ];
        let both = given(&lines, &["leads", "devs", "unknown"]);
        let projects: Vec<_> = both.projects.into_iter().collect();
        assert_eq!(
            projects,
            [
                ("app".to_owned(), Role::Editor),
                ("shop".to_owned(), Role::Admin)
            ]
        );
        assert!(!both.operator);
        assert!(given(&lines, &["ops"]).operator);
        assert!(given(&lines, &["Devs", "dev"]).is_empty());
    }

    #[test]
    fn values_may_contain_separators() {
        let lines = ["cn=devs,dc=example=shop:editor", "team:a = shop:viewer"];
        let roles = given(&lines, &["cn=devs,dc=example"]);
        assert_eq!(roles.projects["shop"], Role::Editor);
        let roles = given(&lines, &["team:a"]);
        assert_eq!(roles.projects["shop"], Role::Viewer);
    }

    #[test]
    fn an_invalid_entry_is_rejected_with_a_reason() {
        for (line, reason) in [
            ("devs", "is not a role mapping"),
            ("=shop:viewer", "is not a role mapping"),
            ("devs=shop", "is not a role mapping"),
            ("devs=shop:owner", "`owner` is not a role"),
            ("devs=*:viewer", "cannot apply to all projects"),
            ("devs=My Shop:viewer", "not a valid project id"),
        ] {
            let refused = line.parse::<RoleMapping>().unwrap_err();
            assert!(refused.contains(reason), "{refused}");
        }
    }
}
