import type { HandedSecrets } from "../access/secrets/secrets.ts";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Random } from "../base/random.ts";
import type { Membership } from "../cluster/membership.ts";
import type { StandIn } from "../cluster/stand-in.ts";
import type { ClaimStore } from "../run/claim-store.ts";
import type { RunFlow } from "../run/flow.ts";
import type { Handler, RunNotice } from "../run/handler.ts";
import type { OnStart } from "../run/handling/lateness.ts";
import type { LogLine } from "../run/run-record.ts";
import type { Definitions } from "../store/definitions.ts";
import type { StoreClock } from "../store/store-clock.ts";
import type { TaskDefinition } from "../task/task.ts";

export interface WorkerOptions {
  claims: Omit<ClaimStore, "reclaim">;
  writeLogs: (lines: LogLine[]) => Promise<unknown>;
  /** Gives handlers access to states, children and inputs of runs. Without it, calls of handlers for these are rejected. */
  flow?: RunFlow;
  membership: Membership;
  /** A thread that acts for this worker while the event loop is blocked; default: none. */
  standIn?: StandIn;
  definitions: Definitions;
  /** Ids of the groups whose runs this worker claims. Read at each claim, because the ids may change when the store is restored. */
  groupIds: number[];
  /** Returns secrets for calls of `run.secret` by handlers; without it these calls are rejected. */
  secrets?: HandedSecrets;
  /** Returns the handler for a task; undefined: this worker cannot run the task. */
  handlerOf: (definition: TaskDefinition) => Handler | undefined;
  clock: Clock;
  storeClock: StoreClock;
  random: Random;
  log: Log;
  /** The maximum number of handlers that run at the same time. */
  concurrency: number;
  claimAheadMs: number;
  /** Called for each first try that starts here; without it, starts have no overhead. */
  onStart?: OnStart;
  /** Called when a run starts or ends here. */
  listeners?: readonly ((notice: RunNotice) => void)[];
}
