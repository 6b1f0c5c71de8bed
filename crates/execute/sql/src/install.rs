//! Workahead's rules among those of a session.

use datafusion::execution::SessionStateBuilder;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use workahead_datafusion::{WorkaheadOptions, insert_rules};

/// Lets a session do its hash joins with Workahead.
#[must_use]
pub fn install(mut builder: SessionStateBuilder) -> SessionStateBuilder {
    let config = builder.config().get_or_insert_default();
    if config.options().extensions.get::<WorkaheadOptions>().is_none() {
        config.options_mut().extensions.insert(WorkaheadOptions::default());
    }
    let rules = &mut builder.physical_optimizers().get_or_insert_with(PhysicalOptimizer::new).rules;
    insert_rules(rules);
    builder
}
