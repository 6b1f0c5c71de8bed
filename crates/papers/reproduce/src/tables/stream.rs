//! The figures of one stream.

use std::collections::HashSet;

use super::derived::derived;
use super::{Figure, Source};
use crate::published::Configuration;
use workahead_counters::event::Privilege;
use workahead_counters::metric;
use workahead_counters::metrics::{MetricValue, Metrics};
use workahead_counters::stream::Stream;

/// The figures of one stream, as they were counted: of one machine, one work, one number of
/// processors.
#[derive(Debug, Clone, Copy)]
pub struct StreamFigures<'a> {
    /// Its metrics.
    pub metrics: &'a Metrics,
    /// How many processors were counted, if that is known.
    pub processors: Option<u32>,
}

/// The base system of Keeton et al. (Table 1), in whose columns stands what was counted here.
const BASE_PROCESSORS: u32 = 4;
const BASE_L2_KIB: u32 = 1024;

const NO_OTHER_L2: &str = "the L2 of a machine can't be changed: a modelled machine can";
const NO_OTHER_BUS: &str =
    "the outstanding requests of a machine can't be limited: a modelled machine can";

impl Source for StreamFigures<'_> {
    fn figure(&self, metric: &str, at: &Configuration) -> Result<Figure, String> {
        let remark = self.answers(at)?;
        let privilege = at.privilege.unwrap_or(Privilege::Both);
        let mut figure = match derived(metric) {
            Some(derived) => self.derived(derived, privilege)?,
            None => self.counted(metric, privilege)?,
        };
        let said = [figure.instead.take(), remark];
        figure.instead = joined(said.into_iter().flatten());
        Ok(figure)
    }
}

impl<'a> StreamFigures<'a> {
    /// The metrics of a stream, with the cores that anything ran on as its processors.
    #[must_use]
    pub fn of(stream: &Stream, metrics: &'a Metrics) -> Self {
        let known = metrics.values().iter().filter(|valued| valued.value.is_some());
        let ran: HashSet<u32> = known.filter_map(|valued| valued.cpu).collect();
        let has_run = |core: &&Vec<u32>| core.iter().any(|cpu| ran.contains(cpu));
        let cores = stream.header.cores.iter().filter(has_run).count();
        let processors = u32::try_from(cores).ok().filter(|cores| *cores > 0);
        Self { metrics, processors }
    }

    /// Whether the counts are an answer there, and with which remark.
    fn answers(&self, at: &Configuration) -> Result<Option<String>, String> {
        if at.outstanding.is_some() {
            return Err(NO_OTHER_BUS.to_owned());
        }
        if at.l2_kib.is_some_and(|l2_kib| l2_kib != BASE_L2_KIB) {
            return Err(NO_OTHER_L2.to_owned());
        }
        if let Some(workload) = &at.workload {
            return Err(format!("the counted work is not known to be {workload}"));
        }
        let Some(processors) = at.processors.map(u32::from) else { return Ok(None) };
        match self.processors {
            Some(counted) if counted == processors => Ok(None),
            Some(counted) if processors == BASE_PROCESSORS => {
                Ok(Some(format!("counted on {counted} processors")))
            }
            None if processors == BASE_PROCESSORS => Ok(None),
            _ if processors == 1 => Err("no run on 1 processor was counted".to_owned()),
            _ => Err(format!("no run on {processors} processors was counted")),
        }
    }

    /// A metric of the catalogue.
    fn counted(&self, name: &str, privilege: Privilege) -> Result<Figure, String> {
        let of: Vec<&MetricValue> = self
            .metrics
            .values()
            .iter()
            .filter(|valued| valued.metric.name == name && valued.cpu.is_none())
            .collect();
        let found = of.iter().find(|valued| valued.privilege == privilege);
        if let Some(MetricValue { value: Some(value), noisy, instead, .. }) = found {
            return Ok(Figure { value: *value, noisy: *noisy, instead: instead.clone() });
        }
        // A metric that is nowhere stands once, with its reason.
        let nowhere = of.iter().all(|valued| valued.value.is_none());
        let why = found.or(of.first().filter(|_| nowhere)).and_then(|valued| valued.why.clone());
        Err(match why {
            Some(why) => why,
            None if of.is_empty() => {
                let metric = metric::named(name).map_err(|error| error.to_string())?;
                format!("not requested: `--metrics {}` counts it", metric.groups[0])
            }
            None => "user and kernel were not counted apart: `--sides` does".to_owned(),
        })
    }

    /// One that follows from metrics.
    fn derived(
        &self,
        derived: &super::DerivedFigure,
        privilege: Privilege,
    ) -> Result<Figure, String> {
        let Some(of) = derived.of else { return Err(derived.says.to_owned()) };
        let mut inputs = Vec::with_capacity(derived.inputs.len());
        for name in derived.inputs {
            let input = self.counted(name, privilege);
            inputs.push(input.map_err(|why| format!("{name}: {why}"))?);
        }
        let values: Vec<f64> = inputs.iter().map(|input| input.value).collect();
        let value = of(&values).map_err(|missing| missing.to_string())?;
        let noisy = inputs.iter().any(|input| input.noisy);
        let instead = joined(inputs.into_iter().filter_map(|input| input.instead));
        Ok(Figure { value, noisy, instead })
    }
}

/// The remarks, each once.
fn joined(said: impl Iterator<Item = String>) -> Option<String> {
    let mut once: Vec<String> = Vec::new();
    for one in said {
        if !once.contains(&one) {
            once.push(one);
        }
    }
    (!once.is_empty()).then(|| once.join("; "))
}
