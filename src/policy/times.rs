//! What time it is for a policy.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    path::Path,
};

use jiff::Timestamp;

use super::{
    Policy,
    layer::{Layer, LayerKind},
    selector::Window,
    source::SYSTEM_POLICY,
};

impl Policy {
    /// Of everything that asks for the time, rules, exceptions, limits and reservations, whether it is its
    /// time. As long as this stays the same, so does what comes out of a request.
    pub fn times_at(&self, now: Timestamp) -> Vec<bool> {
        self.times_of(|_| true, now)
    }

    fn times_of(&self, is_asked: impl Fn(&Layer) -> bool, now: Timestamp) -> Vec<bool> {
        let mut times = Vec::new();
        let mut add = |layer: usize, windows: &[Window]| {
            let zone = Some(&self.layers[layer])
                .filter(|layer| is_asked(layer))
                .and_then(|layer| layer.zone.as_ref());
            let local = zone.map(|zone| zone.to_datetime(now));
            times.extend(local.map(|local| windows.iter().any(|window| window.contains(local))));
        };
        let mut idle = self.idle.iter().peekable();
        for (index, rule) in self.rules.iter().enumerate() {
            while let Some(idle) = idle.next_if(|idle| idle.after <= index) {
                add(idle.layer, &idle.times);
            }
            let tables = [&rule.selectors].into_iter().chain(&rule.except);
            tables.filter_map(|table| table.when.as_deref()).for_each(|windows| add(rule.layer, windows));
        }
        idle.for_each(|idle| add(idle.layer, &idle.times));
        for repository in &self.repositories {
            let times = repository.times().filter(|windows| !windows.is_empty());
            times.for_each(|windows| add(repository.layer, windows));
        }
        times
    }

    /// 12 bits that change when the policy does, or what it says of the time: limits that two launches were
    /// given are compared only where these agree.
    pub fn generation(&self, now: Timestamp) -> u16 {
        let mut hasher = DefaultHasher::new();
        self.stamps.shared(Path::new(SYSTEM_POLICY).parent()).for_each(|file| file.hash(&mut hasher));
        self.times_of(|layer| layer.kind != LayerKind::Delegated, now).hash(&mut hasher);
        // 0 is for launches without a policy.
        u16::try_from(hasher.finish() % 4095 + 1).unwrap_or(1)
    }
}
