//! The engines of this command, from all crates that have engines.

use workahead_study::engine::EngineRegistry;

/// All of them.
pub(crate) fn registry() -> EngineRegistry {
    let mut registry = EngineRegistry::default();
    workahead_native::register(&mut registry);
    workahead_engines::register(&mut registry);
    workahead_modelled::register(&mut registry);
    registry
}

#[cfg(test)]
mod tests {
    use workahead_study::catalogue;
    use workahead_study::spec::Spec;

    #[test]
    fn every_study_names_an_engine() {
        let engines = super::registry();
        for study in catalogue::all() {
            let spec = Spec::parse(study.id, study.text).unwrap();
            assert!(engines.entries().any(|entry| entry.name == spec.engine), "{}", study.id);
        }
    }
}
