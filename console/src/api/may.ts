import { namespaceOf, type Role } from "carillon/access";
import { usePreferences } from "../preferences.ts";
import { useAnswer } from "./answers.ts";
import type { Answer } from "./call.ts";

const ranks: Role[] = ["viewer", "operator", "editor", "admin"];

/**
 * True if the user has this role somewhere; with `everywhere`, only if for all namespaces, as subjects of the whole cluster need
 * it.
 */
export function useSees(least: Role, everywhere = false): boolean {
  const { data } = useAnswer("getMe", {});
  if (!data) return false;
  const has = (role: Role | null) => role !== null && ranks.indexOf(role) >= ranks.indexOf(least);
  return has(data.role) || (!everywhere && data.grants.some(({ role }) => has(role)));
}

/** The user's highest role: for display, not for decisions. */
export const highestOf = ({ role, grants }: Pick<Answer<"getMe">, "role" | "grants">): Role =>
  [role, ...grants.map((grant) => grant.role)]
    .flatMap((one) => one ?? [])
    .reduce<Role>((a, b) => (ranks.indexOf(b) > ranks.indexOf(a) ? b : a), "viewer");

/** The same for changes: false while the viewer has chosen the read-only view. The server checks again. */
export function useMay(least: Role): boolean {
  const { readOnly } = usePreferences();
  return useSees(least) && !readOnly;
}

/** Where the user may make changes: everywhere, which subjects of the whole cluster need, or on a given name. */
export function useReach(least: Role): { everywhere: boolean; on: (name: string) => boolean } {
  const { readOnly } = usePreferences();
  const { data } = useAnswer("getMe", {});
  const has = (role: Role | null) => role !== null && ranks.indexOf(role) >= ranks.indexOf(least);
  const everywhere = !readOnly && data !== undefined && has(data.role);
  const granted = (name: string) =>
    data?.grants.some(({ namespace, role }) => namespace === namespaceOf(name) && has(role)) ?? false;
  return { everywhere, on: (name) => everywhere || (!readOnly && granted(name)) };
}
