//! The names of one frame while it is evaluated.

use super::facts::LoopId;
use super::value::Value;
use rustc_hash::FxHashMap;

/// The current value of a name, and the innermost loop it was bound in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Binding {
    /// The value.
    pub value: Value,
    /// The loop that binds the name.
    pub bound_in: Option<LoopId>,
}

/// The bindings of a frame. Names may be dotted (`self.total`) or indexed by a literal
/// (`sums["loss"]`).
#[derive(Default)]
pub struct Scope<'a> {
    places: FxHashMap<&'a str, usize>,
    slots: Vec<Option<Binding>>,
}

/// The bindings at one point, such as before a branch.
pub struct ScopeSnapshot(Vec<Option<Binding>>);

impl<'a> Scope<'a> {
    /// Returns the binding of a name.
    pub fn get(&self, name: &str) -> Option<Binding> {
        *self.slots.get(*self.places.get(name)?)?
    }

    /// Binds a name.
    pub fn set(&mut self, name: &'a str, slot: Binding) {
        let fresh = self.places.len();
        let place = *self.places.entry(name).or_insert(fresh);
        if place >= self.slots.len() {
            self.slots.resize(place + 1, None);
        }
        self.slots[place] = Some(slot);
    }

    /// Changes the value of a name without rebinding it.
    pub fn update_value(&mut self, name: &str, revise: impl FnOnce(&mut Value)) {
        if let Some(place) = self.places.get(name)
            && let Some(Some(slot)) = self.slots.get_mut(*place)
        {
            revise(&mut slot.value);
        }
    }

    /// Unbinds a name, as `del` does.
    pub fn remove(&mut self, name: &str) {
        if let Some(place) = self.places.get(name)
            && let Some(slot) = self.slots.get_mut(*place)
        {
            *slot = None;
        }
    }

    /// Copies the current bindings.
    pub fn snapshot(&self) -> ScopeSnapshot {
        ScopeSnapshot(self.slots.clone())
    }

    /// Restores a snapshot and returns the bindings it replaces.
    pub fn restore(&mut self, fork: &ScopeSnapshot) -> ScopeSnapshot {
        ScopeSnapshot(std::mem::replace(&mut self.slots, fork.0.clone()))
    }

    /// Joins the bindings of another branch. A name bound in a loop in either branch counts as
    /// bound there, because it may be new in each iteration.
    pub fn merge(&mut self, other: &ScopeSnapshot) {
        if self.slots.len() < other.0.len() {
            self.slots.resize(other.0.len(), None);
        }
        for (slot, theirs) in self.slots.iter_mut().zip(&other.0) {
            *slot = match (*slot, *theirs) {
                (Some(one), Some(two)) => Some(Binding {
                    value: one.value.join(two.value),
                    bound_in: one.bound_in.max(two.bound_in),
                }),
                (one, two) => one.or(two),
            };
        }
    }

    /// Returns the final value of every name.
    pub fn into_values(self) -> FxHashMap<&'a str, Value> {
        let slots = self.slots;
        self.places
            .into_iter()
            .filter_map(|(name, place)| Some((name, slots.get(place)?.as_ref()?.value)))
            .collect()
    }
}
