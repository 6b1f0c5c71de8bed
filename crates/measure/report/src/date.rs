//! Dates and times in UTC.
//!
//! Days are turned into a date by Howard Hinnant's `civil_from_days` (chrono-Compatible Low-Level
//! Date Algorithms, 2013): years are counted from 1 March, so that the leap day is a year's last.

/// `2026-02-11 14:03 UTC` from milliseconds since 1970.
pub(crate) fn utc(unix_ms: u64) -> String {
    let minutes = unix_ms / 60_000;
    let (days, minute_of_day) = (minutes / 1440, minutes % 1440);
    let (year, month, day) = civil(days);
    let (hour, minute) = (minute_of_day / 60, minute_of_day % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02} UTC")
}

fn civil(days_since_1970: u64) -> (u64, u64, u64) {
    const DAYS_PER_ERA: u64 = 146_097;
    // From 1 March of the year 0 to 1 January 1970.
    let days = days_since_1970 + 719_468;
    let (era, day_of_era) = (days / DAYS_PER_ERA, days % DAYS_PER_ERA);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::utc;

    #[test]
    fn known_moments() {
        assert_eq!(utc(0), "1970-01-01 00:00 UTC");
        assert_eq!(utc(951_782_400_000), "2000-02-29 00:00 UTC");
        assert_eq!(utc(1_770_818_580_000), "2026-02-11 14:03 UTC");
        // A broken clock is a strange date, not a panic.
        assert!(utc(u64::MAX).ends_with("UTC"));
    }
}
