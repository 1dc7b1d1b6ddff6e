/**
 * The entry point carillon/nest, a NestJS module. It provides the Carillon, defines a task for each decorated method of a
 * provider or controller, and starts and stops the Carillon with the application. Only this entry point imports @nestjs/common
 * and @nestjs/core, which the application installs.
 */
import { type DynamicModule, type FactoryProvider, Inject, type ModuleMetadata } from "@nestjs/common";
import { DiscoveryModule, DiscoveryService, MetadataScanner } from "@nestjs/core";
import { Carillon } from "../library/carillon.ts";
import type { TaskType } from "../library/task-type.ts";
import type { CarillonOptions } from "../settings/settings.ts";
import { Lifecycle } from "./lifecycle.ts";

export { Carillon } from "../library/carillon.ts";
export { Task, type TaskDecorator } from "./task.ts";

/** The factory by which Nest creates the options. `imports` lists the modules that provide the tokens in `inject`. */
export type CarillonAsyncOptions = Pick<ModuleMetadata, "imports"> &
  Pick<FactoryProvider<CarillonOptions>, "inject" | "useFactory">;

// biome-ignore lint/complexity/noStaticOnlyClass: Nest names a module by its class
export class CarillonModule {
  /** Provides one Carillon to all modules of the application. */
  static forRoot(options: CarillonOptions = {}): DynamicModule {
    return CarillonModule.forRootAsync({ useFactory: () => options });
  }

  /** Like `forRoot`, but a factory creates the options from other providers. */
  static forRootAsync({ imports = [], inject = [], useFactory }: CarillonAsyncOptions): DynamicModule {
    const tower: FactoryProvider<Carillon> = {
      provide: Carillon,
      inject,
      useFactory: async (...given) => new Carillon(await useFactory(...given)),
    };
    const lifecycle: FactoryProvider<Lifecycle> = {
      provide: Lifecycle,
      inject: [Carillon, DiscoveryService, MetadataScanner],
      useFactory: (...given: ConstructorParameters<typeof Lifecycle>) => new Lifecycle(...given),
    };
    return {
      module: CarillonModule,
      global: true,
      imports: [...imports, DiscoveryModule],
      providers: [tower, lifecycle],
      exports: [Carillon],
    };
  }

  /** Provides a `Producer` for each of these task types, for modules whose providers enqueue runs: see `InjectProducer`. */
  static producers(types: readonly TaskType[]): DynamicModule {
    const providers = types.map((type) => ({
      provide: producerToken(type),
      inject: [Carillon],
      useFactory: (tower: Carillon) => tower.producer(type),
    }));
    return { module: CarillonModule, providers, exports: providers };
  }
}

/** Returns the injection token of a task's `Producer`, for example for a test that replaces the producer. */
export const producerToken = ({ name }: Pick<TaskType, "name">): string => `carillon:producer:${name}`;

/** Injects the `Producer` of a task type that was passed to `CarillonModule.producers`. */
export const InjectProducer = (type: Pick<TaskType, "name">): ReturnType<typeof Inject> => Inject(producerToken(type));
