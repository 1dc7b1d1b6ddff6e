import { describe, expect, it } from "vitest";
import { type AlarmOptions, alarmSettings } from "../settings/alarms/alarms.ts";
import { againAfterMs, type Incident, stepIncident } from "./alarms.ts";

const windowMs = 60_000;
const step = (incident: Incident | null, news: number, open: number, nowMs: number) =>
  stepIncident(incident, news, open, nowMs, windowMs);
const told = (over: Partial<Incident> = {}): Incident => ({
  openedMs: 0,
  toldMs: 0,
  windowMs,
  total: 1,
  told: 1,
  quietMs: null,
  ...over,
});

describe("an incident", () => {
  /** All pairs of a state and an event, as in docs/operate/alarms.md. */
  it.each([
    ["none", null, 0, 0, 5, null, null],
    ["none", null, 3, 1, 5, "raised", { total: 3, told: 3, toldMs: 5 }],
    ["none, a condition", null, 0, 1, 5, "raised", { total: 1, told: 1 }],
    ["open", told(), 0, 1, 5, null, { total: 1, told: 1 }],
    ["open, more within the window", told(), 9_999, 1, 5, null, { total: 10_000, told: 1 }],
    ["open, more at its end", told({ total: 10_000 }), 0, 1, 60_000, "summary", { told: 10_000, windowMs: 120_000 }],
    ["open, nothing new at its end", told(), 0, 1, 60_000, null, { told: 1, windowMs: 60_000 }],
    ["open, well for the first time", told(), 0, 0, 5, null, { quietMs: 5 }],
    ["quiet, wrong again", told({ quietMs: 5 }), 1, 1, 9, null, { quietMs: null, total: 2 }],
    ["quiet, still well", told({ quietMs: 5 }), 0, 0, 60_004, null, { quietMs: 5 }],
    ["quiet for long enough", told({ quietMs: 5 }), 0, 0, 60_005, "cleared", null],
  ] as const)("%s", (_, incident, news, open, nowMs, message, left) => {
    const next = step(incident, news, open, nowMs);
    expect(next.message).toBe(message);
    if (left === null) expect(next.incident).toBeNull();
    else expect(next.incident).toMatchObject(left);
  });

  it("sends messages at growing intervals while it lasts, and one message when it ends", () => {
    let incident: Incident | null = null;
    const messages: [number, string][] = [];
    for (let minute = 0; minute <= 24 * 60; minute++) {
      const next = step(incident, minute < 1_200 ? 5 : 0, minute < 1_200 ? 1 : 0, minute * 60_000);
      incident = next.incident;
      if (next.message) messages.push([minute, next.message]);
    }
    expect(messages.filter(([, kind]) => kind === "raised")).toEqual([[0, "raised"]]);
    expect(messages.filter(([, kind]) => kind === "cleared")).toEqual([[1_201, "cleared"]]);
    expect(messages.slice(1, 7).map(([minute]) => minute)).toEqual([1, 3, 7, 15, 31, 63]);
    expect(messages.length).toBeLessThan(30);
  });

  it("never shortens its message window, however long the first window is", () => {
    const twoHours = 7_200_000;
    expect(stepIncident(told({ windowMs: twoHours, total: 2 }), 0, 1, twoHours, twoHours).incident?.windowMs).toBe(
      twoHours,
    );
  });

  it("increases its retry delay while its messages cannot be delivered", () => {
    expect([1, 2, 3, 20].map(againAfterMs)).toEqual([30_000, 60_000, 120_000, 3_600_000]);
  });
});

describe("options of alarms", () => {
  const ops = { webhook: "https://example.com/hook" };
  it("send every rule to every channel, unless configured otherwise", () => {
    const mail = { smtp: "smtp://localhost", from: "a@b", to: "c@d" };
    const settings = alarmSettings({ channels: { ops, mail }, rules: { late: [], failed: ["mail"] }, summary: "5m" });
    expect(settings).toMatchObject({
      summaryMs: 300_000,
      lateMs: 10_000,
      rules: { late: [], failed: ["mail"], stuck: ["ops", "mail"] },
    });
  });
  it.each<[string, unknown]>([
    ["no channel", { channels: {} }],
    ["a stranger", { channels: { ops }, colour: 1 }],
    ["an unknown rule", { channels: { ops }, rules: { moody: [] } }],
    ["an unknown channel", { channels: { ops }, rules: { failed: ["pager"] } }],
    ["a file URL", { channels: { ops: { webhook: "file:///etc/passwd" } } }],
    ["neither", { channels: { ops: {} } }],
    ["a URL with a password", { channels: { ops: { webhook: "https://me:pass@example.com/hook" } } }],
    ["an empty secret", { channels: { ops: { ...ops, secret: "" } } }],
    ["no address", { channels: { mail: { smtp: "smtp://localhost", from: "me", to: "c@d" } } }],
    ["nobody", { channels: { mail: { smtp: "smtp://localhost", from: "a@b", to: [] } } }],
    ["another protocol", { channels: { mail: { smtp: "http://localhost", from: "a@b", to: "c@d" } } }],
    ["a name", { channels: { "a b": ops } }],
    ["a list", []],
  ])("are refused with a description of the error: %s", (_, options) => {
    expect(() => alarmSettings(options as AlarmOptions)).toThrow(expect.objectContaining({ code: "OPTION_INVALID" }));
  });

  it("suggest the nearest name for a misspelt option or rule", () => {
    const misspelt = (options: unknown) => expect(() => alarmSettings(options as AlarmOptions));
    misspelt({ channels: { ops }, summery: "5m" }).toThrow('alarms has no "summery"; did you mean "summary"?');
    misspelt({ channels: { ops }, rules: { overdu: [] } }).toThrow('no "overdu"; did you mean "overdue"?');
  });
});
