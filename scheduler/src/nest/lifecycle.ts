import type { BeforeApplicationShutdown, OnApplicationBootstrap, OnModuleInit } from "@nestjs/common";
import type { DiscoveryService, MetadataScanner } from "@nestjs/core";
import { CarillonError } from "../base/errors.ts";
import type { Carillon } from "../library/carillon.ts";
import type { Handler } from "../run/handler.ts";
import { tasksOf } from "./task.ts";

/** Defines the tasks found on providers and controllers, then starts and stops the Carillon with the application. */
export class Lifecycle implements OnModuleInit, OnApplicationBootstrap, BeforeApplicationShutdown {
  readonly #tower: Carillon;
  readonly #discovery: DiscoveryService;
  readonly #scanner: MetadataScanner;

  constructor(tower: Carillon, discovery: DiscoveryService, scanner: MetadataScanner) {
    this.#tower = tower;
    this.#discovery = discovery;
    this.#scanner = scanner;
  }

  /**
   * @throws TASK_DUPLICATE; TASK_INVALID, also for a method of a provider that Nest instantiates for each request or for each
   * place where it is injected
   */
  onModuleInit(): void {
    /** The instances handled so far, because one instance may be provided under several tokens. */
    const seen = new Set<unknown>();
    for (const wrapper of [...this.#discovery.getProviders(), ...this.#discovery.getControllers()]) {
      const { instance } = wrapper;
      if (typeof instance !== "object" || instance === null || seen.has(instance)) continue;
      seen.add(instance);
      const isOne = wrapper.isDependencyTreeStatic() && !wrapper.isTransient;
      this.#define(instance, isOne, wrapper.name);
    }
  }

  #define(instance: Record<string, Handler<never>>, isOne: boolean, provider: string): void {
    const prototype = Object.getPrototypeOf(instance);
    for (const method of this.#scanner.getAllMethodNames(prototype))
      for (const { given, options } of tasksOf(prototype[method])) {
        if (!isOne)
          throw new CarillonError(
            "TASK_INVALID",
            `${provider}.${method} handles a task, and ${provider} has no one instance`,
            {
              hint: "Give the provider the default scope, and what it injects; in the handler use ModuleRef for what is made per request.",
            },
          );
        const handler: Handler<never> = (run, payload) => instance[method]?.(run, payload);
        this.#tower.task(given as string, options, handler);
      }
  }

  /**
   * Starts the Carillon, except in a process that only enqueues (no scheduler, no worker, no `listen`), which need not join the cluster.
   */
  async onApplicationBootstrap(): Promise<void> {
    const { scheduler, worker, listen } = this.#tower.settings;
    if (!scheduler && !worker && listen === null) return;
    await this.#tower.start().catch(async (error) => {
      // Nest exits after this error without calling another hook, so the Carillon is stopped here.
      await this.#tower.stop();
      throw error;
    });
  }

  /** Stops before the hook `onApplicationShutdown`, in which modules close database connections, because running handlers may use them. */
  beforeApplicationShutdown(): Promise<void> {
    return this.#tower.stop();
  }
}
