import { useState } from "react";
import { useAnswer } from "../api/answers.ts";
import type { Answer } from "../api/call.ts";
import { useWords } from "../messages/words.ts";
import { useNow } from "../now.ts";
import { Dialog } from "../parts/layout/dialog.tsx";
import { Card } from "../parts/layout/page.tsx";
import { Tag, type Tone } from "../parts/state/mark.tsx";
import { Nothing, Shown } from "../parts/state/notice.tsx";
import { More } from "../parts/table/more.tsx";
import { usePages } from "../parts/table/pages.ts";
import { Table } from "../parts/table/table.tsx";
import { Away, Moment } from "../parts/value/moment.tsx";
import { plain } from "../parts/value/plain.ts";
import css from "./alarms.module.css";
import { ruleName } from "./rule.ts";

type Message = Answer<"listAlarmMessages">["items"][number];

const everyMs = 2_000;
const outcomes: Record<Message["state"], [Tone, "alarms.sent" | "alarms.waiting" | "alarms.givenUp"]> = {
  sent: ["ok", "alarms.sent"],
  waiting: ["late", "alarms.waiting"],
  "given up": ["bad", "alarms.givenUp"],
};

/** The messages that were sent: the text, the receiver, and the result. */
export function Messages() {
  const words = useWords();
  const { t } = words;
  const messages = usePages("listAlarmMessages", { limit: 20 }, { everyMs });
  const [opened, setOpened] = useState<number>();
  return (
    <Card title={t("alarms.messages")} tight>
      <Shown of={messages} rows={4}>
        {(rows) =>
          rows.length === 0 ? (
            <Nothing title={t("alarms.noMessages")}>{t("alarms.noMessagesTold")}</Nothing>
          ) : (
            <>
              <Table
                label={t("alarms.messages")}
                className={css.table}
                heads={[
                  t("alarms.message"),
                  t("alarms.channel"),
                  t("alarms.outcome"),
                  t("alarms.tries"),
                  t("alarms.written"),
                ]}
              >
                {rows.map((one) => (
                  <tr key={one.message}>
                    <td>
                      <button type="button" className={css.opens} onClick={() => setOpened(one.message)}>
                        {ruleName(one.rule, words)}
                      </button>{" "}
                      <span className="soft">{t(`alarms.kind.${one.kind}`)}</span>
                    </td>
                    <td>{plain(one.channel)}</td>
                    <td>
                      <Outcome of={one} />
                    </td>
                    <td className="figures">{one.attempts}</td>
                    <td>
                      <Away at={one.created} past />
                    </td>
                  </tr>
                ))}
              </Table>
              <More of={messages} tight />
            </>
          )
        }
      </Shown>
      {opened !== undefined && <Whole message={opened} onClose={() => setOpened(undefined)} />}
    </Card>
  );
}

function Outcome({ of: one }: { of: Message }) {
  const words = useWords();
  const { t } = words;
  const now = useNow();
  const [tone, word] = outcomes[one.state];
  return (
    <span className={css.outcome}>
      <Tag tone={tone}>{t(word)}</Tag>
      {one.state === "waiting" && one.next && (
        <span className="soft">
          {t("alarms.again", { when: words.away(Math.max(now, Date.parse(one.next)), now) })}
        </span>
      )}
      {one.error && (
        <span className={`${css.cause} soft`} title={one.error}>
          {plain(one.error)}
        </span>
      )}
    </span>
  );
}

function Whole({ message, onClose }: { message: number; onClose: () => void }) {
  const { t } = useWords();
  const asked = useAnswer("getAlarmMessage", { message });
  return (
    <Dialog title={t("alarms.messageTitle", { message: String(message) })} size={640} onClose={onClose}>
      <Shown of={asked}>
        {(one) => (
          <>
            <p className={css.subject}>{plain(one.subject)}</p>
            <pre className={css.body}>{plain(one.text)}</pre>
            <h3 className={css.label}>{t("alarms.tries")}</h3>
            {one.tries.length === 0 ? (
              <p className="soft">{t("alarms.noTries")}</p>
            ) : (
              <ol className={css.tries}>
                {one.tries.map((tried) => (
                  <li key={tried.attempt}>
                    <Moment at={tried.at} /> · {plain(tried.node)} ·{" "}
                    {tried.error === null ? (
                      <Tag tone="ok">{t("alarms.tryOk")}</Tag>
                    ) : (
                      <span className={css.bad}>{plain(tried.error)}</span>
                    )}
                  </li>
                ))}
              </ol>
            )}
          </>
        )}
      </Shown>
    </Dialog>
  );
}
