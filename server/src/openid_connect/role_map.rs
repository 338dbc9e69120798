//! What the values of a claim let a person do, as `--oidc-role` says. Pure.

use std::str::FromStr;

use crate::store::control::{GivenRoles, Role};

/// One line of the mapping: `shop-developers=shop:editor` or `unjank-admins=operator`.
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
        // The last `=`, since names of groups may contain others: `cn=admins,dc=example`.
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
                role: role.parse().map_err(|_| {
                    format!("`{role}` is no role: a role is viewer, editor or admin")
                })?,
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
        "`{text}` maps no role: write `shop-developers=shop:editor` (value of the claim, project, role) or `unjank-admins=operator`"
    )
}

fn project_id(project: &str) -> Result<String, String> {
    if project == "*" {
        return Err("a person has no role in all projects: name each project, or use `operator`, the admin of the installation".to_owned());
    }
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if project.is_empty() || !project.bytes().all(plain) {
        return Err(format!("`{project}` is not the id of a project"));
    }
    Ok(project.to_owned())
}

/// All lines. Of several roles in a project, the highest counts.
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

    /// What a person with these values of the claim may do.
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
    fn the_highest_role_in_a_project_counts_and_other_values_give_nothing() {
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
    fn values_may_contain_what_separates_them() {
        let lines = ["cn=devs,dc=example=shop:editor", "team:a = shop:viewer"];
        let roles = given(&lines, &["cn=devs,dc=example"]);
        assert_eq!(roles.projects["shop"], Role::Editor);
        let roles = given(&lines, &["team:a"]);
        assert_eq!(roles.projects["shop"], Role::Viewer);
    }

    #[test]
    fn a_wrong_line_says_what_is_wrong() {
        for (line, reason) in [
            ("devs", "maps no role"),
            ("=shop:viewer", "maps no role"),
            ("devs=shop", "maps no role"),
            ("devs=shop:owner", "`owner` is no role"),
            ("devs=*:viewer", "no role in all projects"),
            ("devs=My Shop:viewer", "not the id of a project"),
        ] {
            let refused = line.parse::<RoleMapping>().unwrap_err();
            assert!(refused.contains(reason), "{refused}");
        }
    }
}
