/** A worker with default settings. Its handler returns the time since the run was enqueued, in ms on this machine's clock. */
import { worker } from "carillon/worker";
import { answerAsSubject } from "../measure/subject.ts";

export interface WorkerOrder {
  server: string;
  key: string;
}

const nowMs = () => performance.timeOrigin + performance.now();
const { server, key } = JSON.parse(process.argv[2] ?? "{}") as WorkerOrder;
const mine = worker({ server, key, handleSignals: false })
  .task("trivial", () => undefined)
  .task("timed", (_run, { askedMs }: { askedMs: number }) => nowMs() - askedMs);
const tell = answerAsSubject(() => mine.stop());
await mine.start();
tell({ kind: "started" });
