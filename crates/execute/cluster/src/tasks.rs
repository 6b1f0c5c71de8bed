//! Which tasks a worker has: the engine keeps a channel from the client to each of them, from its
//! plan to its counts. (What it stores of a task itself lives longer, until the next query.)

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::FutureExt;
use futures::future::BoxFuture;
use http_body::{Frame, SizeHint};
use tonic::body::Body;
use tower::Service;

use crate::keys::{Registry, Route, Task};

const CHANNEL: &str = "/worker.WorkerService/CoordinatorChannel";

/// A service whose tasks are counted.
#[derive(Clone)]
pub(crate) struct Tasks<S> {
    pub(crate) service: S,
    pub(crate) keys: Arc<Registry>,
}

impl<S> Service<http::Request<Body>> for Tasks<S>
where
    S: Service<http::Request<Body>, Response = http::Response<Body>>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<S::Response, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.service.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let route = || Route::of(request.headers());
        let task = (request.uri().path() == CHANNEL).then(route).flatten();
        let task = task.map(|route| Registry::start_task(&self.keys, &route));
        let answer = self.service.call(request);
        async move {
            let answer = answer.await?;
            Ok(match task {
                Some(task) => answer.map(|body| Body::new(Channel { body, _task: task })),
                None => answer,
            })
        }
        .boxed()
    }
}

/// The channel of a task's answers; the task has ended when it is dropped.
struct Channel {
    body: Body,
    _task: Task,
}

impl http_body::Body for Channel {
    type Data = <Body as http_body::Body>::Data;
    type Error = <Body as http_body::Body>::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
