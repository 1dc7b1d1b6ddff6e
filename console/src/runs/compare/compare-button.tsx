/** The ways to the comparison of two runs: from one run, and from two selected rows of a list. */
import { Button } from "@mantine/core";
import { IconArrowsDiff } from "@tabler/icons-react";
import { Link } from "@tanstack/react-router";
import { useWords } from "../../messages/words.ts";
import { ChoiceBar } from "../../parts/table/choice.tsx";
import type { ListedRun } from "../answers.ts";

export function ComparePrevious({ run }: { run: number }) {
  const { t } = useWords();
  return (
    <Button
      variant="default"
      leftSection={<IconArrowsDiff size={16} aria-hidden />}
      renderRoot={(props) => <Link {...props} to="/runs/$run/compare" params={{ run: String(run) }} />}
    >
      {t("compare.previous")}
    </Button>
  );
}

/** Compares two selected runs, the older one first; disabled for any other number of runs. */
export function CompareChosen({ runs }: { runs: readonly Pick<ListedRun, "run">[] }) {
  const { t } = useWords();
  const [older, newer, ...others] = runs.map(({ run }) => run).sort((a, b) => a - b);
  const look = {
    size: "compact-sm",
    variant: "default",
    leftSection: <IconArrowsDiff size={14} aria-hidden />,
  } as const;
  if (older === undefined || newer === undefined || others.length > 0)
    return (
      <Button {...look} disabled>
        {t("compare.chosen")}
      </Button>
    );
  return (
    <Button
      {...look}
      renderRoot={(props) => (
        <Link {...props} to="/runs/$run/compare" params={{ run: String(newer) }} search={{ with: String(older) }} />
      )}
    >
      {t("compare.chosen")}
    </Button>
  );
}

/** The bar above a list in which runs can be selected only for a comparison. */
export function CompareBar({
  rows,
  chosen,
  onNone,
}: {
  rows: readonly ListedRun[];
  chosen: ReadonlySet<string>;
  onNone: () => void;
}) {
  const { t } = useWords();
  const runs = rows.filter(({ run }) => chosen.has(String(run)));
  if (rows.length < 2) return null;
  return (
    <ChoiceBar
      isSome={runs.length > 0}
      told={runs.length > 0 ? t("runs.chosen", { n: runs.length }) : t("compare.chooseTold")}
      onNone={onNone}
      acts={<CompareChosen runs={runs} />}
    />
  );
}
