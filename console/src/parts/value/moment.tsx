import { useWords } from "../../messages/words.ts";
import { useNow } from "../../now.ts";

/**
 * A relative time, "in 5 min"; the tooltip and screen readers get the full time. @param past true for what has happened: it is never
 * "in 1 s", although the browser's idea of the cluster's time may be a second behind
 */
export function Away({ at, past = false }: { at: string; past?: boolean }) {
  const words = useWords();
  const now = useNow();
  const ms = Date.parse(at);
  return (
    <time dateTime={at} title={words.moment(ms)} className="figures">
      {words.away(past ? Math.min(ms, now) : ms, now)}
    </time>
  );
}

/** The time of day, with the date unless it is today. */
export function Moment({ at, exact = false }: { at: string; exact?: boolean }) {
  const words = useWords();
  const ms = Date.parse(at);
  const now = useNow();
  const isToday = words.day(ms) === words.day(now);
  const clock = exact ? words.exact(ms) : words.clock(ms);
  return (
    <time dateTime={at} title={words.moment(ms)} className="figures">
      {isToday ? clock : `${words.day(ms)} ${clock}`}
    </time>
  );
}
