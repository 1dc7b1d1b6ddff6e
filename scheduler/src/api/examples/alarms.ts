import type { Examples } from "./example.ts";

const byRule = {
  kind: "deadline" as const,
  by: "06:00",
  zone: "Asia/Shanghai",
  scope: { tasks: ["settle"] },
  channels: ["ops"],
};
const settled = {
  name: "settled-by-six",
  version: 1,
  ...byRule,
  finds: "not done by 06:00 Asia/Shanghai",
  author: "admin",
  reason: "the bank closes at six",
  changed: "2026-11-30T01:06:00.000Z",
  bundle: null,
};

export const alarmExamples = {
  listAlarms: {
    given: { rule: "late" },
    answer: {
      items: [
        {
          rule: "late",
          task: "settle",
          opened: "2026-11-30T01:06:00.000Z",
          last: "2026-11-30T01:06:00.000Z",
          count: 1,
          text: "settle was 9 min late",
          run: null,
          silencedUntil: null,
          acknowledged: null,
        },
      ],
      next: null,
    },
  },
  acknowledgeAlarm: {
    given: { rule: "late", task: "settle", reason: "the bank is slow" },
    answer: { acknowledged: 1 },
  },
  silenceAlarms: {
    given: { rule: "late", task: "settle", for: "2h", reason: "the bank moves" },
    answer: {
      silence: 1,
      rule: "late",
      task: "settle",
      from: "2026-11-30T01:06:00.000Z",
      until: "2026-11-30T03:06:00.000Z",
      by: "admin",
      reason: "the bank moves",
    },
  },
  listSilences: {
    answer: {
      silences: [
        {
          silence: 1,
          rule: "late",
          task: "settle",
          from: "2026-11-30T01:06:00.000Z",
          until: "2026-11-30T03:06:00.000Z",
          by: "admin",
          reason: "the bank moves",
        },
      ],
    },
  },
  getSilence: {
    given: { silence: 1 },
    answer: {
      silence: 1,
      rule: "late",
      task: "settle",
      from: "2026-11-30T01:06:00.000Z",
      until: "2026-11-30T03:06:00.000Z",
      by: "admin",
      reason: "the bank moves",
    },
  },
  endSilence: { given: { silence: 1, reason: "it has moved" } },
  createAlarmRule: {
    given: { name: "settled-by-six", ...byRule, reason: "the bank closes at six" },
    answer: settled,
  },
  getAlarmRule: { given: { alarmRule: "settled-by-six" }, answer: settled },
  listAlarmRules: {
    answer: {
      summaryMs: 60000,
      rules: [{ rule: "failed", words: "runs failed", afterMs: null, channels: [] }],
      stored: [settled],
    },
  },
  setAlarmRule: {
    given: { alarmRule: "settled-by-six", ...byRule, by: "05:30", reason: "half an hour to spare" },
    ifVersion: 1,
    answer: {
      ...settled,
      version: 2,
      by: "05:30",
      finds: "not done by 05:30 Asia/Shanghai",
      reason: "half an hour to spare",
    },
  },
  removeAlarmRule: { given: { alarmRule: "settled-by-six", reason: "the bank has gone" }, ifVersion: 2 },
  listAlarmChannels: {
    answer: { channels: [{ name: "ops", kind: "webhook", to: "hooks.example", signed: false, rules: [] }] },
  },
  previewAlarmChannel: {
    given: { channel: "ops" },
    answer: { kind: "webhook", to: "hooks.example", content: '{ "text": "Carillon: runs failed" }' },
  },
  testAlarmChannel: {
    given: { channel: "ops", reason: "a new receiver" },
    answer: {
      message: 2,
      channel: "ops",
      rule: "test",
      created: "2026-11-30T01:06:00.000Z",
      attempts: 0,
      sent: null,
      next: "2026-11-30T01:06:00.000Z",
      error: null,
      kind: "test",
      state: "waiting",
    },
  },
  getAlarmMessage: {
    given: { message: 2 },
    answer: {
      message: 2,
      channel: "ops",
      rule: "test",
      created: "2026-11-30T01:06:00.000Z",
      attempts: 1,
      sent: "2026-11-30T01:06:00.000Z",
      next: null,
      error: null,
      kind: "test",
      state: "sent",
      subject: "a test by admin: nothing is wrong",
      text: "Messages of Carillon's alarms reach this place.",
      tries: [{ attempt: 1, at: "2026-11-30T01:06:00.000Z", node: "tower-1", error: null }],
    },
  },
  listAlarmMessages: {
    given: { limit: 1 },
    answer: {
      items: [
        {
          message: 2,
          channel: "ops",
          rule: "test",
          created: "2026-11-30T01:06:00.000Z",
          attempts: 1,
          sent: "2026-11-30T01:06:00.000Z",
          next: null,
          error: null,
          kind: "test",
          state: "sent",
        },
      ],
      next: "WzJd",
    },
  },
} satisfies Examples;
