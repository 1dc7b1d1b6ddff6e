import { describe, expect, it } from "vitest";
import type { Membership } from "../cluster/membership.ts";
import type { Pulse } from "../cluster/session-store.ts";
import { UnclaimableRuns } from "./unclaimable-runs.ts";

describe("the unclaimable-run detector", () => {
  it("reports a group without workers once and its end once, only as leader, and only at heartbeats with a check", () => {
    const lines: string[] = [];
    const at = (level: string) => (fields: object) => void lines.push(`${level} ${(fields as { what: string }).what}`);
    const log = { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
    let term: number | null = 1;
    const unclaimableRuns = new UnclaimableRuns({ log, membership: { term: () => term } as Membership });
    const pulse = (...unserved: string[]) => unclaimableRuns.onPulse({ unserved } as unknown as Pulse);
    pulse("group mail");
    unclaimableRuns.onPulse({} as Pulse);
    pulse("group mail");
    pulse("group mail", "task x");
    expect(lines).toEqual(["warn group mail", "warn task x"]);
    pulse("task x");
    pulse("task x");
    expect(lines.slice(2)).toEqual(["info group mail"]);
    term = null;
    pulse("task y");
    expect(lines).toHaveLength(3);
    term = 2;
    pulse("task x");
    expect(lines.slice(3)).toEqual(["warn task x"]);
  });

  it("reports a hundred groups in one line", () => {
    const lines: string[] = [];
    const note = (fields: object) => void lines.push((fields as { what: string }).what);
    const log = { debug: note, info: note, warn: note, error: note };
    const unclaimableRuns = new UnclaimableRuns({ log, membership: { term: () => 1 } as Membership });
    const pulse = (...unserved: string[]) => unclaimableRuns.onPulse({ unserved } as unknown as Pulse);
    pulse(...Array.from({ length: 100 }, (_, n) => `group ${n}`));
    pulse("group 0", "group new");
    expect(lines).toEqual([
      "group 0, group 1, group 2, group 3, group 4 and 95 more",
      "group new",
      "group 1, group 2, group 3, group 4, group 5 and 94 more",
    ]);
  });
});
