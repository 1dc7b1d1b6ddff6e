/** The series of a cluster without faults: one sample each 30 s for an hour, in the notation of promtool. */
const inOrder: Readonly<Record<string, string>> = {
  'up{job="c",instance="a"}': "1x120",
  'carillon_info{job="c",instance="a",version="1"}': "1x120",
  'carillon_led{job="c",instance="a"}': "1x120",
  'carillon_leader{job="c",instance="a"}': "1x120",
  'carillon_store_up{job="c",instance="a"}': "1x120",
  'carillon_session_trusted{job="c",instance="a"}': "1x120",
  'carillon_tasks_unreadable{job="c",instance="a"}': "0x120",
  'carillon_queue_age_seconds{job="c",instance="a",group="g"}': "5x120",
  'carillon_group_workers{job="c",instance="a",carillon_namespace="default",group="g"}': "2x120",
  'carillon_worker_held{job="c",instance="a"}': "3x120",
  'carillon_worker_concurrency{job="c",instance="a"}': "10x120",
  'nodejs_eventloop_lag_max_seconds{job="c",instance="a"}': "0.02x120",
  'carillon_ended_total{job="c",instance="a",outcome="succeeded"}': "0+100x120",
  'carillon_ended_total{job="c",instance="a",outcome="failed"}': "0+1x120",
  'carillon_ended_total{job="c",instance="a",outcome="missed"}': "0x120",
  'carillon_exhausted_total{job="c",instance="a"}': "0x120",
  'carillon_run_lateness_seconds_bucket{job="c",instance="a",le="0.1"}': "0+100x120",
  'carillon_run_lateness_seconds_bucket{job="c",instance="a",le="30"}': "0+100x120",
  'carillon_run_lateness_seconds_bucket{job="c",instance="a",le="+Inf"}': "0+100x120",
  'carillon_beat_seconds_bucket{job="c",instance="a",result="ok",le="0.1"}': "0+100x120",
  'carillon_beat_seconds_bucket{job="c",instance="a",result="ok",le="2.5"}': "0+100x120",
  'carillon_beat_seconds_bucket{job="c",instance="a",result="ok",le="+Inf"}': "0+100x120",
  'carillon_store_seconds_count{job="c",instance="a",part="claims",result="error"}': "0x120",
  'carillon_oldest_snapshot_seconds{job="c",instance="a",kind="transaction"}': "10x120",
};

/** By alert: the series that differ from `inOrder` so that this alert fires and no other. */
export const alertCases: Readonly<Record<string, Record<string, string>>> = {
  CarillonNotScraped: { 'carillon_info{job="c",instance="a",version="1"}': "_x120" },
  CarillonProcessDown: {
    'up{job="c",instance="b"}': "1x100 0x20",
    'carillon_info{job="c",instance="b",version="1"}': "1x100 _x20",
  },
  CarillonNoLeader: { 'carillon_led{job="c",instance="a"}': "0x120" },
  CarillonSeveralLeaders: { 'carillon_leader{job="c",instance="b"}': "1x120" },
  CarillonSessionInDoubt: { 'carillon_session_trusted{job="c",instance="a"}': "0x120" },
  CarillonTasksUnreadable: { 'carillon_tasks_unreadable{job="c",instance="a"}': "3x120" },
  CarillonRunsOverdue: { 'carillon_queue_age_seconds{job="c",instance="a",group="g"}': "90x120" },
  CarillonRunsLate: { 'carillon_run_lateness_seconds_bucket{job="c",instance="a",le="0.1"}': "0+90x120" },
  CarillonSlotsMissed: { 'carillon_ended_total{job="c",instance="a",outcome="missed"}': "0x100 1x20" },
  CarillonRunsFailing: { 'carillon_ended_total{job="c",instance="a",outcome="failed"}': "0+50x120" },
  CarillonRunsExhausted: { 'carillon_exhausted_total{job="c",instance="a"}': "0x100 1x20" },
  CarillonGroupWithoutWorkers: {
    'carillon_group_workers{job="c",instance="a",carillon_namespace="default",group="g"}': "0x120",
  },
  CarillonWorkersFull: {
    'carillon_worker_held{job="c",instance="a"}': "10x120",
    'carillon_queue_age_seconds{job="c",instance="a",group="g"}': "20x120",
  },
  CarillonEventLoopStalled: { 'nodejs_eventloop_lag_max_seconds{job="c",instance="a"}': "3x120" },
  CarillonStoreDown: { 'carillon_store_up{job="c",instance="a"}': "0x120" },
  CarillonStoreSlow: {
    'carillon_beat_seconds_bucket{job="c",instance="a",result="ok",le="0.1"}': "0+90x120",
  },
  CarillonStoreErrors: {
    'carillon_store_seconds_count{job="c",instance="a",part="claims",result="error"}': "0+30x120",
  },
  CarillonOldSnapshot: { 'carillon_oldest_snapshot_seconds{job="c",instance="a",kind="transaction"}': "4000x120" },
};

/**
 * Returns the file for `promtool test rules`: only the case's own alert may fire in each case, and no alert for the series
 * `inOrder`.
 */
export function alertTests(rules: string): string {
  const test = (name: string, different: Record<string, string>, firing: string[]) => ({
    name,
    interval: "30s",
    input_series: Object.entries({ ...inOrder, ...different }).map(([series, values]) => ({ series, values })),
    promql_expr_test: [
      {
        expr: 'count by (alertname) (ALERTS{alertstate="firing"})',
        eval_time: "1h",
        exp_samples: firing.map((alertname) => ({ labels: `{alertname="${alertname}"}`, value: 1 })),
      },
    ],
  });
  const tests = Object.entries(alertCases).map(([name, different]) => test(name, different, [name]));
  // promtool reads YAML, and JSON is YAML too.
  return JSON.stringify({
    rule_files: [rules],
    evaluation_interval: "30s",
    tests: [test("in order", {}, []), ...tests],
  });
}
