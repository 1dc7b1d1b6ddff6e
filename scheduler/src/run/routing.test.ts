import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { limitEvents, limitPolicies, limitTable } from "../../test/oracle/limit-table.ts";
import { addressEvents, addressStates, addressTable } from "../../test/oracle/route-table.ts";
import { seeded } from "../base/random.ts";
import type { PolicyParts, Route } from "../task/policies.ts";
import { byHash, choose, eligible, type LiveWorker, type RouteRun, type Turns, turnTaken } from "./routing.ts";

const worker = (node: string, more: Partial<LiveWorker> = {}): LiveWorker => ({
  node,
  sessionId: node.charCodeAt(0),
  labels: {},
  capacity: 10,
  load: 0,
  ofTask: 0,
  release: null,
  ...more,
});
const workers = (count: number) => Array.from({ length: count }, (_, i) => worker(`w${i}`, { sessionId: i + 1 }));
const part = (runId: number, key: string | null, shard: RouteRun["shard"]): RouteRun => ({
  runId,
  key,
  shard,
  release: null,
  releaseStands: false,
});
const whole = (runId: number, key: string | null = null) => part(runId, key, null);

/** Chooses a worker for each of the runs, one after the other, as the router does. @returns the worker of each run */
function place(policies: PolicyParts, view: LiveWorker[], runs: RouteRun[], turns: Turns = new Map(), seed = 7) {
  const random = seeded(seed);
  const live = view.map((one) => ({ ...one }));
  let now = turns;
  const nodes = runs.map((run) => {
    const chosen = choose(policies, live, run, now, random);
    if (typeof chosen === "string") return null;
    chosen.load++;
    chosen.ofTask++;
    now = turnTaken(now, chosen.node);
    return chosen.node;
  });
  return { nodes, turns: now };
}
const count = (nodes: (string | null)[]) => {
  const counts = new Map<string | null, number>();
  for (const node of nodes) counts.set(node, (counts.get(node) ?? 0) + 1);
  return counts;
};
const runs = (many: number) => Array.from({ length: many }, (_, i) => whole(i, `key-${i}`));

describe("distribution", () => {
  it.each([
    ["random", { route: { by: "random" } }, 0.15],
    ["round-robin", { route: { by: "round-robin" } }, 0],
    ["least-loaded", { route: { by: "least-loaded" } }, 0],
    ["least-recently-used", { route: { by: "least-recently-used" } }, 0],
    ["hash", { route: { by: "hash" } }, 0.15],
    ["labels alone", { labels: {} }, 0],
  ] as const)("%s: each of 5 workers gets an equal share", (_name, policies, tolerance) => {
    const { nodes } = place(policies, workers(5), runs(5_000));
    for (const [node, share] of count(nodes))
      expect(Math.abs(share / 1_000 - 1), String(node)).toBeLessThanOrEqual(tolerance);
    expect(count(nodes).size).toBe(5);
  });

  it("round-robin goes around in the order of names", () => {
    expect(place({ route: { by: "round-robin" } }, workers(3), runs(5)).nodes).toEqual(["w0", "w1", "w2", "w0", "w1"]);
  });

  it("least-loaded goes by each worker's load relative to its capacity", () => {
    const view = [worker("big", { capacity: 30 }), worker("small", { capacity: 10 })];
    expect(count(place({ route: { by: "least-loaded" } }, view, runs(400)).nodes)).toEqual(
      new Map([
        ["big", 300],
        ["small", 100],
      ]),
    );
    const busy = [worker("a", { load: 9 }), worker("b", { load: 1 })];
    expect(place({ route: { by: "least-loaded" } }, busy, runs(1)).nodes).toEqual(["b"]);
  });

  it("least-recently-used: a worker never used comes first, then the one used longest ago", () => {
    const turns = new Map([
      ["w0", 9],
      ["w1", 3],
    ]);
    expect(place({ route: { by: "least-recently-used" } }, workers(3), runs(4), turns).nodes).toEqual([
      "w2",
      "w1",
      "w0",
      "w2",
    ]);
  });

  it("sticky stays with one worker", () => {
    expect(count(place({ route: { by: "sticky" } }, workers(5), runs(100)).nodes).size).toBe(1);
  });

  it("shards: the workers' counts differ by at most one", () => {
    const parts = Array.from({ length: 17 }, (_, i) => part(i, null, [i, 17]));
    const counts = [...count(place({ route: { by: "shards", shards: 17 } }, workers(5), parts).nodes).values()];
    expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1);
  });

  it("pinned: only the named worker; broadcast: each part only its own worker", () => {
    expect(place({ route: { by: "pin", node: "w3" } }, workers(5), runs(2)).nodes).toEqual(["w3", "w3"]);
    expect(place({ route: { by: "pin", node: "w9" } }, workers(5), runs(1)).nodes).toEqual([null]);
    const parts = ["w1", "w4", "gone"].map((key, i) => part(i, key, [i, 3]));
    expect(place({ route: { by: "broadcast" } }, workers(5), parts).nodes).toEqual(["w1", "w4", null]);
  });

  it("labels combine with any route, and a worker must have all of them", () => {
    const view = [
      worker("a", { labels: { gpu: "a100" } }),
      worker("b"),
      worker("c", { labels: { gpu: "a100", zone: "eu" } }),
    ];
    for (const by of ["random", "round-robin", "least-loaded", "least-recently-used", "sticky", "hash"] as const) {
      const nodes = count(place({ route: { by }, labels: { gpu: "a100" } }, view, runs(100)).nodes);
      expect(
        [...nodes.keys()].filter((node) => node !== "a" && node !== "c"),
        by,
      ).toEqual([]);
      expect(place({ route: { by }, labels: { gpu: "a100", zone: "eu" } }, view, runs(1)).nodes, by).toEqual(["c"]);
    }
    expect(place({ labels: { gpu: "h100" } }, view, runs(1)).nodes).toEqual([null]);
    expect(eligible({ labels: { gpu: "a100" } }, view).map(({ node }) => node)).toEqual(["a", "c"]);
  });

  it("a limit per worker is never exceeded: further runs wait, and hash and pin wait for their own worker", () => {
    const limit = { perKey: null, perWorker: 2 };
    for (const by of ["random", "round-robin", "least-loaded", "least-recently-used", "sticky"] as const) {
      const counts = count(place({ route: { by }, limit }, workers(3), runs(10)).nodes);
      expect(counts, by).toEqual(
        new Map([
          ["w0", 2],
          ["w1", 2],
          ["w2", 2],
          [null, 4],
        ]),
      );
    }
    const same = Array.from({ length: 5 }, (_, i) => whole(i, "one key"));
    expect(count(place({ route: { by: "hash" }, limit }, workers(3), same).nodes).get(null)).toBe(3);
  });
});

describe("changes of membership", () => {
  const owners = (view: LiveWorker[]) => runs(5_000).map(({ key }) => byHash(view, key as string)?.node as string);

  it("hash: if one of n workers leaves, only its keys move, evenly; they move back when it returns", () => {
    const before = owners(workers(10));
    const after = owners(workers(10).filter(({ node }) => node !== "w3"));
    const moved = before.flatMap((node, i) => (node === after[i] ? [] : [{ from: node, to: after[i] as string }]));
    expect(new Set(moved.map(({ from }) => from))).toEqual(new Set(["w3"]));
    expect(moved.length).toBeLessThan((5_000 / 10) * 1.2);
    const gained = count(moved.map(({ to }) => to));
    expect(gained.size).toBe(9);
    for (const [node, share] of gained) expect(share, String(node)).toBeLessThan((moved.length / 9) * 1.7);
    expect(owners(workers(10))).toEqual(before);
  });

  it("round-robin continues after a worker that left, and includes a new one", () => {
    const first = place({ route: { by: "round-robin" } }, workers(3), runs(2));
    const without = workers(3).filter(({ node }) => node !== "w1");
    const second = place({ route: { by: "round-robin" } }, without, runs(2), first.turns);
    expect(second.nodes).toEqual(["w2", "w0"]);
    expect(place({ route: { by: "round-robin" } }, workers(4), runs(4), second.turns).nodes).toEqual([
      "w1",
      "w2",
      "w3",
      "w0",
    ]);
  });

  it("least-recently-used: a new worker is next", () => {
    const first = place({ route: { by: "least-recently-used" } }, workers(3), runs(30));
    expect(place({ route: { by: "least-recently-used" } }, workers(4), runs(1), first.turns).nodes).toEqual(["w3"]);
  });

  it("least-loaded: a new worker takes the runs until the loads are equal", () => {
    const view = [...workers(2).map((one) => ({ ...one, load: 5 })), worker("new")];
    expect(count(place({ route: { by: "least-loaded" } }, view, runs(5)).nodes)).toEqual(new Map([["new", 5]]));
  });

  it("random: a worker that left gets nothing, and the others get equal shares", () => {
    const counts = count(place({ route: { by: "random" } }, workers(4).slice(1), runs(3_000)).nodes);
    expect(counts.size).toBe(3);
    for (const share of counts.values()) expect(Math.abs(share / 1_000 - 1)).toBeLessThan(0.15);
  });

  it("sticky fails over, stays with the new worker, and does not switch back", () => {
    const first = place({ route: { by: "sticky" } }, workers(3), runs(1));
    const [node] = first.nodes;
    const failed = place(
      { route: { by: "sticky" } },
      workers(3).filter((one) => one.node !== node),
      runs(3),
      first.turns,
    );
    expect(count(failed.nodes).size).toBe(1);
    expect(failed.nodes[0]).not.toBe(node);
    expect(place({ route: { by: "sticky" } }, workers(3), runs(1), failed.turns).nodes[0]).toBe(failed.nodes[0]);
  });

  it("pinned waits for its worker; without any worker, every run waits", () => {
    for (const by of ["random", "round-robin", "least-loaded", "least-recently-used", "sticky", "hash"] as const)
      expect(place({ route: { by } }, [], runs(1)).nodes, by).toEqual([null]);
    expect(place({ route: { by: "pin", node: "w0" } }, workers(3).slice(1), runs(1)).nodes).toEqual([null]);
  });

  it("a run stays with its release while that is deployed, and then follows its task's onReleaseGone", () => {
    const view = workers(4).map((one, i) => ({ ...one, release: i < 2 ? "old" : "new" }));
    const kept = (release: string, releaseStands: boolean) => ({ ...whole(1), release, releaseStands });
    const chosen = (run: RouteRun, onReleaseGone?: "wait" | "fail") => {
      const choice = choose({ ...(onReleaseGone && { onReleaseGone }) }, view, run, new Map(), seeded(7));
      return typeof choice === "string" ? choice : choice.release;
    };
    for (const release of ["old", "new"]) expect(chosen(kept(release, true), "fail")).toBe(release);
    expect(chosen(kept("gone", true))).toBe("wait");
    expect(chosen(kept("gone", true), "fail")).toBe("wait");
    expect(chosen(kept("gone", false))).toBe("old");
    expect(chosen(kept("gone", false), "wait")).toBe("wait");
    expect(chosen(kept("gone", false), "fail")).toBe("fail");
    // The workers with the run's release have no free slot for it now.
    const full = { limit: { perKey: null, perWorker: 1 }, onReleaseGone: "fail" } as const;
    const busy = view.map((one) => ({ ...one, ofTask: 1 }));
    expect(choose(full, busy, kept("old", false), new Map(), seeded(7))).toBe("wait");
  });

  it("shards are even again once redistributed over the live workers", () => {
    const parts = Array.from({ length: 12 }, (_, i) => part(i, null, [i, 12]));
    for (const many of [4, 3, 6]) {
      const counts = [...count(place({ route: { by: "shards", shards: 12 } }, workers(many), parts).nodes).values()];
      expect(counts, String(many)).toEqual(Array.from({ length: many }, () => 12 / many));
    }
  });
});

/** Every routing strategy, by its type: a new strategy must be added here with the number of runs that each worker gets. */
const strategies: Record<Route["by"], { route: Route; shares: (of: number) => number[] }> = (() => {
  const even = (of: number) => Array.from({ length: of }, () => 120 / of);
  const one = (of: number) => [120, ...Array.from({ length: of - 1 }, () => 0)];
  return {
    random: { route: { by: "random" }, shares: even },
    "round-robin": { route: { by: "round-robin" }, shares: even },
    "least-loaded": { route: { by: "least-loaded" }, shares: even },
    "least-recently-used": { route: { by: "least-recently-used" }, shares: even },
    hash: { route: { by: "hash" }, shares: even },
    sticky: { route: { by: "sticky" }, shares: one },
    pin: { route: { by: "pin", node: "w0" }, shares: one },
    broadcast: { route: { by: "broadcast" }, shares: even },
    shards: { route: { by: "shards", shards: 120 }, shares: even },
  };
})();

describe.each(Object.entries(strategies))("%s", (by, { route, shares }) => {
  const split = by === "broadcast" || by === "shards";
  /** 120 runs or parts; for a broadcast, each part belongs to one of the workers. */
  const asked = (view: LiveWorker[]) =>
    Array.from({ length: 120 }, (_, i) => {
      const key = by === "broadcast" ? (view[i % view.length]?.node ?? "") : `key-${i}`;
      return part(i, key, split ? [i, 120] : null);
    });
  const counts = (nodes: (string | null)[]) => [...count(nodes).values()].sort((a, b) => b - a);
  const near = (seen: number[], wanted: number[]) => {
    const tolerance = by === "random" || by === "hash" ? 0.6 : 0;
    wanted.forEach((share, at) => {
      expect(Math.abs((seen[at] ?? 0) - share), JSON.stringify(seen)).toBeLessThanOrEqual(share * tolerance);
    });
  };

  it("distribution: the documented shares, for 1 to 6 workers", () => {
    for (let many = 1; many <= 6; many++) {
      const { nodes } = place({ route }, workers(many), asked(workers(many)));
      expect(nodes).not.toContain(null);
      near(counts(nodes), shares(many));
    }
  });

  it("a worker that left gets nothing, every run goes to an eligible worker, and a new worker gets its share", () => {
    const before = place({ route }, workers(4), asked(workers(4)));
    const without = workers(4).filter(({ node }) => node !== "w2");
    const after = place({ route }, without, asked(without), before.turns);
    expect(after.nodes).not.toContain("w2");
    expect(after.nodes).not.toContain(null);
    near(counts(after.nodes), shares(3));
    const back = place({ route }, workers(4), asked(workers(4)), after.turns);
    near(counts(back.nodes), shares(4));
    // A task that is pinned to a worker, and a part of a broadcast, cannot run on another worker.
    const w0 = without.filter(({ node }) => node !== "w0");
    const lost = place({ route }, w0, asked(workers(4)), after.turns).nodes.filter((node) => node === null);
    expect(lost).toHaveLength(by === "pin" ? 120 : by === "broadcast" ? 60 : 0);
    expect(place({ route }, [], asked(workers(1))).nodes.every((node) => node === null)).toBe(true);
  });
});

describe("the tables", () => {
  const row = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  const page = (name: string) => readFileSync(new URL(`../../../docs/tasks/${name}.md`, import.meta.url), "utf8");

  it("docs/tasks/routing.md shows every state × every event of an addressed run", () => {
    for (const event of addressEvents)
      expect(page("routing")).toContain(
        row([event, ...addressStates.map((state) => addressTable[state][event] ?? "–")]),
      );
  });

  it("docs/tasks/limits.md shows every policy × every event", () => {
    for (const event of limitEvents)
      expect(page("limits")).toContain(row([event, ...limitPolicies.map((policy) => limitTable[policy][event])]));
  });
});
