//! The service of workers beside the engine's, on the same port: they receive keys of build
//! sides, and report their state.

use std::convert::Infallible;
use std::future::ready;
use std::sync::Arc;
use std::task::{Context, Poll};

use ::url::Url;
use datafusion::execution::runtime_env::RuntimeEnv;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::uri::PathAndQuery;
use tonic::body::Body;
use tonic::server::NamedService;
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;
use tower::{Service, service_fn};
use workahead_machine::clock::process_cpu_s;
use workahead_sql::PeakPool;

use crate::channels::Channels;
use crate::keys::{MESSAGE_BYTES_MAX, Part, Registry};

const PUBLISH: PathAndQuery = PathAndQuery::from_static("/workahead.Worker/Publish");
const STATE: PathAndQuery = PathAndQuery::from_static("/workahead.Worker/State");

/// A message that says nothing.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
struct Nothing {}

/// The state of a worker.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct WorkerState {
    /// Threads that run tasks.
    #[prost(uint64, tag = "1")]
    pub threads: u64,
    /// Tasks of stages that run or wait.
    #[prost(uint64, tag = "2")]
    pub tasks: u64,
    /// Bytes that its operators have reserved.
    #[prost(uint64, tag = "3")]
    pub reserved_bytes: u64,
    /// The most that they had reserved at once since it was started.
    #[prost(uint64, tag = "4")]
    pub peak_bytes: u64,
    /// Most bytes that they may reserve.
    #[prost(uint64, tag = "5")]
    pub limit_bytes: u64,
    /// Bytes in its spill files.
    #[prost(uint64, tag = "6")]
    pub spilled_bytes: u64,
    /// Microseconds of CPU time since it was started.
    #[prost(uint64, tag = "7")]
    pub cpu_us: u64,
}

/// The service of a worker.
#[derive(Clone)]
pub(crate) struct WorkerService {
    pub(crate) threads: usize,
    pub(crate) memory_limit: usize,
    pub(crate) keys: Arc<Registry>,
    pub(crate) pool: Arc<PeakPool>,
    pub(crate) environment: Arc<RuntimeEnv>,
}

impl WorkerService {
    fn publish(&self, part: &Part) -> Result<Response<Nothing>, Status> {
        let added = self.keys.add(part).map(|()| Response::new(Nothing {}));
        added.map_err(|error| Status::invalid_argument(error.to_string()))
    }

    fn state(&self) -> WorkerState {
        WorkerState {
            threads: self.threads as u64,
            tasks: self.keys.tasks() as u64,
            reserved_bytes: self.environment.memory_pool.reserved() as u64,
            peak_bytes: self.pool.peak_bytes() as u64,
            limit_bytes: self.memory_limit as u64,
            spilled_bytes: self.environment.disk_manager.used_disk_space(),
            cpu_us: (process_cpu_s() * 1e6) as u64,
        }
    }
}

impl NamedService for WorkerService {
    const NAME: &'static str = "workahead.Worker";
}

impl Service<http::Request<Body>> for WorkerService {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let worker = self.clone();
        async move {
            let path = request.uri().path();
            if path == PUBLISH.path() {
                let publish =
                    service_fn(move |part: Request<Part>| ready(worker.publish(part.get_ref())));
                let codec = ProstCodec::<Nothing, Part>::default();
                let grpc = tonic::server::Grpc::new(codec);
                let mut grpc = grpc.apply_max_message_size_config(Some(MESSAGE_BYTES_MAX), None);
                return Ok(grpc.unary(publish, request).await);
            }
            if path == STATE.path() {
                let state = service_fn(move |_: Request<Nothing>| {
                    ready(Ok::<_, Status>(Response::new(worker.state())))
                });
                let codec = ProstCodec::<WorkerState, Nothing>::default();
                return Ok(tonic::server::Grpc::new(codec).unary(state, request).await);
            }
            Ok(Status::unimplemented("no such request").into_http())
        }
        .boxed()
    }
}

/// Gives keys to a worker.
pub(crate) async fn publish(channels: &Channels, worker: &Url, part: Part) -> Result<(), Status> {
    ask::<Part, Nothing>(channels, worker, PUBLISH, part).await.map(drop)
}

/// The state of a worker.
pub(crate) async fn state(channels: &Channels, worker: &Url) -> Result<WorkerState, Status> {
    ask::<Nothing, WorkerState>(channels, worker, STATE, Nothing {}).await
}

async fn ask<Q, A>(
    channels: &Channels,
    worker: &Url,
    path: PathAndQuery,
    question: Q,
) -> Result<A, Status>
where
    Q: prost::Message + 'static,
    A: prost::Message + Default + 'static,
{
    let unavailable = |why: String| Status::unavailable(why);
    let channel = channels.service(worker).map_err(|error| unavailable(error.to_string()))?;
    let mut client = tonic::client::Grpc::new(channel);
    client.ready().await.map_err(|error| unavailable(error.to_string()))?;
    let codec = ProstCodec::<Q, A>::default();
    client.unary(Request::new(question), path, codec).await.map(Response::into_inner)
}
