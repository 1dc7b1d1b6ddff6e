import { useWords } from "../../messages/words.ts";
import { useNow } from "../../now.ts";

/** A relative time, "in 5 min"; the tooltip and screen readers get the full time. */
export function Away({ at }: { at: string }) {
  const words = useWords();
  const now = useNow();
  const ms = Date.parse(at);
  return (
    <time dateTime={at} title={words.moment(ms)} className="figures">
      {words.away(ms, now)}
    </time>
  );
}

/** The time of day, with the date unless it is today. */
export function Moment({ at, zone, exact = false }: { at: string; zone?: string; exact?: boolean }) {
  const words = useWords();
  const ms = Date.parse(at);
  const now = useNow();
  const isToday = words.day(ms, zone) === words.day(now, zone);
  const clock = exact ? words.exact(ms, zone) : words.clock(ms, zone);
  return (
    <time dateTime={at} title={words.moment(ms, zone)} className="figures">
      {isToday ? clock : `${words.day(ms, zone)} ${clock}`}
    </time>
  );
}
