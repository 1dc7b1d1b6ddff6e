import { namespaceOf, type Role } from "carillon/access";
import { usePreferences } from "../preferences.ts";
import { useAnswer } from "./answers.ts";
import type { Answer } from "./call.ts";

const ranks: Role[] = ["viewer", "operator", "editor", "admin"];

/**
 * True if the user has at least the role `least` in some namespace; with `everywhere`, in all namespaces. False until the user has
 * been read from the server.
 */
export function useSees(least: Role, everywhere = false): boolean {
  const { data } = useAnswer("getMe", {});
  if (!data) return false;
  const has = (role: Role | null) => role !== null && ranks.indexOf(role) >= ranks.indexOf(least);
  return has(data.role) || (!everywhere && data.grants.some(({ role }) => has(role)));
}

/** The user's highest role in any namespace; "viewer" if the user has none. Only for display: it does not decide what the user may do. */
export const highestOf = ({ role, grants }: Pick<Answer<"getMe">, "role" | "grants">): Role =>
  [role, ...grants.map((grant) => grant.role)]
    .flatMap((one) => one ?? [])
    .reduce<Role>((a, b) => (ranks.indexOf(b) > ranks.indexOf(a) ? b : a), "viewer");

/** Like `useSees`, for changes: false while the viewer has chosen the read-only view. The server checks the role again. */
export function useMay(least: Role): boolean {
  const { readOnly } = usePreferences();
  return useSees(least) && !readOnly;
}

/** Where the user may make changes: `everywhere` is true for the whole cluster; `on(name)` is true for the task with that name. */
export function useReach(least: Role): { everywhere: boolean; on: (name: string) => boolean } {
  const { readOnly } = usePreferences();
  const { data } = useAnswer("getMe", {});
  const has = (role: Role | null) => role !== null && ranks.indexOf(role) >= ranks.indexOf(least);
  const everywhere = !readOnly && data !== undefined && has(data.role);
  const granted = (name: string) =>
    data?.grants.some(({ namespace, role }) => namespace === namespaceOf(name) && has(role)) ?? false;
  return { everywhere, on: (name) => everywhere || (!readOnly && granted(name)) };
}
