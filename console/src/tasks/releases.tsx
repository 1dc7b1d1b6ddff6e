import { useAnswer } from "../api/answers.ts";
import { useWords } from "../messages/words.ts";
import { Card } from "../parts/layout/page.tsx";
import { Tag } from "../parts/state/mark.tsx";
import { Shown } from "../parts/state/notice.tsx";
import { Table } from "../parts/table/table.tsx";
import { Away } from "../parts/value/moment.tsx";
import css from "./task.module.css";

/** The releases of the programs that define the task: the one in force, and the others. */
export function Releases({ task }: { task: string }) {
  const { t } = useWords();
  const releases = useAnswer("listTaskReleases", { task });
  // Tasks that are defined by files or through the API have no releases; the card is hidden.
  if (releases.data?.releases.length === 0) return null;
  return (
    <Card title={t("releases.title")} more={<span className="soft">{t("releases.told")}</span>} tight>
      <Shown of={releases} rows={2}>
        {({ releases: rows }) => (
          <Table
            label={t("releases.title")}
            className={css.releases}
            heads={[t("releases.release"), t("releases.state"), t("releases.processes"), t("releases.seen")]}
          >
            {rows.map(({ release, inForce, processes, seen }) => (
              <tr key={release}>
                <td className="figures">{release}</td>
                <td>
                  {inForce ? (
                    <Tag tone="ok">{t("releases.inForce")}</Tag>
                  ) : (
                    <Tag tone="wait">{t(processes.length > 0 ? "releases.waits" : "releases.gone")}</Tag>
                  )}
                </td>
                <td>{processes.length === 0 ? t("releases.nobody") : processes.join(", ")}</td>
                <td>
                  <Away at={seen} past />
                </td>
              </tr>
            ))}
          </Table>
        )}
      </Shown>
    </Card>
  );
}
