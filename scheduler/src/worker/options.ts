import type { Clock } from "../clock.ts";
import type { Membership } from "../coordination.ts";
import type { Definitions } from "../definitions.ts";
import type { RunFlow } from "../flow.ts";
import type { Handler, RunNotice } from "../handler.ts";
import type { Log } from "../log.ts";
import type { Random } from "../random.ts";
import type { HandedSecrets } from "../secrets.ts";
import type { ClaimStore, LogLine } from "../store.ts";
import type { StoreClock } from "../store-clock.ts";
import type { TaskDefinition } from "../task.ts";

export interface WorkerOptions {
  claims: Omit<ClaimStore, "reclaim">;
  writeLogs: (lines: LogLine[]) => Promise<void>;
  /** States, children and inputs of runs; without it they are refused. */
  flow?: RunFlow;
  membership: Membership;
  definitions: Definitions;
  groupIds: number[];
  /** What handlers are given by `run.secret`; without it they are refused. */
  secrets?: HandedSecrets;
  /** The handler for a task; undefined: this worker cannot run it. */
  handlerOf: (definition: TaskDefinition) => Handler | undefined;
  clock: Clock;
  storeClock: StoreClock;
  random: Random;
  log: Log;
  /** Handlers at work at once. */
  concurrency: number;
  claimAheadMs: number;
  /** Told of what becomes of runs here. */
  listeners?: readonly ((notice: RunNotice) => void)[];
}
