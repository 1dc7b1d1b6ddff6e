import fc from "fast-check";
import { expect, test } from "vitest";
import { Call, type Question } from "../requests/call.ts";
import { WaitingCalls } from "./waiting-calls.ts";

const question = (dataBytes: number): Question<unknown> => ({
  op: 0,
  what: "set /a",
  path: "/a",
  repeatable: false,
  dataBytes,
  write: () => undefined,
  read: () => undefined,
});

const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant("add" as const), many: fc.integer({ min: 1, max: 900 }) }) },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant("give up" as const), share: fc.double({ min: 0, max: 1, noNaN: true }) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant("take" as const), share: fc.double({ min: 0, max: 1, noNaN: true }) }),
  },
);

test("calls leave in order, without those that were already settled", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
      const waiting = new WaitingCalls();
      let model: Call[] = [];
      let nowMs = 0;
      for (const one of steps) {
        if (one.do === "add") {
          for (let i = 0; i < one.many; i++) {
            const call = new Call(
              question(nowMs % 7),
              () => undefined,
              () => undefined,
              undefined,
            );
            call.sentAt = nowMs++;
            waiting.add(call);
            model.push(call);
          }
        } else if (one.do === "give up") {
          const every = Math.max(1, Math.round(1 / (one.share + 0.01)));
          for (const call of model.filter((_, index) => index % every === 0)) call.fail(new Error("given up"));
          model = model.filter(({ settled }) => !settled);
        } else {
          const untilMs = nowMs * one.share;
          const due = model.filter(({ sentAt }) => sentAt <= untilMs);
          expect(waiting.take(untilMs)).toEqual(due);
          model = model.slice(due.length);
          // A call that was taken from the list no longer changes the list when it settles.
          for (const call of due) call.fail(new Error("late"));
        }
        expect([waiting.size, waiting.bytes]).toEqual([
          model.length,
          model.reduce((sum, { question: { dataBytes = 0 } }) => sum + dataBytes, 0),
        ]);
      }
      expect(waiting.take()).toEqual(model);
    }),
    { numRuns: 200 },
  );
});
