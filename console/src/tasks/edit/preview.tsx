/** A preview of the form's schedule, computed in the browser by the planner's own code. */

import { type Calendar, compileSchedule, plannedSchedule, type ScheduleSpec, zoneNameOf } from "carillon/schedule";
import { judgedSlot } from "carillon/slots";
import type { TaskDefinition } from "carillon/task";
import { useMemo } from "react";
import { useAnswer } from "../../api/answers.ts";
import { useWords } from "../../messages/words.ts";
import { useNow } from "../../now.ts";
import type { Task } from "../answers.ts";
import { ClockTurn, nextTurn, turnBetween } from "../clock-turn.tsx";
import { scheduleWords } from "../schedule-words.ts";
import css from "../task.module.css";
import { type Form, ownParts, scheduleOf } from "./form.ts";

const slotsShown = 20;
const turnSlots = 3;
const dayMs = 86_400_000;
const yearMs = 366 * dayMs;

interface Slot {
  slot: number;
  /** By how many minutes the clocks went forward since the previous slot; negative if they went back. */
  turn: number;
  skipped?: string;
  note?: string;
}

function slotsAfter(
  schedule: ScheduleSpec,
  compiled: ReturnType<typeof compileSchedule>,
  { seed, zone, fromMs, most }: { seed: number; zone: string; fromMs: number; most: number },
): Slot[] {
  const slots: Slot[] = [];
  if (schedule.type === "every" && schedule.mode === "delay") return slots;
  const seen = { definition: { schedule }, schedule: compiled, seed };
  for (let slot = compiled.next(fromMs), before = fromMs; slot !== null && slots.length < most; ) {
    slots.push({ slot, turn: turnBetween(zone, before, slot), ...judgedSlot(seen, slot) });
    before = slot;
    slot = compiled.next(slot);
  }
  return slots;
}

/** Returns the next slots, and the slots around the next change of the clocks if that is within a year and after those slots. */
function previewed(
  schedule: ScheduleSpec,
  compiled: ReturnType<typeof compileSchedule>,
  given: { seed: number; zone: string; fromMs: number },
): { next: Slot[]; around: Slot[] } {
  const next = slotsAfter(schedule, compiled, { ...given, most: slotsShown });
  const last = next.at(-1);
  const hasZone = zoneNameOf(schedule) !== null;
  const turnMs = last && hasZone ? nextTurn(given.zone, last.slot, given.fromMs + yearMs) : undefined;
  if (turnMs === undefined) return { next, around: [] };
  return { next, around: slotsAfter(schedule, compiled, { ...given, fromMs: turnMs - dayMs, most: turnSlots }) };
}

/** The schedule in words and its next slots, or its error. */
export function Preview({
  form,
  task,
  is,
}: {
  form: Form;
  task: Pick<Task, "id" | "accounted" | "definition">;
  is: TaskDefinition | undefined;
}) {
  const words = useWords();
  const { t } = words;
  const before = ownParts(task.definition).schedule;
  const calendar = useAnswer("getCalendar", { calendar: form.calendar }, { enabled: is?.calendar !== undefined });
  const now = useNow();
  const read = useMemo(() => {
    try {
      const schedule = scheduleOf(form, before);
      const accountedMs = task.accounted.map((at) => Date.parse(at));
      const own = compileSchedule(schedule);
      const planned = is && plannedSchedule(is, calendar.data as Calendar | undefined, accountedMs);
      return {
        schedule,
        compiled: planned ?? own,
        said: scheduleWords(schedule, own.words(), words),
        zone: zoneNameOf(schedule) ?? words.zone,
      };
    } catch (error) {
      const { message, hint = "" } = error as Error & { hint?: string };
      return { wrong: message, hint };
    }
  }, [form, before, is, task.accounted, calendar.data, words]);
  const { next, around } = useMemo(() => {
    if ("wrong" in read) return { next: [], around: [] };
    return previewed(read.schedule, read.compiled, { seed: task.id, zone: read.zone, fromMs: now });
  }, [read, task.id, now]);
  if ("wrong" in read)
    return (
      <div className={css.preview} data-wrong role="status">
        <strong>{read.wrong}</strong>
        <div>{read.hint}</div>
      </div>
    );
  return (
    <div className={css.preview}>
      <strong role="status">{read.said}</strong>
      {next.length > 0 && <Slots label={t("task.slots", { n: next.length })} slots={next} zone={read.zone} now={now} />}
      {around.length > 0 && (
        <>
          <div className={css.turn} aria-hidden>
            {t("edit.clocksTurn", { zone: read.zone })}
          </div>
          <Slots label={t("edit.clocksTurn", { zone: read.zone })} slots={around} zone={read.zone} now={now} />
        </>
      )}
      {next.length === 0 && <div className="soft">{t("task.noSlotsTold")}</div>}
    </div>
  );
}

function Slots({ label, slots, zone, now }: { label: string; slots: Slot[]; zone: string; now: number }) {
  const words = useWords();
  return (
    <ol className="figures" aria-label={label}>
      {slots.map(({ slot, turn, skipped, note }) => (
        <li key={slot}>
          <span data-skipped={skipped !== undefined || undefined}>{words.when(slot, zone)}</span>{" "}
          <span className="soft">
            {words.told(skipped ?? note ?? (words.far(slot, now) ? "" : words.away(slot, now, zone)), zone)}
          </span>{" "}
          <ClockTurn minutes={turn} />
        </li>
      ))}
    </ol>
  );
}
