import { describe, expect, it } from "vitest";
import { sample, tasksOf, told, utc } from "../../test/support/imports.ts";
import { importQuartz } from "./quartz.ts";
import { rowsOfCopy } from "./sql-copy.ts";

const { text } = sample("quartz.sql");
const dump = (changed: string) => importQuartz([{ path: "dump.sql", text: changed }], utc);

describe("Quartz's JDBC tables", () => {
  it("give state, class, recovery, overlap and misfire instructions", () => {
    const found = dump(text);
    expect(tasksOf(found)["billing.settle:weekdays"]).toEqual({
      description: "Settle accounts",
      schedule: { cron: "0 15 10 ? * MON-FRI", zone: "Europe/Berlin" },
      overlap: "queue",
      misfire: { policy: "skip", after: "1m" },
    });
    expect(told(found, "note")).toContain("billing.settle:night: stands still, so it is imported without its schedule");
  });

  it.each(["COMPLETE", "ERROR", "PAUSED_BLOCKED"])(
    "a trigger in the state %s is imported without its schedule",
    (state) => {
      expect(tasksOf(dump(text.replaceAll("'WAITING'", `'${state}'`))).sweep).not.toHaveProperty("schedule");
    },
  );

  it("a paused group is imported without its schedules, whatever the state of its triggers", () => {
    const paused = `${text}\nINSERT INTO QRTZ_PAUSED_TRIGGER_GRPS VALUES ('main','billing');`;
    const standing = Object.entries(tasksOf(dump(paused))).filter(([, written]) => !("schedule" in written));
    expect(standing.map(([name]) => name)).toEqual(["billing.settle:weekdays", "billing.settle:night"]);
  });

  it("ended triggers are imported without their schedule, and unreadable data is reported", () => {
    const ended = text.replace("1600000000000,0,NULL,2", "1600000000000,1700000000000,NULL,2");
    expect(tasksOf(dump(ended))["billing.settle:weekdays"]).not.toHaveProperty("schedule");
    const repeated = text.replace("'DEFAULT',-1,60000", "'DEFAULT',5,60000");
    expect(tasksOf(dump(repeated)).sweep).not.toHaveProperty("schedule");
    expect(told(dump(text.replace("'1',NULL)", "'1',_binary 'x')")), "lost")).toEqual([
      ": JOB_DATA of 1: it is serialised Java, also where it is empty",
    ]);
  });

  it("are read from a PostgreSQL dump as from a MySQL dump", () => {
    const copy = (table: string, columns: string, rows: string[]) =>
      `COPY public.${table} (${columns}) FROM stdin;\n${rows.map((row) => row.split(",").join("\t")).join("\n")}\n\\.\n`;
    const key = "sched_name, trigger_name, trigger_group";
    const found = dump(
      [
        copy(
          "qrtz_job_details",
          "sched_name, job_name, job_group, description, job_class_name, is_nonconcurrent, requests_recovery, job_data",
          ["main,a,DEFAULT,\\N,C,t,f,\\N"],
        ),
        copy(
          "qrtz_triggers",
          `${key}, job_name, job_group, priority, trigger_state, trigger_type, start_time, end_time, misfire_instr`,
          ["main,t,DEFAULT,a,DEFAULT,5,WAITING,CAL_INT,1600000000000,0,0"],
        ),
        copy("qrtz_simprop_triggers", `${key}, str_prop_1, int_prop_1`, ["main,t,DEFAULT,HOUR,6"]),
      ].join("\n"),
    );
    expect(tasksOf(found)).toMatchObject({
      a: { schedule: { every: "6h", anchor: "2020-09-13T12:26:40.000Z" }, overlap: "queue" },
    });
  });

  it("an unreadable dump is a problem with its line", () => {
    expect(told(dump("INSERT INTO QRTZ_TRIGGERS VALUES (1, 2);"), "problem")).toEqual([
      ": dump.sql is no SQL that can be read: line 1: a row of qrtz_triggers has 2 values, and its columns are not known",
    ]);
  });
});

describe("PostgreSQL's COPY", () => {
  it("gives rows with escapes and nulls resolved, and returns the rest of the text", () => {
    const { rows, rest } = rowsOfCopy('a;\nCOPY "public"."T" (x, "Y") FROM stdin;\n1\\t2\t\\N\n\\\\\tz\n\\.\nb;\n');
    expect([...rows]).toEqual([
      [
        "t",
        [
          { x: "1\t2", y: null },
          { x: "\\", y: "z" },
        ],
      ],
    ]);
    expect(rest).toBe("a;\n\nb;\n");
  });
});
