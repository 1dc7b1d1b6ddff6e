import { Button, Select, TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { IconFilterOff } from "@tabler/icons-react";
import { type ReactNode, useEffect, useRef, useState } from "react";
import { useAnswer } from "../../api/answers.ts";
import { useWords } from "../../messages/words.ts";
import css from "./filters.module.css";

/** Fields that filter a screen. @param onClear clears all filters; present only if a filter is set */
export function Filters({ onClear, children }: { onClear?: (() => void) | undefined; children: ReactNode }) {
  const { t } = useWords();
  return (
    <search className={css.filters} aria-label={t("filter.label")}>
      {children}
      {onClear && (
        <Button variant="default" leftSection={<IconFilterOff size={16} aria-hidden />} onClick={onClear}>
          {t("filter.clear")}
        </Button>
      )}
    </search>
  );
}

export function GroupField({ value, onChange }: { value: string | undefined; onChange: (group?: string) => void }) {
  const { t } = useWords();
  const groups = useAnswer("listGroups", { limit: 200 });
  return (
    <Select
      className={css.group}
      aria-label={t("tasks.group")}
      placeholder={t("tasks.anyGroup")}
      data={groups.data?.items.map(({ name }) => name) ?? []}
      value={value ?? null}
      onChange={(group) => onChange(group ?? undefined)}
      searchable
      clearable
      clearButtonProps={{ "aria-label": t("filter.clear") }}
    />
  );
}

export function OwnerField({ value, onChange }: { value: string | undefined; onChange: (owner?: string) => void }) {
  const { t } = useWords();
  const [text, setText] = useTyped(value ?? "", 300, (typed) => onChange(typed === "" ? undefined : typed));
  return (
    <TextInput
      className={css.group}
      aria-label={t("tasks.owner")}
      placeholder={t("tasks.anyOwner")}
      value={text}
      maxLength={100}
      onChange={(event) => setText(event.currentTarget.value)}
    />
  );
}

/**
 * The state of a text field whose value is stored in the page's address. When the address changes (back button, link, saved view),
 * the field changes too; typed text is passed to the address `waitMs` after the last key press.
 * @param onTyped called with the trimmed text; "" if the field is empty
 */
export function useTyped(value: string, waitMs: number, onTyped: (text: string) => void) {
  const [text, setText] = useState(value);
  const [settled] = useDebouncedValue(text.trim(), waitMs);
  /**
   * Texts that were passed to `onTyped` and are not in the address yet. When one of them arrives as `value`, the field is not
   * overwritten, because the user may have typed more.
   */
  const told = useRef<string[]>([]);
  useEffect(() => {
    const at = told.current.indexOf(value);
    told.current.splice(0, at < 0 ? told.current.length : at + 1);
    if (at < 0) setText(value);
  }, [value]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: runs only when the settled text changes.
  useEffect(() => {
    if (settled !== text.trim() || settled === (told.current.at(-1) ?? value)) return;
    told.current.push(settled);
    onTyped(settled);
  }, [settled]);
  return [text, setText] as const;
}
