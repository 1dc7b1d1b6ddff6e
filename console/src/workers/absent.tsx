import { useReach } from "../api/may.ts";
import { useWords } from "../messages/words.ts";
import { Card } from "../parts/layout/page.tsx";
import { Table } from "../parts/table/table.tsx";
import type { Drained } from "./answers.ts";
import { By, DrainOrResume } from "./drain.tsx";
import css from "./workers.module.css";

/** Lists drained worker names without a process. Without this list, an operator could not see why a new process gets no runs. */
export function Absent({ drained = [] }: { drained: Drained[] | undefined }) {
  const { t } = useWords();
  const { everywhere } = useReach("operator");
  const absent = drained.filter(({ held }) => held === null);
  if (absent.length === 0) return null;
  return (
    <Card title={t("workers.absent")} tight>
      <Table label={t("workers.absent")} className={css.absent} heads={[t("workers.name"), t("workers.drainedBy")]}>
        {absent.map((one) => (
          <tr key={one.node}>
            <th scope="row">{one.node}</th>
            <td>
              <By drained={one} />
              {everywhere && <DrainOrResume node={one.node} drained held={0} />}
            </td>
          </tr>
        ))}
      </Table>
    </Card>
  );
}
