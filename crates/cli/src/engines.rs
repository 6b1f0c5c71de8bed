//! The engines of this command: those of every crate that has some.

use workahead_study::engine::EngineRegistry;

/// All of them.
pub(crate) fn registry() -> EngineRegistry {
    let mut registry = EngineRegistry::default();
    workahead_engines::register(&mut registry);
    registry
}
