import { parseDuration } from "../../base/duration.ts";
import { limits } from "../../base/limits.ts";
import { checkName } from "../../task/names.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import type { ListedKey } from "../nodes/cluster.ts";
import { withCluster } from "../reach.ts";
import type { Terminal } from "../screen/terminal.ts";
import { plain } from "../screen/text.ts";
import { ageText } from "../screen/times.ts";
import type { CommonOptions } from "../store-choice.ts";

const iso = (ms: number | null) => (ms === null ? null : new Date(ms).toISOString());
const keyObject = ({ name, groups, createdMs, createdBy, expiresMs, revokedMs }: ListedKey) => ({
  name,
  groups,
  created: iso(createdMs),
  by: createdBy,
  expires: iso(expiresMs),
  revoked: iso(revokedMs),
});

const standingText = ({ expiresMs, revokedMs }: Pick<ListedKey, "expiresMs" | "revokedMs">, now: number): string =>
  revokedMs !== null
    ? `revoked ${ageText(revokedMs, now)}`
    : expiresMs === null
      ? "valid"
      : `expires ${ageText(expiresMs, now)}`;

export async function createKey(
  name: string,
  options: CommonOptions & { group?: string[]; expires?: string },
  terminal: Terminal,
): Promise<ExitCode> {
  checkName("a key's name", name, 100);
  const groups = [...new Set(options.group ?? ["default"])];
  for (const group of groups) checkName("a group", group, limits.groupNameLength);
  const expiresInMs = options.expires === undefined ? undefined : parseDuration(options.expires, "--expires", 1);
  return withCluster(
    options,
    async ({ cluster }) => {
      const { key: made, text } = await cluster.access.createKey(name, groups, expiresInMs);
      if (terminal.json) terminal.object({ ...keyObject(made), key: text });
      else {
        terminal.line(text);
        const end = made.expiresMs === null ? "" : `, until ${new Date(made.expiresMs).toISOString()}`;
        terminal.aside(
          `Lets workers run tasks of ${groups.map(plain).join(", ")}${end}. It is kept nowhere: note it now.`,
        );
      }
      return exitCodes.ok;
    },
    { make: true },
  );
}

export function listKeys(options: CommonOptions, terminal: Terminal): Promise<ExitCode> {
  return withCluster(options, async ({ cluster }) => {
    const keys = await cluster.access.keys();
    if (terminal.json) terminal.object(keys.map(keyObject));
    else if (keys.length === 0) terminal.aside("There are no worker keys. Make one: carillon keys create NAME");
    else {
      const now = cluster.nowMs();
      const { style } = terminal;
      terminal.table(
        [
          { title: "NAME", least: 8 },
          { title: "GROUPS", least: 8 },
          { title: "MADE" },
          { title: "BY", drop: 1 },
          { title: "STATE" },
        ],
        keys.map(({ name, groups, createdMs, createdBy, expiresMs, revokedMs }) => [
          plain(name),
          plain(groups.join(", ")),
          ageText(createdMs, now),
          plain(createdBy),
          revokedMs === null
            ? standingText({ expiresMs, revokedMs }, now)
            : { text: standingText({ expiresMs, revokedMs }, now), paint: style.dim },
        ]),
      );
    }
    return exitCodes.ok;
  });
}

export function showKey(name: string, options: CommonOptions, terminal: Terminal): Promise<ExitCode> {
  return withCluster(options, async ({ cluster }) => {
    const key = await cluster.access.key(name);
    if (terminal.json) terminal.object(keyObject(key));
    else {
      const now = cluster.nowMs();
      terminal.card(key.name, standingText(key, now), [
        ["groups", key.groups.join(", ")],
        ["made", `${ageText(key.createdMs, now)} by ${key.createdBy}`],
      ]);
    }
    return exitCodes.ok;
  });
}

export function revokeKey(name: string, options: CommonOptions, terminal: Terminal): Promise<ExitCode> {
  return withCluster(options, async ({ cluster }) => {
    const revoked = await cluster.access.revokeKey(name);
    if (terminal.json) terminal.object(keyObject(revoked));
    else terminal.line(`${plain(name)} is revoked: its workers are locked out, and what they run is taken back`);
    return exitCodes.ok;
  });
}
