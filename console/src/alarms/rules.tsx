import { Button } from "@mantine/core";
import { IconMail, IconSend, IconWebhook } from "@tabler/icons-react";
import { useState } from "react";
import { outdate, useAnswer } from "../api/answers.ts";
import { type Answer, call } from "../api/call.ts";
import { useWords } from "../messages/words.ts";
import { Card, Columns } from "../parts/layout/page.tsx";
import { Tag } from "../parts/state/mark.tsx";
import { Shown } from "../parts/state/notice.tsx";
import { toast } from "../parts/state/toasts.tsx";
import { Table } from "../parts/table/table.tsx";
import { plain } from "../parts/value/plain.ts";
import css from "./alarms.module.css";

type Asked = Parameters<typeof Shown<Answer<"listAlarmRules">>>[0]["of"];
type Channel = Answer<"listAlarmChannels">["channels"][number];

/** The rules, and the channels that each rule notifies. */
export function Rules({ rules, may }: { rules: Asked; may: boolean }) {
  const { t, span } = useWords();
  const channels = useAnswer("listAlarmChannels", {});
  return (
    <Columns shares={[5, 3]}>
      <Card title={t("alarms.rules")} more={<span className="soft">{t("alarms.rulesTold")}</span>} tight>
        <Shown of={rules} rows={7}>
          {(data) => (
            <Table
              label={t("alarms.rules")}
              className={css.table}
              heads={[t("alarms.rule"), t("alarms.finds"), t("alarms.after"), t("alarms.tells")]}
            >
              {data.rules.map(({ rule, afterMs, channels: told }) => (
                <tr key={rule} data-off={told.length === 0 || undefined}>
                  <td className={css.ruleName}>{t(`alarm.${rule}`)}</td>
                  <td className="soft">{t(`alarm.${rule}.finds`)}</td>
                  <td className="figures">{afterMs === null ? t("alarms.atOnce") : span(afterMs)}</td>
                  <td>{told.length === 0 ? <span className="soft">{t("alarms.nobody")}</span> : told.join(", ")}</td>
                </tr>
              ))}
            </Table>
          )}
        </Shown>
      </Card>
      <Card title={t("alarms.channels")}>
        <Shown of={channels} rows={2}>
          {(data) => (
            <ul className={css.channels}>
              {data.channels.map((channel) => (
                <One key={channel.name} channel={channel} may={may} />
              ))}
            </ul>
          )}
        </Shown>
      </Card>
    </Columns>
  );
}

function One({ channel, may }: { channel: Channel; may: boolean }) {
  const { t } = useWords();
  const [isSending, setSending] = useState(false);
  const Icon = channel.kind === "mail" ? IconMail : IconWebhook;
  const send = async () => {
    setSending(true);
    try {
      await call("testAlarmChannel", { channel: channel.name });
      toast({ text: t("alarms.tested", { channel: channel.name }) });
    } catch (error) {
      toast({ failed: true, text: error instanceof Error ? error.message : String(error) });
    }
    setSending(false);
    outdate("listAlarmMessages");
  };
  return (
    <li>
      <Icon size={20} aria-hidden />
      <div className={css.what}>
        <b>{plain(channel.name)}</b> <span className="soft">{t(`alarms.kind.${channel.kind}`)}</span>{" "}
        {channel.signed && <Tag tone="ok">{t("alarms.signed")}</Tag>}
        <div className="soft">{plain(channel.to)}</div>
      </div>
      {may && (
        <Button
          size="compact-sm"
          variant="default"
          leftSection={<IconSend size={14} aria-hidden />}
          loading={isSending}
          onClick={() => void send()}
        >
          {t("alarms.test")}
        </Button>
      )}
    </li>
  );
}
