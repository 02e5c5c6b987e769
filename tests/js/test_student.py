"""Tests that intervals of means over seeds use Student's quantile for every number of seeds."""

import pytest
from scipy import stats

pytestmark = pytest.mark.browser
DEGREES = [*range(1, 260), 500, 1000, 10_000, 1_000_000]


def test_the_quantile_is_scipys_for_every_number_of_values(module_page):
    result = module_page.evaluate(
        """async (degrees) => {
            const { t95 } = await import("/static/js/metrics/student.js");
            return degrees.map(t95);
        }""",
        DEGREES,
    )
    assert result == pytest.approx(stats.t.ppf(0.975, DEGREES).tolist(), abs=1e-6)


@pytest.mark.parametrize("seeds", [2, 3, 10, 11, 12, 25])
def test_a_band_over_seeds_reaches_as_far_as_scipys_interval(module_page, seeds):
    values = [(7 * n * n) % 11 / 3 for n in range(seeds)]
    least, most = module_page.evaluate(
        """async (values) => {
            const { band } = await import("/static/js/metrics/metric-buckets.js");
            const { least, most } = band(values.map((value) => ({ mean: [value] })), "ci");
            return [least[0], most[0]];
        }""",
        values,
    )
    mean, error = sum(values) / seeds, stats.sem(values)
    expected = stats.t.interval(0.95, seeds - 1, loc=mean, scale=error)
    assert (least, most) == pytest.approx(expected, rel=1e-6)
