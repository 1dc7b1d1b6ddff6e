import { expect, it } from "vitest";
import { systemClock } from "../../base/clock.ts";
import { CarillonError } from "../../base/errors.ts";
import type { ClaimedRun } from "../../run/claim-store.ts";
import { WaitingPoll } from "./waiting-poll.ts";

const begin = () => new WaitingPoll({ want: 1, aheadMs: 0, waitMs: 60_000 }, systemClock, new AbortController().signal);
const silent = new CarillonError("STORE_UNREACHABLE", "no answer");

it.each([
  ["no runs: the poll is refused when the claim returns", [], silent],
  ["runs: the worker receives them", [{ runId: 1 } as ClaimedRun], undefined],
])("a poll that is refused during a claim which returns %s", async (_title, claimed, error) => {
  const poll = begin();
  const claim = poll.claiming(async () => {
    poll.refuse(silent);
    expect(poll.over).toBe(false);
    return claimed;
  });
  if (error) await expect(poll.ended).rejects.toBe(error);
  else expect(await poll.ended).toBe(claimed);
  await claim;
  expect(poll.over).toBe(true);
});
