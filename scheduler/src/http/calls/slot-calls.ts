import { iso, isoTime } from "../../api/run-json.ts";
import { compileSchedule, zoneNameOf } from "../../schedule/schedule.ts";
import { judgedSlot } from "../../slots/coming-slots.ts";
import { coming, plannedSlots } from "../../slots/upcoming-slots.ts";
import type { Store } from "../../store/store.ts";
import type { Some } from "../call.ts";
import { cursorText, numberCursor, pageOf } from "./pages.ts";

export function slotCalls(store: Store): Some<"listUpcomingSlots" | "listSlots"> {
  return {
    async listUpcomingSlots({ task, after, count }, { nowMs }) {
      const record = await store.tasks.byName(task);
      const { schedule } = record.definition;
      const delayed = schedule.type === "every" && schedule.mode === "delay";
      const next = record.nextSlotMs === null ? [] : [record.nextSlotMs];
      const slots = delayed ? next : plannedSlots(record, after === undefined ? nowMs : Date.parse(after), count);
      return {
        zone: zoneNameOf(schedule) ?? "UTC",
        words: compileSchedule(schedule).words(),
        paused: record.paused !== null,
        slots: slots.map((slotMs) => {
          const { dueMs, skipped, note = "" } = judgedSlot(coming(record), slotMs);
          const due = skipped === undefined ? dueMs : null;
          const words = skipped === undefined ? note : `skipped: ${skipped}`;
          return { slot: isoTime(slotMs), due: iso(due), note: words };
        }),
      };
    },

    async listSlots({ task, cursor, limit, since, until }) {
      const taskId = await store.tasks.idOf(task);
      const fromMs = since === undefined ? 0 : Date.parse(since);
      const before = Math.min(numberCursor(cursor), until === undefined ? Number.MAX_SAFE_INTEGER : Date.parse(until));
      const rows = await store.browse.slots(taskId, fromMs, before, limit + 1);
      const item = ({ slotMs, runId, acceptedMs, nominalMs, ...row }: (typeof rows)[number]) => ({
        ...row,
        slot: isoTime(slotMs),
        nominal: nominalMs === null ? null : nominalMs.map(isoTime),
        run: runId,
        accepted: isoTime(acceptedMs),
      });
      const page = pageOf(rows, limit, item, ({ slotMs }) => [slotMs]);
      // Reads the ranges of skipped or missed slots within this page's time. If there are too many, the page ends before the first range
      // left out.
      const last = rows[limit - 1]?.slotMs;
      const reachMs = page.next === null || last === undefined ? fromMs : last;
      const { ranges } = await store.history.slots(taskId, reachMs, before - 1, limit + 1);
      const endMs = ranges[limit] && ranges[limit].toMs + 1;
      const isCut = endMs !== undefined && endMs < before;
      return {
        items: isCut ? page.items.filter((_, at) => (rows[at]?.slotMs as number) >= endMs) : page.items,
        next: isCut ? cursorText(endMs) : page.next,
        ranges: ranges.slice(0, limit).map(({ fromMs: from, toMs, ...range }) => ({
          ...range,
          from: isoTime(from),
          to: isoTime(toMs),
        })),
      };
    },
  };
}
