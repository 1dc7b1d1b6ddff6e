/** A node whose handler runs in a child process. Configured by CARILLON_TEST_PROGRAM (JSON): { store, schema } */
import { carillon } from "carillon";

const tower = carillon(JSON.parse(process.env.CARILLON_TEST_PROGRAM ?? "{}"));
tower.task("isolated", { isolate: "process" }, new URL("./isolated.mjs", import.meta.url));
await tower.start();
process.stdout.write("ready\n");
