//! The stride: the largest growth of one process between two samples in the last seconds.

/// How long the largest growth is remembered.
const WINDOW_NS: u64 = 5_000_000_000;

#[derive(Clone, Copy, Debug, Default)]
pub struct Stride {
    bytes: u64,
    at: u64,
}

impl Stride {
    /// Records how much one process has grown since the sample before.
    pub fn observe(&mut self, now: u64, growth: u64) {
        if growth > self.bytes || !self.is_fresh(now) {
            *self = Stride {
                bytes: growth,
                at: now,
            };
        }
    }

    pub fn bytes(&self, now: u64) -> u64 {
        if self.is_fresh(now) { self.bytes } else { 0 }
    }

    fn is_fresh(&self, now: u64) -> bool {
        now.saturating_sub(self.at) <= WINDOW_NS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_growth_counts_until_it_is_old() {
        let mut stride = Stride::default();
        stride.observe(WINDOW_NS * 2, 30);
        stride.observe(WINDOW_NS * 2 + 1, 10);
        assert_eq!(stride.bytes(WINDOW_NS * 3), 30);
        assert_eq!(stride.bytes(WINDOW_NS * 3 + 1), 0, "nobody looked since");
        stride.observe(WINDOW_NS * 3 + 1, 5);
        assert_eq!(stride.bytes(WINDOW_NS * 3 + 1), 5);
    }
}
