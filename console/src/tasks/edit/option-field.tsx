/** The field of an option with a single value; the option's shape determines the control. */
import { NumberInput, Select, Switch, Textarea, TextInput } from "@mantine/core";
import type { OptionName } from "carillon/task";
import { catalogues, type Message, useWords } from "../../messages/words.ts";
import { type PlainValue, rowOf } from "./plain-options.ts";

/** Options whose text may be longer than this get a multi-line field. */
const oneLine = 1_000;

export function OptionField({
  option,
  value,
  error,
  onChange,
}: {
  option: OptionName;
  value: PlainValue | undefined;
  error: string | undefined;
  onChange: (value: PlainValue) => void;
}) {
  const { t, language } = useWords();
  const { kind, description } = rowOf(option);
  const { shape } = kind;
  const message = (key: string, other: string) => (key in catalogues[language] ? t(key as Message) : other);
  const label = message(`option.${option}`, option);
  // The descriptions in the table of options exist only in English.
  const help = language === "en" && label === option ? { description } : {};
  const shared = { label, error, ...help };
  switch (shape.is) {
    case "choice":
      return (
        <Select
          {...shared}
          allowDeselect={false}
          data={shape.values.map((one) => ({ value: one, label: message(`option.${option}.${one}`, one) }))}
          value={String(value)}
          onChange={(chosen) => chosen && onChange(chosen)}
        />
      );
    case "count":
      return (
        <NumberInput
          {...shared}
          min={shape.least}
          max={shape.most}
          value={value === "" ? "" : Number(value)}
          onChange={(given) => onChange(given === "" ? "" : Number(given))}
        />
      );
    case "flag":
      return (
        <Switch {...shared} checked={value === true} onChange={(event) => onChange(event.currentTarget.checked)} />
      );
    default: {
      const text = String(value ?? "");
      const placeholder = shape.is === "duration" ? { placeholder: t("edit.everyTold") } : {};
      const isLong = shape.is === "text" && (shape.longest ?? Number.POSITIVE_INFINITY) > oneLine;
      return isLong ? (
        <Textarea
          {...shared}
          autosize
          minRows={1}
          maxRows={5}
          value={text}
          onChange={(event) => onChange(event.currentTarget.value)}
        />
      ) : (
        <TextInput
          {...shared}
          {...placeholder}
          value={text}
          onChange={(event) => onChange(event.currentTarget.value)}
        />
      );
    }
  }
}
