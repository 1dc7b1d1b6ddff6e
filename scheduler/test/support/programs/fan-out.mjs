/**
 * A process of a cluster under test whose parent run stops in the middle of its fan-out. Configured by CARILLON_TEST_PROGRAM (JSON): {
 * store, schema, name }. Prints a line when it is ready, and one when half of the children have been created.
 */
import { carillon } from "carillon";

const { store, schema, name } = JSON.parse(process.env.CARILLON_TEST_PROGRAM ?? "{}");
const tower = carillon({
  store,
  schema,
  name,
  groups: ["default"],
  sessionTimeout: "3s",
  concurrency: 20,
  drain: "1s",
});

tower.task("piece", {}, (_run, n) => n);
if (name === "first") tower.task("doomed", { group: "elsewhere" }, () => undefined);
tower.task("whole", {}, async (run) => (await run.inputs()).map(({ task, outcome }) => `${task} ${outcome}`).sort());
const children = Array.from({ length: 40 }, (_, n) => ({
  task: n % 2 === 0 ? "piece" : "doomed",
  payload: n,
  key: `k${n}`,
}));
tower.task("split", {}, async (run) => {
  if (run.attempt === 1) {
    await run.fanOut(children.slice(0, 20), { join: "whole" });
    process.stdout.write("half\n");
    await new Promise((resolve) => setTimeout(resolve, 600_000));
  }
  const refused = await run.fanOut(children, { join: "whole" }).then(
    () => "none",
    (error) => error.code,
  );
  run.log.info(`refused: ${refused}`);
  return run.fanOut(
    children.filter(({ task }) => task === "piece"),
    { join: "whole" },
  );
});
await tower.start();
process.stdout.write("ready\n");
