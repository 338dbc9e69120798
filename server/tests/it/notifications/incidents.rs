//! Incidents as an evaluation saves them, inserted directly into the control database.

use sqlx::{AssertSqlSafe, Connection, PgConnection, SqliteConnection};
use uuid::Uuid;

use crate::server::Server;

/// The control database of a server.
pub(super) struct Database(pub(super) String);

/// A rule of the project `default`.
pub(super) struct Rule {
    database: Database,
    pub(super) id: Uuid,
}

impl Database {
    pub(super) fn of(server: &Server) -> Self {
        Self::in_folder(server.data_dir())
    }

    pub(super) fn in_folder(folder: &std::path::Path) -> Self {
        Self(format!(
            "sqlite:{}",
            folder.join("control.sqlite").display()
        ))
    }

    /// Executes all statements in one transaction.
    pub(super) async fn execute(&self, sql: &str) {
        let sql = AssertSqlSafe(format!("BEGIN; {sql}; COMMIT"));
        if self.0.starts_with("sqlite") {
            let mut connection = SqliteConnection::connect(&self.0).await.unwrap();
            sqlx::raw_sql(sql).execute(&mut connection).await.unwrap();
            connection.close().await.unwrap();
        } else {
            let mut connection = PgConnection::connect(&self.0).await.unwrap();
            sqlx::raw_sql(sql).execute(&mut connection).await.unwrap();
            connection.close().await.unwrap();
        }
    }

    pub(super) async fn rule(self) -> Rule {
        let id = Uuid::now_v7();
        self.execute(&format!(
            "INSERT INTO alert_rules (id, project, revision, document, enabled, created_at, updated_at, updated_by) \
             VALUES ('{id}', 'default', 1, '{{}}', TRUE, 1, 1, 'test')"
        ))
        .await;
        Rule { database: self, id }
    }
}

impl Rule {
    /// Opens an incident per severity, each about its own page. Returns their ids.
    pub(super) async fn fire(&self, severities: &[&str], at: i64) -> Vec<Uuid> {
        let mut ids = Vec::new();
        let mut all = Vec::new();
        for severity in severities {
            let id = Uuid::now_v7();
            all.push(format!(
                "INSERT INTO incidents (id, project, rule, group_key, kind, title, severity, owner, labels, summary, link, evidence, state, \
                 started_at) VALUES ('{id}', 'default', '{}', '{{\"page\":\"{id}\"}}', 'alert', 'Checkout is slow', '{severity}', 'checkout team', \
                 '{{\"alertname\":\"CheckoutSlow\",\"page\":\"{id}\"}}', 'p75 of <checkout> is 480 ms, was 320 ms', \
                 '/spans?name=checkout', '{{}}', 'firing', {at})",
                self.id
            ));
            ids.push(id);
        }
        self.database.execute(&all.join("; ")).await;
        ids
    }

    pub(super) async fn resolve(&self, incidents: &[Uuid], at: i64) {
        let ids: Vec<_> = incidents.iter().map(|id| format!("'{id}'")).collect();
        self.database
            .execute(&format!(
                "UPDATE incidents SET state = 'resolved', resolved_at = {at}, resolved_because = 'recovered' WHERE id IN ({})",
                ids.join(", ")
            ))
            .await;
    }

    pub(super) async fn mute(&self, from: i64, to: i64) {
        self.database
            .execute(&format!(
                "INSERT INTO mutes (id, project, rule, starts_at, ends_at, reason, created_by, created_at) \
                 VALUES ('{}', 'default', '{}', {from}, {to}, 'planned', 'test', {from})",
                Uuid::now_v7(),
                self.id
            ))
            .await;
    }
}
