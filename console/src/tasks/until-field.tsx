import { Button, Group } from "@mantine/core";
import { useWords } from "../messages/words.ts";
import { nowMs } from "../now.ts";
import { readTime } from "../parts/form/local-time.ts";
import { TimeField } from "../parts/form/time-field.tsx";

const hours = [1, 4];
const clocks = ["18:00", "09:00"];

/** A field for the end of a pause: buttons for common times, and a text field for any time. */
export function UntilField({ value, onChange }: { value: string | undefined; onChange: (until?: string) => void }) {
  const { t, zone } = useWords();
  const set = (ms: number | undefined) => onChange(ms === undefined ? undefined : new Date(ms).toISOString());
  return (
    <div style={{ marginTop: 14 }}>
      <TimeField
        inForm
        side="next"
        label={t("task.pauseUntil")}
        hint={t("task.pauseUntilTold")}
        value={value}
        onChange={onChange}
      />
      <Group gap={6} mt={8}>
        {hours.map((n) => (
          <Button key={n} size="compact-sm" variant="default" onClick={() => set(nowMs() + n * 3_600_000)}>
            {t("task.pauseFor", { n })}
          </Button>
        ))}
        {clocks.map((clock) => (
          <Button
            key={clock}
            size="compact-sm"
            variant="default"
            onClick={() => set(readTime(clock, zone, nowMs(), "next"))}
          >
            {t("task.pauseTo", { clock })}
          </Button>
        ))}
      </Group>
    </div>
  );
}
