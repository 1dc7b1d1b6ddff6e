/** Which of several instances is used next. Curator: ProviderStrategy. */
import type { ServiceInstance } from "./instance.ts";

/** @param instances those that can be used, in the order of their ids; never empty */
export type ProviderStrategy<Payload = unknown> = (
  instances: readonly ServiceInstance<Payload>[],
) => ServiceInstance<Payload> | undefined;

/** One after the other. */
export function roundRobin<Payload = unknown>(): ProviderStrategy<Payload> {
  let next = 0;
  return (instances) => instances[next++ % instances.length];
}

/** @param chance from 0 to 1, below 1 */
export function random<Payload = unknown>(chance: () => number = Math.random): ProviderStrategy<Payload> {
  return (instances) => instances[Math.floor(chance() * instances.length)];
}

/** The same one as long as it can be used; then the one that `strategy` chooses. */
export function sticky<Payload = unknown>(strategy: ProviderStrategy<Payload> = random()): ProviderStrategy<Payload> {
  let id: string | undefined;
  return (instances) => {
    const chosen = instances.find((one) => one.id === id) ?? strategy(instances);
    id = chosen?.id;
    return chosen;
  };
}
