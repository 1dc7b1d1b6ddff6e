import { Button } from "@mantine/core";
import {
  IconAlertTriangleFilled,
  IconBellOff,
  IconCheck,
  IconCircleCheckFilled,
  IconHelpCircleFilled,
} from "@tabler/icons-react";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { outdate, useAnswer } from "../api/answers.ts";
import { call } from "../api/call.ts";
import { useMay, useReach, useSees } from "../api/may.ts";
import { useWords } from "../messages/words.ts";
import { Confirm } from "../parts/form/confirm.tsx";
import { Page } from "../parts/layout/page.tsx";
import { useKnown } from "../parts/state/known.ts";
import { Tag } from "../parts/state/mark.tsx";
import { Nothing, Shown } from "../parts/state/notice.tsx";
import { toast } from "../parts/state/toasts.tsx";
import { AnchoredList } from "../parts/table/anchored-list.tsx";
import { More } from "../parts/table/more.tsx";
import { usePages } from "../parts/table/pages.ts";
import { RunLink, TaskLink } from "../parts/value/links.tsx";
import { Away } from "../parts/value/moment.tsx";
import { plain } from "../parts/value/plain.ts";
import css from "./alarms.module.css";
import { Deliveries } from "./deliveries.tsx";
import { Messages } from "./messages.tsx";
import { type Alarm, isGiven, type Rule, ruleName } from "./rule.ts";
import { Rules } from "./rules.tsx";
import { SilenceDialog, Silences } from "./silences.tsx";
import { StoredRules } from "./stored.tsx";

/**
 * The open dialog and the alarm that it is about. The alarm may end while the dialog is open. A silence can also be created without
 * an alarm.
 */
type Asked = { act: "acknowledge"; alarm: Alarm } | { act: "silence"; alarm?: Alarm };

/** The refetch interval, since no event reports alarms: the leader checks for them every few seconds. */
const everyMs = 5_000;

const keyOf = ({ rule, task }: Alarm) => `${rule} ${task}`;

export function Alarms() {
  const { t } = useWords();
  const may = useMay("operator");
  const reach = useReach("operator");
  const seesAll = useSees("viewer", true);
  const alarms = usePages("listAlarms", { limit: 100 }, { everyMs });
  const rules = useAnswer("listAlarmRules", {});
  const given = seesAll && rules.data?.summaryMs !== null;
  const isOff = rules.data !== undefined && rules.data.summaryMs === null && rules.data.stored.length === 0;
  const [asked, setAsked] = useState<Asked>();
  const close = () => setAsked(undefined);
  return (
    <Page
      title={t("screen.alarms")}
      below={t("alarms.lead")}
      acts={
        may &&
        !isOff && (
          <Button
            variant="default"
            leftSection={<IconBellOff size={16} aria-hidden />}
            onClick={() => setAsked({ act: "silence" })}
          >
            {t("alarms.silenceAny")}
          </Button>
        )
      }
    >
      <Shown of={alarms} rows={4}>
        {(open) =>
          isOff && open.length === 0 ? (
            <Nothing title={t("alarms.off")}>
              <p>{t("alarms.offTold")}</p>
              <pre className={css.sample}>
                {
                  'channels:\n  ops: { webhook: "https://hooks.example.com/carillon" }\n  mail: { smtp: "env:SMTP_URL", from: …, to: [ops@example.com] }'
                }
              </pre>
              <code>carillon server --alarms alarms.yaml</code>
            </Nothing>
          ) : (
            <>
              <Verdict of={alarms} open={open} more={alarms.more} />
              {open.length > 0 && (
                <AnchoredList rows={open} keyOf={keyOf} more={alarms.more}>
                  {(rows, isGone) => (
                    <ul className={css.open} aria-label={t("alarms.open")}>
                      {rows.map((alarm) => (
                        <li key={keyOf(alarm)} data-gone={isGone(alarm) || undefined}>
                          <One
                            alarm={alarm}
                            may={alarm.task === null ? reach.everywhere : reach.on(alarm.task)}
                            onAsk={setAsked}
                          />
                        </li>
                      ))}
                    </ul>
                  )}
                </AnchoredList>
              )}
              <More of={alarms} />
            </>
          )
        }
      </Shown>
      <Silences />
      {seesAll && !isOff && <Messages />}
      {seesAll && <Deliveries />}
      <StoredRules rules={rules} />
      {given && <Rules rules={rules} may={reach.everywhere} />}
      {asked?.act === "acknowledge" && <Acknowledge alarm={asked.alarm} onClose={close} />}
      {asked?.act === "silence" && (
        <SilenceDialog rule={asked.alarm?.rule ?? null} task={asked.alarm?.task ?? null} onClose={close} />
      )}
    </Page>
  );
}

function Verdict({ of, open, more }: { of: { data: unknown; error: unknown }; open: Alarm[]; more: boolean }) {
  const { t } = useWords();
  const { isKnown, told } = useKnown([of]);
  const untold = open.filter(({ acknowledged, silencedUntil }) => !acknowledged && !silencedUntil).length;
  const tone = open.length === 0 ? "ok" : untold > 0 ? "bad" : "late";
  const Icon = tone === "ok" ? IconCircleCheckFilled : IconAlertTriangleFilled;
  if (!isKnown)
    return (
      <section className={css.verdict} data-tone="wait" role="status">
        <IconHelpCircleFilled size={28} aria-hidden />
        <div>
          <p className={css.said}>{t("known.title")}</p>
          <p className="soft">{told}</p>
        </div>
      </section>
    );
  return (
    <section className={css.verdict} data-tone={tone} role="status">
      <Icon size={28} aria-hidden />
      <div>
        <p className={css.said}>
          {open.length === 0 ? t("alarms.none") : t("alarms.openCount", { n: open.length })}
          {more && "+"}
        </p>
        <p className="soft">
          {open.length === 0
            ? t("alarms.noneTold")
            : untold === 0
              ? t("alarms.allKnown")
              : t("alarms.untold", { n: untold })}
        </p>
      </div>
    </section>
  );
}

interface Place {
  to: "/nodes" | "/workers" | "/runs" | "/tasks";
  state?: string;
}

/** The screen that helps most with an alarm, by the alarm's rule. */
const places: Record<Rule, Place> = {
  failed: { to: "/runs", state: "failed" },
  exhausted: { to: "/runs", state: "failed" },
  late: { to: "/workers" },
  overdue: { to: "/runs", state: "ready" },
  unfired: { to: "/nodes" },
  stuck: { to: "/runs", state: "claimed" },
  leaderless: { to: "/nodes" },
  clock: { to: "/nodes" },
  rewound: { to: "/nodes" },
  unreadable: { to: "/nodes" },
  paused: { to: "/runs", state: "failed" },
  ended: { to: "/tasks" },
  recovery: { to: "/nodes" },
};

function One({ alarm, may, onAsk }: { alarm: Alarm; may: boolean; onAsk: (asked: Asked) => void }) {
  const words = useWords();
  const { t } = words;
  const { rule, task, acknowledged, silencedUntil } = alarm;
  const isQuiet = acknowledged !== null || silencedUntil !== null;
  const { to, state }: Place = isGiven(rule) ? places[rule] : { to: "/runs" };
  const search = to === "/runs" ? { ...(state ? { state } : {}), ...(task === null ? {} : { task }) } : {};
  const about = task ?? t("alarms.cluster");
  return (
    <article className={css.alarm} data-quiet={isQuiet || undefined} aria-label={`${ruleName(rule, words)}: ${about}`}>
      <div className={css.top}>
        <h2>
          <span className={css.rule}>{ruleName(rule, words)}</span>
          {task === null ? <span>{t("alarms.cluster")}</span> : <TaskLink task={task} />}
        </h2>
        {acknowledged && <Tag tone="wait">{t("alarms.known", { by: acknowledged.by })}</Tag>}
        {silencedUntil && (
          <Tag tone="wait">{t("alarms.silenced", { time: words.when(Date.parse(silencedUntil)) })}</Tag>
        )}
      </div>
      <p className={css.text}>{plain(words.told(alarm.text))}</p>
      {acknowledged?.why && <p className="soft">“{plain(acknowledged.why)}”</p>}
      <p className={`${css.facts} soft`}>
        <span>
          {t("alarms.since")} <Away at={alarm.opened} past />
        </span>
        {alarm.count > 0 && <span className="figures">{t("alarms.times", { n: alarm.count })}</span>}
        {alarm.last !== alarm.opened && (
          <span>
            {t("alarms.last")} <Away at={alarm.last} past />
          </span>
        )}
        {alarm.run !== null && (
          <span>
            {t("alarms.run")} <RunLink run={alarm.run} />
          </span>
        )}
      </p>
      <div className={css.todo}>
        <p>
          <b>{t("alarms.todo")}</b> {t(isGiven(rule) ? `alarm.${rule}.todo` : "alarms.storedTodo")}{" "}
          <Link to={to} search={search}>
            {t(to === "/runs" ? "screen.runs" : to === "/nodes" ? "screen.nodes" : "screen.workers")}
          </Link>
        </p>
        {may && (
          <span className={css.acts}>
            {!acknowledged && (
              <Button
                size="compact-sm"
                variant="default"
                leftSection={<IconCheck size={14} aria-hidden />}
                onClick={() => onAsk({ act: "acknowledge", alarm })}
              >
                {t("alarms.acknowledge")}
              </Button>
            )}
            {!silencedUntil && (
              <Button
                size="compact-sm"
                variant="default"
                leftSection={<IconBellOff size={14} aria-hidden />}
                onClick={() => onAsk({ act: "silence", alarm })}
              >
                {t("alarms.silence")}
              </Button>
            )}
          </span>
        )}
      </div>
    </article>
  );
}

function Acknowledge({ alarm: { rule, task }, onClose }: { alarm: Alarm; onClose: () => void }) {
  const words = useWords();
  const { t } = words;
  return (
    <Confirm
      title={t("alarms.acknowledgeTitle", { what: `${ruleName(rule, words)}, ${task ?? t("alarms.cluster")}` })}
      consequence={t("alarms.acknowledgeTold")}
      act={t("alarms.acknowledge")}
      onDo={async ({ reason, key }) => {
        const done = await call("acknowledgeAlarm", { rule, reason, ...(task === null ? {} : { task }) }, { key });
        outdate("listAlarms");
        toast({ text: t("alarms.acknowledged", { n: done.acknowledged }) });
      }}
      onClose={onClose}
    />
  );
}
