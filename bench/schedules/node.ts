/**
 * The process under test: a node with default settings that plans and executes. It records the start of each run: in a handler that does
 * nothing else, or, with `commands`, where commands start in rehearsal.
 */
import { monitorEventLoopDelay } from "node:perf_hooks";
import { Carillon, realSurroundings } from "../measure/internals.ts";
import { StartNotes } from "../measure/starts.ts";
import { answerAsSubject } from "../measure/subject.ts";

const { url, schema, commands } = JSON.parse(process.argv[2] ?? "{}") as {
  url: string;
  schema: string;
  commands: boolean;
};
const loop = monitorEventLoopDelay({ resolution: 1 });
loop.enable();
const silent = () => undefined;
const note = (run: { id: number; slot: Date | null }) => {
  if (run.slot !== null) notes.note(run.id, run.slot.getTime());
};
const tower = new Carillon(
  {
    store: url,
    schema,
    handleSignals: false,
    log: { debug: silent, info: silent, warn: console.warn, error: console.error },
    groups: ["default"],
    commands: { allow: ["true"], rehearse: true },
  },
  commands ? realSurroundings : { ...realSurroundings, handlerFor: () => note },
);
const tell = answerAsSubject(async () => {
  await tower.stop();
  notes.flush();
}, loop);
const notes = new StartNotes((batch) => tell({ kind: "starts", batch }));
if (commands)
  tower.onRun(({ kind, runId, slotMs }) => {
    if (kind === "started" && slotMs !== null) notes.note(runId, slotMs);
  });
await tower.start();
tell({ kind: "started" });
