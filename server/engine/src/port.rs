//! Addresses that stay reserved for this process while ClickHouse starts, runs, crashes and restarts.
//!
//! The sockets here are bound and never listen. `SO_REUSEPORT`, set after the bind, lets ClickHouse bind the same ports, because it runs as the same
//! user. Other users cannot bind them, so they never receive a password that is meant for ClickHouse.

use std::net::SocketAddr;

use anyhow::Context;
use tokio::net::TcpSocket;

/// Ports on which only processes of this user can listen, until this value is dropped.
#[derive(Debug)]
pub struct Ports {
    http: TcpSocket,
    native: Option<TcpSocket>,
}

impl Ports {
    /// Reserves an address for ClickHouse's HTTP interface and, if `native` is set, for its native protocol. Port 0 selects a free port.
    ///
    /// # Errors
    /// If an address is in use, or does not belong to this machine.
    pub fn reserve(http: SocketAddr, native: Option<SocketAddr>) -> anyhow::Result<Self> {
        // ClickHouse listens on every given host with every protocol.
        anyhow::ensure!(
            native.is_none_or(|native| native.ip() == http.ip()),
            "the engine's HTTP interface and its native protocol must have the same IP address, not {http} and {native:?}"
        );
        Ok(Self {
            http: reserve(http)?,
            native: native.map(reserve).transpose()?,
        })
    }

    /// Returns the reserved address of the HTTP interface.
    pub fn http(&self) -> std::io::Result<SocketAddr> {
        self.http.local_addr()
    }

    pub(crate) fn native(&self) -> std::io::Result<Option<SocketAddr>> {
        self.native.as_ref().map(TcpSocket::local_addr).transpose()
    }
}

fn reserve(address: SocketAddr) -> anyhow::Result<TcpSocket> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // Open connections of an engine that has just ended must not block a port that the operator has chosen.
    socket.set_reuseaddr(address.port() != 0)?;
    socket
        .bind(address)
        .with_context(|| format!("the engine cannot listen on {address}"))?;
    socket.set_reuseaddr(false)?;
    socket.set_reuseport(true)?;
    Ok(socket)
}
