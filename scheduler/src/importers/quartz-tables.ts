/**
 * Reads Quartz's JDBC tables (`QRTZ_…`) from a dump of MySQL or PostgreSQL and converts them to the tree that Quartz's XML gives,
 * so that one importer reads tables and XML. A trigger's state, which the XML does not contain, becomes a child `trigger-state`.
 */
import { column, numberOf, type Row, textOf } from "./findings.ts";
import { rowsOfCopy } from "./sql-copy.ts";
import { rowsOfSql } from "./sql-rows.ts";
import type { Element } from "./xml.ts";

/**
 * The columns of each table in their order, for an INSERT that names no columns. The tables of Quartz 1 have no SCHED_NAME and
 * another order, so the columns are then read from CREATE TABLE.
 */
const key = ["sched_name", "trigger_name", "trigger_group"];
const columns: readonly (readonly [string, readonly string[]])[] = [
  [
    "job_details",
    words(
      "sched_name job_name job_group description job_class_name is_durable is_nonconcurrent is_update_data requests_recovery job_data",
    ),
  ],
  [
    "triggers",
    [
      ...key,
      ...words("job_name job_group description next_fire_time prev_fire_time priority trigger_state trigger_type"),
      ...words("start_time end_time calendar_name misfire_instr job_data"),
    ],
  ],
  ["cron_triggers", [...key, "cron_expression", "time_zone_id"]],
  ["simple_triggers", [...key, "repeat_count", "repeat_interval", "times_triggered"]],
  [
    "simprop_triggers",
    [
      ...key,
      ...words("str_prop_1 str_prop_2 str_prop_3 int_prop_1 int_prop_2 long_prop_1 long_prop_2 dec_prop_1 dec_prop_2"),
      ...words("bool_prop_1 bool_prop_2"),
    ],
  ],
  ["paused_trigger_grps", ["sched_name", "trigger_group"]],
];

function words(text: string): string[] {
  return text.split(" ");
}

export const isQuartzDump = (text: string): boolean => /\bqrtz_\w*triggers\b/i.test(text);

/** @throws Error whose message names the line of the SQL text that cannot be parsed */
export function readQuartzTables(text: string): { root: Element; withData: number } {
  const { rows: copied, rest } = rowsOfCopy(text);
  const known = new Map(
    columns.map(([name, order]) => [`qrtz_${name}`, (count: number) => (count === order.length ? order : undefined)]),
  );
  const inserted = rowsOfSql(rest, known);
  const table = (name: string): Row[] =>
    [...(copied.get(`qrtz_${name}`) ?? []), ...(inserted.get(`qrtz_${name}`) ?? [])].map(lowerCase);
  const keyOf = (row: Row) => [row.sched_name, row.trigger_group, row.trigger_name].map(textOf).join("\n");
  const byKey = (name: string) => new Map(table(name).map((row) => [keyOf(row), row]));
  const [crons, simples, others] = [byKey("cron_triggers"), byKey("simple_triggers"), byKey("simprop_triggers")];
  const paused = new Set(table("paused_trigger_grps").map((row) => textOf(row.trigger_group)));
  const details = table("job_details");
  const triggers = table("triggers").map((row) => {
    const at = keyOf(row);
    const isPaused = paused.has(allPaused) || paused.has(textOf(row.trigger_group));
    return triggerOf(row, crons.get(at), simples.get(at), others.get(at), isPaused);
  });
  const withData = details.filter(
    (row) =>
      column(row, "job_data") !== null && column(row, "job_data") !== undefined && column(row, "job_data") !== "",
  ).length;
  return { root: element("", [element("schedule", [...details.map(detailOf), ...triggers])]), withData };
}

const allPaused = "_$_ALL_GROUPS_PAUSED_$_";

const lowerCase = (row: Row): Row =>
  Object.fromEntries(Object.entries(row).map(([name, value]) => [name.toLowerCase(), value]));

const element = (name: string, children: Element[], text = ""): Element => ({
  name,
  attributes: {},
  children,
  text,
  line: 0,
});
const leaf = (name: string, value: unknown): Element => element(name, [], textOf(value));

const detailOf = (row: Row): Element =>
  element("job", [
    leaf("name", column(row, "job_name")),
    leaf("group", column(row, "job_group")),
    leaf("description", row.description),
    leaf("job-class", column(row, "job_class_name")),
    leaf("recover", isTrue(row.requests_recovery) ? "true" : "false"),
    leaf("overlap", isTrue(row.is_nonconcurrent) ? "queue" : "allow"),
  ]);

/** True for the ways in which MySQL and PostgreSQL write a true boolean: 1, y, t, true. */
const isTrue = (value: unknown): boolean => /^(?:1|y|t|true)$/i.test(textOf(value));

const timeOf = (value: unknown): string => {
  const ms = numberOf(value) ?? 0;
  return ms > 0 ? new Date(ms).toISOString() : "";
};

function triggerOf(
  row: Row,
  cron: Row | undefined,
  simple: Row | undefined,
  other: Row | undefined,
  isPaused: boolean,
): Element {
  const shared = [
    leaf("name", row.trigger_name),
    leaf("group", row.trigger_group),
    leaf("job-name", column(row, "job_name")),
    leaf("job-group", column(row, "job_group")),
    leaf("description", row.description),
    leaf("priority", row.priority),
    leaf("calendar-name", row.calendar_name),
    leaf("misfire-instruction", row.misfire_instr),
    leaf("start-time", timeOf(row.start_time)),
    leaf("end-time", timeOf(row.end_time)),
    leaf("trigger-state", isPaused ? "PAUSED" : row.trigger_state),
  ];
  const own = () => {
    if (cron)
      return element("cron", [
        ...shared,
        leaf("cron-expression", cron.cron_expression),
        leaf("time-zone", cron.time_zone_id),
      ]);
    if (simple)
      return element("simple", [
        ...shared,
        leaf("repeat-count", simple.repeat_count),
        leaf("repeat-interval", simple.repeat_interval),
      ]);
    if (other && textOf(row.trigger_type) === "CAL_INT")
      return element("calendar-interval", [
        ...shared,
        leaf("repeat-interval-unit", other.str_prop_1),
        leaf("repeat-interval", other.int_prop_1),
      ]);
    return element(textOf(row.trigger_type).toLowerCase() || "blob", shared);
  };
  return element("trigger", [own()]);
}
