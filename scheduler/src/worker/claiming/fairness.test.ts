import { beforeEach, expect, it } from "vitest";
import { recordingLog } from "../../../test/support/store-stage.ts";
import { VirtualClock } from "../../../test/support/virtual-clock.ts";
import type { Membership } from "../../cluster/membership.ts";
import type { ClaimedRun, ClaimRequest, TurnRequest } from "../../run/claim-store.ts";
import type { DueQueue } from "../running/due-queue.ts";
import { Fairness } from "./fairness.ts";
import { Pace } from "./pace.ts";

let clock: VirtualClock;
/** When the turns (fairness queries) began, by the virtual clock in ms. */
let taken: number[];
/** The results of the next turns; later turns return no run. */
let brings: { runs: number; lastTaskId: number }[];
let overdue: { size: number; firstTaskIds: number[]; priority: number };
let turns: Fairness;

beforeEach(() => {
  clock = new VirtualClock(0);
  taken = [];
  brings = [];
  overdue = { size: 1, firstTaskIds: [1], priority: 5 };
  turns = new Fairness({
    claims: {
      turn: async (_: TurnRequest) => {
        taken.push(clock.monotonic());
        const { runs, lastTaskId } = brings.shift() ?? { runs: 0, lastTaskId: 0 };
        return { runs: Array.from({ length: runs }, () => ({}) as ClaimedRun), lastTaskId };
      },
    },
    clock,
    log: recordingLog().log,
    membership: { trusted: () => true } as Membership,
    overdue: overdue as unknown as DueQueue,
    pace: new Pace(1),
    request: (limit) => ({ limit, nowMs: 0, exceptTaskIds: [] }) as unknown as ClaimRequest,
    take: (ask) => ask(),
    lost: () => expect.unreachable("nothing was lost"),
  });
});

/** Returns when turns begin within `ms` from now, as offsets in ms from the call. */
async function within(ms: number): Promise<number[]> {
  const [from, before] = [clock.monotonic(), taken.length];
  for (let step = 0; step < ms; step += 5) {
    clock.advance(5);
    // Lets the promises settle with which a turn returns its result.
    await new Promise(setImmediate);
  }
  return taken.slice(before).map((at) => at - from);
}

it("fairness queries continue while they return runs or have not covered every task", async () => {
  brings = [
    { runs: 2, lastTaskId: 0 },
    { runs: 0, lastTaskId: 200 },
    { runs: 1, lastTaskId: 0 },
  ];
  turns.claimed(true);
  expect(await within(1_000)).toEqual([25, 50, 75, 100]);
});

it("a fairness query without result is repeated only after a run ends here or the worker wants to claim", async () => {
  turns.claimed(true);
  expect(await within(10_000), "each of those that run takes longer").toEqual([25]);
  turns.ended();
  turns.ended();
  expect(await within(1_000)).toEqual([25]);
  turns.claimed(true);
  expect(await within(1_000)).toEqual([25]);
});

it("no fairness query is made if all due runs fit into this worker, or if no run waits for capacity", async () => {
  turns.claimed(true);
  turns.claimed(false);
  expect(await within(1_000)).toEqual([]);
  turns.ended();
  expect(await within(1_000)).toEqual([]);
  turns.claimed(true);
  overdue.size = 0;
  expect(await within(1_000)).toEqual([]);
  await turns.stop();
  overdue.size = 1;
  turns.claimed(true);
  expect(await within(1_000), "stopped").toEqual([]);
});
