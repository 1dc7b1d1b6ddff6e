import type { Examples } from "./example.ts";

export const runExamples = {
  createWorkerKey: {
    given: { name: "finance", groups: ["finance"], expiresIn: "90d" },
    answer: {
      name: "finance",
      groups: ["finance"],
      created: "2026-11-30T01:06:00.000Z",
      by: "admin",
      expires: "2027-02-28T01:06:00.000Z",
      revoked: null,
      secret: "ck_1_only-shown-here",
    },
  },
  getWorkerKey: {
    given: { key: "finance" },
    answer: {
      name: "finance",
      groups: ["finance"],
      created: "2026-11-30T01:06:00.000Z",
      by: "admin",
      expires: "2027-02-28T01:06:00.000Z",
      revoked: null,
    },
  },
  listWorkerKeys: {
    answer: {
      items: [
        {
          name: "finance",
          groups: ["finance"],
          created: "2026-11-30T01:06:00.000Z",
          by: "admin",
          expires: "2027-02-28T01:06:00.000Z",
          revoked: null,
        },
      ],
      next: null,
    },
  },
  runTask: {
    given: {
      task: "settle",
      payload: { quarter: "2029-4" },
      key: "2029-4",
      priority: 7,
      reason: "the slot was missed",
    },
    answer: { run: 1, created: true },
  },
  enqueueRuns: {
    given: {
      runs: [
        { task: "mail", payload: { to: "ann@example.com" }, in: "15m" },
        { task: "mail", payload: { to: "bea@example.com" }, at: "2090-01-03T09:00:00Z" },
      ],
    },
    answer: {
      runs: [
        { run: 2, created: true },
        { run: 3, created: true },
      ],
    },
  },
  listRuns: {
    given: { task: "mail", state: ["ready"], limit: 1 },
    answer: {
      items: [
        {
          run: 2,
          task: "mail",
          version: 1,
          state: "ready",
          source: "enqueue",
          priority: 5,
          key: null,
          slot: null,
          due: "2026-11-30T01:21:00.000Z",
          created: "2026-11-30T01:06:00.000Z",
          claimed: null,
          started: null,
          ended: null,
          lateMs: null,
          ownWaitMs: null,
          tookMs: null,
          attempt: 0,
          fence: null,
          node: null,
          addressee: null,
          limitKey: null,
          overrides: null,
          expires: null,
          labels: {},
          shard: null,
          error: null,
        },
      ],
      next: "WyJsaXZlIiwxNzk2MDAxNjY4NDA1LDIsIll3SUEiXQ",
    },
  },
  cancelRun: { given: { run: 2, reason: "ann has left" }, answer: { run: 2, outcome: "cancelled" } },
  getRun: {
    given: { run: 1 },
    answer: {
      run: 1,
      task: "settle",
      version: 3,
      state: "succeeded",
      source: "manual",
      priority: 7,
      key: "2029-4",
      slot: null,
      due: "2026-11-30T01:06:00.000Z",
      created: "2026-11-30T01:06:00.000Z",
      claimed: "2026-11-30T01:06:00.000Z",
      started: "2026-11-30T01:06:00.000Z",
      ended: "2026-11-30T01:06:00.000Z",
      lateMs: 382,
      ownWaitMs: 0,
      tookMs: 5,
      attempt: 1,
      fence: 1,
      node: "finance-1",
      addressee: null,
      limitKey: null,
      overrides: null,
      expires: null,
      labels: {},
      shard: null,
      payload: { quarter: "2029-4" },
      progress: null,
      result: { entries: 412 },
      error: null,
      attempts: [],
      relatives: [{ run: 4, task: "mail", state: "ready", relation: "after" }],
      late: [],
      letter: null,
      redrives: null,
    },
  },
  explainRun: {
    given: { run: 5 },
    answer: {
      run: 5,
      task: "settle",
      state: "ready",
      source: "enqueue",
      due: "2026-11-30T01:06:00.000Z",
      lateMs: null,
      tookMs: null,
      attempt: 1,
      node: null,
      reasons: [
        {
          code: "no-worker",
          words: "No worker serves its group.",
          shown: { group: "finance", workers: 0, seen: [] },
        },
      ],
    },
  },
  explainRuns: {
    given: { run: [5] },
    answer: {
      runs: [
        {
          run: 5,
          task: "settle",
          state: "held",
          source: "enqueue",
          due: "2026-11-30T01:06:00.000Z",
          lateMs: null,
          tookMs: null,
          attempt: 1,
          node: null,
          reasons: [
            {
              code: "overlap",
              words: "It waits for other runs of its task: 1 may be under way at once.",
              shown: { overlap: { limit: 1, over: "queue" }, by: [{ run: 4, task: "settle", node: "atlas" }] },
            },
          ],
        },
      ],
    },
  },
  listLogs: {
    given: { run: 1, level: "info" },
    answer: {
      items: [
        {
          id: "1796000768732(0,1)",
          at: "2026-11-30T01:06:00.000Z",
          attempt: 1,
          level: "info",
          message: "412 entries",
          fields: null,
        },
      ],
      next: null,
      tail: "774.0~",
    },
  },
  rerunRun: { given: { run: 1, reason: "the ledger was wrong" }, answer: { run: 5, created: true } },
  listRecentRuns: {
    given: { task: ["settle"] },
    answer: {
      tasks: [
        {
          task: "settle",
          runs: [
            {
              run: 1,
              state: "succeeded",
              due: "2026-11-30T01:06:00.000Z",
              ended: "2026-11-30T01:06:00.000Z",
              lateMs: 382,
              tookMs: 5,
            },
          ],
        },
      ],
    },
  },
  decideRun: { given: { run: 5, how: "fail", reason: "it was paid by hand" } },
  listDeadGroups: {
    answer: {
      groups: [
        {
          fingerprint: "1d279c8aa06f",
          letters: 1,
          tasks: ["settle"],
          taskCount: 1,
          reason: {
            code: "WORKER_LOST",
            words: "its worker was lost, and it was decided to give it up: it was paid by hand",
          },
          first: "2026-11-30T01:06:00.000Z",
          last: "2026-11-30T01:06:00.000Z",
          lastRun: 5,
        },
      ],
      total: { groups: 1, letters: 1 },
    },
  },
  listDeadLetters: {
    answer: {
      items: [{ run: 5, task: "settle", ended: "2026-11-30T01:06:00.000Z", fingerprint: "1d279c8aa06f" }],
      next: null,
    },
  },
} satisfies Examples;
