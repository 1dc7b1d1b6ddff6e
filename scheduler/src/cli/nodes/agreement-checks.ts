import type { CarillonError } from "../../base/errors.ts";
import { storeAlone } from "../../coordination/agreement.ts";
import { openAdvice } from "../../coordination/service-address.ts";
import { disagreements } from "../../settings/agreement.ts";
import type { ClusterFacts } from "../../store/postgres/runs/inspect.ts";
import { type Check, good, list, problem, remark, silent } from "./checks.ts";
import { usedCoordination } from "./nodes.ts";

/** The result of connecting `doctor` to the coordination service that this machine's configuration names. */
export type CoordinationLook = { place: string } & (
  | { found: { clusterId: string; serviceId: string } | undefined; openToAll: boolean }
  | { error: CarillonError }
);

/** Checks that all nodes are configured for the same cluster. */
export function checkAgreement(facts: ClusterFacts, look: CoordinationLook | undefined): Check[] {
  return [coordination(facts, look), ...access(look), names(facts), addresses(facts), ...settings(facts)];
}

function coordination(facts: ClusterFacts, look: CoordinationLook | undefined): Check {
  const what = "coordination";
  const { coordination: used, clusterId, members, nowMs } = facts;
  const live = members.filter((member) => !silent(member, nowMs));
  const advice = "Give every node the same --coordination, or stop them all before you change it.";
  if (look && "error" in look) return problem(what, `${look.error.code}: ${look.error.message}`, look.error.hint);
  if (look?.found && look.found.clusterId !== clusterId) {
    const found = `COORDINATION_FOREIGN: ${look.place} belongs to another cluster, ${look.found.clusterId}`;
    return problem(what, found, "Give each cluster a path of its own.");
  }
  if (look && used !== null && look.found?.serviceId !== used) {
    const theirs = usedCoordination(used, live);
    const same =
      theirs === look.place ? `, which calls itself ${look.found?.serviceId ?? "nothing"} now and ${used} before` : "";
    const found = `the cluster coordinates by ${theirs}, and this machine would by ${look.place}${same}`;
    return live.length > 0 ? problem(what, `COORDINATION_DIFFERS: ${found}`, advice) : remark(what, found, advice);
  }
  if (used === null) return good(what, "no node has joined yet");
  if (used === storeAlone) return good(what, "by the store alone");
  const place = look?.place ?? usedCoordination(used, live);
  const doubting = live.filter(({ witnessed }) => !witnessed).map(({ node }) => node);
  if (doubting.length === 0) return good(what, `by ${place}`);
  return remark(
    what,
    `by ${place}, but of ${live.length} live members ${doubting.length} rely on the store: ${list(doubting)}`,
    "They do not reach the service, or have just started. They go on by heartbeat; look at its servers and the network.",
  );
}

/** Warns about a coordination service without a password, unless only this machine can reach it or this machine does not use it. */
function access(look: CoordinationLook | undefined): Check[] {
  if (!look || "error" in look || !look.openToAll) return [];
  const found = `${look.place} asks for no password: whoever reaches it can have healthy processes taken for dead`;
  return [remark("coordination", found, openAdvice)];
}

function names({ sharedNames }: ClusterFacts): Check {
  if (sharedNames.length === 0) return good("names", "each is one process's");
  const words = sharedNames.map(({ node, processes }) => `${node}: ${processes.join(" and ")}`);
  return problem(
    "names",
    `two processes take turns under one name: ${list(words)}`,
    "Give each process a name of its own, or none, and one is made.",
  );
}

function addresses({ sharedAddresses, members, nowMs }: ClusterFacts): Check {
  const turns = sharedAddresses.map(({ address, processes }) => `${address}: ${processes.join(" and ")}`);
  if (turns.length > 0)
    return problem(
      "addresses",
      `two processes take turns at one address: ${list(turns)}`,
      "Give each process an address of its own; two on one machine need two ports.",
    );
  const known = members.filter((member) => !silent(member, nowMs) && member.settings?.address);
  return good("addresses", known.length === 0 ? "nobody gives one" : "each is one process's");
}

function settings({ members, nowMs }: ClusterFacts): Check[] {
  const live = members.filter((member) => !silent(member, nowMs));
  // Each node is compared with all nodes whose sessions are older, as every node does at its own start. If a setting has several
  // findings, only the last finding is reported.
  const found = live.flatMap((other, at) => live.slice(0, at).flatMap((elder) => disagreements(elder, other)));
  if (found.length === 0) return [good("settings", live.length > 1 ? "the nodes' go together" : "nothing to compare")];
  const kinds = new Map(found.map((one) => [one.setting, one]));
  return [...kinds.values()].map(({ code, setting, found: words, advice }) =>
    setting === "sessionTimeout" ? remark("settings", words, advice) : problem("settings", `${code}: ${words}`, advice),
  );
}
