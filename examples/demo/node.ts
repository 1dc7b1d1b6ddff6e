/**
 * One process of the demo's cluster: `node node.js {"name", "directory", "record"}`, started with an IPC channel. It sends "ready" once it
 * has joined, and stops on request, or when its parent is gone.
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
  // The survivor starts the runs that the dead process had claimed, a second's worth at once, beside the runs that come due in the
  // meantime.
  concurrency: 300,
  // Checked and logged, never run: the demo's machine is not the one that these crontabs were written for.
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
// The parent may have gone before this process could notice.
if (!process.connected) await stop();

try {
  await tower.start();
  if (process.connected) process.send?.("ready");
} catch (error) {
  // It was asked to stop while it started: `stop` ends the process.
  if (!stopping) {
    process.stderr.write(`${name}: ${isCarillonError(error) ? `${error.message} ${error.hint}` : String(error)}\n`);
    process.exit(1);
  }
}
