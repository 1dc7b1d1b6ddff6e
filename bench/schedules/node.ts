/** The process under test: a node with default settings that plans and executes. It records the start of each run. */
import { monitorEventLoopDelay } from "node:perf_hooks";
import { carillon } from "carillon";
import { StartNotes } from "../measure/starts.ts";
import { answerAsSubject } from "../measure/subject.ts";

const { url, schema } = JSON.parse(process.argv[2] ?? "{}") as { url: string; schema: string };
const loop = monitorEventLoopDelay({ resolution: 1 });
loop.enable();
const silent = () => undefined;
const tower = carillon({
  store: url,
  schema,
  handleSignals: false,
  log: { debug: silent, info: silent, warn: console.warn, error: console.error },
  groups: ["default"],
  commands: { allow: ["true"], rehearse: true },
});
const tell = answerAsSubject(async () => {
  await tower.stop();
  notes.flush();
}, loop);
const notes = new StartNotes((batch) => tell({ kind: "starts", batch }));
tower.onRun(({ kind, runId, slotMs }) => {
  if (kind === "started" && slotMs !== null) notes.note(runId, slotMs);
});
await tower.start();
tell({ kind: "started" });
