//! The workers that answer now.

use std::net::SocketAddr;
use std::sync::{Arc, PoisonError, RwLock};
use std::thread;

use ::url::Url;
use datafusion::error::Result;
use datafusion_distributed::{GetWorkerInfoRequest, WorkerResolver};
use futures::future::join_all;
use tokio::sync::oneshot;
use tonic::Code;

use crate::channels::Channels;
use crate::url::http;
use crate::worker::WorkerInfo;
use crate::{ClusterError, ClusterUrl, WorkerStatus, service};

/// A worker that answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Alive {
    pub(crate) address: SocketAddr,
    pub(crate) threads: usize,
}

/// A cluster's workers, those that answered last time.
pub(crate) struct Workers {
    pub(crate) url: ClusterUrl,
    pub(crate) channels: Channels,
    alive: RwLock<Vec<Alive>>,
}

impl Workers {
    pub(crate) fn new(url: ClusterUrl, channels: Channels) -> Self {
        Self { url, channels, alive: RwLock::default() }
    }

    /// Those that answered.
    pub(crate) fn alive(&self) -> Vec<Alive> {
        self.alive.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Asks all of them.
    ///
    /// # Errors
    /// If none answers, or one is of another version.
    pub(crate) async fn ask(&self) -> Result<Vec<Alive>, ClusterError> {
        let addresses = self.addresses().await;
        let answers = join_all(addresses.iter().map(|address| self.ask_one(*address))).await;
        let mut refused = false;
        let mut alive = Vec::new();
        for (address, answer) in addresses.into_iter().zip(answers) {
            match answer {
                Ok(version) => {
                    let info = version.parse::<WorkerInfo>();
                    let own = WorkerInfo::own_version;
                    let wrong = |_| ClusterError::Version { address, version, own: own() };
                    alive.push(Alive { address, threads: info.map_err(wrong)?.threads });
                }
                Err(is_refused) => refused |= is_refused,
            }
        }
        *self.alive.write().unwrap_or_else(PoisonError::into_inner) = alive.clone();
        match (alive.is_empty(), refused) {
            (true, true) => Err(ClusterError::Refused { url: self.url.clone() }),
            (true, false) => Err(ClusterError::Unreachable { url: self.url.clone() }),
            (false, _) => Ok(alive),
        }
    }

    /// Where they are. Names are looked up on a thread that nobody waits for once the client has to
    /// stop: nothing ends that before its time.
    async fn addresses(&self) -> Vec<SocketAddr> {
        let (found, addresses) = oneshot::channel();
        let url = self.url.clone();
        thread::spawn(move || drop(found.send(url.addresses())));
        addresses.await.unwrap_or_default()
    }

    /// The states of those that answered.
    pub(crate) async fn states(&self) -> Vec<WorkerStatus> {
        let state = |Alive { address, .. }| async move {
            let url = http(address);
            let state = service::state(&self.channels, &url);
            let state = tokio::time::timeout(self.channels.dead_after(), state).await;
            WorkerStatus { address, state: state.ok().and_then(Result::ok) }
        };
        join_all(self.alive().into_iter().map(state)).await
    }

    /// A worker's description of itself; whether it refused the token, if it gives none.
    async fn ask_one(&self, address: SocketAddr) -> Result<String, bool> {
        let mut client = self.channels.client(&http(address)).map_err(|_| false)?;
        let answer = client.get_worker_info(GetWorkerInfoRequest {});
        let answer = tokio::time::timeout(self.channels.dead_after(), answer).await;
        let answer = answer.map_err(|_| false)?;
        answer.map(|info| info.version).map_err(|error| {
            let status = std::error::Error::source(&error)
                .and_then(|source| source.downcast_ref::<tonic::Status>());
            status.is_some_and(|status| status.code() == Code::Unauthenticated)
        })
    }
}

/// For the engine, which needs its own.
#[derive(Clone)]
pub(crate) struct Resolver(pub(crate) Arc<Workers>);

impl WorkerResolver for Resolver {
    fn get_urls(&self) -> Result<Vec<Url>> {
        let mut urls: Vec<Url> =
            self.0.alive().into_iter().map(|worker| http(worker.address)).collect();
        if let [only] = urls.as_slice() {
            // For what is not one stage: one task would have nothing to exchange with, and the
            // engine would run it in the client.
            urls.push(only.clone());
        }
        Ok(urls)
    }
}
