//! ClickHouse processes that are the shards of one cluster.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use reqwest::Client;
use tempfile::TempDir;
use unjank_engine::{ClickHouse, EngineOptions, HostProgram, Ports, Source, library};

use crate::engine::{PASSWORD, UNJANK, USER};
use crate::wait;

/// The name of the cluster in `system.clusters`.
pub(crate) const CLUSTER: &str = "main";

const STARTS_LISTENING: &str = "SYSTEM START LISTEN TCP; SYSTEM START LISTEN HTTP;";

/// A cluster with one host for each shard.
pub(crate) struct ClusterHosts {
    pub(crate) hosts: Vec<ClusterHost>,
    _folder: TempDir,
}

/// A host of the cluster. It keeps its addresses and its rows while it is away.
pub(crate) struct ClusterHost {
    pub(crate) url: String,
    /// The address in `system.clusters`.
    pub(crate) address: String,
    folder: PathBuf,
    client: Client,
    running: Option<Running>,
    _ports: [Ports; 2],
}

/// ClickHouse ends when its standard input is closed, so it never outlives the test.
struct Running {
    child: Child,
    _input: File,
}

impl ClusterHosts {
    /// Starts a cluster with this number of shards.
    pub(crate) async fn start(shards: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut hosts: Vec<ClusterHost> = (0..shards)
            .map(|shard| ClusterHost::new(folder.path().join(shard.to_string())))
            .collect();
        let addresses: Vec<String> = hosts.iter().map(|host| host.address.clone()).collect();
        for host in &mut hosts {
            host.configure(&addresses);
            host.start().await;
        }
        Self {
            hosts,
            _folder: folder,
        }
    }

    /// Returns the flags with which a command uses the cluster.
    pub(crate) fn flags(&self) -> Vec<String> {
        let addresses = self.hosts.iter();
        let addresses = addresses.map(|host| format!("{}={}", host.address, host.url));
        let addresses: Vec<String> = addresses.collect();
        let mut flags = self.flags_without_hosts();
        flags.extend(["--clickhouse-hosts".to_owned(), addresses.join(",")]);
        flags
    }

    /// Returns the flags of [`Self::flags`] without the HTTP addresses of the hosts.
    pub(crate) fn flags_without_hosts(&self) -> Vec<String> {
        let flags = [
            "--clickhouse-cluster",
            CLUSTER,
            "--clickhouse-url",
            self.hosts[0].url.as_str(),
            "--clickhouse-user",
            USER,
            "--clickhouse-password",
            PASSWORD,
        ];
        flags.map(str::to_owned).to_vec()
    }
}

impl ClusterHost {
    fn new(folder: PathBuf) -> Self {
        fs::create_dir(&folder).unwrap();
        let any = "127.0.0.1:0".parse().unwrap();
        let [http, native] = [(); 2].map(|()| Ports::reserve(any, None).unwrap());
        Self {
            url: format!("http://{}", http.http().unwrap()),
            address: native.http().unwrap().to_string(),
            folder,
            client: Client::new(),
            running: None,
            _ports: [http, native],
        }
    }

    /// Writes the configuration: the addresses of all shards, and a user.
    fn configure(&self, addresses: &[String]) {
        let port = |address: &str| address.rsplit_once(':').unwrap().1.to_owned();
        let shards: String = addresses
            .iter()
            .map(|address| {
                format!(
                    "<shard><replica><host>127.0.0.1</host><port>{}</port><user>{USER}</user><password>{PASSWORD}</password></replica></shard>",
                    port(address)
                )
            })
            .collect();
        let config = format!(
            "<clickhouse><listen_host>127.0.0.1</listen_host><http_port>{}</http_port><tcp_port>{}</tcp_port>\
             <listen_reuse_port>true</listen_reuse_port><users_config>{}</users_config><logger><console>true</console></logger>\
             <remote_servers><{CLUSTER}>{shards}</{CLUSTER}></remote_servers></clickhouse>",
            port(&self.url),
            port(&self.address),
            self.file("users.xml").display()
        );
        // `clickhouse local` runs its own statements as `default`.
        let user = |name: &str, password: &str| {
            format!(
                "<{name}><password>{password}</password><networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota></{name}>"
            )
        };
        let users = format!(
            "<clickhouse><profiles><default/></profiles><quotas><default/></quotas><users>{}{}</users></clickhouse>",
            user("default", ""),
            user(USER, PASSWORD)
        );
        fs::write(self.file("config.xml"), config).unwrap();
        fs::write(self.file("users.xml"), users).unwrap();
        fs::write(self.file("start.sql"), STARTS_LISTENING).unwrap();
        // The process confines itself to files, so its standard input must be one.
        let made = Command::new("mkfifo").arg(self.file("input")).status();
        assert!(made.unwrap().success());
    }

    /// Starts ClickHouse and waits until it listens.
    pub(crate) async fn start(&mut self) {
        // Opening one end of a pipe waits for the other, unless one opens both.
        let mut both_ends = File::options();
        both_ends.read(true).write(true);
        let input = both_ends.open(self.file("input")).unwrap();
        let child = Command::new(UNJANK)
            .arg("clickhouse")
            .arg(self.instructions())
            // As the embedded engine is started.
            .env_clear()
            .env("TZ", "UTC")
            .stdin(Stdio::from(File::open(self.file("input")).unwrap()))
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        self.running = Some(Running {
            child,
            _input: input,
        });
        let url = format!("{}/ping", self.url);
        wait::until("the host listens", async || {
            let child = &mut self.running.as_mut().unwrap().child;
            assert!(child.try_wait().unwrap().is_none(), "the host ended");
            let answer = self.client.get(&url).send().await;
            match answer {
                Ok(answer) => answer.text().await.is_ok(),
                Err(_) => false,
            }
        })
        .await;
    }

    /// Kills ClickHouse.
    pub(crate) fn kill(&mut self) {
        self.running = None;
    }

    fn instructions(&self) -> String {
        let cache = std::env::home_dir().unwrap().join(".cache/unjank/engine");
        let library = library::locate_or_fetch(None, &cache, &|_| {}).unwrap();
        let options = EngineOptions {
            data_dir: self.folder.clone(),
            clickhouse: ClickHouse::Library(library),
            host: HostProgram::default(),
            database: String::new(),
            users: Vec::new(),
            // Otherwise, the process could not connect to the other shards.
            sources: vec![Source::Remote],
            max_memory_bytes: 2 << 30,
            nice: 0,
            shutdown_patience: Duration::from_secs(1),
            lock_patience: Duration::from_secs(1),
        };
        let file = |flag: &str, name: &str| format!("--{flag}={}", self.file(name).display());
        let arguments = [
            file("config-file", "config.xml"),
            format!("--path={}", self.folder.display()),
            "--log-level=error".to_owned(),
            file("queries-file", "start.sql"),
            "--queries-file=/dev/stdin".to_owned(),
        ];
        serde_json::to_string(&(options, arguments)).unwrap()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Runs a query. Returns lines of tab-separated values.
    pub(crate) async fn query(&self, sql: &str) -> String {
        let request = self.client.post(&self.url).body(sql.to_owned());
        let request = request.basic_auth(USER, Some(PASSWORD));
        let response = request.send().await.unwrap();
        let (status, text) = (response.status(), response.text().await.unwrap());
        assert!(status.is_success(), "{sql}: {text}");
        text.trim_end().to_owned()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ended = self.child.kill().is_ok();
        let _reaped = self.child.wait().is_ok();
    }
}
