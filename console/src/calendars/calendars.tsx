/** All calendars, each with a year's overview, its next holidays, and the tasks that use it. */
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import type { Answer } from "../api/call.ts";
import { useMay } from "../api/may.ts";
import { useWords } from "../messages/words.ts";
import { useNow } from "../now.ts";
import { NewButton } from "../parts/form/new-button.tsx";
import { Card, Page } from "../parts/layout/page.tsx";
import { Tag } from "../parts/state/mark.tsx";
import { Nothing, Shown } from "../parts/state/notice.tsx";
import { More } from "../parts/table/more.tsx";
import { usePages } from "../parts/table/pages.ts";
import { plain } from "../parts/value/plain.ts";
import css from "./calendar.module.css";
import { dayText, todayIn, yearOf } from "./days.ts";
import { NewCalendar } from "./new-calendar.tsx";
import { YearStrip } from "./year.tsx";

export type Calendar = Answer<"listCalendars">["items"][number];

export function Calendars() {
  const { t } = useWords();
  const may = useMay("editor");
  const [isNew, setNew] = useState(false);
  const calendars = usePages("listCalendars", { limit: 100 });
  const act = may && <NewButton onClick={() => setNew(true)}>{t("calendar.new")}</NewButton>;
  return (
    <Page title={t("screen.calendars")} below={t("calendar.lead")} acts={act}>
      <Shown of={calendars} rows={6}>
        {(rows) =>
          rows.length === 0 ? (
            <Card>
              <Nothing title={t("calendar.none")}>
                <p>{t("calendar.noneTold")}</p>
                <code>carillon calendars set de --ics holidays.ics --weekend sat,sun --zone Europe/Berlin</code>
              </Nothing>
            </Card>
          ) : (
            <ul className={css.list}>
              {rows.map((calendar) => (
                <li key={calendar.name}>
                  <One calendar={calendar} />
                </li>
              ))}
            </ul>
          )
        }
      </Shown>
      <More of={calendars} />
      {isNew && <NewCalendar onClose={() => setNew(false)} />}
    </Page>
  );
}

function One({ calendar }: { calendar: Calendar }) {
  const words = useWords();
  const { t, count } = words;
  const now = useNow();
  const today = todayIn(calendar.zone, now);
  const next = calendar.holidays.find((one) => one >= dayText(today));
  const { name, tasks, holidays } = calendar;
  return (
    <Card
      className={css.one}
      title={
        <Link to="/calendars/$calendar" params={{ calendar: name }} className={css.name}>
          {plain(name)}
        </Link>
      }
      more={
        tasks.length === 0 ? (
          <Tag tone="wait">{t("calendar.unused")}</Tag>
        ) : (
          <Tag tone="run">{t("calendar.usedBy", { n: tasks.length })}</Tag>
        )
      }
    >
      <YearStrip
        year={yearOf(today)}
        content={calendar}
        label={t("calendar.stripLabel", { year: String(yearOf(today)) })}
      />
      <p className={css.next}>
        {next ? (
          <>
            {t("calendar.next")} <b>{words.date(Date.parse(next) / 86_400_000)}</b>
          </>
        ) : (
          <Tag tone="late">{t(holidays.length === 0 ? "calendar.noHolidays" : "calendar.over")}</Tag>
        )}
      </p>
      <p className="soft">
        {calendar.zone} · {weekendWords(calendar.weekend, words)} ·{" "}
        {t("calendar.holidays", { n: holidays.length, count: count(holidays.length) })}
      </p>
    </Card>
  );
}

export const weekendWords = (weekend: number[], words: ReturnType<typeof useWords>): string =>
  weekend.length === 0
    ? words.t("calendar.noWeekend")
    : [...weekend]
        .sort((a, b) => ((a + 6) % 7) - ((b + 6) % 7))
        .map((day) => words.weekdayName(day, "short"))
        .join(", ");
