import { useAnswer } from "../api/answers.ts";
import { useWords } from "../messages/words.ts";
import { Card } from "../parts/layout/page.tsx";
import { Table } from "../parts/table/table.tsx";
import { Away, Moment } from "../parts/value/moment.tsx";
import { plain } from "../parts/value/plain.ts";
import css from "./workers.module.css";

const everyMs = 5_000;

/** Lists workers that stopped responding in the last 24 hours and have not started again. The list of workers omits them. */
export function Lost() {
  const { t, told } = useWords();
  const lost = useAnswer("listLostWorkers", {}, { everyMs }).data?.lost ?? [];
  if (lost.length === 0) return null;
  return (
    <Card title={t("workers.lost")} more={<span className="soft">{t("workers.lostTold")}</span>} tight>
      <Table
        label={t("workers.lost")}
        className={css.absent}
        heads={[t("workers.name"), t("workers.host"), t("workers.seen"), t("workers.ended"), t("nodes.why")]}
      >
        {lost.map((one) => (
          <tr key={one.node}>
            <th scope="row">{plain(one.node)}</th>
            <td>
              {plain(one.host)} · {one.pid}
            </td>
            <td>
              <Away at={one.seen} past />
            </td>
            <td>
              <Moment at={one.ended} />
            </td>
            <td className="soft">{plain(told(one.why))}</td>
          </tr>
        ))}
      </Table>
    </Card>
  );
}
