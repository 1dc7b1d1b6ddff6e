import { type KeyboardEvent, useState } from "react";
import { useWords } from "../messages/words.ts";
import type { Hour } from "./hours.ts";
import type { Line } from "./line.ts";
import css from "./timeline.module.css";

const minuteMs = 60_000;

/** Shows one hour as bars, one for each minute. The bars are the buttons of a toolbar, in which arrow keys move the focus. */
export function HourChart({
  line,
  hour,
  chosen,
  onChoose,
}: {
  line: Line;
  hour: Hour;
  chosen: number | undefined;
  onChoose: (place: number | undefined) => void;
}) {
  const words = useWords();
  const { t } = words;
  const [at, setAt] = useState(0);
  const fromMs = Date.parse(line.from);
  const places = Array.from({ length: hour.end - hour.first }, (_, n) => hour.first + n);
  const most = Math.max(1, hour.peak);
  const onKeyDown = (event: KeyboardEvent<HTMLElement>) => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    const next = at + step;
    if (step === 0 || next < 0 || next >= places.length) return;
    event.preventDefault();
    setAt(next);
    (event.currentTarget.children[next] as HTMLElement).focus();
  };
  return (
    <div>
      <div className={css.bars} role="toolbar" aria-label={t("timeline.firing")} onKeyDown={onKeyDown}>
        {places.map((place, n) => {
          const fires = line.fires[place] ?? 0;
          const label = t("timeline.minute", { n: fires, at: words.minute(fromMs + place * minuteMs) });
          return (
            <button
              key={place}
              type="button"
              aria-label={label}
              title={label}
              aria-pressed={chosen === place}
              tabIndex={n === Math.min(at, places.length - 1) ? 0 : -1}
              onFocus={() => setAt(n)}
              onClick={() => onChoose(chosen === place ? undefined : place)}
            >
              <span style={{ height: fires === 0 ? 0 : `${8 + (92 * fires) / most}%` }} />
            </button>
          );
        })}
      </div>
      <div className={`${css.ticks} figures soft`} aria-hidden>
        {[0, 0.25, 0.5, 0.75].map((share) => (
          <span key={share}>{words.minute(fromMs + (hour.first + Math.round(share * places.length)) * minuteMs)}</span>
        ))}
      </div>
    </div>
  );
}
