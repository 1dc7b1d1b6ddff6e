import { expect, test } from "vitest";
import { roomOf } from "./group-room.ts";

const worker = (given = {}) => ({ groups: ["gpu"], silent: false, draining: false, capacity: 10, ...given });

test.each<[string, number | null, Parameters<typeof roomOf>[1], number | null]>([
  ["no worker", null, [], 0],
  [
    "two workers, and one of another group",
    null,
    [worker(), worker({ capacity: 5 }), worker({ groups: ["mail"] })],
    15,
  ],
  ["a silent and a draining worker", null, [worker({ silent: true }), worker({ draining: true }), worker()], 10],
  ["a limit below the capacity", 4, [worker()], 4],
  ["a limit above the capacity", 40, [worker()], 10],
  ["a worker of unknown capacity", null, [worker({ capacity: null })], null],
  ["a limit, and a worker of unknown capacity", 4, [worker({ capacity: null })], 4],
])("a group with %s has that room", (_, limit, workers, room) => {
  expect(roomOf({ name: "gpu", limit }, workers)).toBe(room);
});
