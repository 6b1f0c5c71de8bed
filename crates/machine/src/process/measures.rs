//! The names under which results keep what a server used: units last, the same for every engine.

use super::machine_wide::Whole;
use super::resource_use::ResourceUse;

impl ResourceUse {
    /// By name. Events that the kernel does not count have none; `at_least` is 1 where time or
    /// faults are a lower bound because a process ended and nobody waited for it.
    #[must_use]
    pub fn measures(&self) -> Vec<(&'static str, f64)> {
        let mut measures = vec![
            ("server_cpu_s", self.cpu_s),
            ("server_user_s", self.user_s),
            ("server_system_s", self.system_s),
            ("server_cpu_at_least", f64::from(u8::from(self.cpu_is_at_least))),
            ("switches_voluntary", self.switches_voluntary as f64),
            ("switches_involuntary", self.switches_involuntary as f64),
            ("switches_at_least", f64::from(u8::from(self.threads_are_at_least))),
            ("faults_minor", self.faults_minor as f64),
            ("faults_major", self.faults_major as f64),
            ("server_processes", self.processes as f64),
            ("server_threads", self.threads as f64),
        ];
        measures.extend(self.run_delay_s.map(|delay_s| ("run_delay_s", delay_s)));
        measures
    }
}

impl Whole {
    /// By name; figures that this kernel does not report are left out.
    #[must_use]
    pub fn measures(&self) -> Vec<(&'static str, f64)> {
        let all = [
            ("machine_cpu_s", self.total_s),
            ("machine_idle_s", self.idle_s),
            ("steal_s", self.steal_s),
            ("psi_cpu_some_s", self.cpu_some_s),
            ("psi_memory_some_s", self.memory_some_s),
            ("psi_memory_full_s", self.memory_full_s),
            ("psi_io_some_s", self.io_some_s),
            ("psi_io_full_s", self.io_full_s),
            ("cpu_ghz", self.ghz),
        ];
        all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }
}
