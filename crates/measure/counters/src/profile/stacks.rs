//! Stacks of addresses, counted while they come in.

use std::collections::HashMap;

use super::modules::ModuleId;

/// Where a frame of a stack is, before it has a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Address {
    /// In a module, in its own terms.
    Code {
        /// The module.
        module: ModuleId,
        /// Its address there.
        address: u64,
    },
    /// In the kernel.
    Kernel(u64),
    /// In no known mapping.
    Unmapped,
    /// The rest of the stack was not unwound.
    Cut,
}

/// Samples and events of a stack.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Weight {
    pub(super) samples: u64,
    pub(super) events: u64,
}

/// All stacks so far.
#[derive(Debug, Default)]
pub(super) struct Stacks {
    numbers: HashMap<Address, u32>,
    /// By number.
    pub(super) addresses: Vec<Address>,
    /// Numbers of addresses, the outermost call first.
    pub(super) counted: HashMap<Box<[u32]>, Weight>,
}

impl Stacks {
    /// The number of an address.
    pub(super) fn number(&mut self, address: Address) -> u32 {
        *self.numbers.entry(address).or_insert_with(|| {
            self.addresses.push(address);
            u32::try_from(self.addresses.len() - 1).expect("fewer addresses than 2^32")
        })
    }

    /// Counts a sample.
    pub(super) fn count(&mut self, stack: &[u32], events: u64) {
        // Most stacks have been met before; only a new one is kept.
        let weight = match self.counted.get_mut(stack) {
            Some(weight) => weight,
            None => self.counted.entry(stack.into()).or_default(),
        };
        weight.samples += 1;
        weight.events = weight.events.saturating_add(events);
    }
}
