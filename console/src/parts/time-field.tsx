import { TextInput } from "@mantine/core";
import css from "./time-field.module.css";

/** A moment in the viewer's own zone, as the browser asks for one. */
export function TimeField({
  label,
  value,
  onChange,
}: {
  label: string;
  value: string | undefined;
  onChange: (iso: string | undefined) => void;
}) {
  const shown = value && !Number.isNaN(Date.parse(value)) ? localText(Date.parse(value)) : "";
  return (
    <TextInput
      type="datetime-local"
      aria-label={label}
      leftSection={<span className={css.label}>{label}</span>}
      leftSectionWidth={58}
      className={css.time}
      value={shown}
      onChange={(event) => {
        const given = event.currentTarget.value;
        onChange(given === "" ? undefined : new Date(given).toISOString());
      }}
    />
  );
}

export function localText(ms: number): string {
  const shifted = new Date(ms - new Date(ms).getTimezoneOffset() * 60_000);
  return shifted.toISOString().slice(0, 16);
}
