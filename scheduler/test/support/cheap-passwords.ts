/**
 * Lowers the cost of hashing passwords, which would otherwise take a tenth of the time of tests that sign in some thousand times. The unit
 * test of passwords and the test with a flood of sign-ins keep the production cost.
 */
import { cost } from "../../src/access/password.ts";

cost.N = 2 ** 10;
