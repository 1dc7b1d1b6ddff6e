/** A year of a calendar, day by day. If days can be changed, each day is a button; arrow keys move by days and weeks. */
import { type KeyboardEvent, useMemo, useState } from "react";
import { useWords } from "../messages/words.ts";
import { type Content, type DayKind, dayOf, dayText, kindsOf, weekdayOf } from "./days.ts";
import css from "./year.module.css";

const weekLength = 7;
const months = Array.from({ length: 12 }, (_, month) => month);
/** The column of a day; weeks begin on Monday. */
const column = (day: number) => (weekdayOf(day) + 6) % weekLength;

export function Year({
  year,
  content,
  today,
  was,
  onToggle,
}: {
  year: number;
  content: Content;
  today: number;
  /** The stored content, if `content` is a draft. */
  was?: Content | undefined;
  onToggle?: ((day: string) => void) | undefined;
}) {
  const words = useWords();
  const { t } = words;
  const kind = useMemo(() => kindsOf(content), [content]);
  const stored = useMemo(() => (was ? kindsOf(was) : undefined), [was]);
  const first = dayOf(year, 0, 1);
  const last = dayOf(year, 11, 31);
  const [focus, setFocus] = useState(today >= first && today <= last ? today : first);
  const at = focus >= first && focus <= last ? focus : first;
  const onKeyDown = (event: KeyboardEvent<HTMLElement>) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -weekLength, ArrowDown: weekLength }[event.key];
    if (step === undefined || !(event.target as HTMLElement).dataset.day) return;
    event.preventDefault();
    const next = Math.min(last, Math.max(first, at + step));
    setFocus(next);
    event.currentTarget.querySelector<HTMLElement>(`[data-day="${next}"]`)?.focus();
  };
  const day = (one: number) => ({
    number: new Date(one * 86_400_000).getUTCDate(),
    kind: kind(one),
    isChanged: stored !== undefined && stored(one) !== kind(one),
    isToday: one === today,
  });
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the key presses come from the buttons of its days.
    <div className={css.year} onKeyDown={onToggle && onKeyDown}>
      {months.map((month) => (
        <table key={month} className={css.month}>
          <caption>{words.monthName(year, month)}</caption>
          <thead>
            <tr>
              {[1, 2, 3, 4, 5, 6, 0].map((weekday) => (
                <th key={weekday} scope="col" abbr={words.weekdayName(weekday, "long")}>
                  {words.weekdayName(weekday, "narrow")}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {weeksOf(year, month).map((week) => (
              <tr key={week.find((one) => one !== null)}>
                {week.map((one, place) =>
                  one === null ? (
                    // biome-ignore lint/suspicious/noArrayIndexKey: an empty cell has no key but its position.
                    <td key={place} />
                  ) : (
                    <td key={one}>
                      <Day
                        {...day(one)}
                        day={one}
                        said={t(`calendar.kind.${kind(one)}`)}
                        isReached={one === at}
                        onToggle={
                          onToggle &&
                          (() => {
                            setFocus(one);
                            onToggle(dayText(one));
                          })
                        }
                      />
                    </td>
                  ),
                )}
              </tr>
            ))}
          </tbody>
        </table>
      ))}
    </div>
  );
}

function Day({
  day,
  number,
  kind,
  said,
  isChanged,
  isToday,
  isReached,
  onToggle,
}: {
  day: number;
  number: number;
  kind: DayKind;
  said: string;
  isChanged: boolean;
  isToday: boolean;
  isReached: boolean;
  onToggle: (() => void) | undefined;
}) {
  const { date } = useWords();
  const look = {
    className: css.day,
    "data-kind": kind,
    "data-changed": isChanged || undefined,
    "data-today": isToday || undefined,
    title: `${dayText(day)} · ${said}`,
  };
  if (!onToggle)
    return (
      <span {...look}>
        {number}
        {kind !== "work" && <span className="unseen"> {said}</span>}
      </span>
    );
  return (
    <button
      type="button"
      {...look}
      data-day={day}
      tabIndex={isReached ? 0 : -1}
      aria-pressed={kind === "holiday"}
      aria-label={date(day)}
      onClick={onToggle}
    >
      {number}
    </button>
  );
}

function weeksOf(year: number, month: number): (number | null)[][] {
  const first = dayOf(year, month, 1);
  const end = dayOf(year, month + 1, 1);
  const start = first - column(first);
  return Array.from({ length: Math.ceil((end - start) / weekLength) }, (_, week) =>
    Array.from({ length: weekLength }, (_, place) => {
      const day = start + week * weekLength + place;
      return day < first || day >= end ? null : day;
    }),
  );
}

const cell = 6;

/** A miniature of the year: weeks from left to right. */
export function YearStrip({ year, content, label }: { year: number; content: Content; label: string }) {
  const paths = useMemo(() => {
    const kind = kindsOf(content);
    const first = dayOf(year, 0, 1);
    const offset = column(first);
    const drawn: Record<DayKind, string> = { work: "", weekend: "", holiday: "" };
    for (let day = first; day <= dayOf(year, 11, 31); day++) {
      const at = day - first + offset;
      drawn[kind(day)] += `M${Math.floor(at / weekLength) * cell} ${(at % weekLength) * cell}h5v5h-5z`;
    }
    return drawn;
  }, [year, content]);
  return (
    <svg className={css.strip} viewBox={`0 0 ${54 * cell} ${weekLength * cell}`} role="img" aria-label={label}>
      {(["work", "weekend", "holiday"] as const).map((kind) => (
        <path key={kind} d={paths[kind]} data-kind={kind} />
      ))}
    </svg>
  );
}
