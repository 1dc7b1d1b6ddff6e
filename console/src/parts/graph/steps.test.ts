import { describe, expect, test } from "vitest";
import { nodeTowards, type Way } from "./steps.ts";

/**
 * a ─ b ─ d
 *   ╲
 *     c    e
 */
const places = new Map([
  ["a", { x: 0, y: 0 }],
  ["b", { x: 200, y: 0 }],
  ["c", { x: 200, y: 70 }],
  ["d", { x: 400, y: 0 }],
  ["e", { x: 400, y: 70 }],
]);
const lines = [
  { from: "a", to: "b" },
  { from: "a", to: "c" },
  { from: "b", to: "d" },
];
const walk = (from: string, ...keys: string[]) =>
  keys.map((key) => nodeTowards(`Arrow${key}` as Way, from, { places, lines, direction: "right" }));

describe("an arrow key in a graph", () => {
  test("follows a line first, then goes to what is nearest", () => {
    expect(walk("a", "Right", "Left", "Up", "Down")).toEqual(["b", undefined, undefined, "c"]);
    expect(walk("c", "Right", "Left", "Up", "Down")).toEqual(["e", "a", "b", undefined]);
    expect(walk("d", "Left", "Down")).toEqual(["b", "e"]);
  });

  test("follows lines up and down in a graph that goes down", () => {
    const turned = new Map([...places].map(([id, { x, y }]) => [id, { x: y, y: x }]));
    const to = (way: Way, from: string) => nodeTowards(way, from, { places: turned, lines, direction: "down" });
    expect([to("ArrowDown", "a"), to("ArrowUp", "c"), to("ArrowRight", "b"), to("ArrowLeft", "c")]).toEqual([
      "b",
      "a",
      "c",
      "b",
    ]);
  });

  test("leads nowhere from a node that has gone", () => {
    expect(walk("gone", "Right")).toEqual([undefined]);
  });
});
