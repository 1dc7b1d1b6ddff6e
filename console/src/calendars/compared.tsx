/**
 * A preview of a calendar draft, computed by the server: holidays that are added or removed (including those of an iCalendar file),
 * and the slots of tasks that would change.
 */
import { useAnswer } from "../api/answers.ts";
import type { Answer } from "../api/call.ts";
import { useWords } from "../messages/words.ts";
import { Tag } from "../parts/state/mark.tsx";
import { Shown } from "../parts/state/notice.tsx";
import { TaskLink } from "../parts/value/links.tsx";
import { plain } from "../parts/value/plain.ts";
import css from "./calendar.module.css";
import { contentOf, type Drafted } from "./content.ts";
import { dayMs } from "./days.ts";

type Comparison = Answer<"compareCalendar">;
type Slot = Comparison["tasks"][number]["slots"][number];

const daysShown = 12;
const tasksShown = 8;
const slotsShown = 4;

export function Compared({ draft }: { draft: Drafted }) {
  const { t } = useWords();
  const file = draft.ics === undefined ? {} : { ics: draft.ics };
  const asked = useAnswer(
    "compareCalendar",
    { calendar: draft.from.name, ...contentOf(draft), ...file },
    { keep: true },
  );
  return (
    <section aria-label={t("calendar.compared")} className={css.compared}>
      <h3>{t("calendar.compared")}</h3>
      <Shown of={asked} rows={2}>
        {(found) => <Found {...found} />}
      </Shown>
    </section>
  );
}

function Found({ added, removed, tasks, tasksLeft, notices }: Comparison) {
  const { t } = useWords();
  return (
    <>
      <Days days={removed} tone="skip" word={t("calendar.dayRemoved")} />
      <Days days={added} tone="ok" word={t("calendar.dayAdded")} />
      {added.length + removed.length === 0 && <p className="soft">{t("calendar.noneChanged")}</p>}
      {notices.map(({ line, message }) => (
        <p key={`${line} ${message}`}>{t("calendar.icsLine", { line: String(line), message: plain(message) })}</p>
      ))}
      {tasks.length === 0 && <p className="soft">{t("calendar.noSlots")}</p>}
      <ul className={css.effects}>
        {tasks.slice(0, tasksShown).map(({ task, total, more, slots }) => (
          <li key={task}>
            <div className={css.effectHead}>
              <TaskLink task={task} />
              <span className="soft">{t(more ? "calendar.slotsLeast" : "calendar.slots", { n: total })}</span>
            </div>
            <ul className={css.days}>
              {slots.slice(0, slotsShown).map((slot) => (
                <Move key={slot.slot} {...slot} />
              ))}
              {total > slotsShown && <li className="soft">{t("bulk.andMore", { n: total - slotsShown })}</li>}
            </ul>
          </li>
        ))}
      </ul>
      {tasks.length + tasksLeft > tasksShown && (
        <p className="soft">{t("calendar.tasksLeft", { n: Math.max(0, tasks.length - tasksShown) + tasksLeft })}</p>
      )}
    </>
  );
}

function Days({ days, tone, word }: { days: Comparison["added"]; tone: "ok" | "skip"; word: string }) {
  const { t, date } = useWords();
  if (days.length === 0) return null;
  return (
    <ul className={css.days}>
      {days.slice(0, daysShown).map(({ day, name }) => (
        <li key={day}>
          <Tag tone={tone}>{word}</Tag>
          <span>{date(Date.parse(day) / dayMs)}</span>
          {name !== null && <span className="soft">{plain(name)}</span>}
        </li>
      ))}
      {days.length > daysShown && <li className="soft">{t("bulk.andMore", { n: days.length - daysShown })}</li>}
    </ul>
  );
}

/** A slot's due time before and after the change. If the slot would not run, a tooltip shows the server's reason. */
function Move({ slot, was, is }: Slot) {
  const { t, told, when } = useWords();
  const time = (text: string) => when(Date.parse(text));
  const side = ({ due, note }: Slot["is"]) =>
    due === null ? <span title={plain(told(note))}>{t("calendar.notRun")}</span> : <span>{time(due)}</span>;
  return (
    <li>
      <span>{time(slot)}:</span>
      {side(was)}
      <span aria-hidden>→</span>
      {side(is)}
    </li>
  );
}
