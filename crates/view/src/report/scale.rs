//! Maps values to positions on an axis, with ticks at round values: 1, 2 and 5 times a power of ten for amounts, and
//! units of the clock for times.

/// The unit of a chart's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Bytes,
    BytesPerSecond,
    /// A fraction of 1, shown as a percentage.
    Share,
    Celsius,
    Watts,
    PerSecond,
}

impl Unit {
    /// The name of the unit in the page's script.
    pub fn word(self) -> &'static str {
        match self {
            Unit::Bytes => "bytes",
            Unit::BytesPerSecond => "bytes/s",
            Unit::Share => "share",
            Unit::Celsius => "celsius",
            Unit::Watts => "watts",
            Unit::PerSecond => "/s",
        }
    }

    pub fn format_value(self, value: f64) -> String {
        use antifreeze_text::units;
        match self {
            Unit::Bytes => units::bytes(value as u64),
            Unit::BytesPerSecond => format!("{}/s", units::bytes(value as u64)),
            Unit::Share => units::percent(value),
            Unit::Celsius => format!("{value:.0} °C"),
            Unit::Watts => format!("{value:.0} W"),
            Unit::PerSecond if value < 9.95 => format!("{value:.1}/s"),
            Unit::PerSecond => format!("{value:.0}/s"),
        }
    }

    /// The smallest range of an axis, so that noise near zero is not magnified.
    fn least(self) -> f64 {
        match self {
            Unit::Bytes => 1e6,
            Unit::BytesPerSecond => 1e6,
            Unit::Share => 0.1,
            Unit::Celsius => 20.0,
            Unit::Watts => 10.0,
            Unit::PerSecond => 0.1,
        }
    }
}

/// The value axis of a chart.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Scale {
    low: f64,
    high: f64,
    pub ticks: Vec<f64>,
}

impl Scale {
    /// Creates an axis for values within these bounds, with about `parts` steps. Only temperatures may start above 0.
    pub fn fit(unit: Unit, smallest: f64, largest: f64, parts: f64) -> Scale {
        let largest = largest.clamp(0.0, 1e25);
        let low = match unit {
            Unit::Celsius => (smallest.clamp(0.0, largest) / 10.0).floor() * 10.0,
            _ => 0.0,
        };
        let mut span = (largest - low).max(unit.least());
        if unit == Unit::Share {
            span = span.min(1.0);
        }
        let step = round_up(unit, span / parts.max(1.0));
        let count = (span / step - 1e-9).ceil().max(1.0);
        let ticks = (0..=count as u32)
            .map(|index| low + f64::from(index) * step)
            .collect();
        Scale {
            low,
            high: low + count * step,
            ticks,
        }
    }

    /// The position of a value: 0 at the bottom, 1 at the top.
    pub fn place(&self, value: f64) -> f64 {
        ((value - self.low) / (self.high - self.low)).clamp(0.0, 1.0)
    }
}

/// The smallest of 1, 2 and 5 with zeros that is not below; 2.5 too where it is said exactly.
fn round_up(unit: Unit, value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    let is_said = |step: f64| match unit {
        Unit::Bytes | Unit::BytesPerSecond => true,
        Unit::Share => step >= 0.2,
        Unit::Celsius | Unit::Watts | Unit::PerSecond => step >= 20.0,
    };
    [1.0, 2.0, 2.5, 5.0, 10.0]
        .into_iter()
        .filter(|factor| *factor != 2.5 || is_said(factor * power))
        .map(|factor| factor * power)
        .find(|step| *step >= value * (1.0 - 1e-9))
        .unwrap_or(value)
}

/// Steps of a time axis, in seconds. The script uses the same when it zooms.
pub(crate) const TIME_STEPS: [f64; 25] = [
    0.1,
    0.2,
    0.5,
    1.0,
    2.0,
    5.0,
    10.0,
    15.0,
    30.0,
    60.0,
    120.0,
    300.0,
    600.0,
    900.0,
    1_800.0,
    3_600.0,
    7_200.0,
    10_800.0,
    21_600.0,
    43_200.0,
    86_400.0,
    172_800.0,
    604_800.0,
    2_592_000.0,
    31_536_000.0,
];

/// The marks of a time axis between two times in seconds: at most `most` steps.
pub(crate) fn time_ticks(from: f64, to: f64, most: f64) -> Vec<f64> {
    let fitting = TIME_STEPS
        .into_iter()
        .find(|step| (to - from) / step <= most);
    // Longer than any run: one mark, at its beginning.
    let Some(step) = fitting else {
        return vec![from];
    };
    let first = (from / step - 1e-9).ceil();
    let count = (to / step + 1e-9).floor() - first;
    (0..=count.max(0.0) as u32)
        .map(|index| (first + f64::from(index)) * step)
        .filter(|tick| *tick <= to + 1e-9)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn amounts_are_marked_at_round_values() {
        for (unit, largest, said) in [
            (Unit::Bytes, 13.9e9, vec!["0 B", "5 GB", "10 GB", "15 GB"]),
            (
                Unit::Bytes,
                8e9,
                vec!["0 B", "2 GB", "4 GB", "6 GB", "8 GB"],
            ),
            (
                Unit::Bytes,
                0.0,
                vec!["0 B", "250 kB", "500 kB", "750 kB", "1 MB"],
            ),
            (
                Unit::Share,
                0.97,
                vec!["0 %", "25 %", "50 %", "75 %", "100 %"],
            ),
            (Unit::Share, 0.03, vec!["0 %", "5 %", "10 %"]),
            (
                Unit::Share,
                3.0,
                vec!["0 %", "25 %", "50 %", "75 %", "100 %"],
            ),
            (
                Unit::PerSecond,
                11.0,
                vec!["0.0/s", "5.0/s", "10/s", "15/s"],
            ),
        ] {
            let scale = Scale::fit(unit, 0.0, largest, 4.0);
            let ticks: Vec<String> = scale
                .ticks
                .iter()
                .map(|tick| unit.format_value(*tick))
                .collect();
            assert_eq!(ticks, said);
        }
        let heat = Scale::fit(Unit::Celsius, 47.0, 83.0, 3.0);
        assert_eq!(heat.ticks, [40.0, 60.0, 80.0, 100.0]);
    }

    #[test]
    fn times_are_marked_as_on_a_clock() {
        assert_eq!(
            time_ticks(0.0, 252.0, 6.0),
            [0.0, 60.0, 120.0, 180.0, 240.0]
        );
        assert_eq!(
            time_ticks(0.0, 86_400.0, 4.0),
            [0.0, 21_600.0, 43_200.0, 64_800.0, 86_400.0]
        );
        assert_eq!(time_ticks(86_090.0, 86_390.0, 4.0), [86_160.0, 86_280.0]);
        assert_eq!(time_ticks(0.0, 0.0, 6.0), [0.0]);
        assert_eq!(time_ticks(7.0, 1e18, 6.0), [7.0]);
    }

    proptest! {
        #[test]
        fn every_value_has_a_place_below_a_few_marks(largest in 0.0..1e30f64, part in 0.0..1.0f64) {
            for unit in [Unit::Bytes, Unit::Share, Unit::Celsius, Unit::Watts, Unit::PerSecond] {
                let scale = Scale::fit(unit, largest * part, largest, 4.0);
                prop_assert!((2..=6).contains(&scale.ticks.len()), "{:?}", scale);
                prop_assert!((0.0..=1.0).contains(&scale.place(largest * part)), "{:?}", scale);
            }
        }
    }
}
