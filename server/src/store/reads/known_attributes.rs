//! The attributes that stored events have.

use clickhouse::Row;
use serde::Deserialize;

use super::attributes::LONGEST;
use super::parts::Part;
use super::reading::{Grain, Reading};
use super::statement::Statement;
use crate::store::clickhouse::{ClickHouse, Failure};

/// An attribute of stored events.
#[derive(Clone, Debug, PartialEq, Eq, Row, Deserialize)]
pub struct KnownAttribute {
    pub attribute: String,
    /// The number of raw rows that have it.
    pub recorded: u64,
}

impl ClickHouse {
    /// Returns the attributes of the raw rows that a reading selects, without its base. The attributes of the most rows are first. Omits names
    /// that cannot be queried.
    pub async fn known_attributes(
        &self,
        reading: &Reading,
        limit: u64,
    ) -> Result<Vec<KnownAttribute>, Failure> {
        let reading = Reading {
            base: None,
            grain: Grain::Raw,
            ..reading.clone()
        };
        let mut statement = Statement::default();
        let rows = reading.rows(&Part::whole(&reading), self.database(), &mut statement);
        let from = reading.from(self.database());
        statement.sql = format!(
            "SELECT toString(arrayJoin(mapKeys(s.attributes))) AS attribute, count() AS recorded FROM {from} WHERE {rows} \
             GROUP BY attribute HAVING match(attribute, '^[A-Za-z0-9_.-]{{1,{LONGEST}}}$') \
             ORDER BY recorded DESC, attribute LIMIT {limit}"
        );
        Ok(self.read::<KnownAttribute>(statement).await?.0)
    }
}
