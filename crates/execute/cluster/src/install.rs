//! Our joins in workers of somebody else's cluster.

use datafusion::execution::SessionStateBuilder;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion_distributed::{
    DistributedExt, WorkerPlanRewriteEvent, WorkerPlanRewriteEventResponse,
};
use workahead_datafusion::{WorkaheadJoins, WorkaheadOptions};

/// Gives a worker of `datafusion-distributed` Workahead's joins, which spill within its pool. The
/// client needs nothing: stages arrive with DataFusion's joins, and leave as it planned them.
///
/// The additions of [`Client`](crate::Client), filters across stages and options, are planned in
/// the client and need workers of this crate.
///
/// ```
/// use datafusion::arrow::util::pretty::pretty_format_batches;
/// use datafusion::execution::SessionStateBuilder;
/// use datafusion::prelude::SessionContext;
/// use datafusion_distributed::{
///     DistributedExt, SessionStateBuilderExt, Worker, WorkerQueryContext, WorkerResolver,
/// };
/// use tonic::transport::Server;
/// use tonic::transport::server::TcpIncoming;
/// use url::Url;
///
/// #[derive(Clone)]
/// struct Workers(Vec<Url>);
///
/// impl WorkerResolver for Workers {
///     fn get_urls(&self) -> datafusion::error::Result<Vec<Url>> {
///         Ok(self.0.clone())
///     }
/// }
///
/// # tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(async {
/// let mut workers = Vec::new();
/// for _ in 0..2 {
///     let worker = Worker::from_session_builder(|query: WorkerQueryContext| async {
///         // The line that is added:
///         let builder = workahead_cluster::install_on_worker(query.builder);
///         Ok(builder.build())
///     });
///     let incoming = TcpIncoming::bind("127.0.0.1:0".parse()?)?.with_nodelay(Some(true));
///     workers.push(format!("http://{}", incoming.local_addr()?).parse()?);
///     let server = Server::builder().add_service(worker.into_worker_server());
///     tokio::spawn(server.serve_with_incoming(incoming));
/// }
/// let mut state = SessionStateBuilder::new()
///     .with_default_features()
///     .with_distributed_worker_resolver(Workers(workers))
///     .with_distributed_planner()
///     .with_distributed_file_scan_config_bytes_per_partition(1)?
///     .build();
/// state.config_mut().options_mut().execution.target_partitions = 2;
/// let session = SessionContext::new_with_state(state);
/// let directory = tempfile::tempdir()?;
/// for table in ["orders", "lines"] {
///     let path = directory.path().join(table);
///     let numbers = "select value as key from generate_series(1, 100000)";
///     let copy = format!("copy ({numbers}) to '{}/' stored as parquet", path.display());
///     session.sql(&copy).await?.collect().await?;
///     session.register_parquet(table, path.display().to_string(), Default::default()).await?;
/// }
/// let query = "select count(*) as rows from orders join lines using (key)";
/// let rows = session.sql(query).await?.collect().await?;
/// assert!(pretty_format_batches(&rows)?.to_string().contains("100000"));
/// let explained = session.sql(&format!("explain analyze {query}")).await?.collect().await?;
/// // Only our join counts the bytes of its table.
/// assert!(pretty_format_batches(&explained)?.to_string().contains("table_bytes"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn install_on_worker(mut builder: SessionStateBuilder) -> SessionStateBuilder {
    let config = builder.config().take().unwrap_or_default();
    let config = config
        .with_option_extension(WorkaheadOptions::default())
        .with_distributed_worker_plan_rewrite_handler(|event: WorkerPlanRewriteEvent<'_>| {
            let options = event.session_config.options();
            let plan = WorkaheadJoins::default().optimize(event.plan, options)?;
            Ok(WorkerPlanRewriteEventResponse::new(plan))
        });
    builder.with_config(config)
}
