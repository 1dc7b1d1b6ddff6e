import { Link } from "@tanstack/react-router";
import { useAnswer } from "../api/answers.ts";
import { ErrorsCard } from "../errors/errors.tsx";
import { useWords } from "../messages/words.ts";
import { useNow } from "../now.ts";
import { Card, Columns, Facts } from "../parts/layout/page.tsx";
import { type Asked, Nothing, Shown } from "../parts/state/notice.tsx";
import { Table } from "../parts/table/table.tsx";
import { Away } from "../parts/value/moment.tsx";
import type { Task } from "./answers.ts";
import { Axis } from "./axis.tsx";
import { ClockTurn, turnBetween } from "./clock-turn.tsx";
import { Durations } from "./durations.tsx";
import type { Schedule } from "./schedule-words.ts";
import css from "./task.module.css";

const slotsShown = 20;
const runsShown = 60;

/** @param of the read of the task itself, beside which the other reads are sent */
export function TaskOverview({ name, of }: { name: string; of: Asked<Task> }) {
  const { t } = useWords();
  const coming = useAnswer("listUpcomingSlots", { task: name, count: slotsShown }, { everyMs: 10_000 });
  const recent = useAnswer("listRecentRuns", { task: [name], each: runsShown }, { everyMs: 5_000 });
  const runsOf = ({ tasks }: NonNullable<typeof recent.data>) => tasks[0]?.runs ?? [];
  return (
    <>
      <Card title={t("task.axis")} more={of.data && <Counts task={of.data} />}>
        <Shown of={coming} rows={2}>
          {({ paused, slots }) => (
            <Shown of={recent} rows={2}>
              {(data) => <Axis runs={runsOf(data)} slots={paused ? [] : slots.flatMap(({ due }) => due ?? [])} />}
            </Shown>
          )}
        </Shown>
      </Card>
      <Columns shares={[3, 2]}>
        <Card title={t("task.slots", { n: slotsShown })} tight>
          <Shown of={coming}>
            {(data) =>
              data.slots.length === 0 ? (
                <Nothing title={t("task.noSlots")}>{t("task.noSlotsTold")}</Nothing>
              ) : (
                <Slots zone={data.zone} slots={data.slots} />
              )
            }
          </Shown>
        </Card>
        <div>
          <Card title={t("task.durations")}>
            <Shown of={recent} rows={4}>
              {(data) =>
                runsOf(data).length === 0 ? (
                  <p className="soft">{t("task.noRunsTold")}</p>
                ) : (
                  <Durations runs={runsOf(data)} />
                )
              }
            </Shown>
          </Card>
          <Card title={t("task.policies")}>
            <Shown of={of}>{(task) => <Policies task={task} />}</Shown>
          </Card>
        </div>
      </Columns>
      <ErrorsCard task={name} />
    </>
  );
}

function Counts({ task: { counters } }: { task: Task }) {
  const { t, count } = useWords();
  const names = ["succeeded", "failed", "cancelled", "skipped", "missed"] as const;
  const told = names.filter((name) => name === "succeeded" || counters[name] > 0);
  return (
    <span className="soft figures">
      {told.map((name) => `${t(`counter.${name}`)} ${count(counters[name])}`).join(" · ")}
    </span>
  );
}

type Slot = { slot: string; due: string | null; note: string };

function Slots({ zone, slots }: { zone: string; slots: Slot[] }) {
  const words = useWords();
  const { t } = words;
  const now = useNow();
  const another = words.zone !== zone;
  return (
    <Table
      label={t("task.slots", { n: slots.length })}
      className={css.slots}
      heads={[
        t("task.slotIn", { zone }),
        ...(another ? [words.zone] : []),
        another ? `${t("task.away")} · ${zone}` : t("task.away"),
      ]}
    >
      {slots.map(({ slot, due, note }, at) => {
        const ms = Date.parse(slot);
        const before = slots[at - 1]?.slot;
        const turn = turnBetween(zone, before === undefined ? now : Date.parse(before), ms);
        return (
          <tr key={slot} data-skipped={due === null || undefined}>
            <td className="figures">
              {words.when(ms, zone)}
              <span className={css.clocks}>
                <ClockTurn minutes={turn} />
              </span>
              {note !== "" && <div className="soft">{words.told(note, zone)}</div>}
            </td>
            {another && <td className="figures soft">{words.when(ms)}</td>}
            <td>
              <Away at={due ?? slot} zone={zone} />
            </td>
          </tr>
        );
      })}
    </Table>
  );
}

interface Definition {
  group: string;
  owner?: string;
  priority: number;
  timeoutMs: number | null;
  retry: { attempts: number; backoff?: string };
  overlap: { policy: "allow" | "queue" | "skip" | "replace"; limit: number | null; waiting?: number };
  misfire: { policy: "fire_once" | "skip" | "all" };
  onWorkerLost: "retry" | "fail" | "ask";
  graceMs: number;
  calendar?: { name: string } | null;
}

function Policies({ task }: { task: Task }) {
  const { t, span } = useWords();
  const definition = task.definition as unknown as Definition;
  const schedule = task.schedule as Schedule;
  const { overlap } = definition;
  return (
    <>
      {task.description !== "" && <p style={{ marginTop: 0, whiteSpace: "pre-wrap" }}>{task.description}</p>}
      <Facts
        facts={[
          ...(schedule.type === "cron"
            ? ([
                [
                  t("task.expression"),
                  <code key="expression" className="mono">
                    {schedule.expression}
                  </code>,
                ],
              ] as [string, React.ReactNode][])
            : []),
          ...(schedule.type === "rrule"
            ? ([
                [
                  t("task.rule"),
                  <code key="rule" className="mono">
                    {schedule.rule}
                  </code>,
                ],
                [t("task.start"), schedule.start.replace("T", " ")],
              ] as [string, React.ReactNode][])
            : []),
          ...("zone" in schedule
            ? ([
                [t("task.zone"), schedule.zone],
                [t("task.gap"), t(`gap.${schedule.gap}`)],
                [t("task.fold"), t(`fold.${schedule.overlap}`)],
              ] as [string, React.ReactNode][])
            : []),
          ...("jitterMs" in schedule && schedule.jitterMs
            ? ([
                [t("task.jitter"), t(`jitterBy.${schedule.jitterBy ?? "slot"}`, { span: span(schedule.jitterMs) })],
              ] as [string, React.ReactNode][])
            : []),
          [
            t("task.overlap"),
            [
              t(`overlap.${overlap.policy}`),
              overlap.limit !== null && overlap.limit > 1 ? ` (${overlap.limit})` : "",
              overlap.waiting === undefined ? "" : `; ${t("task.waiting", { n: overlap.waiting })}`,
            ].join(""),
          ],
          [t("task.misfire"), t(`misfire.${definition.misfire.policy}`)],
          [t("task.retry"), t("task.tries", { n: definition.retry.attempts })],
          [t("task.timeout"), definition.timeoutMs === null ? t("task.noTimeout") : span(definition.timeoutMs)],
          [t("task.lost"), t(`lost.${definition.onWorkerLost}`)],
          ...(definition.calendar
            ? ([
                [
                  t("calendar.ofTask"),
                  <Link key="calendar" to="/calendars/$calendar" params={{ calendar: definition.calendar.name }}>
                    {definition.calendar.name}
                  </Link>,
                ],
              ] as [string, React.ReactNode][])
            : []),
          [t("tasks.group"), task.group],
          ...(definition.owner ? ([[t("tasks.owner"), definition.owner]] as [string, React.ReactNode][]) : []),
          [t("run.priority"), String(definition.priority)],
          [t("run.version"), String(task.version)],
          ...(task.edited.length > 0
            ? ([[t("task.edited"), task.edited.join(", ")]] as [string, React.ReactNode][])
            : []),
        ]}
      />
    </>
  );
}
