import { TextInput } from "@mantine/core";
import { useWords } from "../messages/words.ts";
import { useTyped } from "../parts/form/filters.tsx";
import { isLabels } from "./labels.ts";

const typedMs = 300;

export function LabelField({ value, onChange }: { value: string; onChange: (text: string) => void }) {
  const { t } = useWords();
  const [text, setText] = useTyped(value, typedMs, (typed) => {
    if (isLabels(typed)) onChange(typed);
  });
  return (
    <TextInput
      aria-label={t("runs.labels")}
      placeholder={t("runs.labelsTold")}
      value={text}
      error={!isLabels(text)}
      onChange={(event) => setText(event.currentTarget.value)}
    />
  );
}
