//! Cells run under a tool that counts instructions and cache misses by a model: evidence tier D.
//!
//! ```toml
//! [method]
//! instrumented = { tool = "callgrind", caches = "pentium-pro-1m" }
//! ```
//!
//! It takes no counters of the machine, and the caches may be any, so a study can model caches of
//! half the size. An axis, or setting of a case, named `caches` overrides the method's.

use serde::{Deserialize, Serialize};
use workahead_counters::instrumented::{
    CacheShape, Error, Geometry, Preset, THIS_MACHINE, THIS_MACHINE_L2, Tool,
};
use workahead_machine::caches::Cache;

use crate::cell::Cell;

/// The axis, or setting of a case, that overrides the method's caches.
pub const CACHES: &str = "caches";

/// The tool that counts, and the caches of its model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instrumentation {
    /// The tool that counts. Only callgrind distinguishes functions without symbols.
    #[serde(default = "callgrind")]
    pub tool: Tool,
    /// The name of a preset ([`Preset::names`]); or three shapes, `L1I; L1D; last level`, each
    /// `bytes,ways,line bytes`: `32KiB,8,64; 32KiB,8,64; 2MiB,16,64`.
    pub caches: String,
}

fn callgrind() -> Tool {
    Tool::Callgrind
}

/// The caches of a model, as a run had them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Model {
    /// As the study names them.
    pub caches: String,
    /// Their geometry.
    pub geometry: Geometry,
    /// The source of each of their numbers.
    pub origins: Vec<String>,
}

impl Instrumentation {
    /// With the caches of this cell.
    #[must_use]
    pub fn of(&self, cell: &Cell) -> Instrumentation {
        let own = cell.get(CACHES).map(ToString::to_string);
        Instrumentation { tool: self.tool, caches: own.unwrap_or_else(|| self.caches.clone()) }
    }

    /// The caches of the model. `caches` are those of this machine, for presets of this machine.
    ///
    /// # Errors
    /// If no preset has that name, valgrind has no model of such a cache, or the system does not
    /// describe its own.
    pub fn geometry(&self, caches: &[Cache]) -> Result<Geometry, Error> {
        model(&self.caches, caches).map(|model| model.geometry)
    }
}

pub(crate) fn model(text: &str, caches: &[Cache]) -> Result<Model, Error> {
    let named = text.to_owned();
    if !text.contains([';', ',']) {
        let Preset { geometry, origins, .. } = Preset::named(text, caches)?;
        return Ok(Model { caches: named, geometry, origins });
    }
    let shapes = text.split(';').map(|shape| shape.trim().parse());
    match shapes.collect::<Result<Vec<CacheShape>, Error>>()?.as_slice() {
        &[l1i, l1d, last] => Ok(Model {
            caches: named,
            geometry: Geometry { l1i, l1d, last },
            origins: vec!["all of it: the study itself".to_owned()],
        }),
        _ => Err(Error::Shape {
            text: text.to_owned(),
            why: "it takes three shapes, `L1I; L1D; last level`".to_owned(),
        }),
    }
}

/// Refuses unknown caches; whether this machine describes its own is checked later.
pub(crate) fn check(text: &str) -> Result<(), String> {
    match text {
        THIS_MACHINE | THIS_MACHINE_L2 => Ok(()),
        other => model(other, &[]).map(drop).map_err(|error| error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run_plan::RunPlan;
    use crate::spec::Spec;

    const STUDY: &str = r#"
        title = "t"
        question = "q"
        engine = "mock"
        [axes]
        caches = ["pentium-pro-1m", "pentium-pro-256k"]
        [method]
        instrumented = { caches = "this-machine" }
    "#;

    fn message(old: &str, new: &str) -> String {
        assert!(STUDY.contains(old), "{old}");
        let message = Spec::parse("demo", &STUDY.replacen(old, new, 1)).unwrap_err().to_string();
        assert!(!message.contains('\n'), "{message}");
        message
    }

    #[test]
    fn a_cells_caches_override_the_methods() {
        let spec = Spec::parse("demo", STUDY).unwrap();
        let run_plan = RunPlan::new(&spec);
        let method = run_plan.instrumented.as_ref().unwrap();
        assert_eq!(method.tool, Tool::Callgrind);
        let bytes = |caches: &Instrumentation| caches.geometry(&[]).unwrap().last.bytes();
        let lasts: Vec<u64> = run_plan.cells.iter().map(|cell| bytes(&method.of(cell))).collect();
        assert_eq!(lasts, [1 << 20, 256 << 10]);
        let models = run_plan.models(&[]).unwrap();
        let named: Vec<&str> = models.iter().map(|model| model.caches.as_str()).collect();
        assert_eq!(named, ["pentium-pro-1m", "pentium-pro-256k"]);
        assert!(models[0].origins[0].contains("Keeton"), "{:?}", models[0].origins);
        let mut bare = run_plan.cells[0].clone();
        bare.settings.clear();
        assert_eq!(&method.of(&bare), method);
    }

    #[test]
    fn shapes_are_read_in_the_order_of_their_levels() {
        let caches = "16KiB,8,64; 32KiB, 8, 64;2MiB,16,64".to_owned();
        let given = Instrumentation { tool: Tool::Cachegrind, caches };
        let Geometry { l1i, l1d, last } = given.geometry(&[]).unwrap();
        let bytes = [l1i, l1d, last].map(CacheShape::bytes);
        assert_eq!(bytes, [16 << 10, 32 << 10, 2 << 20]);
        for wrong in ["32KiB,8,64", "32KiB,8,64; 32KiB,8,64", "32KiB,8,64; 32KiB,7,64; 2MiB,16,64"]
        {
            assert!(check(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn slips_name_the_nearest() {
        let golden = [
            ("\"pentium-pro-1m\"", "\"pentium-pro-1mb\"", "did you mean `pentium-pro-1m`?"),
            ("this-machine", "this-machin", "did you mean `this-machine`?"),
            ("{ caches", "{ tool = \"calgrind\", caches", "did you mean `callgrind`?"),
            ("{ caches", "{ caces", "`caces`: did you mean `caches`?"),
            ("{ caches", "{ tol = \"callgrind\", caches", "did you mean `tool`?"),
        ];
        for (old, new, expected) in golden {
            let message = message(old, new);
            assert!(message.contains(expected), "{new}: {message}");
        }
        let chart = "[method]\ncharts = [{ kind = \"bars\" }]";
        let claim =
            "[[paper]]\nrow = \"E0.2\"\nfigure = \"1\"\nratio = 2.0\nsays = \"x\"\n[method]";
        for (given, at) in [(chart, "chart 1"), (claim, "claim E0.2")] {
            let timed = message("[method]", given);
            assert!(timed.contains(at) && timed.contains("`instructions_per_tuple`"), "{timed}");
        }
        let collection = message("[method]", "[method]\nprofile_hz = 99");
        assert!(collection.contains("leave `counters` and `profile_hz` out"), "{collection}");
    }

    #[test]
    fn the_fingerprint_of_a_study_without_it_stays() {
        let plain = STUDY.replace("instrumented = { caches = \"this-machine\" }", "");
        let text = |study: &str| {
            serde_json::to_string(&RunPlan::new(&Spec::parse("demo", study).unwrap())).unwrap()
        };
        assert!(!text(&plain).contains("instrumented"));
        assert!(text(STUDY).contains(r#""instrumented":{"tool":"callgrind","#));
    }
}
