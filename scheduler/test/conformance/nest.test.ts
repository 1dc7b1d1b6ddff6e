import { randomBytes } from "node:crypto";
import { EventEmitter, once } from "node:events";
import { Inject, Injectable, type ModuleMetadata, Scope } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import pg from "pg";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { type CarillonOptions, every, type Producer, type Run, taskType } from "../../src/index.ts";
import { Carillon, CarillonModule, InjectProducer, producerToken, Task } from "../../src/nest/index.ts";
import { postgres } from "../support/servers.ts";
import { recordingLog, until } from "../support/store-stage.ts";

/** Records what the handlers of a test did; injected as a service. */
@Injectable()
class Book {
  readonly lines: string[] = [];
}

const receipt = taskType("receipt", { payload: z.object({ order: z.string() }) });

@Injectable()
class Receipts {
  readonly #book: Book;
  constructor(@Inject(Book) book: Book) {
    this.#book = book;
  }

  @Task(receipt, { retry: { attempts: 3, delay: "1ms" } })
  send(run: Run, { order }: { order: string }) {
    this.#book.lines.push(`receipt of ${order}, attempt ${run.attempt}`);
    if (run.attempt === 1) throw new Error("the printer is out of paper");
    return { sent: order };
  }

  @Task("sweep", { schedule: every("1s") })
  async sweep() {
    this.#book.lines.push("swept");
  }

  /** A method without a task decorator, so it must not become a task. */
  receipts() {
    return this.#book.lines.length;
  }
}

@Injectable()
class Shop {
  readonly receipts: Producer<{ order: string }>;
  constructor(@InjectProducer(receipt) receipts: Producer<{ order: string }>) {
    this.receipts = receipts;
  }
}

describe("carillon/nest", () => {
  const { url } = postgres();
  const schema = `nest_${randomBytes(4).toString("hex")}`;
  const database = new pg.Client({ connectionString: url });
  const ending: (() => Promise<void>)[] = [];

  beforeAll(() => database.connect());
  afterEach(async () => {
    await Promise.all(ending.splice(0).map((end) => end()));
    await database.query(`drop schema if exists ${schema} cascade`);
  });
  afterAll(() => database.end());

  const options = (more: CarillonOptions = {}): CarillonOptions => {
    return { store: url, schema, handleSignals: false, log: recordingLog().log, ...more };
  };

  /** Starts an application context with these parts, and closes it after the test. */
  async function started(parts: ModuleMetadata) {
    class AppModule {}
    const app = await NestFactory.createApplicationContext(
      { module: AppModule, ...parts },
      { logger: false, abortOnError: false },
    );
    ending.push(() => app.close());
    return app;
  }

  test("a schedule and an enqueue run methods of a provider with its injected dependencies; a throw is retried", async () => {
    const app = await started({
      imports: [CarillonModule.forRoot(options()), CarillonModule.producers([receipt])],
      providers: [Book, Receipts, Shop],
    });
    const { lines } = app.get(Book);
    const handle = await app.get(Shop).receipts.enqueue({ order: "A-17" });
    expect(await handle.result({ timeout: "60s" })).toEqual({ sent: "A-17" });
    await until("the schedule to fire twice", () => lines.filter((line) => line === "swept").length >= 2);
    expect(lines.filter((line) => line !== "swept")).toEqual([
      "receipt of A-17, attempt 1",
      "receipt of A-17, attempt 2",
    ]);
    const wrong = app.get(Shop).receipts.enqueue({ order: 17 } as never);
    await expect(wrong).rejects.toMatchObject({ code: "PAYLOAD_INVALID" });
    expect(app.get(Carillon).taskCount).toBe(2);
  });

  test("close waits for running handlers before onApplicationShutdown closes their dependencies", async () => {
    const lines: string[] = [];
    const signs = new EventEmitter();
    const running = once(signs, "running");

    @Injectable()
    class Database {
      #isOpen = true;
      write(line: string) {
        lines.push(this.#isOpen ? line : `too late: ${line}`);
      }
      beforeApplicationShutdown() {
        setTimeout(() => signs.emit("go on"), 100);
      }
      onApplicationShutdown() {
        this.#isOpen = false;
        lines.push("closed");
      }
    }
    @Injectable()
    class Slow {
      readonly #database: Database;
      constructor(@Inject(Database) database: Database) {
        this.#database = database;
      }
      @Task("slow")
      async write() {
        signs.emit("running");
        await once(signs, "go on");
        this.#database.write("written");
        return "done";
      }
    }
    const app = await started({ imports: [CarillonModule.forRoot(options())], providers: [Database, Slow] });
    const tower = app.get(Carillon);
    const { runId } = await tower.enqueue("slow");
    await running;
    await app.close();
    expect(lines).toEqual(["written", "closed"]);
    await expect(tower.enqueue("slow")).rejects.toMatchObject({ code: "STOPPED" });
    const { rows } = await database.query(`select outcome, result from ${schema}.run_history where id = $1`, [runId]);
    expect(rows).toEqual([{ outcome: 0, result: "done" }]);
  });

  test("options can be built from other providers", async () => {
    @Injectable()
    class Config {
      readonly schema = schema;
    }
    class ConfigModule {}
    const app = await started({
      imports: [
        CarillonModule.forRootAsync({
          imports: [{ module: ConfigModule, providers: [Config], exports: [Config] }],
          inject: [Config],
          useFactory: async (config: Config) => options({ schema: config.schema, name: "from-config" }),
        }),
      ],
    });
    expect(app.get(Carillon).health()).toMatchObject({ ready: true, node: "from-config" });
  });

  test("an application that only enqueues does not join the cluster", async () => {
    const app = await started({
      imports: [
        CarillonModule.forRoot(options({ scheduler: false, worker: false })),
        CarillonModule.producers([receipt]),
      ],
      providers: [Book, Receipts, Shop],
    });
    expect((await app.get(Shop).receipts.enqueue({ order: "A-18" })).created).toBe(true);
    expect(app.get(Carillon).health()).toMatchObject({ ready: false });
    const { rows } = await database.query(`select count(*)::int as count from ${schema}.session`);
    expect(rows).toEqual([{ count: 0 }]);
  });

  test("a method may have several tasks, an instance several names, and a base class contributes its methods", async () => {
    class Base {
      @Task("inherited")
      work(run: Run) {
        return run.task;
      }
    }
    @Injectable()
    class Derived extends Base {
      @Task("first")
      @Task("second")
      both(run: Run) {
        return `${this.constructor.name} ${run.task}`;
      }
    }
    const app = await started({
      imports: [CarillonModule.forRoot(options())],
      providers: [Derived, { provide: "alias", useExisting: Derived }],
    });
    const tower = app.get(Carillon);
    const resultOf = async (name: string) => (await tower.enqueue(name)).result({ timeout: "60s" });
    const results = await Promise.all(["inherited", "first", "second"].map(resultOf));
    expect(results).toEqual(["inherited", "Derived first", "Derived second"]);
  });

  test("two tasks with the same name are refused, and so is a provider that is not a singleton", async () => {
    @Injectable()
    class First {
      @Task("same")
      handle() {
        return 1;
      }
    }
    @Injectable()
    class Second {
      @Task("same")
      handle() {
        return 2;
      }
    }
    const start = (...providers: ModuleMetadata["providers"] & object) =>
      started({ imports: [CarillonModule.forRoot(options())], providers });
    await expect(start(First, Second)).rejects.toMatchObject({ code: "TASK_DUPLICATE" });

    for (const scope of [Scope.REQUEST, Scope.TRANSIENT]) {
      @Injectable({ scope })
      class Anew {
        @Task("anew")
        handle() {
          return 3;
        }
      }
      await expect(start(Anew)).rejects.toMatchObject({
        code: "TASK_INVALID",
        message: expect.stringMatching(/^Anew\.handle handles a task/),
      });
    }
  });

  test("a failed start leaves nothing open, and the application does not start", async () => {
    const broken = options({ store: "postgres://127.0.0.1:1/none", failFast: true });
    const start = started({ imports: [CarillonModule.forRoot(broken)] });
    await expect(start).rejects.toMatchObject({ code: "STORE_UNREACHABLE" });
  });

  test("a test can replace a producer", async () => {
    const orders: unknown[] = [];
    const producer = { enqueue: (payload: unknown) => orders.push(payload) };
    const app = await started({ providers: [Shop, { provide: producerToken(receipt), useValue: producer }] });
    await app.get(Shop).receipts.enqueue({ order: "A-19" });
    expect(orders).toEqual([{ order: "A-19" }]);
  });

  test("the types of a task's handler match those of its payload", () => {
    class Typed {
      @Task(receipt)
      right(_run: Run, payload: { order: string }) {
        return payload.order;
      }
      // @ts-expect-error: an order is a text
      @Task(receipt)
      wrong(_run: Run, payload: { order: number }) {
        return payload.order;
      }
      @Task("by schema", { payload: z.object({ day: z.coerce.date() }) })
      bySchema(_run: Run, payload: { day: Date }) {
        return payload.day;
      }
      // @ts-expect-error: there is no such option
      @Task("misspelt", { scedule: every("1s") })
      misspelt() {
        return 0;
      }
    }
    expect(new Typed().right(undefined as never, { order: "A-20" })).toBe("A-20");
  });
});
