import { describe, expect, it } from "vitest";
import type { Stat } from "../../operations/stat.ts";
import { type CachedNode, changesBetween, depthBelow } from "./mirror.ts";

function node(czxid: bigint, mzxid: bigint): CachedNode {
  const stat: Stat = {
    czxid,
    mzxid,
    ctimeMs: 0,
    mtimeMs: 0,
    version: 0,
    cversion: 0,
    aversion: 0,
    ephemeralOwner: 0n,
    dataLength: 0,
    childCount: 0,
    pzxid: czxid,
  };
  return { path: "/a", data: Buffer.alloc(0), stat };
}

describe("two readings of a path", () => {
  const types = (before?: CachedNode, after?: CachedNode) => changesBetween(before, after).map(({ type }) => type);

  it("give the events between them", () => {
    expect(types(undefined, undefined)).toEqual([]);
    expect(types(undefined, node(1n, 1n))).toEqual(["added"]);
    expect(types(node(1n, 1n), node(1n, 1n))).toEqual([]);
    expect(types(node(1n, 1n), node(1n, 2n))).toEqual(["changed"]);
    expect(types(node(1n, 1n), undefined)).toEqual(["removed"]);
  });

  it("distinguish a recreated node from a changed one", () => {
    expect(types(node(1n, 1n), node(3n, 3n))).toEqual(["removed", "added"]);
  });
});

describe("depth", () => {
  it("counts path names", () => {
    expect(depthBelow("/a", "/a")).toBe(0);
    expect(depthBelow("/a", "/a/b")).toBe(1);
    expect(depthBelow("/a", "/a/b/c")).toBe(2);
    expect(depthBelow("/", "/")).toBe(0);
    expect(depthBelow("/", "/a")).toBe(1);
    expect(depthBelow("/a", "/ab")).toBe(-1);
    expect(depthBelow("/a", "/")).toBe(-1);
  });
});
