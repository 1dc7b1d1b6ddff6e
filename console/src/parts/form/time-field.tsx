import { TextInput } from "@mantine/core";
import { useWords } from "../../messages/words.ts";
import { instantText, localText } from "./local-time.ts";
import css from "./time-field.module.css";

/**
 * A field for a date and time in the zone in which all times are shown, which may differ from the browser's zone; the label names
 * the zone.
 */
export function TimeField({
  label,
  value,
  onChange,
}: {
  label: string;
  value: string | undefined;
  onChange: (iso: string | undefined) => void;
}) {
  const { zone } = useWords();
  const shown = value && !Number.isNaN(Date.parse(value)) ? localText(Date.parse(value), zone) : "";
  return (
    <TextInput
      type="datetime-local"
      aria-label={`${label} (${zone})`}
      leftSection={
        <span className={css.label} title={zone}>
          {label}
          <small>{zone.slice(zone.lastIndexOf("/") + 1).replaceAll("_", " ")}</small>
        </span>
      }
      leftSectionWidth={92}
      className={css.time}
      value={shown}
      onChange={(event) => {
        const given = event.currentTarget.value;
        onChange(given === "" ? undefined : instantText(given, zone));
      }}
    />
  );
}
