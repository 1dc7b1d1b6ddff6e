import { createRootRoute, createRoute, createRouter } from "@tanstack/react-router";
import { begin } from "./api/answers.ts";
import { basePath } from "./api/base.ts";
import { type Filter, picks } from "./filter.ts";
import { TaskFlow } from "./flow/task-flow-code.ts";
import { Broken } from "./shell/broken.tsx";
import { Lost } from "./shell/lost.tsx";
import { screen } from "./shell/screen.ts";
import { Shell } from "./shell/shell.tsx";

const root = createRootRoute({ component: Shell, notFoundComponent: Lost, errorComponent: Broken });
const under = { getParentRoute: () => root } as const;

const overview = createRoute({
  ...under,
  path: "/",
  component: screen(() => import("./overview/overview.tsx"), "Overview"),
});
const wallboard = createRoute({
  ...under,
  path: "/wallboard",
  component: screen(() => import("./wallboard/wallboard.tsx"), "Wallboard"),
});
const tasks = createRoute({
  ...under,
  path: "/tasks",
  validateSearch: picks("matching", "group", "owner", "paused", "of"),
  component: screen(() => import("./tasks/list/tasks.tsx"), "Tasks"),
});
const task = createRoute({
  ...under,
  path: "/tasks/$task",
  validateSearch: picks("part", "from", "to"),
  component: screen(() => import("./tasks/task.tsx"), "TaskScreen"),
  loaderDeps: ({ search: { part } }) => ({ part }),
  // Code and answer of the graph are requested together. Without the code React would show a placeholder, and keep it for 300 ms.
  loader: async ({ deps: { part }, params: { task } }) => {
    if (part !== "flow") return;
    begin("listFlow", { task });
    await TaskFlow.preload?.();
  },
});
const flow = createRoute({
  ...under,
  path: "/flow",
  component: screen(() => import("./flow/flow.tsx"), "FlowScreen"),
});
const runs = createRoute({
  ...under,
  path: "/runs",
  validateSearch: picks("task", "matching", "state", "label", "within", "since", "until"),
  component: screen(() => import("./runs/runs.tsx"), "Runs"),
});
const run = createRoute({
  ...under,
  path: "/runs/$run",
  validateSearch: picks("find", "level", "attempt"),
  component: screen(() => import("./runs/run.tsx"), "RunScreen"),
});
const compare = createRoute({
  ...under,
  path: "/runs/$run/compare",
  validateSearch: picks("with"),
  component: screen(() => import("./runs/compare/compare.tsx"), "CompareScreen"),
});
const timeline = createRoute({
  ...under,
  path: "/timeline",
  validateSearch: picks("days", "matching", "group", "at", "minute", "view"),
  component: screen(() => import("./timeline/timeline.tsx"), "TimelineScreen"),
});
const operations = createRoute({
  ...under,
  path: "/operations",
  component: screen(() => import("./operations/operations.tsx"), "Operations"),
});
const operation = createRoute({
  ...under,
  path: "/operations/$operation",
  component: screen(() => import("./operations/operation.tsx"), "OperationScreen"),
});
const alarms = createRoute({
  ...under,
  path: "/alarms",
  component: screen(() => import("./alarms/alarms.tsx"), "Alarms"),
});
const workers = createRoute({
  ...under,
  path: "/workers",
  validateSearch: picks("group"),
  component: screen(() => import("./workers/workers.tsx"), "Workers"),
});
const nodes = createRoute({
  ...under,
  path: "/nodes",
  component: screen(() => import("./nodes/nodes.tsx"), "Nodes"),
});
const deadLetters = createRoute({
  ...under,
  path: "/dead-letters",
  validateSearch: picks("task", "matching", "within", "since", "until", "fingerprint"),
  component: screen(() => import("./dead-letters/dead-letters.tsx"), "DeadLetters"),
});
const audit = createRoute({
  ...under,
  path: "/audit",
  validateSearch: picks("who", "act", "about", "named", "within", "since", "until", "entry"),
  component: screen(() => import("./audit/audit.tsx"), "Audit"),
});
const calendars = createRoute({
  ...under,
  path: "/calendars",
  component: screen(() => import("./calendars/calendars.tsx"), "Calendars"),
});
const calendar = createRoute({
  ...under,
  path: "/calendars/$calendar",
  validateSearch: picks("year", "version"),
  component: screen(() => import("./calendars/calendar.tsx"), "CalendarScreen"),
});
const access = createRoute({
  ...under,
  path: "/access",
  validateSearch: picks("part", "ended"),
  component: screen(() => import("./access/access.tsx"), "Access"),
});
const settings = createRoute({
  ...under,
  path: "/settings",
  component: screen(() => import("./settings/settings.tsx"), "Settings"),
});

export const router = createRouter({
  routeTree: root.addChildren([
    overview,
    wallboard,
    timeline,
    tasks,
    task,
    flow,
    runs,
    run,
    compare,
    deadLetters,
    operations,
    operation,
    alarms,
    workers,
    nodes,
    calendars,
    calendar,
    audit,
    access,
    settings,
  ]),
  basepath: basePath || "/",
  parseSearch: (text) => Object.fromEntries(new URLSearchParams(text)),
  stringifySearch: (search) => {
    const given = Object.entries(search as Filter).filter((entry): entry is [string, string] => entry[1] !== undefined);
    const text = new URLSearchParams(given).toString().replaceAll("%2C", ",");
    return text === "" ? "" : `?${text}`;
  },
  // A screen is mounted again when the path's parameters change, so that an open dialog is not kept for another task or run.
  defaultRemountDeps: ({ params }) => params,
  defaultErrorComponent: Broken,
  defaultPreload: "intent",
  defaultPreloadDelay: 80,
  scrollRestoration: true,
  scrollToTopSelectors: ["#content"],
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
