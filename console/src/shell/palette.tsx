/**
 * The command palette, which navigates by a few letters: to screens, tasks, runs and operations by number, open alarms, workers, and
 * preferences. It also opens the dialogs of acts on tasks, runs, groups and workers.
 */
import { Modal } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { IconCornerDownLeft, IconSearch } from "@tabler/icons-react";
import { useEffect, useId, useState } from "react";
import { useWords } from "../messages/words.ts";
import { useEntries } from "./entries.ts";
import type { Entry } from "./palette/entry.ts";
import type { PaletteAct } from "./palette/palette-act.tsx";
import css from "./palette.module.css";
import type { TypedAhead } from "./typed-ahead.ts";

/** Focuses the input as soon as it is in the DOM, because the dialog would focus it only after its transition. */
const field = (input: HTMLInputElement | null) => input?.focus();

export function Palette({
  ahead,
  onClose,
  onKeys,
  onAct,
}: {
  /** The keys typed before the field has the focus. */
  ahead: TypedAhead;
  onClose: () => void;
  onKeys: () => void;
  onAct: (act: PaletteAct) => void;
}) {
  const { t } = useWords();
  const list = useId();
  const [text, setText] = useState("");
  const [at, setAt] = useState<number>();
  /** True from the press of Enter until the search results for the whole text have arrived; then the selected entry opens. */
  const [isEntered, setEntered] = useState(false);
  const [asked] = useDebouncedValue(text.trim(), 120);
  const { entries, isLooking } = useEntries(text, asked, onKeys, onAct);
  const isAsked = asked === text.trim();
  // While the field is empty, no entry is selected, because Enter would otherwise open the first entry.
  const chosen = Math.min(at ?? (text.trim() === "" ? -1 : 0), entries.length - 1);
  const take = (entry: Entry | undefined) => {
    if (!entry) return;
    onClose();
    entry.go();
  };
  useEffect(() => {
    if (!isEntered || !isAsked || isLooking) return;
    setEntered(false);
    take(entries[chosen]);
  });
  const onKey = (event: React.KeyboardEvent) => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step !== 0) {
      event.preventDefault();
      const next = (Math.max(chosen, step > 0 ? -1 : 0) + step + entries.length) % Math.max(1, entries.length);
      setAt(next);
      document.getElementById(`${list}-${next}`)?.scrollIntoView({ block: "nearest" });
    } else if (event.key === "Enter" && !event.nativeEvent.isComposing) setEntered(true);
  };
  return (
    <Modal.Root opened onClose={onClose} padding={0} size={600} yOffset="12vh">
      <Modal.Overlay />
      <Modal.Content aria-label={t("palette.title")}>
        <div className={css.field}>
          <IconSearch size={19} aria-hidden />
          <input
            data-autofocus
            ref={field}
            role="combobox"
            aria-expanded
            aria-controls={list}
            aria-label={t("palette.title")}
            aria-activedescendant={chosen >= 0 ? `${list}-${chosen}` : undefined}
            placeholder={t("palette.placeholder")}
            value={text}
            onChange={(event) => {
              setText(event.currentTarget.value);
              setAt(undefined);
              setEntered(false);
            }}
            onFocus={() => {
              const typed = ahead.take();
              setText((text) => text + typed.text);
              if (typed.entered) setEntered(true);
            }}
            onKeyDown={onKey}
          />
        </div>
        <div id={list} role="listbox" aria-label={t("palette.title")} className={css.list}>
          {entries.map((entry, index) => (
            // biome-ignore lint/a11y/useKeyWithClickEvents: the input field handles the keys.
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
