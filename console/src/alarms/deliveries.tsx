import { Button, SegmentedControl, TextInput } from "@mantine/core";
import { useState } from "react";
import { outdate, useAnswer } from "../api/answers.ts";
import { type Answer, call } from "../api/call.ts";
import { useReach } from "../api/may.ts";
import { useWords } from "../messages/words.ts";
import { Confirm } from "../parts/form/confirm.tsx";
import { Card } from "../parts/layout/page.tsx";
import { Tag } from "../parts/state/mark.tsx";
import { Shown } from "../parts/state/notice.tsx";
import { Table } from "../parts/table/table.tsx";
import { RunLink } from "../parts/value/links.tsx";
import { Away } from "../parts/value/moment.tsx";
import { plain } from "../parts/value/plain.ts";

import css from "./alarms.module.css";

type Consumer = Answer<"listEventConsumers">["consumers"][number];

/** Webhooks and other named consumers of events: how far each is, which delivery fails, and a way to deliver again. Empty without any. */
export function Deliveries() {
  const { t } = useWords();
  const may = useReach("operator").everywhere;
  const consumers = useAnswer("listEventConsumers", {}, { everyMs: 10_000 });
  const [chosen, setChosen] = useState<Consumer>();
  if (consumers.data?.consumers.length === 0) return null;
  return (
    <Card title={t("deliveries.title")} tight>
      <Shown of={consumers} rows={2}>
        {(data) => (
          <Table
            label={t("deliveries.title")}
            className={css.table}
            heads={[t("deliveries.to"), t("deliveries.place"), t("alarms.outcome"), t("deliveries.act")]}
          >
            {data.consumers.map((consumer) => (
              <tr key={consumer.name}>
                <td className={css.ruleName}>{plain(consumer.name)}</td>
                <td>{consumer.place === null ? "–" : <Away at={consumer.place} past />}</td>
                <td>
                  <State of={consumer} />
                </td>
                <td>
                  {may && consumer.place !== null && (
                    <Button
                      size="compact-sm"
                      variant="default"
                      aria-label={`${t("deliveries.again")}: ${consumer.name}`}
                      onClick={() => setChosen(consumer)}
                    >
                      {t("deliveries.again")}
                    </Button>
                  )}
                </td>
              </tr>
            ))}
          </Table>
        )}
      </Shown>
      {chosen && <Again consumer={chosen} onClose={() => setChosen(undefined)} />}
    </Card>
  );
}

function State({ of: { failing } }: { of: Consumer }) {
  const { t } = useWords();
  if (failing === null) return <Tag tone="ok">{t("deliveries.fine")}</Tag>;
  return (
    <>
      <Tag tone="bad">{t("deliveries.fails", { n: failing.attempt })}</Tag>{" "}
      {failing.run !== null && <RunLink run={failing.run} />} <span className="soft">{plain(failing.error)}</span>
    </>
  );
}

type From = "failing" | "time";

/**
 * If a delivery fails, the proposal is to go on with its event. For delivery since a time, no time is proposed: with the time of the failing
 * event, events that ended shortly before it and were stored after it would be left out.
 */
function Again({ consumer: { name, failing }, onClose }: { consumer: Consumer; onClose: () => void }) {
  const words = useWords();
  const { t } = words;
  const [from, setFrom] = useState<From>(failing ? "failing" : "time");
  const [since, setSince] = useState("");
  const isTime = /^\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)$/.test(since) && !Number.isNaN(Date.parse(since));
  return (
    <Confirm
      title={`${t("deliveries.again")}: ${name}`}
      consequence={t(from === "failing" ? "deliveries.fromFailingTold" : "deliveries.againTold")}
      act={t("deliveries.again")}
      blocked={from === "time" && !isTime}
      onDo={async ({ reason, key }) => {
        await call("redeliverEvents", { consumer: name, ...(from === "time" && { since }), reason }, { key });
        outdate("listEventConsumers");
      }}
      onClose={onClose}
    >
      {failing && (
        <>
          <SegmentedControl
            aria-label={t("deliveries.from")}
            value={from}
            onChange={(value) => setFrom(value as From)}
            data={[
              { value: "failing", label: t("deliveries.fromFailing") },
              { value: "time", label: t("deliveries.fromTime") },
            ]}
          />
          {from === "failing" && (
            <p>
              {failing.type} {failing.run !== null && <RunLink run={failing.run} />}{" "}
              {failing.time !== null && words.exact(Date.parse(failing.time))}
            </p>
          )}
        </>
      )}
      {from === "time" && (
        <TextInput
          data-autofocus
          label={t("deliveries.since")}
          placeholder="2027-01-31T22:00:00Z"
          value={since}
          onChange={(event) => setSince(event.currentTarget.value.trim())}
        />
      )}
    </Confirm>
  );
}
