/**
 * One process of the demo's cluster: `node node.js {"name", "directory", "record"}`, started with an IPC channel. It sends "ready" once it
 * has joined the cluster. It stops when it receives a message, or when its parent has gone.
 */
import { carillon, isCarillonError } from "carillon";
import { Recorder } from "./record.ts";
import { debianTasks, defineTasks } from "./tasks.ts";

export interface NodeOrder {
  name: string;
  directory: string;
  record: string;
}

const { name, directory, record } = JSON.parse(process.argv[2] ?? "") as NodeOrder;
const recorder = new Recorder(record, name);
const quiet = () => undefined;
const say = (fields: object, message: string) =>
  recorder.write({
    kind: "said",
    text: Object.keys(fields).length > 0 ? `${message} ${JSON.stringify(fields)}` : message,
  });

const tower = carillon({
  name,
  store: "embedded",
  directory,
  handleSignals: false,
  // High enough for the surviving node: it starts all runs that the dead process had claimed (those due within a second) at once, beside
  // its own.
  concurrency: 300,
  // Commands are checked and logged but not executed, because these crontabs were written for other machines.
  commands: {
    rehearse: true,
    shell: true,
    allow: [...new Set(debianTasks().tasks.map(({ command }) => command.argv[0] ?? ""))],
  },
  log: { debug: quiet, info: quiet, warn: say, error: say },
});
defineTasks(tower, recorder);

let stopping = false;
async function stop(): Promise<void> {
  stopping = true;
  await tower.stop();
  process.exit(0);
}
process.on("message", () => void stop());
process.on("disconnect", () => void stop());
// The parent may have gone before the listener was added.
if (!process.connected) await stop();

try {
  await tower.start();
  if (process.connected) process.send?.("ready");
} catch (error) {
  // If a stop was requested during the start, `stop` ends the process.
  if (!stopping) {
    process.stderr.write(`${name}: ${isCarillonError(error) ? `${error.message} ${error.hint}` : String(error)}\n`);
    process.exit(1);
  }
}
