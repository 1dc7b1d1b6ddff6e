import { expect, test } from "vitest";
import { contentOf, contentOfDraft, draftOf, type Hook, isIncomplete, randomSecret } from "./draft.ts";

const stored = {
  name: "github",
  version: 3,
  scheme: "stripe",
  secret: "github",
  task: { by: "header:x-github-event", of: { push: "deploy", "a=b": "triage=now" } },
  payload: { commit: "/after" },
  key: "/id",
  delay: "5m",
  uniqueFor: "1d",
  tolerance: "1m",
  description: "pushes",
  enabled: false,
  author: "ann",
  reason: "",
  changed: "2026-11-30T01:06:00.000Z",
  bundle: null,
} satisfies Hook;

test("a stored hook passes through the form unchanged, including fields that the form does not show", () => {
  const { of: _, ...simple } = { ...stored.task, of: { push: "deploy" } };
  const hook = { ...stored, task: { ...simple, of: { push: "deploy" } } };
  expect(contentOfDraft(draftOf(hook), hook)).toEqual(contentOf(hook));
  const plain = { ...hook, task: "deploy", payload: "/data" };
  expect(contentOfDraft(draftOf(plain), plain)).toEqual(contentOf(plain));
  const inMs = { ...plain, delay: 300_000 };
  expect(contentOfDraft(draftOf(inMs), inMs)).toEqual(contentOf(inMs));
  expect(contentOfDraft({ ...draftOf(inMs), delay: "1m" }, inMs).delay).toBe("1m");
});

test("emptied fields are left out, and a hook without task, secret or valid payload is not sent", () => {
  const draft = { ...draftOf(stored), by: "", task: "deploy", payload: " ", key: "", delay: "" };
  const content = contentOfDraft(draft, stored);
  expect(content).toMatchObject({ task: "deploy", tolerance: "1m" });
  for (const part of ["payload", "key", "delay"]) expect(content).not.toHaveProperty(part);
  expect(isIncomplete(draft)).toBe(false);
  for (const wrong of [{ task: "" }, { secret: " " }, { payload: "{" }, { by: "/t", of: [] }, { of: ["push"] }])
    expect(isIncomplete({ ...draft, ...wrong }), JSON.stringify(wrong)).toBe(true);
});

test("a new secret has 32 random bytes", () => {
  expect(randomSecret()).toMatch(/^[\da-f]{64}$/);
  expect(randomSecret()).not.toBe(randomSecret());
});
