//! Queries what ClickHouse has stored.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use clickhouse::Row;
use serde::Deserialize;
use unjank_database::Claims;
use unjank_foundation::clock::UnixTime;
use uuid::Uuid;

use super::destination::{Destination, Insert, StoredBatch, StoredBatches};
use crate::store::clickhouse::{
    ClickHouse, END_TIMEOUT, EXACTLY_ONCE, Failure, ONE_BLOCK, SEND_TIMEOUT,
};
use crate::store::query_ids::{attempts_at, attempts_of, query_id};
use crate::store::range_number::Number;
use crate::store::raw_tables::{Day, Month, RawTable};
use crate::store::roll_ups::fold::{RollUp, Step};
use crate::store::roll_ups::marks::{MarkColumns, unknown_log};

/// If a view that the operator has added fails, the INSERT still succeeds and ClickHouse logs the failure. unjank has no views on raw tables.
const IGNORE_VIEWS_OF_OTHERS: (&str, &str) = ("materialized_views_ignore_errors", "1");

/// Maximum number of ids in one statement: ClickHouse limits a form field to 128 KiB.
const ASKED_AT_ONCE: usize = 2_000;

impl Destination for ClickHouse {
    type Claims = Claims;

    async fn stored_batches(&self, project: &str, ids: &[Uuid]) -> Result<StoredBatches, Failure> {
        let mut stored = StoredBatches::default();
        for some in ids.chunks(ASKED_AT_ONCE) {
            self.ask_for_batches(project, some, &mut stored).await?;
        }
        Ok(stored)
    }

    async fn insert(&self, insert: Insert<'_>) -> Result<(), Failure> {
        let Insert {
            table,
            mut block,
            token,
            number,
            only,
        } = insert;
        let (database, columns) = (self.database(), block.column_list());
        let mut sql = format!("INSERT INTO `{database}`.`{table}` ({columns})");
        let mut settings = Vec::from([IGNORE_VIEWS_OF_OTHERS]);
        if let Some((raw, days)) = only {
            settings.extend(ONE_BLOCK);
            let days: Vec<String> = days.iter().map(ToString::to_string).collect();
            let structure = block.structure().replace('\\', "\\\\").replace('\'', "\\'");
            let filter = format!("{} IN ({})", raw.period_sql(), days.join(", "));
            sql += &format!(" SELECT {columns} FROM input('{structure}') WHERE {filter}");
        }
        let mut insert = self
            .client()?
            .insert_formatted_with(sql + " FORMAT Native")
            .with_timeouts(Some(SEND_TIMEOUT), Some(END_TIMEOUT))
            .with_setting("insert_deduplication_token", token)
            .with_setting("query_id", query_id(number, "insert"));
        for (setting, value) in EXACTLY_ONCE.into_iter().chain(settings) {
            insert = insert.with_setting(setting, value);
        }
        while let Some(chunk) = block.next_chunk()? {
            insert.send(Bytes::from(chunk)).await?;
        }
        insert.end().await?;
        Ok(())
    }

    async fn periods_of(
        &self,
        table: &RawTable,
        numbers: &[Number],
    ) -> Result<BTreeSet<Day>, Failure> {
        let numbers: Vec<String> = numbers.iter().map(|number| number.sql()).collect();
        let sql = format!(
            "SELECT DISTINCT {} FROM `{}`.`{}` WHERE range_id IN ({})",
            table.period_sql(),
            self.database(),
            table.name,
            numbers.join(", ")
        );
        let days = self.client()?.query_raw(&sql).fetch_all::<Day>().await?;
        Ok(days.into_iter().collect())
    }

    async fn has_records_of(
        &self,
        table: &RawTable,
        range: Number,
        others: &[Number],
    ) -> Result<bool, Failure> {
        let others: Vec<String> = others.iter().map(|number| number.sql()).collect();
        let sql = format!(
            "SELECT count() FROM (SELECT 1 FROM `{}`.`{}` WHERE range_id {} OR has([{}], range_id) LIMIT 1)",
            self.database(),
            table.name,
            range.sql_of_records(),
            others.join(", ")
        );
        Ok(self.client()?.query_raw(&sql).fetch_one::<u64>().await? > 0)
    }

    async fn marks(&self, table: &str, log_id: Uuid) -> Result<BTreeMap<Month, Number>, Failure> {
        let MarkColumns {
            log,
            number,
            time,
            condition,
        } = MarkColumns::for_table(table);
        let sql = format!(
            "SELECT toYYYYMM({time}), max({number}) FROM `{}`.`{table}` \
             WHERE project = '' AND {log} IN ('{log_id}', '{}') AND {condition} GROUP BY 1",
            self.database(),
            unknown_log(Number::log_bits(log_id))
        );
        let marks = self
            .client()?
            .query_raw(&sql)
            .fetch_all::<(Month, u128)>()
            .await?;
        Ok(marks
            .into_iter()
            .map(|(month, number)| (month, Number::from_value(number)))
            .collect())
    }

    async fn ranges_with_own_marks(
        &self,
        log_id: Uuid,
    ) -> Result<BTreeSet<(Month, Number)>, Failure> {
        let sql = format!(
            "SELECT DISTINCT toYYYYMM(hour), source FROM `{}`.outcomes WHERE project = '' AND signal = '{log_id}' AND reason != ''",
            self.database()
        );
        let rows = self
            .client()?
            .query_raw(&sql)
            .fetch_all::<(Month, u128)>()
            .await?;
        let numbers = rows.into_iter();
        Ok(numbers
            .map(|(month, number)| (month, Number::from_value(number)))
            .collect())
    }

    async fn roll_ups(&self) -> Result<Vec<RollUp>, Failure> {
        self.read_roll_ups().await
    }

    async fn folds_after(
        &self,
        table: &RawTable,
        log_id: Uuid,
        after: Number,
    ) -> Result<BTreeSet<Number>, Failure> {
        let sql = format!(
            "SELECT DISTINCT {} FROM `{}`.`{}` WHERE range_id > {} AND {} = {}",
            Number::FOLD_SQL,
            self.database(),
            table.name,
            after.sql(),
            Number::LOG_SQL,
            Number::log_bits(log_id)
        );
        let folds = self.client()?.query_raw(&sql).fetch_all::<u128>().await?;
        Ok(folds.into_iter().map(Number::from_value).collect())
    }

    async fn months_of(&self, table: &RawTable, fold: Number) -> Result<BTreeSet<Month>, Failure> {
        let sql = format!(
            "SELECT DISTINCT toYYYYMM({}) FROM `{}`.`{}` WHERE range_id {}",
            table.time,
            self.database(),
            table.name,
            fold.sql_of_fold()
        );
        let months = self.client()?.query_raw(&sql).fetch_all::<Month>().await?;
        Ok(months.into_iter().collect())
    }

    async fn roll_up(&self, step: &Step<'_>) -> Result<(), Failure> {
        self.run_step(step).await
    }

    async fn has_running_queries(&self, number: Number) -> Result<bool, Failure> {
        let sql =
            "SELECT count() FROM system.processes WHERE startsWith(query_id, {attempts:String})";
        let query = self
            .client()?
            .query_raw(sql)
            .param("attempts", attempts_at(number));
        Ok(query.fetch_one::<u64>().await? > 0)
    }

    async fn kill_queries(&self, log_id: Uuid) -> Result<bool, Failure> {
        let of_log = format!(
            "user = currentUser() AND query_id LIKE '{}'",
            attempts_of(log_id)
        );
        let kill = format!("KILL QUERY WHERE {of_log} ASYNC");
        self.client()?.query_raw(&kill).execute().await?;
        let sql = format!("SELECT count() FROM system.processes WHERE {of_log}");
        let at_work = self.client()?.query_raw(&sql).fetch_one::<u64>().await?;
        Ok(at_work > 0)
    }

    async fn roll_up_old(&self, fold: u64, log_id: Uuid) -> Result<(), Failure> {
        self.roll_up_of_older(fold, log_id).await
    }
}

impl ClickHouse {
    async fn ask_for_batches(
        &self,
        project: &str,
        ids: &[Uuid],
        stored: &mut StoredBatches,
    ) -> Result<(), Failure> {
        // UUIDs consist of hex digits and dashes, so they cannot break out of their quotes.
        let ids: Vec<String> = ids.iter().map(|id| format!("'{id}'")).collect();
        // ClickHouse parses one array literal ten times faster than as many expressions.
        let sql = format!(
            "WITH asked AS (SELECT toUInt128(toUUID(arrayJoin([{1}])))) \
             SELECT batch_id, range_id, toUnixTimestamp64Micro(b.received_at) AS micros, false AS is_cut FROM `{0}`.batches AS b \
             WHERE project = {{project:String}} AND toUInt128(batch_id) IN asked \
             UNION ALL \
             SELECT batch_id, toUInt128(0), toInt64(0), true FROM `{0}`.split_batches \
             WHERE project = {{project:String}} AND toUInt128(batch_id) IN asked",
            self.database(),
            ids.join(", ")
        );
        #[derive(Row, Deserialize)]
        struct Found {
            #[serde(with = "clickhouse::serde::uuid")]
            batch_id: Uuid,
            range_id: u128,
            micros: UnixTime,
            is_cut: bool,
        }
        let query = self.client()?.query_raw(&sql).param("project", project);
        for found in query.fetch_all::<Found>().await? {
            if found.is_cut {
                stored.cut.push(found.batch_id);
            } else {
                stored.whole.push(StoredBatch {
                    batch_id: found.batch_id,
                    number: Number::from_value(found.range_id),
                    received_at: found.micros,
                });
            }
        }
        Ok(())
    }
}
