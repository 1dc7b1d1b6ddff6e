import { Button } from "@mantine/core";
import { IconArrowBackUp, IconPlayerStop } from "@tabler/icons-react";
import { Link, useNavigate, useParams } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import { outdate } from "../api/answers.ts";
import { call } from "../api/call.ts";
import { useMay } from "../api/may.ts";
import { useWords } from "../messages/words.ts";
import { useNow } from "../now.ts";
import { Confirm } from "../parts/form/confirm.tsx";
import { Card, Facts, Page } from "../parts/layout/page.tsx";
import { Tag } from "../parts/state/mark.tsx";
import { Shown } from "../parts/state/notice.tsx";
import { toast } from "../parts/state/toasts.tsx";
import { Away, Moment } from "../parts/value/moment.tsx";
import { plain } from "../parts/value/plain.ts";
import { FilterText } from "./filter-text.tsx";
import css from "./operations.module.css";
import { Course, type Operation, operationTone, settledOf } from "./operations.tsx";
import { useBegin } from "./use-begin.ts";
import { isUnderWay, useOperation } from "./watch.ts";

const everyMs = 700;

export function OperationScreen() {
  const { t } = useWords();
  const { operation: text } = useParams({ from: "/operations/$operation" });
  const number = /^[1-9]\d{0,14}$/.test(text) ? Number(text) : 0;
  const asked = useOperation(number, everyMs);
  const { data } = asked;
  return (
    <Page
      title={t("operations.title", { operation: text })}
      above={<Link to="/operations">{t("screen.operations")}</Link>}
      below={
        data && (
          <span className={css.under}>
            <b>{t(`operation.word.${data.kind}`)}</b>
            <Tag tone={operationTone[data.state]}>{t(`operation.${data.state}`)}</Tag>
            <span>{plain(data.author)}</span>
            <Away at={data.created} past />
          </span>
        )
      }
      acts={data && <Acts operation={data} />}
    >
      {number === 0 ? (
        <Shown of={{ data: undefined, error: new Error(t("operations.noNumber")), refetch: () => undefined }}>
          {() => null}
        </Shown>
      ) : (
        <Shown of={asked}>{(one) => <Whole operation={one} />}</Shown>
      )}
    </Page>
  );
}

function Whole({ operation }: { operation: Operation }) {
  const { t, count, span } = useWords();
  const now = useNow();
  const { kind, total, done, passed, failed, range } = operation;
  const treated = settledOf(operation) + failed;
  const asked: [string, string][] = [
    [t("operations.asked"), count(operation.asked)],
    [t("operations.late"), count(operation.late)],
  ];
  const begun = operation.started ?? operation.created;
  const spanMs = (operation.ended === null ? now : Date.parse(operation.ended)) - Date.parse(begun);
  const perSecond = spanMs > 0 && treated > 0 ? (1_000 * treated) / spanMs : null;
  return (
    <>
      <Card
        title={t("operations.course")}
        more={isUnderWay(operation) && <span className="soft">{t("operations.goesOn")}</span>}
      >
        <div className={css.large} role="status">
          <Course of={operation} />
        </div>
        <Facts
          facts={[
            [t("operations.total"), count(total)],
            [t("operations.done"), count(done)],
            [t(`operations.passed.${kind}`), count(passed)],
            ...(kind === "cancel" ? asked : []),
            [
              t("operations.failed"),
              <span key="failed" className={failed > 0 ? css.failed : ""}>
                {count(failed)}
              </span>,
            ],
            [t("operations.left"), count(Math.max(0, total - treated))],
            [t("operations.perSecond"), perSecond === null ? "–" : count(Math.round(perSecond * 10) / 10)],
          ]}
        />
        {operation.error !== null && (
          <div className={css.error}>
            <strong>{t("operations.error")}</strong>
            <p>{plain(operation.error)}</p>
          </div>
        )}
      </Card>
      <Card title={t("operations.about")}>
        <Facts
          facts={[
            [t("operations.filter"), <FilterText key="filter" filter={operation.filter} />],
            ...(operation.pauseUntil
              ? ([[t("operations.pauseUntil"), <Moment key="until" at={operation.pauseUntil} />]] as [
                  string,
                  ReactNode,
                ][])
              : []),
            [t("operations.by"), plain(operation.author)],
            [
              t("operations.why"),
              operation.reason === "" ? (
                <span key="why" className="soft">
                  {t("operations.noReason")}
                </span>
              ) : (
                plain(operation.reason)
              ),
            ],
            [t("operations.created"), <Moment key="created" at={operation.created} />],
            [t("operations.started"), operation.started ? <Moment key="started" at={operation.started} /> : "–"],
            [
              t("operations.ended"),
              operation.ended ? (
                <span key="ended">
                  <Moment at={operation.ended} /> <span className="soft">({span(Math.max(0, spanMs))})</span>
                </span>
              ) : (
                "–"
              ),
            ],
          ]}
        />
        {range && (
          <p className={css.slots}>
            <span className="soft">{t("operations.range")}</span> <Moment at={range.from} />{" "}
            <span className="soft">{t("operations.rangeTo")}</span> <Moment at={range.to} /> ·{" "}
            {range.perSecond === null ? t("operations.fast") : t("operations.rate", { n: range.perSecond })}
            {range.reverse && ` · ${t("operations.newest")}`}
            {range.missed && ` · ${t("operations.missed")}`}
          </p>
        )}
      </Card>
    </>
  );
}

function Acts({ operation }: { operation: Operation }) {
  const { t } = useWords();
  const begin = useBegin();
  const may = useMay("operator");
  const navigate = useNavigate();
  const [act, setAct] = useState<"stop" | "undo">();
  if (!may) return null;
  const { operation: number, kind, filter } = operation;
  const undoes = kind === "pause" ? "resume" : kind === "resume" ? "pause" : undefined;
  const text = String(number);
  return (
    <>
      {operation.state === "running" && (
        <Button variant="default" leftSection={<IconPlayerStop size={16} aria-hidden />} onClick={() => setAct("stop")}>
          {t("operations.stop")}
        </Button>
      )}
      {undoes && !isUnderWay(operation) && operation.done > 0 && (
        <Button
          variant="default"
          leftSection={<IconArrowBackUp size={17} aria-hidden />}
          onClick={() => setAct("undo")}
        >
          {t(undoes === "resume" ? "operations.undo" : "operations.undoPause")}
        </Button>
      )}
      {act === "stop" && (
        <Confirm
          title={t("operations.stopTitle", { operation: text })}
          consequence={t("operations.stopTold")}
          act={t("operations.stop")}
          asksReason={false}
          onDo={async ({ key }) => {
            await call("stopOperation", { operation: number }, { key });
            outdate("getOperation", "listOperations");
            toast({ text: t("operations.stopped", { operation: text }) });
          }}
          onClose={() => setAct(undefined)}
        />
      )}
      {act === "undo" && undoes && (
        <Confirm
          title={t(undoes === "resume" ? "operations.undoTitle" : "operations.undoPauseTitle", { operation: text })}
          consequence={t("operations.undoTold")}
          act={t(`operation.word.${undoes}`)}
          onDo={async ({ reason, ...asked }) => {
            await begin({ kind: undoes, filter, reason }, asked, (next) => {
              void navigate({ to: "/operations/$operation", params: { operation: String(next) } });
            });
            outdate("listTasks", "getTask", "listComing");
          }}
          onClose={() => setAct(undefined)}
        />
      )}
    </>
  );
}
