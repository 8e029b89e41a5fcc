//! Sizes as people write them: `4G`, `1.5GB`, `512M`, `800MiB`, or a share such as `10%`.

use std::str::FromStr;

/// An amount of memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Size {
    Bytes(u64),
    /// A share of the whole, 0 to 1.
    Share(f64),
}

impl Size {
    pub fn of(self, whole: u64) -> u64 {
        match self {
            Size::Bytes(bytes) => bytes,
            Size::Share(share) => (whole as f64 * share) as u64,
        }
    }
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Size, String> {
        let help = || format!("`{text}` is not a size; write 4G, 1.5GB, 512M, 800MiB or 10%");
        let text = text.trim();
        let split = text
            .find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_')
            .unwrap_or(text.len());
        let (number, unit) = text.split_at(split);
        let number: f64 = number.replace('_', "").parse().map_err(|_| help())?;
        let factor = match unit.trim().to_ascii_lowercase().as_str() {
            "%" if number <= 100.0 => return Ok(Size::Share(number / 100.0)),
            "" | "b" => 1.0,
            "k" | "kb" => 1e3,
            "m" | "mb" => 1e6,
            "g" | "gb" => 1e9,
            "t" | "tb" => 1e12,
            "ki" | "kib" => 1024.0,
            "mi" | "mib" => 1024.0 * 1024.0,
            "gi" | "gib" => 1024.0 * 1024.0 * 1024.0,
            "ti" | "tib" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
            _ => return Err(help()),
        };
        let bytes = number * factor;
        if bytes > 1e18 {
            return Err(format!("`{text}` is more than any machine has"));
        }
        Ok(Size::Bytes(bytes as u64))
    }
}

/// The same, where a share makes no sense.
pub fn bytes(text: &str) -> Result<u64, String> {
    match text.parse()? {
        Size::Bytes(bytes) => Ok(bytes),
        Size::Share(_) => Err(format!("`{text}` is a share; write a size such as 4G")),
    }
}

/// What is kept for the person when they do not say: a tenth of a laptop's memory, less
/// of a tenth on a large server, and always enough for a shell and an editor.
pub fn default_reserve(total: u64) -> u64 {
    const MB: u64 = 1_000_000;
    const GB: u64 = 1000 * MB;
    let tenth = total / 10;
    let grows_slowly = 2 * GB + total.saturating_sub(20 * GB) / 50;
    tenth.min(grows_slowly).clamp(48 * MB, 16 * GB)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_people_write_them() {
        for (text, bytes) in [
            ("4G", 4_000_000_000),
            ("1.5GB", 1_500_000_000),
            ("512m", 512_000_000),
            ("2 GiB", 2 << 30),
            ("1_000", 1000),
        ] {
            assert_eq!(text.parse(), Ok(Size::Bytes(bytes)), "{text}");
        }
        assert_eq!("10%".parse(), Ok(Size::Share(0.1)));
    }

    #[test]
    fn nonsense_is_refused_with_an_example() {
        for text in ["", "G", "4X", "-1G", "nan", "inf", "200%", "1..5G", "1e30T"] {
            assert!(text.parse::<Size>().is_err(), "{text}");
        }
        assert!(bytes("10%").is_err());
        assert!(
            "4X".parse::<Size>()
                .is_err_and(|message| message.contains("4G"))
        );
    }

    #[test]
    fn the_default_reserve_fits_laptops_and_servers() {
        let gb = |n: u64| n * 1_000_000_000;
        assert_eq!(default_reserve(512_000_000), 51_200_000);
        assert_eq!(default_reserve(gb(16)), 1_600_000_000);
        assert_eq!(default_reserve(gb(64)), 2_880_000_000);
        assert_eq!(default_reserve(gb(1000)), gb(16));
    }
}
