import { namespaceOf, type Role } from "carillon/access";
import { usePreferences } from "../preferences.ts";
import { useAnswer } from "./answers.ts";
import type { Answer } from "./call.ts";

const ranks: Role[] = ["viewer", "operator", "editor", "admin"];

/** Whether whoever is signed in has this role somewhere, or everywhere, where what it is about is all of the cluster's. */
export function useSees(least: Role, everywhere = false): boolean {
  const { data } = useAnswer("getMe", {});
  if (!data) return false;
  const has = (role: Role | null) => role !== null && ranks.indexOf(role) >= ranks.indexOf(least);
  return has(data.role) || (!everywhere && data.grants.some(({ role }) => has(role)));
}

/** The most that somebody is: to be shown, not to decide by. */
export const highestOf = ({ role, grants }: Pick<Answer<"getMe">, "role" | "grants">): Role =>
  [role, ...grants.map((grant) => grant.role)]
    .flatMap((one) => one ?? [])
    .reduce<Role>((a, b) => (ranks.indexOf(b) > ranks.indexOf(a) ? b : a), "viewer");

/** The same of what changes anything: never where the viewer chose to change nothing. The server asks again. */
export function useMay(least: Role): boolean {
  const { readOnly } = usePreferences();
  return useSees(least) && !readOnly;
}

/** Where somebody may change something: everywhere, as for what is all of the cluster's, or what has this name. */
export function useReach(least: Role): { everywhere: boolean; on: (name: string) => boolean } {
  const { readOnly } = usePreferences();
  const { data } = useAnswer("getMe", {});
  const has = (role: Role | null) => role !== null && ranks.indexOf(role) >= ranks.indexOf(least);
  const everywhere = !readOnly && data !== undefined && has(data.role);
  const granted = (name: string) =>
    data?.grants.some(({ namespace, role }) => namespace === namespaceOf(name) && has(role)) ?? false;
  return { everywhere, on: (name) => everywhere || (!readOnly && granted(name)) };
}
