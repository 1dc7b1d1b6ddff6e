import type { Role, Scope } from "../../access/access.ts";
import { isoTime } from "../../api/run-json.ts";
import { tokenObject } from "../../api/token-json.ts";
import { parseDuration } from "../../base/duration.ts";
import { checkNamespace } from "../../base/namespace.ts";
import { checkName } from "../../task/names.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import type { ListedToken } from "../nodes/cluster.ts";
import { withCluster } from "../reach.ts";
import type { Terminal } from "../screen/terminal.ts";
import { plain } from "../screen/text.ts";
import { ageText } from "../screen/times.ts";
import type { CommonOptions } from "../store-choice.ts";

const rightsText = ({ role, scopes, namespaces }: ListedToken): string =>
  `${role}${scopes === null ? "" : ` for ${scopes.join(", ")}`}${namespaces === null ? "" : ` in ${namespaces.join(", ")}`}`;

interface CreateOptions extends CommonOptions {
  user: string;
  role?: Role;
  scope?: Scope[];
  in?: string[];
  expires?: string;
  reason?: string;
}

export async function createToken(name: string, options: CreateOptions, terminal: Terminal): Promise<ExitCode> {
  const { user, role, scope: scopes, in: namespaces, expires, reason = "" } = options;
  checkName("a token's name", name, 100);
  const expiresInMs = expires === undefined ? undefined : parseDuration(expires, "--expires", 1);
  const asked = {
    name,
    ...(role === undefined ? {} : { role }),
    ...(scopes === undefined ? {} : { scopes }),
    ...(namespaces === undefined ? {} : { namespaces: namespaces.map(checkNamespace) }),
    ...(expiresInMs === undefined ? {} : { expiresInMs }),
  };
  return withCluster(options, async ({ cluster }) => {
    const { token, text } = await cluster.access.createToken(user, asked, reason);
    if (terminal.json) terminal.object({ ...tokenObject(token), secret: text });
    else {
      terminal.line(text);
      terminal.aside(
        `A token of ${plain(token.user)}, ${plain(rightsText(token))}, until ${isoTime(token.expiresMs)}. It is kept nowhere: note it now.`,
      );
    }
    return exitCodes.ok;
  });
}

export function listTokens(options: CommonOptions, terminal: Terminal): Promise<ExitCode> {
  return withCluster(options, async ({ cluster }) => {
    const tokens = await cluster.access.tokens();
    const now = cluster.nowMs();
    const standing = ({ expiresMs, revokedMs }: ListedToken) =>
      revokedMs !== null
        ? `revoked ${ageText(revokedMs, now)}`
        : `${expiresMs <= now ? "expired" : "expires"} ${ageText(expiresMs, now)}`;
    if (terminal.json) terminal.object(tokens.map(tokenObject));
    else if (tokens.length === 0)
      terminal.aside("There are no tokens. Make one: carillon tokens create NAME --user USER");
    else
      terminal.table(
        [
          { title: "NAME", least: 8 },
          { title: "USER", least: 8 },
          { title: "MAY", least: 8 },
          { title: "MADE", drop: 1 },
          { title: "STATE" },
        ],
        tokens.map((token) => [
          plain(token.name),
          plain(token.user),
          plain(rightsText(token)),
          ageText(token.createdMs, now),
          standing(token),
        ]),
      );
    return exitCodes.ok;
  });
}

export function revokeToken(
  name: string,
  options: CommonOptions & { user: string; reason?: string },
  terminal: Terminal,
): Promise<ExitCode> {
  return withCluster(options, async ({ cluster }) => {
    await cluster.access.revokeToken(options.user, name, options.reason ?? "");
    if (terminal.json) terminal.object({ name, user: options.user, revoked: true });
    else terminal.line(`${plain(name)} of ${plain(options.user)} is revoked, and every token that it made`);
    return exitCodes.ok;
  });
}
