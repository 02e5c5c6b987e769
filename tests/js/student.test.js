import { t95, Z95 } from "/static/js/metrics/student.js";
import { ok, test } from "./check.js";

const near = (a, b) => ok(Math.abs(a - b) < 1e-6, `${a} is not ${b}`);

test("Student's t is the tables' for few values and falls to the normal distribution's", () => {
  near(t95(1), 12.706205);
  near(t95(9), 2.262157);
  near(t95(10), 2.228139);
  near(t95(30), 2.042272);
  near(t95(10 ** 9), Z95);
  for (let degrees = 2; degrees < 500; degrees += 1) {
    if (t95(degrees) >= t95(degrees - 1) || t95(degrees) <= Z95) throw new Error(`it does not fall at ${degrees}`);
  }
});

test("there is no interval of a single value", () => {
  let error = null;
  try {
    t95(0);
  } catch (thrown) {
    error = thrown;
  }
  if (!(error instanceof RangeError)) throw new Error("0 degrees of freedom have a quantile");
});
