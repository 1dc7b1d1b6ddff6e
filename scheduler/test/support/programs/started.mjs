/** A process that starts a tower with the options in CARILLON_TEST_OPTIONS (JSON), and prints `ready`. */
import { carillon } from "carillon";

await carillon({ ...JSON.parse(process.env.CARILLON_TEST_OPTIONS ?? ""), handleSignals: false }).start();
process.stdout.write("ready\n");
