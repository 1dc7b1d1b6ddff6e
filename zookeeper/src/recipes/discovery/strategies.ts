/** Functions that choose one of several instances for the next call. Curator: ProviderStrategy. */
import type { ServiceInstance } from "./instance.ts";

/** @param instances the instances to choose from, in the order of their ids; never empty */
export type ProviderStrategy<Payload = unknown> = (
  instances: readonly ServiceInstance<Payload>[],
) => ServiceInstance<Payload> | undefined;

/** Chooses the instances in turn. */
export function roundRobin<Payload = unknown>(): ProviderStrategy<Payload> {
  let next = 0;
  return (instances) => instances[next++ % instances.length];
}

/** Chooses a random instance. @param chance returns numbers in [0, 1) */
export function random<Payload = unknown>(chance: () => number = Math.random): ProviderStrategy<Payload> {
  return (instances) => instances[Math.floor(chance() * instances.length)];
}

/** Chooses the same instance while it is usable; then `strategy` chooses another one. */
export function sticky<Payload = unknown>(strategy: ProviderStrategy<Payload> = random()): ProviderStrategy<Payload> {
  let id: string | undefined;
  return (instances) => {
    const chosen = instances.find((one) => one.id === id) ?? strategy(instances);
    id = chosen?.id;
    return chosen;
  };
}
