import { Service } from "../measure/service.ts";

export const drivers = ["postgres", "zookeeper", "redis"] as const;
export type Driver = (typeof drivers)[number];

/** Starts the coordination service that the driver needs. Returns undefined for `postgres`, because it uses the store alone. */
export async function startService(driver: Driver): Promise<Service | undefined> {
  return driver === "postgres" ? undefined : Service.start(driver);
}

/** @param path the prefix of the cluster's keys or nodes in the coordination service */
export function coordinationUrl(driver: Driver, service: Service | undefined, path: string): string | undefined {
  if (!service) return undefined;
  return driver === "redis" ? `${service.url}?prefix=${path}` : `${service.url}/${path}`;
}

/** @returns all `names` for "all", else the one name that was given @throws if `given` is neither */
export function chosen<Name extends string>(flag: string, given: string, names: readonly Name[]): readonly Name[] {
  if (given === "all") return names;
  const name = names.find((one) => one === given);
  if (name === undefined) throw new Error(`--${flag} is ${names.join(", ")} or all, not ${given}`);
  return [name];
}
