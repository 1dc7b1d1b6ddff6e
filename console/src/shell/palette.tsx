/**
 * The command palette, which navigates by a few letters: to screens, tasks, runs and operations by number, open alarms, workers,
 * and preferences.
 */
import { Modal } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { IconCornerDownLeft, IconSearch } from "@tabler/icons-react";
import { useId, useState } from "react";
import { useWords } from "../messages/words.ts";
import { type Entry, useEntries } from "./entries.ts";
import css from "./palette.module.css";

export function Palette({ onClose, onKeys }: { onClose: () => void; onKeys: () => void }) {
  const { t } = useWords();
  const list = useId();
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const [asked] = useDebouncedValue(text.trim(), 120);
  const { entries, isLooking } = useEntries(text, asked, onKeys);
  const chosen = Math.min(at, entries.length - 1);
  const take = (entry: Entry | undefined) => {
    if (!entry) return;
    onClose();
    entry.go();
  };
  const onKey = (event: React.KeyboardEvent) => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step !== 0) {
      event.preventDefault();
      const next = (chosen + step + entries.length) % Math.max(1, entries.length);
      setAt(next);
      document.getElementById(`${list}-${next}`)?.scrollIntoView({ block: "nearest" });
    } else if (event.key === "Enter" && !event.nativeEvent.isComposing) take(entries[chosen]);
  };
  return (
    <Modal.Root opened onClose={onClose} padding={0} size={600} yOffset="12vh">
      <Modal.Overlay />
      <Modal.Content aria-label={t("palette.title")}>
        <div className={css.field}>
          <IconSearch size={19} aria-hidden />
          <input
            data-autofocus
            role="combobox"
            aria-expanded
            aria-controls={list}
            aria-label={t("palette.title")}
            aria-activedescendant={entries.length > 0 ? `${list}-${chosen}` : undefined}
            placeholder={t("palette.placeholder")}
            value={text}
            onChange={(event) => {
              setText(event.currentTarget.value);
              setAt(0);
            }}
            onKeyDown={onKey}
          />
        </div>
        <div id={list} role="listbox" aria-label={t("palette.title")} className={css.list}>
          {entries.map((entry, index) => (
            // biome-ignore lint/a11y/useKeyWithClickEvents: the field has the keys.
            <div
              key={entry.id}
              id={`${list}-${index}`}
              role="option"
              tabIndex={-1}
              aria-selected={index === chosen}
              className={css.entry}
              onMouseMove={() => setAt(index)}
              onClick={() => take(entry)}
            >
              <entry.icon size={17} stroke={1.8} aria-hidden />
              <span className={`${css.text} cut`}>{entry.text}</span>
              <span className="soft cut">{entry.more}</span>
              {index === chosen && <IconCornerDownLeft size={15} aria-hidden />}
            </div>
          ))}
        </div>
        {entries.length === 0 && <p className={css.none}>{isLooking ? t("notice.loading") : t("palette.none")}</p>}
      </Modal.Content>
    </Modal.Root>
  );
}
