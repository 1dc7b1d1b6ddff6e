/** The schedule of the form, worked out in the browser by the code that the planner runs. */

import { type Calendar, compileSchedule, plannedSchedule, zoneNameOf } from "carillon/schedule";
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

/** What the schedule means, and when it fires next; or what is wrong with it. */
export function Preview({ form, task, is }: { form: Form; task: Task; is: TaskDefinition | undefined }) {
  const words = useWords();
  const { t, language } = words;
  const before = ownParts(task.definition).schedule;
  const calendar = useAnswer("getCalendar", { calendar: form.calendar }, { enabled: is?.calendar !== undefined });
  const now = useNow();
  const shown = useMemo(() => {
    try {
      const schedule = scheduleOf(form, before);
      const accountedMs = task.accounted.map((at) => Date.parse(at));
      const rules = is ? plannedSchedule(is, calendar.data as Calendar | undefined, accountedMs) : undefined;
      const compiled = rules ?? compileSchedule(schedule);
      const seen = { definition: { schedule }, schedule: compiled, seed: task.id };
      const slots: { slot: number; skipped?: string; note?: string }[] = [];
      const isDelay = schedule.type === "every" && schedule.mode === "delay";
      for (
        let slot = isDelay ? null : compiled.next(now);
        slot !== null && slots.length < slotsShown;
        slot = compiled.next(slot)
      )
        slots.push({ slot, ...judgedSlot(seen, slot) });
      return {
        said: scheduleWords(schedule, compileSchedule(schedule).words(), language),
        slots,
        zone: zoneNameOf(schedule) ?? words.zone,
      };
    } catch (error) {
      const { message, hint = "" } = error as Error & { hint?: string };
      return { wrong: message, hint };
    }
  }, [form, before, is, task.id, task.accounted, calendar.data, now, language, words.zone]);
  if ("wrong" in shown)
    return (
      <div className={css.preview} data-wrong role="status">
        <strong>{shown.wrong}</strong>
        <div>{shown.hint}</div>
      </div>
    );
  return (
    <div className={css.preview} role="status">
      <strong>{shown.said}</strong>
      {shown.slots.length > 0 && (
        <ol className="figures">
          {shown.slots.map(({ slot, skipped, note }) => (
            <li key={slot}>
              <span data-skipped={skipped !== undefined || undefined}>{words.moment(slot, shown.zone)}</span>{" "}
              <span className="soft">{skipped ?? note ?? words.away(slot, now)}</span>
            </li>
          ))}
        </ol>
      )}
      {shown.slots.length === 0 && <div className="soft">{t("task.noSlotsTold")}</div>}
    </div>
  );
}
