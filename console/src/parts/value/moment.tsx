import { useWords } from "../../messages/words.ts";
import { useNow } from "../../now.ts";

/**
 * A relative time such as "in 5 min"; a tooltip shows the full time.
 * @param past true for past events: these are never shown as "in 1 s", even if the page's clock is slightly behind the server's
 * @param zone the zone in which a time that is far away is shown as a date; default: the viewer's
 */
export function Away({ at, past = false, zone }: { at: string; past?: boolean; zone?: string | undefined }) {
  const words = useWords();
  const now = useNow();
  const ms = Date.parse(at);
  return (
    <time dateTime={at} title={words.moment(ms, zone)} className="figures">
      {words.away(past ? Math.min(ms, now) : ms, now, zone)}
    </time>
  );
}

/**
 * The time of day, with the date unless it is today.
 * @param short true omits the seconds of a whole minute, for places with little room
 */
export function Moment({ at, exact = false, short = false }: { at: string; exact?: boolean; short?: boolean }) {
  const words = useWords();
  const ms = Date.parse(at);
  const now = useNow();
  const isToday = words.day(ms) === words.day(now);
  const clock = exact ? words.exact(ms) : short && ms % 60_000 === 0 ? words.minute(ms) : words.clock(ms);
  return (
    <time dateTime={at} title={words.moment(ms)} className="figures">
      {isToday ? clock : `${words.day(ms)} ${clock}`}
    </time>
  );
}
