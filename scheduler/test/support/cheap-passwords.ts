/**
 * Lowers the cost of hashing passwords for tests that sign in many times. The unit test of passwords and the test with a flood of sign-ins
 * keep the production cost.
 */
import { cost } from "../../src/access/password.ts";

cost.N = 2 ** 10;
