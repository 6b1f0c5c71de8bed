//! Ballista's count of free slots, corrected when executors die.
//!
//! The scheduler frees a slot when a task's end is reported and the task is still known. A task
//! whose stage was rolled back, or whose query was cancelled, is not, and its slot would be lost:
//! with one slot each, the last executor would wait for ever. Here slots without a running task are
//! freed before tasks are placed.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ballista_core::JobId;
use ballista_core::error::Result;
use ballista_core::serde::protobuf::ExecutorHeartbeat;
use ballista_core::serde::scheduler::{ExecutorData, ExecutorMetadata};
use ballista_scheduler::cluster::memory::InMemoryClusterState;
use ballista_scheduler::cluster::{BoundTask, ClusterState, ClusterStateEventStream, ExecutorSlot};
use ballista_scheduler::config::TaskDistributionPolicy;
use ballista_scheduler::state::task_manager::JobInfoCache;

/// Executors in memory, and their slots.
#[derive(Default)]
pub(crate) struct Slots {
    executors: InMemoryClusterState,
    counts: Mutex<HashMap<String, Count>>,
}

#[derive(Debug, Clone, Copy)]
struct Count {
    all: u32,
    /// As counted by Ballista's state.
    free: u32,
}

type Jobs = Arc<HashMap<JobId, JobInfoCache>>;

impl Slots {
    fn counts(&self) -> MutexGuard<'_, HashMap<String, Count>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Slots without a task that are not counted as free.
    async fn lost(&self, jobs: &Jobs) -> Vec<ExecutorSlot> {
        let mut held: HashMap<String, u32> = HashMap::new();
        for job in jobs.values() {
            let graph = job.execution_graph.read().await;
            for task in graph.running_tasks() {
                let slots = graph.task_vcores(task.stage_id, task.task_id).unwrap_or(0);
                *held.entry(task.executor_id).or_default() += slots;
            }
        }
        let counts = self.counts();
        let lost = counts.iter().map(|(name, count)| {
            let held = held.get(name).copied().unwrap_or(0);
            (name.clone(), count.all.saturating_sub(held).saturating_sub(count.free))
        });
        lost.filter(|(_, slots)| *slots > 0).collect()
    }
}

#[async_trait::async_trait]
impl ClusterState for Slots {
    async fn bind_schedulable_tasks(
        &self,
        distribution: TaskDistributionPolicy,
        jobs: Jobs,
        executors: Option<HashSet<String>>,
    ) -> Result<Vec<BoundTask>> {
        let lost = self.lost(&jobs).await;
        if !lost.is_empty() {
            self.unbind_tasks(lost).await?;
        }
        let bound = self.executors.bind_schedulable_tasks(distribution, jobs, executors).await?;
        let mut counts = self.counts();
        for (name, task) in &bound {
            if let Some(count) = counts.get_mut(name) {
                count.free = count.free.saturating_sub(task.vcores_consumed);
            }
        }
        drop(counts);
        Ok(bound)
    }

    async fn unbind_tasks(&self, slots: Vec<ExecutorSlot>) -> Result<()> {
        let mut freed = Vec::new();
        for (name, slots) in slots {
            if let Some(count) = self.counts().get_mut(&name) {
                // A slot that was freed as lost may still be reported.
                let slots = slots.min(count.all - count.free);
                count.free += slots;
                freed.push((name, slots));
            }
        }
        self.executors.unbind_tasks(freed).await
    }

    async fn register_executor(
        &self,
        metadata: ExecutorMetadata,
        data: ExecutorData,
    ) -> Result<()> {
        let count = Count { all: data.total_vcores, free: data.available_vcores };
        let name = metadata.id.clone();
        self.executors.register_executor(metadata, data).await?;
        self.counts().insert(name, count);
        Ok(())
    }

    async fn save_executor_metadata(&self, metadata: ExecutorMetadata) -> Result<()> {
        self.executors.save_executor_metadata(metadata).await
    }

    async fn get_executor_metadata(&self, name: &str) -> Result<ExecutorMetadata> {
        self.executors.get_executor_metadata(name).await
    }

    async fn registered_executor_metadata(&self) -> Vec<ExecutorMetadata> {
        self.executors.registered_executor_metadata().await
    }

    async fn save_executor_heartbeat(&self, heartbeat: ExecutorHeartbeat) -> Result<()> {
        self.executors.save_executor_heartbeat(heartbeat).await
    }

    async fn remove_executor(&self, name: &str) -> Result<()> {
        self.counts().remove(name);
        self.executors.remove_executor(name).await
    }

    fn executor_heartbeats(&self) -> HashMap<String, ExecutorHeartbeat> {
        self.executors.executor_heartbeats()
    }

    fn get_executor_heartbeat(&self, name: &str) -> Option<ExecutorHeartbeat> {
        self.executors.get_executor_heartbeat(name)
    }

    async fn cluster_state_events(&self) -> Result<ClusterStateEventStream> {
        self.executors.cluster_state_events().await
    }
}
