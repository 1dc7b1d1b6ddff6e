import { type KeyboardEvent, memo, type RefObject, useLayoutEffect, useRef, useState } from "react";
import { useWords } from "../messages/words.ts";
import { Wide } from "../parts/layout/page.tsx";
import { type Day, type Hour, scaleOf, shadeOf, stripes } from "./hours.ts";
import type { Line } from "./line.ts";
import css from "./timeline.module.css";

const minuteMs = 60_000;
const steps: Record<string, [day: number, hour: number]> = {
  ArrowUp: [-1, 0],
  ArrowDown: [1, 0],
  ArrowLeft: [0, -1],
  ArrowRight: [0, 1],
};

/** Scrolls a map that is wider than the screen to the present hour, because the earlier hours of today have no data. */
function useStartAtNow(table: RefObject<HTMLTableElement | null>): void {
  useLayoutEffect(() => {
    const [box, first] = [table.current?.parentElement, table.current?.querySelector<HTMLElement>("[data-cell]")];
    const names = table.current?.querySelector<HTMLElement>("tbody th");
    if (box && first && names)
      box.scrollLeft += first.getBoundingClientRect().left - names.getBoundingClientRect().right;
  }, [table]);
}

/**
 * The timeline as a table with a row for each day and a column for each hour, so that screen readers announce both for each cell. The
 * table is a single tab stop; arrow keys move inside it.
 */
export const HeatMap = memo(function HeatMap({
  line,
  days,
  most,
  least,
  numbers,
  chosen,
  onChoose,
}: {
  line: Line;
  days: Day[];
  most: number;
  /** The smallest number of runs due in any minute. The page states it once, and the colours show only what exceeds it. */
  least: number;
  /** True to show numbers in the cells in addition to colours. */
  numbers: boolean;
  chosen: Hour | undefined;
  onChoose: (hour: Hour) => void;
}) {
  const words = useWords();
  const { t, count } = words;
  const fromMs = Date.parse(line.from);
  const table = useRef<HTMLTableElement>(null);
  const firstDay = days[0]?.hours.findIndex(({ first, end }) => end > first) ?? 0;
  const [at, setAt] = useState<[number, number]>([0, Math.max(0, firstDay)]);
  useStartAtNow(table);
  const cellAt = (day: number, hour: number) =>
    table.current?.querySelector<HTMLButtonElement>(`[data-cell="${day}-${hour}"]`);
  const onKeyDown = (event: KeyboardEvent) => {
    const step = steps[event.key];
    if (!step || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    // Past hours, and hours that the clocks skip, are passed over.
    for (let [day, hour] = [at[0] + step[0], at[1] + step[1]]; ; [day, hour] = [day + step[0], hour + step[1]]) {
      if (hour < 0) [day, hour] = [day - 1, 23];
      if (hour > 23) [day, hour] = [day + 1, 0];
      if (day < 0 || day >= days.length) return;
      const cell = cellAt(day, hour);
      if (!cell) continue;
      setAt([day, hour]);
      cell.focus();
      return;
    }
  };
  return (
    <>
      <Wide label={t("timeline.map")}>
        <table ref={table} className={css.map} onKeyDown={onKeyDown} data-numbers={numbers || undefined}>
          <caption className="unseen">{t("timeline.keys")}</caption>
          <thead>
            <tr>
              <th scope="col">
                <span className="unseen">{t("timeline.day")}</span>
              </th>
              {Array.from({ length: 24 }, (_, hour) => (
                // biome-ignore lint/suspicious/noArrayIndexKey: the index is the hour.
                <th key={hour} scope="col" className="figures">
                  {String(hour).padStart(2, "0")}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {days.map((day, row) => (
              <tr key={day.noonMs}>
                <th scope="row">{words.day(day.noonMs)}</th>
                {day.hours.map((hour, column) => {
                  const size = hour.end - hour.first;
                  const isInside = day.hours.slice(0, column).some(({ first, end }) => end > first);
                  const isGap = size === 0 && isInside && day.hours.slice(column).some(({ first, end }) => end > first);
                  const when = `${words.day(day.noonMs)} ${String(column).padStart(2, "0")}:00`;
                  const text =
                    hour.fires === 0
                      ? t("timeline.cellNone", { when })
                      : t("timeline.cell", {
                          when,
                          n: hour.fires,
                          peak: count(hour.peak),
                          at: words.minute(fromMs + hour.peakAt * minuteMs),
                        });
                  const label = size > 60 ? `${text}; ${t("timeline.twice")}` : text;
                  return (
                    // biome-ignore lint/suspicious/noArrayIndexKey: the index is the hour.
                    <td key={column} data-gap={isGap || undefined} title={isGap ? t("timeline.gap") : undefined}>
                      {size > 0 && (
                        <button
                          type="button"
                          data-cell={`${row}-${column}`}
                          data-twice={size > 60 || undefined}
                          aria-label={label}
                          aria-pressed={chosen?.first === hour.first && chosen.end > chosen.first}
                          title={label}
                          tabIndex={at[0] === row && at[1] === column ? 0 : -1}
                          style={
                            numbers
                              ? { backgroundColor: `var(--h${shadeOf(hour.peak - least, most - least)})` }
                              : striped(hour, most, least)
                          }
                          onFocus={() => setAt([row, column])}
                          onClick={() => onChoose(hour)}
                        >
                          {numbers && hour.fires > 0 && <span>{count(hour.peak)}</span>}
                        </button>
                      )}
                      {isGap && <span className="unseen">{t("timeline.gap")}</span>}
                    </td>
                  );
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </Wide>
      <Scale most={most} least={least} />
    </>
  );
});

function striped(hour: Hour, most: number, least: number) {
  if (hour.peak === least) return { backgroundColor: "var(--h0)" };
  const width = 100 / stripes;
  const parts = hour.stripes.map(
    (peak, at) =>
      `var(--h${shadeOf(Math.max(0, peak - least), most - least)}) ${(at * width).toFixed(2)}% ${((at + 1) * width).toFixed(2)}%`,
  );
  return { backgroundImage: `linear-gradient(90deg, ${parts.join(", ")})` };
}

function Scale({ most, least }: { most: number; least: number }) {
  const { t, count } = useWords();
  return (
    <p className={css.scale}>
      <span className="soft">{t("timeline.scale")}</span>
      {least > 0 && (
        <span className="figures">
          <i style={{ backgroundColor: "var(--h0)" }} aria-hidden />
          {t("timeline.always", { n: least })}
        </span>
      )}
      {scaleOf(most - least).map(({ shade, from, to }) => (
        <span key={shade} className="figures">
          <i style={{ backgroundColor: `var(--h${shade})` }} aria-hidden />
          {from === to ? count(least + from) : `${count(least + from)}–${count(least + to)}`}
        </span>
      ))}
    </p>
  );
}
