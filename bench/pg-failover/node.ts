/** A node under test: schedules, executes and enqueues runs, and reports each start and each acknowledged enqueue at once. */
import { setTimeout as pause } from "node:timers/promises";
import { carillon, every } from "carillon";

export interface Order {
  store: string;
  name: string;
  /** The number of runs that the node enqueues per second. */
  perSecond: number;
}

/** The messages of a node. `at` is in epoch ms on this machine's clock, which all processes share. */
export type Told =
  | { kind: "ready" }
  | {
      kind: "start";
      task: string;
      run: number;
      fence: number;
      attempt: number;
      slot: number | null;
      id: string | null;
      at: number;
    }
  | { kind: "acknowledged"; run: number; id: string };

const order = JSON.parse(process.argv[2] ?? "{}") as Order;
const tell = (told: Told) => void process.send?.(told);

const tower = carillon({ store: order.store, name: order.name, handleSignals: false });
for (const [task, ms] of [
  ["tick", 200],
  ["second", 1_000],
] as const) {
  tower.task(task, { schedule: every(ms), misfire: "all" }, (run) =>
    tell({
      kind: "start",
      task,
      run: run.id,
      fence: run.fence,
      attempt: run.attempt,
      slot: run.slot?.getTime() ?? null,
      id: null,
      at: Date.now(),
    }),
  );
}
const once = tower.task<string>("once", {}, (run, id) =>
  tell({
    kind: "start",
    task: "once",
    run: run.id,
    fence: run.fence,
    attempt: run.attempt,
    slot: null,
    id,
    at: Date.now(),
  }),
);
let count = 0;
async function enqueue(id: string): Promise<void> {
  const { runId } = await once.enqueue(id);
  tell({ kind: "acknowledged", run: runId, id });
}
let loading = true;
process.on("message", async (word: string) => {
  if (word === "quiet") loading = false;
  else if (word === "stop") {
    await tower.stop();
    process.exit(0);
  } else await enqueue(word);
});
process.on("disconnect", () => process.exit(1));
await tower.start();
tell({ kind: "ready" });
while (loading) {
  // The enqueue is not awaited, so that the node continues to enqueue while the store is unavailable.
  void enqueue(`${order.name} ${++count}`);
  await pause(1_000 / order.perSecond);
}
