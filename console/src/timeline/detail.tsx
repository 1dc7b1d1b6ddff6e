import { Button } from "@mantine/core";
import { useWords } from "../messages/words.ts";
import { Card } from "../parts/layout/page.tsx";
import { Firing } from "./firing.tsx";
import { HourChart } from "./hour-chart.tsx";
import { type Hour, isoIn } from "./hours.ts";
import type { Line } from "./line.ts";

const minuteMs = 60_000;

/** Shows one hour by its minutes, and the tasks that fire in the hour or in one minute. */
export function Detail({
  line,
  given,
  hour,
  minute,
  onMinute,
}: {
  line: Line;
  given: { days: number; matching?: string; group?: string };
  hour: Hour | undefined;
  /** The index of the selected minute from the start of the timeline; undefined for the whole hour. */
  minute: number | undefined;
  onMinute: (minute: number | undefined) => void;
}) {
  const words = useWords();
  const { t } = words;
  const fromMs = Date.parse(line.from);
  const hourText = (one: Hour) => {
    const ms = fromMs + one.first * minuteMs;
    return `${words.when(ms)}–${words.minute(fromMs + one.end * minuteMs)}`;
  };
  const span = minute !== undefined ? { first: minute, end: minute + 1 } : hour;
  return (
    <Card
      title={hour ? t("timeline.hour", { when: hourText(hour) }) : t("timeline.firing")}
      more={
        minute !== undefined && (
          <Button size="compact-sm" variant="default" onClick={() => onMinute(undefined)}>
            {t("timeline.wholeHour")}
          </Button>
        )
      }
    >
      {hour && span && (
        <>
          <HourChart key={hour.first} line={line} hour={hour} chosen={minute} onChoose={onMinute} />
          <Firing
            given={{ ...given, since: isoIn(line, span.first), until: isoIn(line, span.end) }}
            title={t("timeline.firingIn", {
              when: minute === undefined ? hourText(hour) : words.minute(fromMs + minute * minuteMs),
            })}
          />
        </>
      )}
    </Card>
  );
}
