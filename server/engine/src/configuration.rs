//! ClickHouse's configuration and users, as XML files that it reads at start.

use std::net::SocketAddr;

use sha2::{Digest, Sha256};

use crate::options::{EngineOptions, Role, Source, User};

/// Returns `config.xml` for these addresses.
pub(crate) fn config(
    options: &EngineOptions,
    http: SocketAddr,
    tcp: Option<SocketAddr>,
    users_file: &str,
) -> String {
    let memory = options.max_memory_bytes;
    let tcp = tcp.map_or_else(String::new, |tcp| {
        format!("<tcp_port>{}</tcp_port>", tcp.port())
    });
    include_str!("../clickhouse/config.xml")
        .replace("{http_host}", &http.ip().to_string())
        .replace("{http_port}", &http.port().to_string())
        .replace("{tcp}", &tcp)
        .replace("{users}", &escape(users_file))
        .replace("{memory}", &memory.to_string())
        .replace("{mark_cache}", &(memory / 8).min(512 << 20).to_string())
        .replace(
            "{patience}",
            &options.shutdown_patience.as_secs().to_string(),
        )
}

/// Returns `users.xml`, with hashes instead of passwords.
pub(crate) fn users(options: &EngineOptions) -> String {
    let users: String = options.users.iter().map(user).collect();
    let sources: String = options
        .sources
        .iter()
        .map(|source| {
            let (name, engine) = source.names();
            format!(
                "<query>GRANT READ, WRITE ON {name}</query><query>GRANT TABLE ENGINE ON {engine}</query>\n"
            )
        })
        .collect();
    include_str!("../clickhouse/users.xml")
        .replace("{database}", &escape(&options.database))
        .replace(
            "{reader_memory}",
            &(options.max_memory_bytes / 2).to_string(),
        )
        .replace("{sources}", &sources)
        .replace("{users}", &users)
}

fn user(user: &User) -> String {
    let hash: String = Sha256::digest(user.password.as_bytes())
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let (role, profile) = match user.role {
        Role::Reader => ("reader", "reader"),
        Role::Writer => ("writer", "default"),
        Role::Admin => ("admin", "default"),
    };
    format!(
        "<{name}><password_sha256_hex>{hash}</password_sha256_hex><networks><ip>::/0</ip></networks>\
         <profile>{profile}</profile><quota>default</quota><grants><query>GRANT {role}</query></grants></{name}>\n",
        name = user.name
    )
}

impl Source {
    /// Returns ClickHouse's names of the source and of its table engine.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::File => ("FILE", "File"),
            Self::Url => ("URL", "URL"),
            Self::S3 => ("S3", "S3"),
            Self::Remote => ("REMOTE", "Distributed"),
        }
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
