//! Addresses that belong to this process while ClickHouse starts, serves, crashes and starts again.
//!
//! The sockets here are bound and never listen. `SO_REUSEPORT`, set after they were bound, lets ClickHouse bind the same ports,
//! because it runs as the same user. Other users cannot: they never receive a password that was meant for ClickHouse.

use std::net::SocketAddr;

use anyhow::Context;
use tokio::net::TcpSocket;

/// Ports that only processes of this user can listen on, for as long as this lives.
#[derive(Debug)]
pub struct Ports {
    http: TcpSocket,
    native: Option<TcpSocket>,
}

impl Ports {
    /// Reserves the address of ClickHouse's HTTP interface, and of its native protocol if that is wanted. Port 0 takes a free
    /// port.
    ///
    /// # Errors
    /// When an address is taken, or is not one of this machine.
    pub fn reserve(http: SocketAddr, native: Option<SocketAddr>) -> anyhow::Result<Self> {
        // ClickHouse listens with every protocol on every host that it is given.
        anyhow::ensure!(
            native.is_none_or(|native| native.ip() == http.ip()),
            "the engine's HTTP interface and its native protocol need the same IP address, not {http} and {native:?}"
        );
        Ok(Self {
            http: reserve(http)?,
            native: native.map(reserve).transpose()?,
        })
    }

    /// The reserved address of the HTTP interface.
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
    // Connections of an engine that has just ended do not keep a chosen port taken.
    socket.set_reuseaddr(address.port() != 0)?;
    socket
        .bind(address)
        .with_context(|| format!("the engine cannot listen on {address}"))?;
    socket.set_reuseaddr(false)?;
    socket.set_reuseport(true)?;
    Ok(socket)
}
