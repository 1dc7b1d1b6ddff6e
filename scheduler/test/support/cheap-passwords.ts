/**
 * For the tests of a store or a server that this process runs: hashing some thousand passwords at the cost of production would take
 * a tenth of their time. The unit test of passwords and the flood of sign-ins keep the production cost.
 */
import { cost } from "../../src/access/password.ts";

cost.N = 2 ** 10;
