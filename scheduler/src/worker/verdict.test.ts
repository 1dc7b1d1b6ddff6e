import { expect, it } from "vitest";
import { CarillonError } from "../errors.ts";
import { tryColumns, tryEvents, tryTable } from "../policy-tables.ts";
import { seeded } from "../random.ts";
import { defineTask, type TaskOptions } from "../task.ts";
import type { HeldRun } from "./held-run.ts";
import { failed } from "./verdict.ts";

const reasons: Partial<Record<(typeof tryEvents)[number], CarillonError>> = {
  "takes too long": new CarillonError("TIMEOUT", "the attempt took longer than 1 ms"),
  "is cancelled": new CarillonError("CANCELLED", "by someone"),
  "is stopped with its worker": new CarillonError("STOPPED", "the worker is shutting down"),
  "loses its session": new CarillonError("SESSION_LOST", "silent"),
};
const final = new CarillonError("PAYLOAD_INVALID", "no");
const lossEvents = ["is stopped with its worker", "loses its session"] as const;

/** The verdict on an attempt that was told to stop for this reason, or threw by itself. */
function fate(event: (typeof tryEvents)[number], attempt: number, onWorkerLost: TaskOptions["onWorkerLost"] = "retry") {
  const definition = defineTask("t", { retry: { attempts: 3 }, onWorkerLost });
  const run = { attempt, abortReason: reasons[event], known: { definition } } as unknown as HeldRun;
  const thrown = event === "throws what another try would not change" ? final : new Error("no");
  const verdict = failed(run, thrown, 0, seeded(1));
  if (verdict.kind === "retry") return verdict.ask ? "undecided" : "tried again";
  return verdict.kind === "ended" ? verdict.outcome : verdict.kind;
}

it.each(tryEvents)("an attempt that %s", (event) => {
  const seen = { "tries left": fate(event, 2), "none left": fate(event, 3) };
  for (const column of tryColumns) expect(seen[column], column).toBe(tryTable[event][column]);
});

it.each(lossEvents)("an attempt that %s, as its task says", (event) => {
  expect([fate(event, 1, "fail"), fate(event, 1, "ask")]).toEqual(["failed", "undecided"]);
});
