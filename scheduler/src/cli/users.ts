import { type Role, roles } from "../access.ts";
import type { User } from "../access-store.ts";
import { checkNamespace } from "../namespace.ts";
import { hashPassword, madePassword } from "../password.ts";
import { iso } from "../run-object.ts";
import { checkName } from "../task.ts";
import { type ExitCode, exitCodes } from "./exit-codes.ts";
import { type CommonOptions, operator, withStore } from "./store-choice.ts";
import type { Terminal } from "./terminal.ts";
import { plain } from "./text.ts";
import { ageText } from "./times.ts";

const most = 10_000;
export const roleNames: readonly Role[] = roles;

const rolesText = ({ role, grants }: Pick<User, "role" | "grants">): string =>
  [...(role === null ? [] : [role]), ...grants.map((grant) => `${grant.role} in ${grant.namespace}`)].join(", ");

const userObject = ({ name, role, grants, createdMs, createdBy, disabledMs }: User) => ({
  ...{ name, role, grants, created: iso(createdMs), by: createdBy, disabled: iso(disabledMs) },
});

/** Prints it where nothing else is printed, so that it can be piped on. */
function tell(user: User, password: string, terminal: Terminal): void {
  if (terminal.json) terminal.object({ ...userObject(user), password });
  else {
    terminal.line(password);
    terminal.aside(
      `The password of ${plain(user.name)}, ${plain(rolesText(user))}. It is kept nowhere: note it now, and change it after signing in.`,
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
  const hash = await hashPassword(password);
  return withStore(
    options,
    async ({ store, nowMs }) => {
      const change = { author: operator(), reason: options.reason ?? "", nowMs: nowMs() };
      tell(await store.access.createUser({ name, hash, role, grants }, change), password, terminal);
      return exitCodes.ok;
    },
    { make: true },
  );
}

/** For whoever has the store and no password any more. Also lets a user in again who was locked out. */
export async function setPassword(name: string, options: CommonOptions, terminal: Terminal): Promise<ExitCode> {
  const password = madePassword();
  const hash = await hashPassword(password);
  return withStore(options, async ({ store, nowMs }) => {
    const change = { author: operator(), reason: "set by the command line", nowMs: nowMs() };
    tell(await store.access.changeUser(name, { hash, disabled: false }, change), password, terminal);
    return exitCodes.ok;
  });
}

export function removeUser(name: string, options: CommonOptions, terminal: Terminal): Promise<ExitCode> {
  return withStore(options, async ({ store, nowMs }) => {
    const removed = await store.access.changeUser(
      name,
      { removed: true },
      { author: operator(), reason: "", nowMs: nowMs() },
    );
    if (terminal.json) terminal.object(userObject(removed));
    else terminal.line(`${plain(name)} is removed: every sign-in and token of it has ended`);
    return exitCodes.ok;
  });
}

export function listUsers(options: CommonOptions, terminal: Terminal): Promise<ExitCode> {
  return withStore(options, async ({ store, nowMs }) => {
    const users = await store.access.users("", most);
    if (terminal.json) terminal.object(users.map(userObject));
    else if (users.length === 0) terminal.aside("There are no users. The first start with --listen makes one.");
    else {
      terminal.table(
        [
          { title: "NAME", least: 8 },
          { title: "ROLE" },
          { title: "MADE" },
          { title: "BY", drop: 1 },
          { title: "STATE" },
        ],
        users.map(({ name, role, grants, createdMs, createdBy, disabledMs }) => [
          ...[plain(name), plain(rolesText({ role, grants })), ageText(createdMs, nowMs()), plain(createdBy)],
          disabledMs === null ? "" : `locked out ${ageText(disabledMs, nowMs())}`,
        ]),
      );
    }
    return exitCodes.ok;
  });
}
