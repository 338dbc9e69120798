//! The schema on the hosts of a cluster, with real ClickHouse processes as shards.

use std::process::Output;

use crate::cluster_hosts::{CLUSTER, ClusterHost, ClusterHosts};
use crate::engine::UNJANK;

async fn unjank(line: &[&str], flags: Vec<String>) -> Output {
    tokio::process::Command::new(UNJANK)
        .args(line)
        .args(flags)
        .args(["--log", "error"])
        .output()
        .await
        .unwrap()
}

/// Runs a command on the cluster. Returns whether it succeeded, and the state of each host.
async fn states(line: &[&str], flags: Vec<String>) -> (bool, Vec<String>) {
    let output = unjank(line, flags).await;
    let text = String::from_utf8(output.stdout).unwrap();
    let states: Vec<String> = text
        .lines()
        .map(|line| line.rsplit_once('\t').unwrap().1.to_owned())
        .collect();
    (output.status.success(), states)
}

async fn check(cluster: &ClusterHosts) -> (bool, Vec<String>) {
    states(&["cluster", "check"], cluster.flags()).await
}

async fn migrate(cluster: &ClusterHosts) -> (bool, Vec<String>) {
    states(&["migrate"], cluster.flags()).await
}

/// Returns the error of a command that must fail.
async fn refusal(line: &[&str], flags: Vec<String>) -> String {
    let output = unjank(line, flags).await;
    assert!(!output.status.success());
    String::from_utf8(output.stderr).unwrap()
}

/// Makes a host forget its latest migration, as if it had been away when the others got it. Returns the migration.
async fn forget_latest(host: &ClusterHost) -> String {
    let sql = "SELECT max(name) FROM unjank.schema_migrations WHERE name != 'baseline'";
    let latest = host.query(sql).await;
    let sql = format!(
        "ALTER TABLE unjank.schema_migrations DELETE WHERE name = '{latest}' SETTINGS mutations_sync = 1"
    );
    host.query(&sql).await;
    latest
}

const IS_CURRENT: &str = "is current";

#[tokio::test(flavor = "multi_thread")]
async fn hosts_are_migrated_one_by_one_and_those_behind_are_named() {
    let mut cluster = ClusterHosts::start(2).await;
    let (is_current, states) = check(&cluster).await;
    assert!(!is_current);
    assert_eq!(states.len(), 2);
    for state in &states {
        assert!(
            state.starts_with("is behind: it lacks 0001_signals, "),
            "{state}"
        );
        assert!(state.ends_with(", the tables for reading"), "{state}");
    }
    let databases = "SELECT count() FROM system.databases WHERE startsWith(name, 'unjank')";
    assert_eq!(
        cluster.hosts[0].query(databases).await,
        "0",
        "a check changes nothing"
    );

    let all_current = (true, vec![IS_CURRENT.to_owned(); 2]);
    assert_eq!(migrate(&cluster).await, all_current);
    assert_eq!(check(&cluster).await, all_current);
    assert_eq!(migrate(&cluster).await, all_current, "a second time");

    // One host is away while the other one is migrated.
    let latest = forget_latest(&cluster.hosts[0]).await;
    assert_eq!(forget_latest(&cluster.hosts[1]).await, latest);
    cluster.hosts[1].kill();
    let (is_current, states) = migrate(&cluster).await;
    assert!(!is_current);
    assert_eq!(states[0], IS_CURRENT);
    assert!(
        states[1].starts_with("cannot be checked: "),
        "{}",
        states[1]
    );
    cluster.hosts[1].start().await;
    let behind = format!("is behind: it lacks {latest}");
    let behind = vec![IS_CURRENT.to_owned(), behind];
    assert_eq!(check(&cluster).await, (false, behind));
    assert_eq!(migrate(&cluster).await, all_current);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_host_reads_the_rows_of_all_shards() {
    let cluster = ClusterHosts::start(2).await;
    assert!(migrate(&cluster).await.0);
    for (host, count) in cluster.hosts.iter().zip([3, 5]) {
        host.query(&format!(
            "INSERT INTO unjank.janks_daily (project, stack_hash, kind, day, count, installs) \
             SELECT 'default', 7, 'jank', '2026-11-20', 1, arrayReduce('uniqCombined64State(12)', [toUUID('00000000-0000-0000-0000-00000000000' || toString(number))]) \
             FROM numbers({count})"
        ))
        .await;
    }
    let class = "INSERT INTO unjank.stack_classes (project, stack_hash, rules_version, group_id, title) VALUES ('default', 7, 1, 9, 'Slow list')";
    cluster.hosts[0].query(class).await;
    for host in &cluster.hosts {
        let own = "SELECT sum(count) FROM unjank.janks_daily";
        let read = |sql: &str| sql.replace("unjank.", "unjank_all.");
        assert_eq!(host.query(&read(own)).await, "8");
        // The installs of the first shard are among those of the second one.
        let installs = "SELECT uniqCombined64Merge(12)(installs) FROM unjank.janks_daily";
        assert_eq!(host.query(&read(installs)).await, "5");
        // The view joins the class, which only the first shard has, to the rows of both.
        let by_title = "SELECT title, sum(count) FROM unjank.dash_janks GROUP BY title";
        assert_eq!(host.query(&read(by_title)).await, "Slow list\t8");
    }

    // Tables for reading of an older version, on one host.
    let last = &cluster.hosts[1];
    last.query("DROP TABLE unjank_all.spans SYNC").await;
    last.query("TRUNCATE TABLE unjank_all.schema_migrations")
        .await;
    let behind = vec![
        IS_CURRENT.to_owned(),
        "is behind: it lacks the tables for reading".to_owned(),
    ];
    assert_eq!(check(&cluster).await, (false, behind));
    assert!(migrate(&cluster).await.0);
    assert_eq!(
        last.query("SELECT count() FROM unjank_all.spans").await,
        "0"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_cannot_be_used_is_refused_with_the_reason() {
    let cluster = ClusterHosts::start(2).await;
    let [first, second] = [&cluster.hosts[0], &cluster.hosts[1]];
    let check = ["cluster", "check"];
    let with = |more: &[&str]| {
        let mut flags = cluster.flags();
        flags.extend(more.iter().map(|flag| (*flag).to_owned()));
        flags
    };
    let unknown = refusal(&check, with(&["--clickhouse-cluster", "other"])).await;
    assert!(
        unknown.contains(&format!(
            "no cluster `other` in `system.clusters`; it has: {CLUSTER}"
        )),
        "{unknown}"
    );
    let same = refusal(&check, cluster.flags_without_hosts()).await;
    assert!(
        same.contains("set --clickhouse-hosts to the address of each host"),
        "{same}"
    );

    // The addresses of the hosts are mixed up.
    let mut flags = cluster.flags_without_hosts();
    let mixed_up = format!(
        "{}={},{}={}",
        first.address, second.url, second.address, first.url
    );
    flags.extend(["--clickhouse-hosts".to_owned(), mixed_up]);
    let (is_current, states) = states(&check, flags).await;
    assert!(!is_current);
    assert_eq!(
        states[0],
        format!("is {}: correct --clickhouse-hosts", second.address)
    );

    // No other command works with a cluster.
    let folder = tempfile::tempdir().unwrap();
    let data_dir = ["--data-dir", folder.path().to_str().unwrap()];
    for line in [
        &[
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--admin-listen",
            "127.0.0.1:0",
        ][..],
        &["sql", "SELECT 1"],
    ] {
        let error = refusal(line, with(&data_dir)).await;
        assert!(
            error.contains("only `unjank migrate` and `unjank cluster check` work with a cluster"),
            "{error}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_of_a_newer_version_is_left_alone() {
    let cluster = ClusterHosts::start(2).await;
    assert!(migrate(&cluster).await.0);
    let [first, second] = [&cluster.hosts[0], &cluster.hosts[1]];
    let newer = "INSERT INTO unjank.schema_migrations (name, checksum) VALUES ('9999_later', 1)";
    first.query(newer).await;
    forget_latest(second).await;
    second
        .query("TRUNCATE TABLE unjank_all.schema_migrations")
        .await;
    let (is_current, states) = migrate(&cluster).await;
    assert!(!is_current);
    assert_eq!(
        states[0],
        "was migrated by a newer version of unjank (9999_later): use that version"
    );
    // The rows are migrated. The tables for reading wait for the newer version.
    assert_eq!(states[1], "is behind: it lacks the tables for reading");
}
