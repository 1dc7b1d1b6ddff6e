import { expect, test } from "vitest";
import { contentOf, contentOfDraft, draftOf, isIncomplete, type Stored } from "./draft.ts";

const stored = {
  name: "settled-by-six",
  version: 3,
  kind: "deadline",
  description: "the bank closes",
  by: "06:00",
  zone: "Asia/Shanghai",
  days: [1, 2],
  scope: { tasks: ["settle"], owners: ["payments"], labels: { team: "pay=now" } },
  channels: ["ops"],
  maintenance: [{ from: "2026-12-01T22:00:00Z", to: "2026-12-02T02:00:00Z", description: "new disks" }],
  quiet: { from: "22:00", to: "07:00", zone: "UTC" },
  escalate: { after: "15m", channels: ["boss"] },
  enabled: false,
  finds: "not done by 06:00 Asia/Shanghai",
  author: "ann",
  reason: "",
  changed: "2026-11-30T01:06:00.000Z",
  bundle: null,
} satisfies Stored;

test("a stored rule passes through the form unchanged, including fields that the form does not show", () => {
  expect(contentOfDraft(draftOf(stored, "UTC"), stored)).toEqual(contentOf(stored));
  expect(contentOf(stored)).not.toHaveProperty("version");
});

test("maintenance windows are typed as intervals; one without an end is not sent", () => {
  const draft = {
    ...draftOf(null, "UTC"),
    name: "r",
    parts: { failures: "1" },
    maintenance: ["2026-12-01T22:00Z / 2026-12-02T02:00Z"],
  };
  expect(isIncomplete(draft)).toBe(false);
  expect(contentOfDraft(draft, null)).toMatchObject({
    maintenance: [{ from: "2026-12-01T22:00Z", to: "2026-12-02T02:00Z" }],
  });
  expect(isIncomplete({ ...draft, maintenance: ["2026-12-01T22:00Z"] })).toBe(true);
});

test("a draft of another kind sends only that kind's thresholds, and converts number fields to numbers", () => {
  const draft = { ...draftOf(stored, "UTC"), kind: "failed" as const, parts: { failures: "3", of: "", by: "06:00" } };
  expect(contentOfDraft(draft, stored)).toMatchObject({ kind: "failed", failures: 3 });
  expect(contentOfDraft(draft, stored)).not.toHaveProperty("by");
  expect(contentOfDraft(draft, stored)).not.toHaveProperty("of");
  expect(contentOfDraft(draft, stored)).not.toHaveProperty("days");
});

test.each([
  [{ name: "" }, true],
  [{ name: "a" }, false],
  [{ name: "a", parts: {} }, true],
  [{ name: "a", quietFrom: "22:00" }, true],
  [{ name: "a", escalateAfter: "15m" }, true],
  [{ name: "a", escalateAfter: "15m", escalateChannels: ["boss"] }, false],
])("a new rule with %j is incomplete: %s", (given, lacks) => {
  expect(isIncomplete({ ...draftOf(null, "UTC"), ...given })).toBe(lacks);
});

test("a rule about the cluster sends the scope of everything, and not what was typed for a rule about tasks", () => {
  const draft = { ...draftOf(stored, "UTC"), kind: "expiring" as const, parts: { before: "30d" } };
  expect(contentOfDraft(draft, null)).toMatchObject({ kind: "expiring", before: "30d", scope: { everywhere: true } });
  expect(contentOfDraft(draft, null).scope).toEqual({ everywhere: true });
});
