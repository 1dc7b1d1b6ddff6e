import { Link } from "@tanstack/react-router";
import { useAnswer } from "../api/answers.ts";
import type { Answer } from "../api/call.ts";
import { useSees } from "../api/may.ts";
import { ErrorsCard } from "../errors/errors.tsx";
import { useWords } from "../messages/words.ts";
import { Card, Page } from "../parts/layout/page.tsx";
import { Nothing, Shown } from "../parts/state/notice.tsx";
import { Changed } from "./changed.tsx";
import { Coming } from "./coming.tsx";
import { Failing } from "./failing.tsx";
import { endedShown, useFigures } from "./figures.ts";
import { Guide } from "./guide/guide.tsx";
import { LateChart } from "./late-chart.tsx";
import css from "./overview.module.css";
import { Tiles } from "./tiles.tsx";
import { Verdict } from "./verdict.tsx";

export function Overview() {
  const { t } = useWords();
  const figures = useFigures();
  const { now, ready, ended, failed, coming, cluster } = figures;
  return (
    <Page title={t("screen.overview")} below={cluster.data ? <ClusterLine cluster={cluster.data} /> : "\u00a0"}>
      <Guide figures={figures} />
      <Verdict figures={figures} />
      <Tiles figures={figures} />
      <Card
        title={t("overview.chart", { n: endedShown })}
        more={<span className="soft">{t("overview.chartTold")}</span>}
      >
        <div className={css.chartPlace}>
          <Shown of={ended} rows={5}>
            {({ items }) =>
              items.length === 0 ? (
                <Nothing title={t("runs.none")}>{t("overview.chartNone")}</Nothing>
              ) : (
                <LateChart runs={items} />
              )
            }
          </Shown>
        </div>
      </Card>
      <div className={css.lists}>
        <Card title={t("overview.next")} more={<Link to="/tasks">{t("screen.tasks")}</Link>}>
          <Shown of={coming}>
            {(data) => (
              <Shown of={ready}>{({ items }) => <Coming coming={data.coming} ready={items} now={now} />}</Shown>
            )}
          </Shown>
        </Card>
        <Card
          title={t("overview.failing")}
          more={
            <Link to="/runs" search={{ state: "failed" }}>
              {t("overview.see")}
            </Link>
          }
        >
          <Shown of={failed}>{(data) => <Failing runs={data.items} />}</Shown>
        </Card>
        <Changes />
      </div>
      {/* The errors are below the lists, because they appear and grow later and must not move the lists. */}
      <ErrorsCard />
    </Page>
  );
}

function ClusterLine({ cluster: { leader, term, node, version } }: { cluster: Answer<"getCluster"> }) {
  const { t } = useWords();
  return (
    <>
      {leader ? t("overview.leads", { node: leader.node, term }) : t("overview.noLeader")} ·{" "}
      {t("overview.answers", { node })} · {version}
    </>
  );
}

function Changes() {
  const { t } = useWords();
  const sees = useSees("admin", true);
  const { data: me } = useAnswer("getMe", {});
  return <Card title={t(sees ? "overview.changed" : "overview.operations")}>{me && <Changed audit={sees} />}</Card>;
}
