//! The users with the most traffic in a digest, and their table as CSV. A user may have several installs.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::amount::amount;
use super::{Asking, Digest, number};
use crate::query::{NamedQuery, QueryError};
use crate::spreadsheet::cell;

/// How many users a digest has.
const MOST_USERS: usize = 100;

/// The traffic of one user, over all of the user's installs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct UserTraffic {
    /// The id that the app gave the user, which apps should hash.
    pub user_id: String,
    pub bytes: f64,
    pub requests: f64,
    /// The installs of the user that reported traffic.
    pub installs: f64,
}

/// The traffic of installs whose app named no user.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TrafficWithoutUser {
    pub bytes: f64,
    pub requests: f64,
    pub installs: f64,
}

impl Asking<'_> {
    pub(super) async fn users(
        &self,
    ) -> Result<(Vec<UserTraffic>, Option<TrafficWithoutUser>), QueryError> {
        let ask = NamedQuery {
            order: Some("-bytes".to_owned()),
            // One more, because the rows without a user are one of the groups.
            limit: Some(MOST_USERS as u64 + 1),
            ..self.about(&["user_id"], &["bytes", "requests", "installs"])
        };
        let mut users = Vec::new();
        let mut without = None;
        for row in self.rows("traffic", ask).await? {
            let [bytes, requests, installs] = [0, 1, 2].map(|place| number(&row.now, place));
            let user_id = row.keys.concat();
            if user_id.is_empty() {
                without = Some(TrafficWithoutUser {
                    bytes,
                    requests,
                    installs,
                });
                continue;
            }
            users.push(UserTraffic {
                user_id,
                bytes,
                requests,
                installs,
            });
        }
        users.truncate(MOST_USERS);
        if without.is_none() {
            without = self.without_user().await?;
        }
        Ok((users, without))
    }

    /// Reads the traffic without a user, which may be less than that of the first hundred users.
    async fn without_user(&self) -> Result<Option<TrafficWithoutUser>, QueryError> {
        let ask = NamedQuery {
            filters: vec![("user_id".to_owned(), String::new())],
            ..self.about(&[], &["bytes", "requests", "installs"])
        };
        let rows = self.rows("traffic", ask).await?;
        let row = rows.first().filter(|row| number(&row.now, 2) > 0.0);
        Ok(row.map(|row| TrafficWithoutUser {
            bytes: number(&row.now, 0),
            requests: number(&row.now, 1),
            installs: number(&row.now, 2),
        }))
    }
}

/// Returns the lines of the text: the first users, and the installs without one.
pub(super) fn lines(digest: &Digest, most: usize) -> Vec<String> {
    let users = digest.users.iter().take(most).map(|one| {
        format!(
            "{}: {} in {:.0} requests, on {}",
            one.user_id.replace(char::is_control, " "),
            amount(one.bytes, "bytes"),
            one.requests,
            installs(one.installs)
        )
    });
    let without = digest.without_user.iter().map(|one| {
        format!(
            "without a user: {} in {:.0} requests, on {}",
            amount(one.bytes, "bytes"),
            one.requests,
            installs(one.installs)
        )
    });
    users.chain(without).collect()
}

fn installs(count: f64) -> String {
    let noun = if (count - 1.0).abs() < 0.5 {
        "install"
    } else {
        "installs"
    };
    format!("{count:.0} {noun}")
}

/// Formats the traffic of all users as CSV. The row with an empty user is that of installs without a user.
pub(crate) fn users_csv(digest: &Digest) -> String {
    let mut table = "user_id,bytes,requests,installs\r\n".to_owned();
    for one in &digest.users {
        let _infallible = write!(
            table,
            "{},{:.0},{:.0},{:.0}\r\n",
            cell(&one.user_id),
            one.bytes,
            one.requests,
            one.installs
        );
    }
    if let Some(one) = &digest.without_user {
        let _infallible = write!(
            table,
            ",{:.0},{:.0},{:.0}\r\n",
            one.bytes, one.requests, one.installs
        );
    }
    table
}
