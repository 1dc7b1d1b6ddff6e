/** The selected rows of a list, and the bar above the list with the acts on the selected rows or on all matching rows. */
import { Button } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import { type ReactNode, useCallback, useEffect, useState } from "react";
import { useWords } from "../../messages/words.ts";
import css from "./choice.module.css";

/**
 * The selected rows, by their keys. @param filter the list's filter: a change clears the selection, because selected rows may no
 * longer be visible
 */
export function useChoice(filter: object) {
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const choose = useCallback((keys: string[], isChosen: boolean) => {
    setChosen((before) => {
      const next = new Set(before);
      for (const key of keys) isChosen ? next.add(key) : next.delete(key);
      return next;
    });
  }, []);
  const chooseNone = useCallback(() => setChosen(new Set()), []);
  const of = JSON.stringify(filter);
  // biome-ignore lint/correctness/useExhaustiveDependencies: a changed filter must clear the selection.
  useEffect(() => chooseNone(), [of, chooseNone]);
  return { chosen, choose, chooseNone };
}

export function ChoiceBar({
  isSome,
  told,
  acts,
  all,
  onNone,
}: {
  /** True if any row is selected. */
  isSome: boolean;
  told: string;
  /** The acts on the selected rows. */
  acts: ReactNode;
  /** The acts on all matching rows; undefined if there are none. */
  all?: ReactNode;
  onNone: () => void;
}) {
  const { t } = useWords();
  const narrow = useMediaQuery("(max-width: 640px)", false, { getInitialValueInEffect: false }) ?? false;
  return (
    <div className={css.bar} data-some={isSome || undefined}>
      <span className="figures" role="status">
        {told}
      </span>
      {isSome && (
        <>
          {acts}
          <Button size="compact-sm" variant="subtle" c="var(--c-text)" onClick={onNone}>
            {t("tasks.chooseNone")}
          </Button>
        </>
      )}
      {all === undefined ? null : narrow ? (
        // On a phone these acts are inside a collapsed element, because a thumb at the bar could press them by mistake.
        <details className={css.more}>
          <summary>{t("choice.all")}</summary>
          <span className={css.all}>{all}</span>
        </details>
      ) : (
        <span className={css.all}>{all}</span>
      )}
    </div>
  );
}
