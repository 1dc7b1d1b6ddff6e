import { Kbd } from "@mantine/core";
import { useWords } from "../messages/words.ts";
import { Dialog } from "../parts/layout/dialog.tsx";
import { screens } from "./screens.ts";
import css from "./shell.module.css";

/** The list of keyboard shortcuts. */
export function Keys({ onClose }: { onClose: () => void }) {
  const { t } = useWords();
  const rows: [string[], string][] = [
    [["Ctrl", "K"], t("keys.palette")],
    [["/"], t("keys.search")],
    [["↑", "↓"], t("keys.rows")],
    [["?"], t("keys.this")],
    ...screens.flat().map(({ key, name }): [string[], string] => [["g", key], t(name)]),
  ];
  return (
    <Dialog onClose={onClose} title={t("keys.title")}>
      <dl className={css.keys}>
        {rows.map(([keys, what]) => (
          <div key={keys.join(" ")}>
            <dt>
              {keys.map((key) => (
                <Kbd key={key}>{key}</Kbd>
              ))}
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}
