//! A control database for one test.

use sqlx::{AssertSqlSafe, Connection, PgConnection, SqliteConnection};
use unjank_database::Control;
use unjank_foundation::task::Tasks;

use crate::postgres::postgres;

pub(crate) struct Place {
    pub(crate) control: Control,
    pub(crate) url: String,
    tasks: Tasks,
    _folder: Option<tempfile::TempDir>,
}

impl Place {
    pub(crate) async fn sqlite() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", folder.path().join("data/control.db").display());
        Self::open(url, Some(folder)).await
    }

    pub(crate) async fn postgres() -> Self {
        let server = tokio::task::spawn_blocking(postgres).await.unwrap();
        Self::open(server.database().await, None).await
    }

    async fn open(url: String, folder: Option<tempfile::TempDir>) -> Self {
        let tasks = Tasks::default();
        Self {
            control: Control::open(&url, &tasks).await.unwrap(),
            url,
            tasks,
            _folder: folder,
        }
    }

    /// A second handle, as another server would have it.
    pub(crate) async fn another(&self) -> Control {
        Control::open(&self.url, &self.tasks).await.unwrap()
    }

    /// The URL of a new database that no server has opened yet.
    pub(crate) async fn fresh_url(&self) -> String {
        if self.url.starts_with("sqlite") {
            format!("{}-fresh", self.url)
        } else {
            postgres().database().await
        }
    }

    /// Runs SQL directly, without the store.
    pub(crate) async fn execute(&self, sql: &str) {
        let sql = AssertSqlSafe(sql.to_owned());
        if self.url.starts_with("sqlite") {
            let mut connection = SqliteConnection::connect(&self.url).await.unwrap();
            sqlx::query(sql).execute(&mut connection).await.unwrap();
            connection.close().await.unwrap();
        } else {
            let mut connection = PgConnection::connect(&self.url).await.unwrap();
            sqlx::query(sql).execute(&mut connection).await.unwrap();
            connection.close().await.unwrap();
        }
    }
}
