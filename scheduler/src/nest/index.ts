/**
 * carillon/nest: a NestJS module. The Carillon is a provider, tasks are methods of providers, and they start and stop with the application.
 * Only this entry point imports @nestjs/common and @nestjs/core, which the application installs.
 */
import { type DynamicModule, type FactoryProvider, Inject, type ModuleMetadata } from "@nestjs/common";
import { DiscoveryModule, DiscoveryService, MetadataScanner } from "@nestjs/core";
import { Carillon } from "../library/carillon.ts";
import type { TaskType } from "../library/task-type.ts";
import type { CarillonOptions } from "../settings/settings.ts";
import { Lifecycle } from "./lifecycle.ts";

export { Carillon } from "../library/carillon.ts";
export { Task, type TaskDecorator } from "./task.ts";

/** How Nest makes the options: `imports` has the modules that provide the tokens in `inject`. */
export type CarillonAsyncOptions = Pick<ModuleMetadata, "imports"> &
  Pick<FactoryProvider<CarillonOptions>, "inject" | "useFactory">;

// biome-ignore lint/complexity/noStaticOnlyClass: Nest names a module by its class
export class CarillonModule {
  /** The Carillon of the application, for all its modules. */
  static forRoot(options: CarillonOptions = {}): DynamicModule {
    return CarillonModule.forRootAsync({ useFactory: () => options });
  }

  /** As `forRoot`, with options made from other providers. */
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

  /** For a module whose providers enqueue tasks of these types: see `InjectProducer`. */
  static producers(types: readonly TaskType[]): DynamicModule {
    const providers = types.map((type) => ({
      provide: producerToken(type),
      inject: [Carillon],
      useFactory: (tower: Carillon) => tower.producer(type),
    }));
    return { module: CarillonModule, providers, exports: providers };
  }
}

/** The injection token of a task's `Producer`, for a test that replaces it. */
export const producerToken = ({ name }: Pick<TaskType, "name">): string => `carillon:producer:${name}`;

/** Injects the `Producer` of a task type that was passed to `CarillonModule.producers`. */
export const InjectProducer = (type: Pick<TaskType, "name">): ReturnType<typeof Inject> => Inject(producerToken(type));
