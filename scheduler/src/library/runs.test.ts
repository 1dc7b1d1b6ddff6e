import { expect, it } from "vitest";
import { VirtualClock } from "../../test/support/virtual-clock.ts";
import type { Store } from "../store/store.ts";
import { Runs } from "./runs.ts";

it("lists and counts a run once if it ends while the list is read", async () => {
  const place = { phase: "ended", atMs: 1, runId: 1 };
  const pages = [
    {
      runs: [
        { runId: 1, state: "claimed" },
        { runId: 2, state: "ready" },
      ],
      next: place,
    },
    {
      runs: [
        { runId: 2, state: "succeeded" },
        { runId: 3, state: "failed" },
      ],
      next: null,
    },
  ];
  const read = () => {
    const left = [...pages];
    const store = { browse: { runs: async () => left.shift() } } as unknown as Store;
    const open = async () => ({ store }) as never;
    return new Runs({
      now: () => 0,
      clock: new VirtualClock(0),
      change: () => ({}) as never,
      codecs: {} as never,
      open,
    });
  };
  expect((await read().list()).items.map(({ runId, state }) => [runId, state])).toEqual([
    [1, "claimed"],
    [2, "ready"],
    [3, "failed"],
  ]);
  expect(await read().count()).toEqual({ runs: 3, more: false });
});
