//! The names of objects by their ids. The audit log stores the name of a changed object, so that the log stays readable
//! after the object is deleted.

use std::collections::{BTreeSet, HashMap};

use serde::Deserialize;
use uuid::Uuid;

use super::Control;
use super::backend::{Row, Values, values};
use super::error::ControlError;

/// The maximum number of names per statement.
const AT_ONCE: usize = 10;

macro_rules! ids {
    () => {
        " WHERE id IN ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"
    };
}

/// Ids are unique across tables, so each id has at most one name.
pub(super) const NAMES: &str = concat!(
    "SELECT id, CASE name WHEN '' THEN email ELSE name END AS name, FALSE AS is_document FROM users",
    ids!(),
    " UNION ALL SELECT id, name, FALSE AS is_document FROM ingest_keys",
    ids!(),
    " UNION ALL SELECT id, name, FALSE AS is_document FROM api_tokens",
    ids!(),
    " UNION ALL SELECT id, algorithm AS name, FALSE AS is_document FROM device_keys",
    ids!(),
    " UNION ALL SELECT id, name, FALSE AS is_document FROM channels",
    ids!(),
    " UNION ALL SELECT id, title AS name, FALSE AS is_document FROM incidents",
    ids!(),
    " UNION ALL SELECT id, reason AS name, FALSE AS is_document FROM mutes",
    ids!(),
    " UNION ALL SELECT id, name, FALSE AS is_document FROM symbol_files",
    ids!(),
    " UNION ALL SELECT id, name, FALSE AS is_document FROM saved_views",
    ids!(),
    // Includes deleted rules, which are kept for the history of their incidents.
    " UNION ALL SELECT id, document AS name, TRUE AS is_document FROM alert_rules",
    ids!(),
);

/// A person's name, or the address if the person has no name. Viewers see these, so addresses are not added to names.
const EDITORS: &str = "
    SELECT CASE name WHEN '' THEN email ELSE name END AS name
    FROM users AS one
    WHERE disabled_at IS NULL
      AND (is_admin OR EXISTS (SELECT 1 FROM memberships WHERE user_id = one.id AND project = $1 AND role <> 'viewer'))
    ORDER BY is_admin, email
    LIMIT $2";

/// The values of [`NAMES`] for at most [`AT_ONCE`] ids.
pub(super) fn values_of<'i>(ids: impl IntoIterator<Item = &'i str>) -> Values {
    let mut values: Values = ids.into_iter().map(Into::into).collect();
    values.resize(AT_ONCE, "".into());
    values
}

/// Reads a row of [`NAMES`].
pub(super) fn read(row: &Row) -> Result<(String, String), ControlError> {
    #[derive(Deserialize)]
    struct Named {
        #[serde(default)]
        name: String,
    }
    let name = if row.get("is_document")? {
        row.json::<Named>("name")?.name
    } else {
        row.get("name")?
    };
    Ok((row.get("id")?, name))
}

impl Control {
    /// Returns the names of the objects that exist. Texts that are not ids are skipped.
    pub async fn names_of<'i>(
        &self,
        ids: impl IntoIterator<Item = &'i str>,
    ) -> Result<HashMap<String, String>, ControlError> {
        let ids = ids.into_iter().filter(|id| id.parse::<Uuid>().is_ok());
        let ids: Vec<&str> = ids.collect::<BTreeSet<_>>().into_iter().collect();
        let mut names = HashMap::new();
        for some in ids.chunks(AT_ONCE) {
            let values = values_of(some.iter().copied());
            names.extend(self.records(NAMES, values, read).await?);
        }
        Ok(names)
    }

    /// Returns the names of people who may change the configuration of a project, members first, at most `limit`.
    pub async fn editors_of(&self, project: &str, limit: u32) -> Result<Vec<String>, ControlError> {
        let name = |row: &Row| row.get("name");
        self.records(EDITORS, values![project, i64::from(limit)], name)
            .await
    }
}
