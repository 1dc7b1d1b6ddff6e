import type { Change } from "../../base/change.ts";
import { CarillonError } from "../../base/errors.ts";
import { defaultNamespace, namespaceOf } from "../../base/namespace.ts";
import type { Sealed, SecretPlace } from "../secrets/secret-keys.ts";
import type { Hook } from "./hook.ts";
import { tasksOf } from "./hook-tasks.ts";

/** A hook and the encrypted secret that verifies its requests; `sealed` is null if no such secret exists or the hook may not use it. */
export type KeyedHook = Hook & { sealed: (Sealed & SecretPlace) | null };

/** The part of the store's port that stores incoming webhooks. Each change adds its audit entry in the same transaction. */
export interface HookStore {
  /** Returns up to `limit` hooks after the name `afterName`, ordered by name. @param namespaces null: all */
  list(afterName: string, namespaces: readonly string[] | null, limit: number): Promise<Hook[]>;
  /** @throws HOOK_UNKNOWN */
  find(name: string): Promise<Hook>;
  /**
   * Stores a hook, or its next version. @param ifVersion 0: only a new hook; null: any version
   * @throws HOOK_STALE, SECRET_FORBIDDEN, OPTION_INVALID if there are too many hooks
   */
  set(name: string, content: Hook["content"], change: Change, ifVersion: number | null): Promise<Hook>;
  /** @throws HOOK_UNKNOWN, HOOK_STALE */
  remove(name: string, change: Change, ifVersion: number | null): Promise<void>;
  /** Returns all hooks with their secrets. */
  keyed(): Promise<KeyedHook[]>;
}

/**
 * True if a hook may use a secret. All of the hook's tasks must be allowed to read the secret: `tasks` lists the allowed tasks; null
 * allows the tasks of the namespace `default`. A hook without a task may use no secret.
 */
export function isForHook(content: Pick<Hook["content"], "task">, tasks: readonly string[] | null): boolean {
  const own = tasksOf(content);
  return own.length > 0 && own.every((task) => tasks?.includes(task) ?? namespaceOf(task) === defaultNamespace);
}

export const hookUnknown = (name: string): CarillonError =>
  new CarillonError("HOOK_UNKNOWN", `there is no hook ${name}`, { hint: "See carillon hooks list." });
