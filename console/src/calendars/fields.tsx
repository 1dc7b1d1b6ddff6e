import { Button, Chip, FileInput, Group } from "@mantine/core";
import { IconCalendarPlus, IconFileImport } from "@tabler/icons-react";
import { useState } from "react";
import { useWords } from "../messages/words.ts";
import { DayField } from "../parts/form/time-field.tsx";
import css from "./calendar.module.css";
import { dayMs, dayText } from "./days.ts";

export function Weekend({ value, onChange }: { value: number[]; onChange: (weekend: number[]) => void }) {
  const { t, weekdayName } = useWords();
  return (
    <fieldset className={css.weekend}>
      <legend>{t("calendar.weekend")}</legend>
      <Chip.Group
        multiple
        value={value.map(String)}
        onChange={(days) => days.length < 7 && onChange(days.map(Number).sort())}
      >
        <Group gap={6}>
          {[1, 2, 3, 4, 5, 6, 0].map((day) => (
            <Chip key={day} value={String(day)} size="sm" variant="outline">
              {weekdayName(day, "short")}
            </Chip>
          ))}
        </Group>
      </Chip.Group>
    </fieldset>
  );
}

/**
 * The field for an iCalendar file. The server parses the file: each day that an event touches becomes a holiday; recurrence rules
 * are expanded for ten years.
 */
export function IcsField({ onChange }: { onChange: (text: string | undefined) => void }) {
  const { t } = useWords();
  const [file, setFile] = useState<File | null>(null);
  return (
    <FileInput
      label={t("calendar.ics")}
      description={t("calendar.icsTold")}
      placeholder={t("calendar.icsChoose")}
      accept=".ics,text/calendar"
      leftSection={<IconFileImport size={17} aria-hidden />}
      value={file}
      onChange={async (chosen) => {
        setFile(chosen);
        onChange(chosen === null ? undefined : await chosen.text());
      }}
      clearable
      clearButtonProps={{ "aria-label": t("filter.clear") }}
    />
  );
}

/** The most days that can be added at once. */
const mostDays = 366;

export function DayRange({ onAdd }: { onAdd: (days: string[]) => void }) {
  const { t } = useWords();
  const [from, setFrom] = useState("");
  const [to, setTo] = useState("");
  const first = Date.parse(from) / dayMs;
  const last = to === "" ? first : Date.parse(to) / dayMs;
  const count = last - first + 1;
  const wrong = from !== "" && !(count >= 1 && count <= mostDays);
  return (
    <div className={css.range}>
      <DayField label={t("calendar.from")} value={from} onChange={setFrom} />
      <DayField
        label={t("calendar.to")}
        value={to}
        error={wrong ? t("calendar.rangeWrong") : undefined}
        onChange={setTo}
      />
      <Button
        variant="default"
        leftSection={<IconCalendarPlus size={17} aria-hidden />}
        disabled={from === "" || wrong}
        onClick={() => {
          onAdd(Array.from({ length: count }, (_, at) => dayText(first + at)));
          setFrom("");
          setTo("");
        }}
      >
        {t("calendar.add")}
      </Button>
    </div>
  );
}
