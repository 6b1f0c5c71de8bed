//! A DataFusion session for programs that are not asynchronous: files as tables, statements one
//! after the other, answers batch by batch.
//!
//! ```no_run
//! # use std::sync::atomic::AtomicBool;
//! # use workahead_sql::session::{Options, Session};
//! static STOP: AtomicBool = AtomicBool::new(false);
//! let session = Session::new(&Options::default())?;
//! session.register("orders", "orders.parquet".as_ref(), &STOP)?;
//! for statement in session.statements("select count(*) from orders; show tables", &STOP)? {
//!     let mut answer = session.run(&statement, &STOP)?;
//!     while let Some(batch) = answer.next_batch()? {
//!         println!("{batch:?}");
//!     }
//! }
//! # Ok::<(), workahead_sql::session::SessionError>(())
//! ```

mod answer;
mod batches;
mod error;
mod files;
mod nesting;
mod sink;
mod tables;
mod workers;

use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use datafusion::arrow::array::{RecordBatch, RecordBatchReader};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::TableProvider;
use datafusion::common::TableReference;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::GreedyMemoryPool;
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::execution::{SessionStateBuilder, TaskContext};
use datafusion::logical_expr::{DdlStatement, LogicalPlan};
use datafusion::physical_plan::common::spawn_buffered;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion::sql::parser::Statement as Parsed;

pub use answer::{Answer, Joins};
pub use error::SessionError;

use crate::LockedFolder;
use crate::local_files::{self, CachedReads};
use answer::Deadline;
use batches::Partitioning;
use workers::Workers;

/// Some of the plans are deep.
const STACK_BYTES: usize = 16 << 20;

/// Which implementation of the hash join runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Joiner {
    /// Workahead's.
    #[default]
    Ours,
    /// DataFusion's own.
    Stock,
}

/// Options of a session.
#[derive(Debug, Clone)]
pub struct Options {
    /// The join implementation.
    pub joiner: Joiner,
    /// Threads, and partitions of each plan.
    pub threads: NonZero<usize>,
    /// Bytes that joins, sorts and aggregates may take together.
    pub memory_limit: Option<usize>,
    /// Directory for spill files; by default one in the system's temporary directory.
    pub spill_directory: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        let threads = NonZero::<usize>::MIN;
        Self { joiner: Joiner::Ours, threads, memory_limit: None, spill_directory: None }
    }
}

/// A parsed statement of SQL, not yet planned.
#[derive(Debug, Clone)]
pub struct Statement(Arc<Parsed>);

/// A planned statement.
pub struct PlannedStatement {
    plan: Arc<dyn ExecutionPlan>,
    task: Arc<TaskContext>,
    workers: Arc<Workers>,
    deadline: Option<Deadline>,
}

impl PlannedStatement {
    /// The schema of its batches.
    #[must_use]
    pub fn schema(&self) -> SchemaRef {
        self.plan.schema()
    }

    /// Starts it. It ends with [`SessionError::Stopped`] once `stop` is set.
    ///
    /// # Errors
    /// When an operator can't be started.
    pub fn start(self, stop: &'static AtomicBool) -> Result<Answer, SessionError> {
        let Self { plan, task, workers, deadline } = self;
        // Operators start tasks of their own, and the last one runs beside this thread, which
        // looks at the flag meanwhile.
        let run = Arc::clone(&plan);
        let starting = async move { Ok(spawn_buffered(execute_stream(run, task)?, 1)) };
        let stream = workers.run(starting).map_err(SessionError::Query)?;
        Ok(Answer::new(plan, stream, workers, stop).with_deadline(deadline))
    }
}

impl std::fmt::Debug for PlannedStatement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PlannedStatement").field("schema", &self.schema()).finish_non_exhaustive()
    }
}

/// Tables and settings, as SQL sees them.
pub struct Session {
    context: SessionContext,
    workers: Arc<Workers>,
    timeout: Option<Duration>,
    has_files: bool,
}

impl Session {
    /// An empty session.
    ///
    /// # Errors
    /// When threads can't be started, or the spill directory can't be written to.
    pub fn new(options: &Options) -> Result<Self, SessionError> {
        let Environment { runtime, spill_folder } = environment(options)?;
        let builder = SessionStateBuilder::new()
            .with_config(config().with_target_partitions(options.threads.get()))
            .with_runtime_env(runtime)
            .with_default_features();
        let builder = match options.joiner {
            Joiner::Ours => crate::install(builder),
            Joiner::Stock => crate::install::bound_reads(builder),
        };
        let context = SessionContext::new_with_state(builder.build());
        Self::over(context, options.threads, spill_folder)
    }

    /// A session over an existing context, such as one of a cluster. The folder stays as long as
    /// the session and its answers.
    ///
    /// # Errors
    /// When threads can't be started.
    pub fn over(
        context: SessionContext,
        threads: NonZero<usize>,
        spill_folder: Option<LockedFolder>,
    ) -> Result<Self, SessionError> {
        let workers = Arc::new(Workers::start(threads, spill_folder)?);
        Ok(Self { context, workers, timeout: None, has_files: true })
    }

    /// Cancels statements that take longer than this, planning included.
    #[must_use]
    pub fn with_timeout(self, timeout: Option<Duration>) -> Self {
        Self { timeout, ..self }
    }

    /// Refuses statements that read or write files which they name: `COPY`, `CREATE EXTERNAL TABLE`
    /// and the directory for spill files.
    #[must_use]
    pub fn without_files(self) -> Self {
        Self { has_files: false, ..self }
    }

    /// Registers a file as a table: Parquet, CSV, JSON lines or Arrow IPC, by its extension, or a
    /// directory of Parquet files. Finding its columns ends once `stop` is set or a statement's
    /// time is over: a line may have hundreds of thousands.
    ///
    /// # Errors
    /// When the file does not exist, or its contents do not match its extension.
    pub fn register(&self, name: &str, path: &Path, stop: &AtomicBool) -> Result<(), SessionError> {
        let end = answer::end(stop, self.timeout.map(Deadline::after));
        let (context, name, path) = (self.context.clone(), name.to_owned(), path.to_owned());
        let registering = async move { tables::register(&context, &name, &path).await };
        self.workers.run_until(registering, end)?
    }

    /// Registers batches in memory as a table. They may be read any number of times.
    ///
    /// # Errors
    /// When their columns are not those of the schema.
    pub fn register_batches(
        &self,
        name: &str,
        schema: SchemaRef,
        batches: &[RecordBatch],
    ) -> Result<(), SessionError> {
        let state = self.context.state();
        let partitioning = Partitioning {
            partitions: state.config().target_partitions(),
            batch_rows: state.config().batch_size(),
        };
        let table =
            batches::in_memory(schema, batches, partitioning).map_err(SessionError::Query)?;
        self.register_provider(name, Arc::new(table))
    }

    /// Registers a reader as a table. It is read while the first plan over it runs, a few batches
    /// ahead; a second read is an error.
    ///
    /// # Errors
    /// When the table can't be registered.
    pub fn register_reader(
        &self,
        name: &str,
        reader: Box<dyn RecordBatchReader + Send>,
    ) -> Result<(), SessionError> {
        let table = batches::read_once(name, reader).map_err(SessionError::Query)?;
        self.register_provider(name, Arc::new(table))
    }

    /// Replaces a table of the same name.
    fn register_provider(
        &self,
        name: &str,
        table: Arc<dyn TableProvider>,
    ) -> Result<(), SessionError> {
        // The name as it is written: unquoted names in SQL are lower-cased.
        let name = TableReference::bare(name);
        self.context.deregister_table(name.clone()).map_err(SessionError::Query)?;
        self.context.register_table(name, table).map(drop).map_err(SessionError::Query)
    }

    /// The statements of a text, which are separated by semicolons. Reading it ends once `stop` is
    /// set or a statement's time is over: a wrong text may take the parser longer than anybody
    /// waits.
    ///
    /// # Errors
    /// When it is not valid SQL, or nests deeper than any stack.
    pub fn statements(&self, sql: &str, stop: &AtomicBool) -> Result<Vec<Statement>, SessionError> {
        let deadline = self.timeout.map(Deadline::after);
        let mut parsing = nesting::parse(sql.to_owned()).map_err(SessionError::Query)?;
        let end = answer::end(stop, deadline);
        self.workers.block_on(async {
            tokio::select! {
                biased;
                why = end => Err(why),
                () = parsing.wait() => Ok(()),
            }
        })?;
        let parsed = parsing.finish().map_err(SessionError::Query)?;
        Ok(parsed.into_iter().map(|statement| Statement(Arc::new(statement))).collect())
    }

    /// Plans and starts one statement. It ends once `stop` is set or its time is over.
    ///
    /// # Errors
    /// When it can't be planned.
    pub fn run(
        &self,
        statement: &Statement,
        stop: &'static AtomicBool,
    ) -> Result<Answer, SessionError> {
        self.plan(statement, stop)?.start(stop)
    }

    /// Plans one statement. No row is read yet, unless to infer a schema, or by a statement that
    /// makes a table of a query's rows. It ends once `stop` is set or its time is over.
    ///
    /// # Errors
    /// When it can't be planned.
    pub fn plan(
        &self,
        statement: &Statement,
        stop: &AtomicBool,
    ) -> Result<PlannedStatement, SessionError> {
        let deadline = self.timeout.map(Deadline::after);
        let (context, statement, has_files) =
            (self.context.clone(), Arc::clone(&statement.0), self.has_files);
        let planning = async move {
            let plan = context.state().statement_to_plan(statement.as_ref().clone()).await?;
            if !has_files {
                files::refuse(&plan)?;
            }
            files::check_targets(&plan)?;
            let made = match &plan {
                LogicalPlan::Ddl(DdlStatement::CreateExternalTable(table)) => {
                    // One that is there already stays as it is.
                    let stays = table.if_not_exists && context.table_exist(table.name.clone())?;
                    (!stays).then(|| (table.name.clone(), table.file_type.to_ascii_lowercase()))
                }
                _ => None,
            };
            let frame = context.execute_logical_plan(plan).await?;
            if let Some((name, kind)) = made {
                tables::check(&context, name, &kind).await?;
            }
            let task = Arc::new(frame.task_ctx());
            Ok((sink::guarded(frame.create_physical_plan().await?)?, task))
        };
        let end = answer::end(stop, deadline);
        let planned = self.workers.run_until(planning, end)?;
        let (plan, task) = planned.map_err(SessionError::Query)?;
        let workers = Arc::clone(&self.workers);
        Ok(PlannedStatement { plan, task, workers, deadline })
    }

    /// DataFusion's own handle, for all other settings.
    #[must_use]
    pub fn context(&self) -> &SessionContext {
        &self.context
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("id", &self.context.session_id()).finish_non_exhaustive()
    }
}

/// The settings that a session begins with.
///
/// Values of CSV may have line breaks: a file that is cut at any line break, to be read by several
/// threads, has other rows than it says (apache/datafusion's `newlines_in_values`).
///
/// Exchanges write each batch that finds no memory to a file of its own. In larger files two that
/// run short wait for each other forever: one reads the older file to its end, and what it needs is
/// in the newer one (apache/datafusion#24883, in DataFusion up to 55.2).
///
/// A statement begins no further file after some number of rows: the one before would be whole, and
/// stay when the statement fails.
///
/// Bloom filters of Parquet are not read: those of all row groups would be held at once, as many
/// and as large as a file says.
#[must_use]
pub fn config() -> SessionConfig {
    SessionConfig::new()
        .with_information_schema(true)
        .set_bool("datafusion.catalog.newlines_in_values", true)
        .set_bool("datafusion.execution.parquet.bloom_filter_on_read", false)
        .set_usize("datafusion.execution.max_spill_file_size_bytes", 1)
        .set_usize("datafusion.execution.soft_max_rows_per_output_file", usize::MAX)
}

/// What a session runs in.
#[derive(Debug)]
pub struct Environment {
    /// DataFusion's part.
    pub runtime: Arc<RuntimeEnv>,
    /// The folder for its spill files, if a directory is given for them.
    pub spill_folder: Option<LockedFolder>,
}

/// The memory pool and spill folder of a session's options.
///
/// # Errors
/// When the spill directory can't be written to.
pub fn environment(options: &Options) -> Result<Environment, SessionError> {
    let mut builder = RuntimeEnvBuilder::new();
    if let Some(bytes) = options.memory_limit {
        // A fair pool's equal shares would leave each join of a query too little.
        builder = builder.with_memory_pool(Arc::new(GreedyMemoryPool::new(bytes)));
    }
    let mut spill_folder = None;
    if let Some(directory) = &options.spill_directory {
        let failed = |source| SessionError::SpillDirectory { path: directory.clone(), source };
        let folder = LockedFolder::make("workahead-sql-", directory).map_err(failed)?;
        let mode = DiskManagerMode::Directories(vec![folder.path().to_owned()]);
        builder = builder.with_disk_manager_builder(DiskManagerBuilder::default().with_mode(mode));
        spill_folder = Some(folder);
    }
    let runtime = builder.build_arc().map_err(SessionError::Query)?;
    local_files::install(&runtime, CachedReads::Elsewhere);
    Ok(Environment { runtime, spill_folder })
}
