//! Connections to workers: with the token, and with an end to waiting.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ::url::Url;
use datafusion::error::{DataFusionError, Result};
use datafusion_distributed::grpc::{BoxCloneSyncChannel, create_worker_client};
use datafusion_distributed::{ChannelResolver, WorkerChannel};
use http::header::AUTHORIZATION;
use tonic::transport::{Channel, Endpoint};
use tower::ServiceExt;

use crate::Token;

/// Connections of one process, a connection to each worker.
#[derive(Clone)]
pub(crate) struct Channels {
    token: Token,
    dead_after: Duration,
    open: Arc<Mutex<HashMap<Url, Channel>>>,
}

impl Channels {
    /// Of workers that count as dead when they haven't answered for `dead_after`.
    pub(crate) fn new(token: Token, dead_after: Duration) -> Self {
        Self { token, dead_after, open: Arc::default() }
    }

    pub(crate) fn dead_after(&self) -> Duration {
        self.dead_after
    }

    /// A connection, which connects when it is used, and again after it was lost.
    fn to(&self, url: &Url) -> Result<Channel> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(channel) = open.get(url) {
            return Ok(channel.clone());
        }
        let endpoint = Endpoint::from_shared(url.to_string());
        let endpoint = endpoint.map_err(|error| DataFusionError::External(Box::new(error)))?;
        // A ping, and its answer.
        let half = self.dead_after / 2;
        let channel = endpoint
            .connect_timeout(half)
            .http2_keep_alive_interval(half)
            .keep_alive_timeout(half)
            .keep_alive_while_idle(true)
            .tcp_nodelay(true)
            .connect_lazy();
        open.insert(url.clone(), channel.clone());
        Ok(channel)
    }

    /// A worker's services.
    pub(crate) fn service(&self, url: &Url) -> Result<BoxCloneSyncChannel> {
        let header = self.token.header();
        let channel = self.to(url)?.map_request(move |mut request: http::Request<_>| {
            request.headers_mut().insert(AUTHORIZATION, header.clone());
            request
        });
        Ok(BoxCloneSyncChannel::new(channel))
    }

    /// A worker's client.
    pub(crate) fn client(&self, url: &Url) -> Result<Box<dyn WorkerChannel>> {
        Ok(create_worker_client(self.service(url)?))
    }
}

#[async_trait::async_trait]
impl ChannelResolver for Channels {
    async fn get_worker_client_for_url(&self, url: &Url) -> Result<Box<dyn WorkerChannel>> {
        self.client(url)
    }
}
