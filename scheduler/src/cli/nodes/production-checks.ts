import type { ProductionFacts } from "../../store/postgres/cluster/production.ts";
import type { ClusterFacts } from "../../store/postgres/runs/inspect.ts";
import { groupWorkers } from "../tasks/tasks.ts";
import { type Check, good, list, problem, remark, silent } from "./checks.ts";

/** With the default settings, the two additional processes of a rolling update open up to this many connections. */
const spareConnections = 20;

/**
 * Checks whether the server and the cluster are ready for production. Covers the rows of the table in docs/guide/deploying.md that `doctor`
 * does not check without --production.
 * @param way `embedded`: the store is an embedded one; `plain`: the hosts that the store's URL reaches without TLS
 */
export const checkProduction = (
  facts: ProductionFacts,
  cluster: ClusterFacts,
  way: { embedded: boolean; plain: readonly string[] },
): Check[] => [...server(facts, way), planners(cluster), workers(cluster), alarms(facts), users(facts)];

function server(facts: ProductionFacts, { embedded, plain }: Parameters<typeof checkProduction>[2]): Check[] {
  const { unsafe, standbys, archives, connections, role, isSuperuser } = facts;
  const { most, open } = connections;
  return [
    embedded
      ? problem("a server", "the store is an embedded one, on this machine's disk", "Give --store the URL of a server.")
      : good("a server", "the store is a PostgreSQL server"),
    plain.length > 0
      ? problem("way", `${list([...plain])} is reached without TLS`, "Add sslmode=verify-full to the URL.")
      : good("way", "encrypted, or on this machine"),
    unsafe.length > 0
      ? problem("durability", `off at the server: ${list(unsafe)}`, "Turn it on: a crash loses acknowledged work.")
      : good("durability", "the server keeps what it acknowledges"),
    standbys === 0 && !archives
      ? remark(
          "copies",
          "no standby and no archive of the log can be seen",
          "Right if the service has copies of its own.",
        )
      : good("copies", standbys > 0 ? `standbys: ${standbys}` : "the log is archived"),
    open + spareConnections > most
      ? problem("connections", `${open} of ${most} are open`, "Raise max_connections, or lower `connections`.")
      : good("connections", `${open} of ${most} are open`),
    isSuperuser
      ? problem(
          "role",
          `${role} is a superuser`,
          "Give the processes a role of their own: carillon migrate --role NAME.",
        )
      : good("role", `${role} is no superuser`),
  ];
}

function planners({ members, nowMs }: ClusterFacts): Check {
  const planning = members.filter(
    (one) => one.role === "node" && !one.settings?.observer && !one.draining && !silent(one, nowMs),
  );
  const hosts = new Set(planning.map(({ host }) => host));
  const found = `${planning.length} live processes can lead, on ${hosts.size} machines`;
  return planning.length < 2 || hosts.size < 2
    ? problem("planners", found, "Run two on different machines, so that one can die.")
    : good("planners", found);
}

function workers({ members, tasks, nowMs }: ClusterFacts): Check {
  const groups = [...new Set(tasks.filter(({ paused }) => paused === null).map(({ definition }) => definition.group))];
  const lone = groups.filter((group) => groupWorkers(members, group, nowMs).length < 2);
  return lone.length > 0
    ? problem("spare workers", `fewer than two live workers serve ${list(lone)}`, "Run one more worker than needed.")
    : good("spare workers", `two or more serve each of ${groups.length} groups`);
}

function alarms({ watched }: ProductionFacts): Check {
  return watched
    ? good("alarms", "a process with channels has looked for them")
    : problem("alarms", "no process has had a channel for alarms", "Configure `alarms`, and try carillon alarms test.");
}

function users({ users: all, admins, temporary }: ProductionFacts): Check {
  if (temporary.length > 0)
    return problem("users", `temporary passwords: ${list(temporary)}`, "Sign in once, and choose a password.");
  if (all > 0 && admins === 0)
    return problem("users", "no user is an admin of everything", "carillon users create NAME --role admin");
  return good("users", all === 0 ? "there are none" : `${all}, of whom ${admins} are admins`);
}
