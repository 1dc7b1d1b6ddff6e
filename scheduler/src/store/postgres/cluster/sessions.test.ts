import { expect, test } from "vitest";
import { CarillonError } from "../../../base/errors.ts";
import type { Database } from "../database.ts";
import { sessionStore } from "./sessions.ts";

test.each([
  ["the time limit has passed", "the store cannot be reached: timeout expired: no answer within 5000 ms", 5_000],
  ["the store cannot be reached", "the store cannot be reached: connect ECONNREFUSED", null],
])("heartbeats without an answer are measured only if %s", async (_, message, measuredMs) => {
  let mono = 0;
  const waits: unknown[] = [];
  const database = {
    schema: "s",
    clock: { monotonic: () => mono },
    ask: async (_name: string, _text: string, values: unknown[]) => {
      waits.push(values[5]);
      mono += 5_000;
      throw new CarillonError("STORE_UNREACHABLE", message);
    },
  };
  const { beat } = sessionStore(database as unknown as Database, false);
  for (let n = 0; n < 6; n++) await expect(beat(1, 0)).rejects.toThrow(message);
  expect(waits).toEqual([null, null, null, null, null, measuredMs]);
});
