/** The days on which a calendar blocks slots of tasks; for a draft, the days that the draft would add or remove. */
import { Button } from "@mantine/core";
import type { CalendarRule, ScheduleSpec } from "carillon/schedule";
import { useMemo, useState } from "react";
import { useAnswer } from "../api/answers.ts";
import { useWords } from "../messages/words.ts";
import { Tag } from "../parts/state/mark.tsx";
import { Nothing, Shown } from "../parts/state/notice.tsx";
import { TaskLink } from "../parts/value/links.tsx";
import css from "./calendar.module.css";
import { type Blocked, blockedDays, type Content, dayOf } from "./days.ts";

const tasksShown = 8;
const daysShown = 4;

export function Effects({
  tasks,
  content,
  was,
  year,
  today,
}: {
  tasks: string[];
  content: Content;
  was?: Content | undefined;
  year: number;
  today: number;
}) {
  const { t } = useWords();
  const [shown, setShown] = useState(tasksShown);
  if (tasks.length === 0)
    return (
      <Nothing title={t("calendar.noTasks")}>
        <p>{t("calendar.noTasksTold")}</p>
        <code>{'calendar: { name: "…", otherwise: "next" }'}</code>
      </Nothing>
    );
  return (
    <>
      <ul className={css.effects}>
        {tasks.slice(0, shown).map((task) => (
          <li key={task}>
            <Effect task={task} content={content} was={was} year={year} today={today} />
          </li>
        ))}
      </ul>
      {tasks.length > shown && (
        <Button mt="sm" size="compact-sm" variant="default" onClick={() => setShown(shown + 5 * tasksShown)}>
          {t("bulk.andMore", { n: tasks.length - shown })}
        </Button>
      )}
    </>
  );
}

interface Ruled {
  schedule: ScheduleSpec;
  calendar?: CalendarRule | null;
}

function Effect({
  task,
  content,
  was,
  year,
  today,
}: {
  task: string;
  content: Content;
  was: Content | undefined;
  year: number;
  today: number;
}) {
  const { t, count } = useWords();
  const asked = useAnswer("getTask", { task });
  const definition = asked.data?.definition as unknown as Ruled | undefined;
  const [from, to] = [Math.max(today, dayOf(year, 0, 1)), dayOf(year, 11, 31)];
  const now = useMemo(
    () => (definition ? blockedDays(definition, content, from, to) : []),
    [definition, content, from, to],
  );
  const before = useMemo(
    () => (definition && was ? blockedDays(definition, was, from, to) : undefined),
    [definition, was, from, to],
  );
  const [wereDays, areDays] = [new Set(before?.map(({ day }) => day)), new Set(now.map(({ day }) => day))];
  const more = before ? now.filter(({ day }) => !wereDays.has(day)) : [];
  const fewer = (before ?? []).filter(({ day }) => !areDays.has(day));
  const rule = definition?.calendar;
  return (
    <>
      <div className={css.effectHead}>
        <TaskLink task={task} />
        {rule && (
          <span className="soft">
            {t(`calendar.rule.${rule.on === "holidays" ? "holidays" : "working_days"}.${rule.otherwise}`)}
          </span>
        )}
      </div>
      <Shown of={asked} rows={1}>
        {() =>
          before ? (
            more.length + fewer.length === 0 ? (
              <p className="soft">{t("calendar.sameDays")}</p>
            ) : (
              <>
                {more.length > 0 && <Days days={more} sign="+" />}
                {fewer.length > 0 && <Days days={fewer} sign="−" />}
              </>
            )
          ) : now.length === 0 ? (
            <p className="soft">{t("calendar.losesNone")}</p>
          ) : (
            <>
              <p>{t("calendar.loses", { n: now.length, days: count(now.length), year: String(year) })}</p>
              <Days days={now} />
            </>
          )
        }
      </Shown>
    </>
  );
}

/** Lists days. With the sign "+" these are the days that the task loses, with "−" the days that it gets back. */
function Days({ days, sign }: { days: Blocked[]; sign?: "+" | "−" }) {
  const { t, date } = useWords();
  return (
    <ul className={css.days}>
      {days.slice(0, daysShown).map(({ day, to, several }) => (
        <li key={day}>
          {sign && <Tag tone={sign === "+" ? "skip" : "ok"}>{t(sign === "+" ? "calendar.lost" : "calendar.back")}</Tag>}
          <span>{date(day)}</span>
          {sign !== "−" && (
            <span className="soft">
              {to === null ? t(several ? "calendar.leftOutAll" : "calendar.leftOut") : `→ ${date(to)}`}
            </span>
          )}
        </li>
      ))}
      {days.length > daysShown && <li className="soft">{t("bulk.andMore", { n: days.length - daysShown })}</li>}
    </ul>
  );
}
