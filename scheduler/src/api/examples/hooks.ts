import type { Examples } from "./example.ts";

const content = {
  secret: "bank",
  scheme: "standard" as const,
  task: { by: "/type", of: { "payment.received": "settle" } },
  payload: { payment: "/data/id" },
  delay: "5m",
  description: "payments of the bank",
};
const stored = { author: "admin", reason: "from the bank", changed: "2026-11-30T01:06:00.000Z", bundle: null };

/** These examples need the stored secret `bank`. */
export const hookExamples = {
  setHook: {
    given: { hook: "bank-payments", ...content, reason: "from the bank" },
    answer: { name: "bank-payments", version: 1, ...content, ...stored },
  },
  getHook: {
    given: { hook: "bank-payments" },
    answer: { name: "bank-payments", version: 1, ...content, ...stored },
  },
  previewHook: {
    given: {
      hook: "bank-payments",
      body: { type: "payment.received", data: { id: "p-7" } },
      headers: { "webhook-id": "msg_1" },
    },
    answer: { run: { task: "settle", payload: { payment: "p-7" }, key: "bank-payments#msg_1", delay: "5m" } },
  },
  listHooks: { answer: { items: [{ name: "bank-payments", version: 1, ...content, ...stored }], next: null } },
  removeHook: { given: { hook: "bank-payments", reason: "the bank has gone" }, ifVersion: 1 },
} satisfies Examples;
