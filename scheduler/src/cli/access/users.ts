import type { Role } from "../../access/access.ts";
import { madePassword } from "../../access/password.ts";
import { iso } from "../../api/run-json.ts";
import { checkNamespace } from "../../base/namespace.ts";
import { checkName } from "../../task/names.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import type { ListedUser } from "../nodes/cluster.ts";
import { withCluster } from "../reach.ts";
import type { Terminal } from "../screen/terminal.ts";
import { plain } from "../screen/text.ts";
import { ageText } from "../screen/times.ts";
import type { CommonOptions } from "../store-choice.ts";

const rolesText = ({ role, grants }: Pick<ListedUser, "role" | "grants">): string =>
  [...(role === null ? [] : [role]), ...grants.map((grant) => `${grant.role} in ${grant.namespace}`)].join(", ");

const userObject = ({ name, role, grants, createdMs, createdBy, disabledMs, secondFactorMs }: ListedUser) => ({
  name,
  role,
  grants,
  created: iso(createdMs),
  by: createdBy,
  disabled: iso(disabledMs),
  secondFactor: iso(secondFactorMs),
});

/** Prints the password alone on standard output, so that it can be piped to another program. With --json it is a field of the user. */
function tell(user: ListedUser, password: string, terminal: Terminal): void {
  if (terminal.json) terminal.object({ ...userObject(user), password });
  else {
    terminal.line(password);
    terminal.aside(
      `The password of ${plain(user.name)}, ${plain(rolesText(user))}. It is kept nowhere: note it now. Its user chooses another at the first sign-in.`,
    );
  }
}

export async function createUser(
  name: string,
  options: CommonOptions & { role: Role; in?: string[]; reason?: string },
  terminal: Terminal,
): Promise<ExitCode> {
  checkName("a user's name", name, 100);
  const grants = (options.in ?? []).map((namespace) => ({ namespace: checkNamespace(namespace), role: options.role }));
  const role = options.in === undefined ? options.role : null;
  const password = madePassword();
  return withCluster(
    options,
    async ({ cluster }) => {
      const user = await cluster.access.createUser({ name, role, grants, password }, options.reason ?? "");
      tell(user, password, terminal);
      return exitCodes.ok;
    },
    { make: true },
  );
}

/** Sets a generated password, for which the old password is not needed. Also unlocks a user who was locked out. */
export async function setPassword(name: string, options: CommonOptions, terminal: Terminal): Promise<ExitCode> {
  const password = madePassword();
  return withCluster(options, async ({ cluster }) => {
    tell(await cluster.access.setPassword(name, password), password, terminal);
    return exitCodes.ok;
  });
}

export function removeUser(
  name: string,
  options: CommonOptions & { reason?: string },
  terminal: Terminal,
): Promise<ExitCode> {
  return withCluster(options, async ({ cluster }) => {
    const removed = await cluster.access.removeUser(name, options.reason ?? "");
    if (terminal.json) terminal.object(userObject(removed));
    else terminal.line(`${plain(name)} is removed: every sign-in and token of it has ended`);
    return exitCodes.ok;
  });
}

export function listUsers(options: CommonOptions, terminal: Terminal): Promise<ExitCode> {
  return withCluster(options, async ({ cluster: { access, nowMs } }) => {
    const users = await access.users();
    if (terminal.json) terminal.object(users.map(userObject));
    else if (users.length === 0) terminal.aside("There are no users. The first start with --listen makes one.");
    else {
      terminal.table(
        [
          { title: "NAME", least: 8 },
          { title: "ROLE" },
          { title: "MADE" },
          { title: "BY", drop: 1 },
          { title: "SECOND FACTOR", drop: 2 },
          { title: "STATE" },
        ],
        users.map(({ name, role, grants, createdMs, createdBy, disabledMs, secondFactorMs }) => [
          plain(name),
          plain(rolesText({ role, grants })),
          ageText(createdMs, nowMs()),
          plain(createdBy),
          secondFactorMs === null ? "" : ageText(secondFactorMs, nowMs()),
          disabledMs === null ? "" : `locked out ${ageText(disabledMs, nowMs())}`,
        ]),
      );
    }
    return exitCodes.ok;
  });
}

export function showUser(name: string, options: CommonOptions, terminal: Terminal): Promise<ExitCode> {
  return withCluster(options, async ({ cluster: { access, nowMs } }) => {
    const user = await access.user(name);
    if (terminal.json) terminal.object(userObject(user));
    else {
      const now = nowMs();
      const standing = user.disabledMs === null ? "may sign in" : `locked out ${ageText(user.disabledMs, now)}`;
      terminal.card(user.name, standing, [
        ["role", rolesText(user)],
        ["made", `${ageText(user.createdMs, now)} by ${user.createdBy}`],
        ["second factor", user.secondFactorMs === null ? "none" : ageText(user.secondFactorMs, now)],
      ]);
    }
    return exitCodes.ok;
  });
}

export function listSignIns(name: string, options: CommonOptions, terminal: Terminal): Promise<ExitCode> {
  return withCluster(options, async ({ cluster: { access, nowMs } }) => {
    const signIns = await access.signIns(name);
    if (terminal.json)
      terminal.object(
        signIns.map(({ signInId, begunMs, seenMs, expiresMs, address, agent }) => ({
          signIn: signInId,
          begun: iso(begunMs),
          seen: iso(seenMs),
          expires: iso(expiresMs),
          address,
          agent,
        })),
      );
    else if (signIns.length === 0) terminal.aside(`${plain(name)} is signed in nowhere.`);
    else
      terminal.table(
        [
          { title: "SIGN-IN", align: "right" },
          { title: "BEGUN" },
          { title: "USED" },
          { title: "FROM" },
          { title: "BROWSER", least: 12, drop: 1 },
        ],
        signIns.map(({ signInId, begunMs, seenMs, address, agent }) => [
          String(signInId),
          ageText(begunMs, nowMs()),
          ageText(seenMs, nowMs()),
          plain(address ?? "not known"),
          plain(agent ?? "not known"),
        ]),
      );
    return exitCodes.ok;
  });
}

export function endSignIns(
  name: string,
  options: CommonOptions & { signIn?: number; reason?: string },
  terminal: Terminal,
): Promise<ExitCode> {
  return withCluster(options, async ({ cluster }) => {
    const ended = await cluster.access.endSignIns(name, options.signIn ?? null, options.reason ?? "");
    if (terminal.json) terminal.object({ ended });
    else terminal.line(`${ended} ${ended === 1 ? "sign-in" : "sign-ins"} of ${plain(name)} ended; tokens stay`);
    return exitCodes.ok;
  });
}

export function resetSecondFactor(
  name: string,
  options: CommonOptions & { reason?: string },
  terminal: Terminal,
): Promise<ExitCode> {
  return withCluster(options, async ({ cluster }) => {
    await cluster.access.resetSecondFactor(name, options.reason ?? "");
    if (terminal.json) terminal.object({ name });
    else terminal.line(`${plain(name)} has no second factor any more, and signs in with the password alone`);
    return exitCodes.ok;
  });
}
