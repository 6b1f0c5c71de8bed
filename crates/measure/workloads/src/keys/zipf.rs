//! Zipf-distributed ranks.
//!
//! Rejection-inversion: W. Hörmann, G. Derflinger, *Rejection-inversion to generate variates from
//! monotone discrete distributions*, ACM TOMACS 6(3), 1996. No table, constant time per draw. The
//! logarithms are the platform's: two platforms may, rarely, round a draw to neighbouring ranks.
//!
//! ```text
//! h(x) = x^-s           the hat; H its integral, H⁻¹ the inverse
//! u  uniform between H(1.5) - 1 and H(n + 0.5);  k = round(H⁻¹(u))
//! keep k when u >= H(k + 0.5) - h(k), otherwise draw again (rarely)
//! ```

use rand::{Rng, RngExt};

use crate::WorkloadError;

/// Ranks `0..ranks`, rank `r` with a probability proportional to `1 / (r + 1)^exponent`.
#[derive(Debug, Clone, Copy)]
pub struct Zipf {
    ranks: f64,
    exponent: f64,
    low: f64,
    high: f64,
}

/// Beyond this nearly every draw is rank 0 and the integrals lose their digits.
const EXPONENT_MAX: f64 = 8.0;

impl Zipf {
    /// A distribution over `ranks` ranks. Exponent 0 is uniform, 1 is the classical Zipf.
    ///
    /// # Errors
    /// When there is no rank, or the exponent is not in `0..=8`.
    pub fn new(ranks: u32, exponent: f64) -> Result<Self, WorkloadError> {
        if ranks == 0 {
            return Err(WorkloadError::Nothing("rank"));
        }
        if !(0.0..=EXPONENT_MAX).contains(&exponent) {
            return Err(WorkloadError::ZipfExponent(exponent));
        }
        let mut zipf = Self { ranks: f64::from(ranks), exponent, low: 0.0, high: 0.0 };
        zipf.low = zipf.integral(1.5) - 1.0;
        zipf.high = zipf.integral(zipf.ranks + 0.5);
        Ok(zipf)
    }

    /// Random a rank.
    pub fn draw(&self, generator: &mut impl Rng) -> u32 {
        loop {
            let u = self.high + generator.random::<f64>() * (self.low - self.high);
            let k = self.inverse(u).round().clamp(1.0, self.ranks);
            if u >= self.integral(k + 0.5) - k.powf(-self.exponent) {
                return k as u32 - 1;
            }
        }
    }

    /// ∫ x^-s dx, written so that exponent 1 is not a special case: ln(x) · expm1(t) / t.
    fn integral(&self, x: f64) -> f64 {
        let log = x.ln();
        log * expm1_over((1.0 - self.exponent) * log)
    }

    fn inverse(&self, value: f64) -> f64 {
        // Rounding may carry t just below -1, where the logarithm ends.
        let t = (value * (1.0 - self.exponent)).max(-1.0);
        (value * ln_1p_over(t)).exp()
    }
}

/// expm1(t) / t, continuous at 0.
fn expm1_over(t: f64) -> f64 {
    if t.abs() > 1e-8 { t.exp_m1() / t } else { 1.0 + t / 2.0 }
}

/// ln(1 + t) / t, continuous at 0.
fn ln_1p_over(t: f64) -> f64 {
    if t.abs() > 1e-8 { t.ln_1p() / t } else { 1.0 - t / 2.0 }
}
