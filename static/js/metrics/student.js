/**
 * Quantiles of Student's t distribution, for intervals of a mean. Pure.
 *
 * The share of the distribution within ±t has a closed form for integer degrees of freedom (Abramowitz
 * and Stegun 26.7.3 and 26.7.4); where its terms would be many, the expansion of 26.7.5 is exact to
 * 1e-9. Both agree with scipy to 1e-6 (tests/js/test_student.py).
 */

export const Z95 = 1.959963984540054; // of the normal distribution, two-sided
const EXPANDED_FROM = 200; // degrees of freedom
const cache = new Map();

/** Returns t such that 95 % of Student's distribution lie within ±t, for degrees of freedom >= 1. */
export function t95(degrees) {
  if (!(degrees >= 1)) throw new RangeError(`degrees = ${degrees}: an interval of a mean takes two values or more`);
  if (!cache.has(degrees)) cache.set(degrees, degrees < EXPANDED_FROM ? solved(degrees) : expanded(degrees));
  return cache.get(degrees);
}

/** Bisects over the angle atan(t / sqrt(degrees)), from 0 to 90 degrees. */
function solved(degrees) {
  let [low, high] = [0, Math.PI / 2];
  for (let step = 0; step < 60; step += 1) {
    const middle = (low + high) / 2;
    if (shareWithin(middle, degrees) < 0.95) low = middle;
    else high = middle;
  }
  return Math.sqrt(degrees) * Math.tan((low + high) / 2);
}

function shareWithin(angle, degrees) {
  const [sin, cos] = [Math.sin(angle), Math.cos(angle)];
  const odd = degrees % 2;
  let term = odd ? cos : 1;
  let sum = degrees > 1 ? term : 0;
  for (let power = odd + 2; power < degrees; power += 2) {
    term *= (cos * cos * (power - 1)) / power;
    sum += term;
  }
  return odd ? (2 / Math.PI) * (angle + sin * sum) : sin * sum;
}

function expanded(degrees) {
  const [z, z2] = [Z95, Z95 ** 2];
  const terms = [
    (z * (z2 + 1)) / 4,
    (z * (5 * z2 ** 2 + 16 * z2 + 3)) / 96,
    (z * (3 * z2 ** 3 + 19 * z2 ** 2 + 17 * z2 - 15)) / 384,
  ];
  return terms.reduceRight((sum, term) => (sum + term) / degrees, 0) + z;
}
