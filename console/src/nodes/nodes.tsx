import { IconCrown } from "@tabler/icons-react";
import { useAnswer } from "../api/answers.ts";
import type { Answer } from "../api/call.ts";
import { useWords } from "../messages/words.ts";
import { useNow } from "../now.ts";
import { Card, Facts, Page } from "../parts/layout/page.tsx";
import { Tag } from "../parts/state/mark.tsx";
import { Nothing, Shown } from "../parts/state/notice.tsx";
import { More } from "../parts/table/more.tsx";
import { usePages } from "../parts/table/pages.ts";
import { Table } from "../parts/table/table.tsx";
import { Away, Moment } from "../parts/value/moment.tsx";
import css from "./nodes.module.css";

type Term = Answer<"listTerms">["items"][number];

export function Nodes() {
  const { t } = useWords();
  const cluster = useAnswer("getCluster", {}, { everyMs: 3_000 });
  const nodes = usePages("listNodes", { limit: 100 }, { everyMs: 3_000 });
  const terms = usePages("listTerms", { limit: 50 }, { everyMs: 10_000 });
  return (
    <Page title={t("screen.nodes")} below={t("nodes.lead")}>
      <Card title={t("nodes.cluster")}>
        <Shown of={cluster} rows={2}>
          {(data) => (
            <Facts
              facts={[
                [
                  t("nodes.leader"),
                  data.leader ? (
                    data.leader.node
                  ) : (
                    <Tag key="none" tone="bad">
                      {t("overview.noLeader")}
                    </Tag>
                  ),
                ],
                [t("nodes.term"), String(data.term)],
                [t("nodes.since"), data.leader ? <Away key="since" at={data.leader.since} past /> : "–"],
                [t("nodes.coordination"), data.coordination ?? "PostgreSQL"],
                [t("nodes.answering"), data.node],
                [t("workers.version"), data.version],
                [
                  t("nodes.clusterId"),
                  <span key="id" className="mono" data-long>
                    {data.cluster}
                  </span>,
                ],
              ]}
            />
          )}
        </Shown>
      </Card>
      <Shown of={nodes} rows={3}>
        {(rows) =>
          rows.length === 0 ? (
            <Nothing title={t("nodes.none")} />
          ) : (
            <ul className={css.nodes}>
              {rows.map((node) => (
                <li key={node.sessionId}>
                  <Card
                    className={css.node}
                    title={
                      <span className={css.name}>
                        {node.leads && <IconCrown size={17} className={css.crown} aria-hidden />}
                        {node.node}
                      </span>
                    }
                    more={
                      <span className={css.tags}>
                        {node.leads && <Tag tone="run">{t("nodes.leads")}</Tag>}
                        {node.observer && <Tag tone="wait">{t("nodes.observer")}</Tag>}
                        {node.silent ? (
                          <Tag tone="bad">{t("workers.silent")}</Tag>
                        ) : node.stillMs !== null ? (
                          <Tag tone="bad">{t("nodes.still")}</Tag>
                        ) : (
                          <Tag tone="ok">{t("workers.alive")}</Tag>
                        )}
                      </span>
                    }
                  >
                    <Facts
                      facts={[
                        [t("workers.host"), `${node.host} · ${node.pid}`],
                        [t("nodes.address"), node.address ?? "–"],
                        [t("workers.since"), <Away key="since" at={node.started} past />],
                        [t("workers.seen"), <Away key="seen" at={node.seen} past />],
                        [t("workers.version"), node.version],
                        [t("nodes.release"), node.release ?? "–"],
                        [t("nodes.relies"), t(`nodes.relies.${node.reliesOn}`)],
                      ]}
                    />
                  </Card>
                </li>
              ))}
            </ul>
          )
        }
      </Shown>
      <Card title={t("nodes.terms")} more={<span className="soft">{t("nodes.termsTold")}</span>} tight>
        <Shown of={terms} rows={4}>
          {(rows) => (
            <>
              <Reigns terms={rows} />
              <Table
                label={t("nodes.terms")}
                className={css.terms}
                heads={[t("nodes.term"), t("nodes.leader"), t("nodes.elected"), t("nodes.lasted"), t("nodes.why")]}
              >
                {rows.map((term) => (
                  <TermRow key={term.term} term={term} />
                ))}
              </Table>
              <More of={terms} tight />
            </>
          )}
        </Shown>
      </Card>
    </Page>
  );
}

function TermRow({ term: { term, node, elected, ended, endedWhy } }: { term: Term }) {
  const { t, span, told } = useWords();
  const now = useNow();
  return (
    <tr>
      <th scope="row" className="figures">
        {term}
      </th>
      <td>{node}</td>
      <td>
        <Moment at={elected} />
      </td>
      <td className="figures">{span(Math.max(0, (ended === null ? now : Date.parse(ended)) - Date.parse(elected)))}</td>
      <td>{ended === null ? <Tag tone="run">{t("nodes.present")}</Tag> : told(endedWhy ?? "–")}</td>
    </tr>
  );
}

const hues = ["run", "late", "ok", "skip", "wait"] as const;

/** The latest 20 terms of leadership on a time axis, coloured by node. */
function Reigns({ terms }: { terms: Term[] }) {
  const { t, span } = useWords();
  const now = useNow();
  const shown = terms.slice(0, 20).reverse();
  const first = shown[0];
  if (!first) return null;
  const from = Date.parse(first.elected);
  const names = [...new Set(shown.map(({ node }) => node))];
  return (
    <div className={css.reigns} role="img" aria-label={t("nodes.reigns", { n: shown.length, nodes: names.join(", ") })}>
      {shown.map(({ term, node, elected, ended }) => {
        const [start, end] = [Date.parse(elected), ended === null ? now : Date.parse(ended)];
        return (
          <span
            key={term}
            data-hue={hues[names.indexOf(node) % hues.length]}
            style={{
              left: `${(100 * (start - from)) / Math.max(1, now - from)}%`,
              width: `${Math.max(0.4, (100 * (end - start)) / Math.max(1, now - from))}%`,
            }}
            title={`${term} · ${node} · ${span(end - start)}`}
          />
        );
      })}
    </div>
  );
}
