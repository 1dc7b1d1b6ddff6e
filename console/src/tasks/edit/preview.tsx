/** A preview of the form's schedule, computed in the browser by the planner's own code. */

import { type Calendar, compileSchedule, plannedSchedule, type ScheduleSpec, zoneNameOf } from "carillon/schedule";
import { judgedSlot } from "carillon/slots";
import type { TaskDefinition } from "carillon/task";
import { useMemo } from "react";
import { useAnswer } from "../../api/answers.ts";
import { useWords } from "../../messages/words.ts";
import { useNow } from "../../now.ts";
import type { Task } from "../answers.ts";
import { scheduleWords } from "../schedule-words.ts";
import css from "../task.module.css";
import { type Form, ownParts, scheduleOf } from "./form.ts";

const slotsShown = 5;

function slotsAfter(
  schedule: ScheduleSpec,
  compiled: ReturnType<typeof compileSchedule>,
  seed: number,
  fromMs: number,
) {
  const slots: { slot: number; skipped?: string; note?: string }[] = [];
  if (schedule.type === "every" && schedule.mode === "delay") return slots;
  const seen = { definition: { schedule }, schedule: compiled, seed };
  for (let slot = compiled.next(fromMs); slot !== null && slots.length < slotsShown; slot = compiled.next(slot))
    slots.push({ slot, ...judgedSlot(seen, slot) });
  return slots;
}

/** The schedule in words and its next slots, or its error. */
export function Preview({ form, task, is }: { form: Form; task: Task; is: TaskDefinition | undefined }) {
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
  const slots = useMemo(
    () => ("wrong" in read ? [] : slotsAfter(read.schedule, read.compiled, task.id, now)),
    [read, task.id, now],
  );
  if ("wrong" in read)
    return (
      <div className={css.preview} data-wrong role="status">
        <strong>{read.wrong}</strong>
        <div>{read.hint}</div>
      </div>
    );
  return (
    <div className={css.preview} role="status">
      <strong>{read.said}</strong>
      {slots.length > 0 && (
        <ol className="figures">
          {slots.map(({ slot, skipped, note }) => (
            <li key={slot}>
              <span data-skipped={skipped !== undefined || undefined}>{words.moment(slot, read.zone)}</span>{" "}
              <span className="soft">{words.told(skipped ?? note ?? words.away(slot, now), read.zone)}</span>
            </li>
          ))}
        </ol>
      )}
      {slots.length === 0 && <div className="soft">{t("task.noSlotsTold")}</div>}
    </div>
  );
}
