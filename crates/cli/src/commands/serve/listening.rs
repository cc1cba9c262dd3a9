//! Where a server listens and to whom, by the settings and the command line.

use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::sync::Arc;

use weft_repository::{ServerSettings, Settings};
use weft_server::{ServerOptions, Tenants};

use super::{Options, open_files};
use crate::progress;

/// The settings, where what the command line says wins.
pub(super) fn with_options(mut settings: Settings, options: &Options) -> Settings {
    let server = &mut settings.server;
    let listen = server.listen.unwrap_or_else(default_listen);
    let at = |address: SocketAddr, port: Option<u16>| {
        let host = options.host.unwrap_or(address.ip());
        SocketAddr::new(host, port.unwrap_or(address.port()))
    };
    let main = at(listen, options.port);
    let grpc = match (options.grpc_port, options.port, server.grpc_listen) {
        (Some(port), ..) => Some(at(listen, Some(port))),
        (None, None, Some(grpc)) => Some(at(grpc, None)),
        (None, ..) => None,
    };
    server.admin_listen = match (options.admin_port, options.port, server.admin_listen) {
        (Some(port), _, admin) => {
            let host = admin.map_or(Ipv4Addr::LOCALHOST.into(), |admin| admin.ip());
            Some(SocketAddr::new(host, port))
        }
        (None, None, admin) => admin,
        (None, ..) => None,
    };
    server.listen = Some(main);
    // The port for HTTP answers gRPC too.
    server.grpc_listen = grpc.filter(|&grpc| grpc != main || grpc.port() == 0);
    server.anonymous = options.anonymous.then_some(true).or(server.anonymous);
    settings
}

fn default_listen() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 8000))
}

/// Has the tenants follow the settings, as the command line has them.
pub(super) fn follower(
    options: &Options,
    tenants: Arc<Tenants>,
) -> impl Fn(&Settings) + Send + use<> {
    let is_anonymous = options.anonymous;
    move |settings| {
        let mut settings = settings.clone();
        settings.server.anonymous = is_anonymous.then_some(true).or(settings.server.anonymous);
        if let Err(error) = tenants.replace(&settings) {
            tracing::error!("{error}");
        }
    }
}

/// How the server is started, by settings that the command line has had its say in.
pub(super) fn server_options(
    options: &Options,
    settings: &ServerSettings,
    tenants: Arc<Tenants>,
) -> ServerOptions {
    let mut server = ServerOptions::new(settings.listen.unwrap_or_else(default_listen));
    server.grpc_address = settings.grpc_listen;
    server.admin_address = settings.admin_listen;
    server.otlp_endpoint.clone_from(&settings.otlp_endpoint);
    server.tenants = tenants;
    server.tls = settings.tls.clone();
    server.io_threads = options.io_threads.unwrap_or(server.io_threads);
    let wanted =
        options.max_connections.map_or(settings.max_connections as usize, NonZeroUsize::get);
    let limits = &mut server.limits;
    limits.connections = open_files::room_for(wanted);
    if limits.connections < wanted {
        let room = limits.connections;
        progress::note(format!(
            "the system's limit on open files leaves room for {room} connections"
        ));
    }
    let body_bytes = usize::try_from(settings.max_body_bytes).unwrap_or(usize::MAX);
    limits.body_bytes = options.max_body_bytes.map_or(body_bytes, NonZeroUsize::get);
    limits.body_arrival = settings.read_timeout;
    limits.drain = settings.shutdown_timeout;
    server
}
