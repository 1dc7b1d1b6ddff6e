import { Button, SegmentedControl, Select } from "@mantine/core";
import { useState } from "react";
import { outdate, useAnswer } from "../api/answers.ts";
import { type Answer, call } from "../api/call.ts";
import { useReach } from "../api/may.ts";
import { useWords } from "../messages/words.ts";
import { Confirm } from "../parts/form/confirm.tsx";
import { Card } from "../parts/layout/page.tsx";
import { Shown } from "../parts/state/notice.tsx";
import { toast, toastFailure } from "../parts/state/toasts.tsx";
import { TaskLink } from "../parts/value/links.tsx";
import { Moment } from "../parts/value/moment.tsx";
import { plain } from "../parts/value/plain.ts";
import { TaskField } from "../tasks/task-field.tsx";
import css from "./alarms.module.css";
import { isGiven, ruleName, rules } from "./rule.ts";

type Silence = Answer<"listSilences">["silences"][number];

const spans = ["1h", "4h", "1d", "7d", "30d"] as const;
const hourMs = 3_600_000;
const spanMs = { "1h": hourMs, "4h": 4 * hourMs, "1d": 24 * hourMs, "7d": 168 * hourMs, "30d": 720 * hourMs };

export function Silences() {
  const { t } = useWords();
  const reach = useReach("operator");
  const asked = useAnswer("listSilences", {}, { everyMs: 30_000 });
  if (asked.data?.silences.length === 0) return null;
  return (
    <Card title={t("alarms.silences")}>
      <Shown of={asked} rows={2}>
        {({ silences }) => (
          <ul className={css.silences}>
            {silences.map((one) => (
              <One key={one.silence} one={one} may={one.task === null ? reach.everywhere : reach.on(one.task)} />
            ))}
          </ul>
        )}
      </Shown>
    </Card>
  );
}

function One({ one, may }: { one: Silence; may: boolean }) {
  const words = useWords();
  const { t } = words;
  const [isEnding, setEnding] = useState(false);
  const end = async () => {
    setEnding(true);
    try {
      await call("endSilence", { silence: one.silence });
      toast({ text: t("alarms.silenceEnded") });
    } catch (error) {
      toastFailure(error);
    }
    setEnding(false);
    outdate("listSilences", "listAlarms");
  };
  return (
    <li>
      <span className={css.what}>
        <b>{one.rule === null ? t("alarms.anyRule") : ruleName(one.rule, words)}</b> ·{" "}
        {one.task === null ? t("alarms.anyTask") : <TaskLink task={one.task} />}
      </span>
      <span>
        <span className="soft">{t("alarms.until")}</span> <Moment at={one.until} />
      </span>
      <span className={css.why}>
        <span className="soft">{plain(one.by)}</span>
        {one.reason !== "" && ` · ${plain(one.reason)}`}
      </span>
      {may && (
        <Button size="compact-sm" variant="default" loading={isEnding} onClick={() => void end()}>
          {t("alarms.silenceEnd")}
        </Button>
      )}
    </li>
  );
}

export function SilenceDialog({
  rule = null,
  task = null,
  onClose,
}: {
  rule?: string | null;
  task?: string | null;
  onClose: () => void;
}) {
  const words = useWords();
  const { t, span } = words;
  const [aboutRule, setAboutRule] = useState<string | null>(rule);
  const [aboutTask, setAboutTask] = useState(task ?? "");
  const reach = useReach("operator");
  const about = aboutTask.trim();
  const [lasts, setLasts] = useState<(typeof spans)[number]>("4h");
  return (
    <Confirm
      title={t("alarms.silenceTitle")}
      consequence={t("alarms.silenceTold")}
      act={t("alarms.silence").replace("…", "")}
      // A silence without a task applies to all tasks.
      blocked={about === "" ? !reach.everywhere : !reach.on(about)}
      onDo={async ({ reason, key }) => {
        const made = await call(
          "silenceAlarms",
          {
            for: lasts,
            reason,
            ...(aboutRule === null ? {} : { rule: aboutRule }),
            ...(about === "" ? {} : { task: about }),
          },
          { key },
        );
        outdate("listSilences", "listAlarms");
        const until = Date.parse(made.until);
        toast({
          text: t("alarms.silenceDone", { time: words.when(until) }),
          undo: () =>
            call("endSilence", { silence: made.silence }).finally(() => outdate("listSilences", "listAlarms")),
        });
      }}
      onClose={onClose}
    >
      <div className={css.form}>
        <Select
          label={t("alarms.silenceRule")}
          placeholder={t("alarms.anyRule")}
          data={[...rules, ...(rule === null || isGiven(rule) ? [] : [rule])].map((one) => ({
            value: one,
            label: ruleName(one, words),
          }))}
          value={aboutRule}
          onChange={(chosen) => setAboutRule(chosen)}
          clearable
          clearButtonProps={{ "aria-label": t("filter.clear") }}
        />
        <TaskField inForm value={aboutTask} onChange={(chosen) => setAboutTask(chosen ?? "")} />
        <div>
          <p className={css.label}>{t("alarms.silenceFor")}</p>
          <SegmentedControl
            fullWidth
            aria-label={t("alarms.silenceFor")}
            value={lasts}
            onChange={(value) => setLasts(value as (typeof spans)[number])}
            data={spans.map((one) => ({ value: one, label: span(spanMs[one]) }))}
          />
        </div>
      </div>
    </Confirm>
  );
}
