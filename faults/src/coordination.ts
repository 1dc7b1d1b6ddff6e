import { Ensemble } from "@carillon/zookeeper/testing";
import { RedisServer } from "../../scheduler/test/support/redis-server.ts";
import { Line } from "./line.ts";

export const coordinations = ["postgres", "redis", "zookeeper"] as const;
export type Coordination = (typeof coordinations)[number];

/** The coordination service of the processes; with "postgres" the store alone coordinates. */
export type Service =
  | { readonly kind: "postgres" }
  | { readonly kind: "redis"; readonly redis: RedisServer }
  | { readonly kind: "zookeeper"; readonly ensemble: Ensemble };

/** The ZooKeeper servers' tick in ms; they end sessions only on ticks. */
const tickTime = 250;

export async function startService(kind: Coordination): Promise<Service> {
  if (kind === "redis") return { kind, redis: await RedisServer.start() };
  if (kind === "zookeeper") return { kind, ensemble: await Ensemble.start({ servers: 3, tickTime }) };
  return { kind };
}

export async function stopService(service: Service): Promise<void> {
  if (service.kind === "redis") await service.redis.close();
  if (service.kind === "zookeeper") await service.ensemble.stop();
}

/** Creates a process's proxied connections to the service, one for each server; empty for postgres. */
export function linesTo(service: Service): Promise<Line[]> {
  if (service.kind === "redis") return Promise.all([Line.to(`127.0.0.1:${service.redis.port}`)]);
  if (service.kind === "zookeeper") return Promise.all(service.ensemble.servers.map(({ address }) => Line.to(address)));
  return Promise.resolve([]);
}

/** Returns the service's URL through these proxies; undefined for postgres. @param place the cluster's prefix in the service */
export function urlBy(service: Service, lines: readonly Line[], place: string): string | undefined {
  const addresses = lines.map(({ at }) => at).join(",");
  if (service.kind === "redis") return `redis://${addresses}?prefix=${place}`;
  return service.kind === "zookeeper" ? `zookeeper://${addresses}/${place}` : undefined;
}
