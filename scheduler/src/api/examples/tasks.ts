import type { Examples } from "./example.ts";

export const taskExamples = {
  planBundle: {
    given: {
      bundle: "billing",
      tasks: [{ task: "invoice", options: { schedule: { type: "at", atMs: 3800000000000 } } }],
    },
    answer: {
      plan: "c9464104eb0a",
      bundle: "billing",
      steps: [
        {
          task: "invoice",
          version: 0,
          drift: [],
          keepsEdits: false,
          kind: "create",
          changes: [],
          definition: {
            group: "default",
            schedule: { type: "at", atMs: 3800000000000 },
            retry: { attempts: 1, backoff: "exponential", delayMs: 1000, maxDelayMs: 3600000, jitter: 0.2 },
            onWorkerLost: "retry",
          },
        },
      ],
      left: [],
      itemSteps: [],
      leftItems: [],
    },
  },
  applyBundle: {
    given: {
      bundle: "billing",
      tasks: [{ task: "invoice", options: { schedule: { type: "at", atMs: 3800000000000 } } }],
      plan: "c9464104eb0a",
      reason: "the first bill",
    },
    answer: {
      plan: "c9464104eb0a",
      bundle: "billing",
      applied: [{ task: "invoice", kind: "create", version: 1 }],
      appliedItems: [],
    },
  },
  createTask: {
    given: {
      task: "settle",
      options: {
        command: { argv: ["/usr/local/bin/settle"] },
        schedule: { type: "cron", expression: "0 6 2 1,4,7,10 *", zone: "Europe/Berlin" },
        calendar: { name: "bank", otherwise: "next" },
        group: "finance",
        onWorkerLost: "ask",
        payloadSchema: { type: "object", required: ["quarter"] },
      },
      reason: "each quarter",
    },
    answer: {
      name: "settle",
      version: 1,
      group: "finance",
      of: null,
      schedules: 0,
      schedule: { type: "cron", expression: "0 6 2 1,4,7,10 *", zone: "Europe/Berlin", gap: "shift", overlap: "first" },
      route: null,
      labels: {},
      limit: null,
      rate: null,
      words: "at 06:00 on day 2 of January, April, July and October, Europe/Berlin",
      next: "2027-01-04T05:00:00.000Z",
      paused: null,
      edited: [],
      counters: { succeeded: 0, failed: 0, cancelled: 0, skipped: 0, missed: 0, retried: 0 },
      id: 2,
      description: "",
      changed: "2026-11-30T01:06:00.000Z",
      bundle: null,
      accounted: [],
      definition: {
        group: "finance",
        schedule: {
          type: "cron",
          expression: "0 6 2 1,4,7,10 *",
          zone: "Europe/Berlin",
          gap: "shift",
          overlap: "first",
        },
        retry: { attempts: 1, backoff: "exponential", delayMs: 1000, maxDelayMs: 3600000, jitter: 0.2 },
        onWorkerLost: "ask",
        calendar: { name: "bank", on: "working-days", otherwise: "next" },
      },
    },
  },
  getTask: {
    given: { task: "settle" },
    answer: {
      name: "settle",
      version: 1,
      group: "finance",
      of: null,
      schedules: 0,
      schedule: { gap: "shift", type: "cron", zone: "Europe/Berlin", overlap: "first", expression: "0 6 2 1,4,7,10 *" },
      route: null,
      labels: {},
      limit: null,
      rate: null,
      words: "at 06:00 on day 2 of January, April, July and October, Europe/Berlin",
      next: "2027-01-04T05:00:00.000Z",
      paused: null,
      edited: [],
      counters: { succeeded: 0, failed: 0, cancelled: 0, skipped: 0, missed: 0, retried: 0 },
      id: 2,
      description: "",
      changed: "2026-11-30T01:06:00.000Z",
      bundle: null,
      accounted: [],
      definition: {
        group: "finance",
        retry: { jitter: 0.2, backoff: "exponential", delayMs: 1000, attempts: 1, maxDelayMs: 3600000 },
        calendar: { on: "working-days", name: "bank", otherwise: "next" },
        schedule: {
          gap: "shift",
          type: "cron",
          zone: "Europe/Berlin",
          overlap: "first",
          expression: "0 6 2 1,4,7,10 *",
        },
        onWorkerLost: "ask",
      },
    },
  },
  getTaskStatistics: {
    given: { task: "settle", by: "day" },
    answer: { periods: [], timesUntil: "2026-11-30T01:05:00.000Z", worse: [] },
  },
  editTask: {
    given: { task: "settle", options: { timeout: "2h", retry: 5 }, reason: "the bank is slow" },
    ifVersion: 1,
    answer: {
      name: "settle",
      version: 2,
      changed: true,
      edited: ["retry", "timeoutMs"],
      changes: [
        {
          part: "retry",
          was: { jitter: 0.2, backoff: "exponential", delayMs: 1000, attempts: 1, maxDelayMs: 3600000 },
          is: { attempts: 5, backoff: "exponential", delayMs: 1000, maxDelayMs: 3600000, jitter: 0.2 },
        },
        { part: "timeoutMs", was: null, is: 7200000 },
      ],
    },
  },
  revertTask: {
    given: { task: "settle", parts: ["retry"], reason: "once is enough" },
    ifVersion: 2,
    answer: {
      name: "settle",
      version: 3,
      changed: true,
      edited: ["timeoutMs"],
      changes: [
        {
          part: "retry",
          was: { jitter: 0.2, backoff: "exponential", delayMs: 1000, attempts: 5, maxDelayMs: 3600000 },
          is: { jitter: 0.2, backoff: "exponential", delayMs: 1000, attempts: 1, maxDelayMs: 3600000 },
        },
      ],
    },
  },
  defineTask: {
    given: { task: "mail", options: { after: "settle", group: "finance", retry: 2 } },
    ifVersion: 0,
    answer: { name: "mail", version: 1, changed: true, edited: [], changes: [] },
  },
  diffTask: {
    given: { task: "settle", from: 1 },
    answer: { from: 1, to: 3, changes: [{ part: "timeoutMs", was: null, is: 7200000 }] },
  },
  listTaskVersions: {
    given: { task: "settle", limit: 2 },
    answer: {
      items: [
        {
          version: 3,
          author: "admin",
          reason: "once is enough",
          changed: "2026-11-30T01:06:00.000Z",
          definition: {
            group: "finance",
            retry: { jitter: 0.2, backoff: "exponential", delayMs: 1000, attempts: 1, maxDelayMs: 3600000 },
            calendar: { on: "working-days", name: "bank", otherwise: "next" },
            schedule: {
              gap: "shift",
              type: "cron",
              zone: "Europe/Berlin",
              overlap: "first",
              expression: "0 6 2 1,4,7,10 *",
            },
            onWorkerLost: "ask",
          },
        },
      ],
      next: "WzJd",
    },
  },
  listTasks: {
    given: { matching: "se*" },
    answer: {
      items: [
        {
          name: "settle",
          version: 3,
          group: "finance",
          of: null,
          schedules: 0,
          schedule: {
            gap: "shift",
            type: "cron",
            zone: "Europe/Berlin",
            overlap: "first",
            expression: "0 6 2 1,4,7,10 *",
          },
          route: null,
          labels: {},
          limit: null,
          rate: null,
          words: "at 06:00 on day 2 of January, April, July and October, Europe/Berlin",
          next: "2027-01-04T05:00:00.000Z",
          paused: null,
          edited: ["timeoutMs"],
          counters: { succeeded: 0, failed: 0, cancelled: 0, skipped: 0, missed: 0, retried: 0 },
        },
      ],
      next: null,
    },
  },
  listComing: {
    given: { count: 1 },
    answer: { coming: [{ task: "settle", group: "finance", next: "2027-01-04T05:00:00.000Z" }] },
  },
  listUpcomingSlots: {
    given: { task: "settle", count: 1 },
    answer: {
      zone: "Europe/Berlin",
      words: "at 06:00 on day 2 of January, April, July and October, Europe/Berlin",
      paused: false,
      slots: [
        {
          slot: "2027-01-04T05:00:00.000Z",
          due: "2027-01-04T05:00:00.000Z",
          note: "calendar bank: moved from 2027-01-02",
        },
      ],
    },
  },
  listSlots: { given: { task: "settle" }, answer: { items: [], next: null, ranges: [] } },
  listFollowers: { given: { task: "settle" }, answer: { followers: [{ task: "mail", on: "success", with: [] }] } },
  listFlow: {
    given: { task: "settle" },
    answer: {
      tasks: [
        { task: "mail", group: "finance", paused: false, after: ["settle"], on: "success" },
        { task: "settle", group: "finance", paused: false, after: [], on: null },
      ],
      more: false,
    },
  },
  listTaskReleases: { given: { task: "settle" }, answer: { releases: [] } },
  checkPayload: { given: { task: "settle", payload: { quarter: "2029-4" } }, answer: { checked: true, issues: [] } },
  suggestSpread: {
    answer: {
      peak: { before: 0, after: 0 },
      fuller: 0,
      jitter: [
        { minutes: 2, peak: 0 },
        { minutes: 5, peak: 0 },
        { minutes: 10, peak: 0 },
        { minutes: 15, peak: 0 },
      ],
      moves: [],
    },
  },
  pauseTask: {
    given: { task: "settle", reason: "the bank is closed", until: "2090-01-02T06:00:00Z" },
    answer: { name: "settle", paused: true, running: [], held: 0, skipped: 0 },
  },
  resumeTask: {
    given: { task: "settle", reason: "it is open" },
    answer: { name: "settle", paused: false, next: "2027-01-04T05:00:00.000Z" },
  },
} satisfies Examples;
