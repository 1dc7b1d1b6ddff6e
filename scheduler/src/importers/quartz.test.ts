import { describe, expect, it } from "vitest";
import { coming, past, readable, sample, tasksOf, told, utc } from "../../test/support/imports.ts";
import { importQuartz } from "./quartz.ts";
import { quartzCron } from "./quartz-cron.ts";

describe("Quartz", () => {
  const found = importQuartz([sample("quartz.properties"), sample("quartz_data.xml")], utc);

  it("imports each trigger as a task, with the data of trigger and detail, zone, misfire and recovery", () => {
    readable(found);
    const tasks = tasksOf(found);
    expect(Object.keys(tasks)).toEqual([
      "billing.SettleAccounts:weekday-morning",
      "billing.SettleAccounts:month-end",
      "Heartbeat:beat",
      "Rebuild",
    ]);
    expect(tasks["billing.SettleAccounts:weekday-morning"]).toEqual({
      description: "Settles the day's accounts · Monday to Friday",
      schedule: { cron: "0 15 10 ? * MON-FRI", zone: "America/New_York" },
      slotPayload: { ledger: "eu", currency: "EUR & CHF" },
      priority: 7,
      misfire: { policy: "skip", after: "2m" },
    });
    expect(tasks["billing.SettleAccounts:month-end"]).toMatchObject({
      slotPayload: { ledger: "all" },
      priority: 9,
      misfire: { policy: "fire_once" },
    });
    expect(tasks["Heartbeat:beat"]).toEqual({
      schedule: { every: "10s", anchor: "2026-01-01T00:00:05.000Z" },
      misfire: { policy: "skip", after: "2m" },
      onWorkerLost: "fail",
    });
  });

  it("reports lost fields, and entries that cannot be imported", () => {
    expect(told(found, "problem")).toEqual([
      "orphan: its job Nobody is not in these files",
      "Heartbeat:monthly: an interval in MONTH has no fixed length",
    ]);
    expect(told(found, "lost").map((text) => text.replace("billing.SettleAccounts:month-end: ", ""))).toEqual([
      "its calendar bankHolidays, which is Java",
      "priority 50: 0 to 9 are possible",
    ]);
    expect(told(found, "note")).toContain("Heartbeat: runs the Java class com.example.ops.HeartbeatJob");
    expect(told(found, "note")).toContain(": Quartz ran 5 at once");
  });

  it.each([
    ["SMART_POLICY", "cron", "fire_once"],
    ["MISFIRE_INSTRUCTION_FIRE_ONCE_NOW", "cron", "fire_once"],
    ["2", "cron", "skip"],
    ["-1", "cron", "all"],
    ["", "simple", "skip"],
    ["MISFIRE_INSTRUCTION_FIRE_NOW", "simple", "fire_once"],
    ["MISFIRE_INSTRUCTION_RESCHEDULE_NEXT_WITH_REMAINING_COUNT", "simple", "skip"],
    ["MISFIRE_INSTRUCTION_RESCHEDULE_NOW_WITH_EXISTING_REPEAT_COUNT", "simple", "fire_once"],
    ["5", "simple", "skip"],
  ])("misfire instruction %s of a %s trigger becomes %s", (instruction, kind, policy) => {
    const when =
      kind === "cron"
        ? "<cron-expression>0 0 12 * * ?</cron-expression>"
        : "<repeat-count>-1</repeat-count><repeat-interval>1000</repeat-interval>";
    const said = instruction === "" ? "" : `<misfire-instruction>${instruction}</misfire-instruction>`;
    const text = `<schedule><job><name>a</name></job><trigger><${kind}><job-name>a</job-name>${said}${when}</${kind}></trigger></schedule>`;
    const [task] = importQuartz([{ path: "a.xml", text }], utc).tasks;
    expect(task?.written.misfire).toMatchObject({ policy });
  });

  it.each([
    ["2026-07-01T09:00:00", "", "2026-07-01T07:00:00.000Z"],
    ["2026-01-01T09:00:00.5", "", "2026-01-01T08:00:00.500Z"],
    ["2026-03-29T02:30:00", "", "2026-03-29T01:30:00.000Z"],
    ["2026-07-01T09:00:00", "Asia/Tokyo", "2026-07-01T00:00:00.000Z"],
    ["2026-07-01T09:00:00Z", "", "2026-07-01T09:00:00.000Z"],
    ["2026-07-01T09:00:00+01:00", "", "2026-07-01T08:00:00.000Z"],
    ["2026-02-30T09:00:00", "", undefined],
    ["2026-07-01", "", undefined],
    ["9026-07-01T09:00:00", "", undefined],
    ["tomorrow", "", undefined],
    ["2026-07-01T09:00:00", "Mars/Base", undefined],
  ])("start-time %s in zone %s, read on a machine in Berlin, is %s", (start, zone, instant) => {
    const said = `<job-name>a</job-name><start-time>${start}</start-time>${zone && `<time-zone>${zone}</time-zone>`}`;
    const repeats = "<repeat-count>-1</repeat-count><repeat-interval>60000</repeat-interval>";
    const triggers = [`<simple>${said}</simple>`, `<simple>${said}${repeats}</simple>`];
    for (const [at, trigger] of triggers.entries()) {
      const text = `<schedule><job><name>a</name></job><trigger>${trigger}</trigger></schedule>`;
      const found = importQuartz([{ path: "a.xml", text }], { zone: "Europe/Berlin", nowMs: 0 });
      const ours = at === 0 ? { at: instant } : { every: "1m", anchor: instant, from: instant };
      expect(tasksOf(found).a?.schedule).toEqual(instant === undefined ? undefined : ours);
      expect(told(found, "problem")).toHaveLength(instant === undefined ? 1 : 0);
      const guessed = instant !== undefined && !/Z|\+/.test(start);
      const note = `a: its start-time ${start} has no offset, so it is taken to be in ${zone || "Europe/Berlin"}`;
      expect(told(found, "note").filter((text) => text.includes("start-time"))).toEqual(guessed ? [note] : []);
    }
  });

  const quartz = (triggers: string, detail = "<job-class>a.A</job-class>") =>
    importQuartz(
      [
        {
          path: "a.xml",
          text: `<schedule><job><name>a</name>${detail}</job><trigger>${triggers}</trigger></schedule>`,
        },
      ],
      utc,
    );
  const cron = (said: string, expression = "0 0 9 * * ?") =>
    `<cron><job-name>a</job-name>${said}<cron-expression>${expression}</cron-expression></cron>`;
  const simple = (said: string, repeats: number) =>
    `<simple><job-name>a</job-name>${said}<repeat-count>${repeats}</repeat-count><repeat-interval>60000</repeat-interval></simple>`;

  it.each([
    ["a cron's end", cron(`<end-time>${past}</end-time>`), "ended at 2010-01-01T00:00:00.001Z"],
    ["an interval's end", simple(`<end-time>${past}</end-time>`, -1), "ended at 2010-01-01T00:00:00.000Z"],
    ["its five repeats", simple(`<start-time>${past}</start-time>`, 5), "ended at 2010-01-01T00:05:00.001Z"],
    ["its one time", simple(`<start-time>${past}</start-time>`, 0), "has no slot left"],
    ["a cron's years", cron("", "0 0 9 1 1 ? 2010-2012"), "has no slot left"],
  ])("an ended trigger is imported without its schedule: %s", (_, trigger, why) => {
    const found = quartz(trigger);
    readable(found);
    expect(tasksOf(found).a).toBeDefined();
    expect(tasksOf(found).a).not.toHaveProperty("schedule");
    expect(told(found, "note")).toContain(`a: ${why}, so it is imported without its schedule`);
    expect(found.tasks[0]?.comment).toContain(`${why}; its schedule: {`);
  });

  it.each([
    [simple(`<start-time>${coming}</start-time>`, -1), { from: "2031-01-01T00:00:00.000Z" }],
    [cron(`<start-time>${coming}</start-time>`), { from: "2031-01-01T00:00:00.000Z" }],
    [cron(`<end-time>${coming}</end-time>`), { until: "2031-01-01T00:00:00.000Z" }],
    [
      simple(`<start-time>${coming}</start-time>`, 2),
      { from: "2031-01-01T00:00:00.000Z", until: "2031-01-01T00:02:00.000Z" },
    ],
    [simple(`<start-time>${coming}</start-time>`, 0), { at: "2031-01-01T00:00:00.000Z" }],
  ])("a trigger with a start or an end has no slots outside: %s", (trigger, bounds) => {
    const found = quartz(trigger);
    readable(found);
    const schedule = tasksOf(found).a?.schedule as Record<string, string> | undefined;
    expect({ from: schedule?.from, until: schedule?.until, at: schedule?.at }).toEqual(bounds);
    expect(told(found, "lost")).toEqual([]);
  });

  it.each([
    ["end-time", "never"],
    ["end-time", "2030-02-30T09:00:00"],
    ["start-time", "tomorrow"],
    ["start-time", "9026-01-01T00:00:00Z"],
  ])("a cron whose %s is %s is not imported, because it would fire outside its bounds", (name, time) => {
    const found = quartz(cron(`<${name}>${time}</${name}>`));
    expect([found.tasks, told(found, "problem")]).toEqual([[], [expect.stringMatching(/^a: /)]]);
  });

  it.each([
    [cron("<misfire-instruction>DoNothing</misfire-instruction>"), "skip"],
    [cron("<misfire-instruction>IgnoreMisfirePolicy</misfire-instruction>"), "all"],
    [simple("<misfire-instruction>SmartPolicy</misfire-instruction>", -1), "skip"],
    [
      simple(`<start-time>${coming}</start-time><misfire-instruction>SmartPolicy</misfire-instruction>`, 0),
      "fire_once",
    ],
    [simple(`<start-time>${coming}</start-time>`, 3), "fire_once"],
    [simple("<misfire-instruction>3</misfire-instruction>", -1), "fire_once"],
  ])("reads Quartz.NET's names, and resolves the smart misfire policy for each kind: %s", (trigger, policy) => {
    expect(quartz(trigger).tasks[0]?.written.misfire).toMatchObject({ policy });
  });

  it("names Quartz.NET's type, and counts the crons without a zone with the zone assumed for them", () => {
    const notes = told(quartz(cron(""), "<job-type>Acme.Jobs.First, Acme</job-type>"), "note");
    expect(notes).toContain("a: runs the .NET type Acme.Jobs.First, Acme");
    expect(notes).toContain(": cron triggers without time-zone: 1; they are taken to mean UTC");
    expect(told(quartz(cron("<time-zone>Asia/Tokyo</time-zone>")), "note").join()).not.toContain("time-zone");
  });

  it("reads the sample of Quartz.NET, whose details are durable, without a lost field", () => {
    const found = importQuartz([sample("quartz_net.xml")], utc);
    readable(found);
    expect(tasksOf(found)).toMatchObject({
      "reports.Daily": {
        schedule: { cron: "0 30 6 ? * MON-FRI", zone: "Europe/Berlin" },
        slotPayload: { format: "pdf" },
        misfire: { policy: "skip" },
      },
    });
    expect(told(found, "lost")).toEqual([]);
    expect(told(found, "note")).toContain("reports.Daily: runs the .NET type Acme.Reports.DailyJob, Acme.Reports");
  });

  it("reads Quartz 1, where details and triggers are nested in each entry", () => {
    const detail =
      "<name>Due</name><group>G</group><job-class>a.Due</job-class><job-data-map><entry><key>k</key><value>v</value></entry></job-data-map>";
    const trigger =
      "<cron><name>T</name><job-name>Due</job-name><job-group>G</job-group><cron-expression>0 0 0 * * ?</cron-expression></cron>";
    const text = `<quartz version="1.5"><job><job-detail>${detail}</job-detail><trigger>${trigger}</trigger></job></quartz>`;
    const found = importQuartz([{ path: "a.xml", text }], utc);
    expect(tasksOf(found)).toMatchObject({
      "G.Due": { schedule: { cron: "0 0 0 * * ?" }, slotPayload: { k: "v" } },
    });
    expect(told(found, "problem")).toEqual([]);
    expect(told(found, "note")).toContain("G.Due: runs the Java class a.Due");
  });

  it("reads only the text itself: no entities, no files, no unclosed elements", () => {
    const hostile =
      '<!DOCTYPE x [<!ENTITY f SYSTEM "file:///etc/passwd">]><schedule><job><name>&f;</name></job></schedule>';
    for (const text of [hostile, "<schedule><job>", "", "{}", "<html/>"])
      expect(told(importQuartz([{ path: "a.xml", text }], utc), "problem"), text).not.toEqual([]);
  });
});

describe("Quartz's cron", () => {
  it.each([
    ["0 0 12 ? * 1", "0 0 12 ? * SUN"],
    ["0 0 12 ? * 2-6", "0 0 12 ? * MON-FRI"],
    ["0 0 12 ? * 6L", "0 0 12 ? * FRIL"],
    ["0 0 12 ? * 6#3", "0 0 12 ? * FRI#3"],
    ["0 0 12 ? * L", "0 0 12 ? * SAT"],
    ["0 0 12 ? * 1/2", "0 0 12 ? * SUN,TUE,THU,SAT"],
    ["0 0 12 ? * 2/2", "0 0 12 ? * MON,WED,FRI"],
    ["0 0 12 ? * 2-6/2", "0 0 12 ? * MON,WED,FRI"],
    ["0 0 12 ? * 6-2/3", "0 0 12 ? * FRI,MON"],
    ["0 0 12 ? * */3", "0 0 12 ? * SUN,WED,SAT"],
    ["0 0 12 ? * mon,7", "0 0 12 ? * MON,SAT"],
    ["0 0 12 LW * ? 2027", "0 0 12 LW * ? 2027"],
    ["0 0 12 ? * 9", "0 0 12 ? * 9"],
    ["0 12 * * 2", "0 12 * * 2"],
  ])("%s becomes %s", (theirs, ours) => {
    expect(quartzCron(theirs)).toBe(ours);
  });
});
