import { describe, expect, it } from "vitest";
import type { SessionSettings } from "../cluster/session-store.ts";
import { clockTroubles, disagreements, type Told } from "./agreement.ts";

const dayMs = 86_400_000;
const node = (name: string, over: Partial<Told> & Partial<SessionSettings> = {}): Told => {
  const { retentionMs = 30 * dayMs, horizonMs = 15_000, address, observer = false, ...rest } = over;
  const settings = { retentionMs, horizonMs, claimAheadMs: 1_000, address: address ?? null, observer };
  return { node: name, role: "node", host: `host-of-${name}`, timeoutMs: 6_000, settings, ...rest };
};

describe("the settings of two processes", () => {
  it("are compatible if they are equal, or where each process may have its own", () => {
    expect(disagreements(node("a"), node("b"))).toEqual([]);
    expect(
      disagreements(node("a"), node("b", { timeoutMs: 10_000, horizonMs: 25_000 })),
      "judged by its own timeout",
    ).toEqual([]);
  });

  it("conflict if a newer process drops history that an older one keeps; the opposite is only reported", () => {
    expect(disagreements(node("a"), node("b", { retentionMs: dayMs }))).toEqual([
      {
        code: "SETTINGS_DIFFER",
        setting: "retention",
        found: "retention is 30d on a and 1d on b",
        advice: expect.stringContaining("same retention"),
        refused: true,
      },
    ]);
    expect(disagreements(node("a"), node("b", { retentionMs: 90 * dayMs }))).toMatchObject([
      { setting: "retention", refused: false },
    ]);
  });

  it("matter only for processes that may lead: workers and observers neither plan ahead nor drop history", () => {
    for (const who of [{ role: "worker" as const }, { observer: true }]) {
      const other = node("w", { ...who, retentionMs: dayMs, timeoutMs: 60_000 });
      expect(disagreements(node("a"), other)).toEqual([]);
      expect(disagreements(other, node("a"))).toEqual([]);
    }
  });

  it("conflict if both have the same address, whatever their roles", () => {
    const address = "10.0.0.7:7373";
    for (const who of [{}, { role: "worker" as const }, { observer: true }]) {
      expect(disagreements(node("a", { address }), node("b", { ...who, address }))).toEqual([
        {
          code: "NODE_ADDRESS_TAKEN",
          setting: "address",
          found: "a on host-of-a is reached at 10.0.0.7:7373, and so would b on host-of-b be",
          advice: expect.stringContaining("two ports"),
          refused: true,
        },
      ]);
      expect(disagreements(node("a", { address }), node("b", { ...who, address: "10.0.0.7:7374" }))).toEqual([]);
    }
    expect(disagreements(node("a"), node("b"))).toEqual([]);
  });

  it("may use localhost on one host; on two hosts, a new process is refused, and an existing one is reported", () => {
    const address = "localhost:7373";
    const here = { host: "one" };
    expect(disagreements(node("a", { ...here, address }), node("b", { ...here, address }))).toMatchObject([
      { code: "NODE_ADDRESS_TAKEN", refused: true },
    ]);
    expect(disagreements(node("a", { ...here, address }), node("b", { ...here, address: "[::1]:1" }))).toEqual([]);
    const [told, ...more] = disagreements(node("a", here), node("b", { address }));
    expect(more).toEqual([]);
    expect(told).toMatchObject({ code: "SETTINGS_DIFFER", setting: "address", refused: true });
    expect(told?.found).toBe(
      "b on host-of-b says that it is reached at localhost:7373, which leads a on one to itself",
    );
    expect(disagreements(node("a", { address }), node("b"))).toMatchObject([{ setting: "address", refused: false }]);
    expect(disagreements(node("a", { address }), node("b", { address })).map(({ refused }) => refused)).toEqual([
      true,
      false,
    ]);
  });

  it("are not compared with a process too old to report them", () => {
    expect(disagreements(node("a", { settings: null }), node("b", { retentionMs: dayMs }))).toEqual([]);
  });

  it("are reported if a leader's planned slots may run out before its death is noticed", () => {
    const slow = node("slow", { timeoutMs: 20_000, horizonMs: 50_000 });
    expect(disagreements(node("quick"), slow), "as long as it does by default").toEqual([]);
    const short = node("quick", { horizonMs: 12_000 });
    const [told, ...more] = disagreements(short, slow);
    expect(more).toEqual([]);
    expect(told).toMatchObject({ setting: "sessionTimeout", refused: false });
    expect(told?.found).toMatch(/^quick plans 12s ahead with a session timeout of 6s, and slow's is 20s: /);
    expect(told?.advice).toContain("14s667ms");
    expect(disagreements(node("quick", { horizonMs: 14_667 }), slow)).toEqual([]);
    expect(disagreements(slow, short).map(({ found }) => found)).toEqual([told?.found]);
  });
});

describe("this machine's clock", () => {
  it("is reported if it is certainly off by more than 5 s", () => {
    expect(clockTroubles({ wallOffsetMs: 4_900, errorMs: 1 })).toEqual([]);
    expect(clockTroubles({ wallOffsetMs: -5_400, errorMs: 500 })).toEqual([]);
    expect(clockTroubles({ wallOffsetMs: 61_000, errorMs: 500 })).toEqual([
      "this machine's clock is 61.0 s behind the store's; tasks fire by the store's all the same. Turn on NTP",
    ]);
    expect(clockTroubles({ wallOffsetMs: -5_600, errorMs: 500 })).toEqual([expect.stringContaining("5.6 s ahead of")]);
  });

  it("is reported as uncertain if the store answers slowly", () => {
    expect(clockTroubles({ wallOffsetMs: 0, errorMs: 1_500 })).toEqual([expect.stringContaining("only to 1.5 s")]);
  });
});
