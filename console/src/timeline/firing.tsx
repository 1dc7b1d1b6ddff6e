import { useAnswer } from "../api/answers.ts";
import type { Given } from "../api/call.ts";
import { useWords } from "../messages/words.ts";
import { Shown } from "../parts/state/notice.tsx";
import { Table } from "../parts/table/table.tsx";
import { TaskLink } from "../parts/value/links.tsx";
import { type Schedule, scheduleWords } from "../tasks/schedule-words.ts";
import css from "./timeline.module.css";

/** Lists the tasks that fire in a time span. */
export function Firing({ given, title }: { given: Given<"listFiring">; title: string }) {
  const words = useWords();
  const { t, count } = words;
  const asked = useAnswer("listFiring", given, { keep: true });
  return (
    <Shown of={asked} rows={4}>
      {({ firing, more }) => (
        <>
          <h3 className={css.subtitle}>{title}</h3>
          {firing.length === 0 ? (
            <p className="soft">{t("timeline.none")}</p>
          ) : (
            <Table
              label={title}
              className={css.firing}
              heads={[t("timeline.first"), t("noun.task"), t("timeline.times"), t("tasks.when")]}
            >
              {firing.map((one) => (
                <tr key={one.task}>
                  <td className="figures">{words.minute(Date.parse(one.first))}</td>
                  <td>
                    <TaskLink task={one.task} />
                  </td>
                  <td className="figures">{count(one.fires)}</td>
                  <td className="soft">{scheduleWords(one.schedule as Schedule, one.words, words)}</td>
                </tr>
              ))}
            </Table>
          )}
          {more > 0 && <p className="soft">{t("timeline.more", { n: more })}</p>}
        </>
      )}
    </Shown>
  );
}
