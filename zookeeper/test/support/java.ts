import { type ChildProcessByStdio, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { mortal } from "../../src/testing/afterlife.ts";
import { javaClasses } from "./java-compiler.ts";
import type { JavaRecipes, Word } from "./java-recipes.ts";
import { curatorClasspath, javaProgram } from "./servers.ts";
import { until } from "./until.ts";

export interface JavaOptions {
  /** The session timeout in ms; default 10,000. */
  readonly sessionTimeout?: number;
  /** Java system properties, for example `ensemble.tls.javaProperties`. */
  readonly properties?: Readonly<Record<string, string | number>>;
  /** Credentials `user:password` for the digest scheme. */
  readonly digest?: string;
  /** The memory limit in the form of Java's -Xmx; default 128m. */
  readonly heap?: string;
}

type Kind = keyof JavaRecipes;
type Operations<K extends Kind> = JavaRecipes[K]["do"];
type Arguments<T> = T extends { readonly arguments: infer A extends Word[] } ? A : never;
type Reply<T> = T extends { readonly reply: infer R extends string[] } ? R : never;

/** An exception that was thrown in the Java process. */
export class JavaFailure extends Error {
  override readonly name = "JavaFailure";
  /** The exception's class without its package, for example "NoNodeException". */
  readonly exception: string;

  constructor(exception: string, message: string) {
    super(`${exception}: ${message}`);
    this.exception = exception;
  }
}

/** How long to wait for an event, in ms; long enough for a busy machine. */
const patienceMs = 60_000;

/**
 * Starts a child process with Java's Curator. Resolves once its client is connected. @throws if it ends or cannot connect
 *
 *   await using java = await startJava(ensemble.connectString());
 *   const latch = await java.make("latch", "/election", "java-1");
 *   await latch.do("start");
 *   await latch.next("leader");
 *   await java.kill(); // -9
 */
export async function startJava(connectString: string, options: JavaOptions = {}): Promise<Java> {
  const { sessionTimeout = 10_000, properties = {}, digest, heap = "128m" } = options;
  const flags = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", `-Xmx${heap}`, "-Dcurator-log-events=false"];
  const settings = Object.entries(properties).map(([name, value]) => `-D${name}=${value}`);
  const classpath = curatorClasspath(await javaClasses());
  const words = [connectString, String(sessionTimeout), ...(digest === undefined ? [] : [digest])];
  const java = new Java(
    mortal(
      spawn(javaProgram("java"), [...flags, ...settings, "-cp", classpath, "Peer", ...words], {
        stdio: ["pipe", "pipe", "pipe"],
      }),
    ),
  );
  try {
    const [connected] = await java.client.do("connected");
    if (connected !== "true") throw new Error(`Java could not connect to ${connectString}:\n${java.complaints}`);
  } catch (error) {
    await java.kill();
    throw error;
  }
  return java;
}

export class Java {
  /** The Java client's connection events, and its plain operations. */
  readonly client: JavaRecipe<"client">;
  readonly #child: ChildProcessByStdio<Writable, Readable, Readable>;
  readonly #gone: Promise<void>;
  readonly #recipes = new Map<string, JavaRecipe<Kind>>();
  readonly #asked = new Map<string, { resolve: (words: string[]) => void; reject: (error: Error) => void }>();
  #count = 0;
  /** The last 20,000 characters of the process's stderr, with the logs of Curator and ZooKeeper. */
  complaints = "";

  constructor(child: ChildProcessByStdio<Writable, Readable, Readable>) {
    this.#child = child;
    this.#gone = new Promise((resolve) => {
      child.once("error", () => resolve());
      child.once("close", () => resolve());
    });
    void this.#gone.then(() => this.#end());
    child.stdin.on("error", () => undefined); // the process has ended; `close` reports that
    child.stderr.setEncoding("utf8").on("data", (text) => {
      this.complaints = (this.complaints + text).slice(-20_000);
    });
    createInterface({ input: child.stdout }).on("line", (line) => this.#hear(line));
    this.client = new JavaRecipe("client", (words) => this.#ask(words));
    this.#recipes.set("client", this.client as unknown as JavaRecipe<Kind>);
  }

  /** Creates a recipe in the Java process. Several recipes may have the same path; each recipe has its own thread. */
  async make<K extends Exclude<Kind, "client">>(kind: K, ...args: JavaRecipes[K]["make"]): Promise<JavaRecipe<K>> {
    const name = `${kind}-${++this.#count}`;
    const recipe = new JavaRecipe<K>(name, (words) => this.#ask(words));
    this.#recipes.set(name, recipe as unknown as JavaRecipe<Kind>);
    await this.#ask(["make", kind, name, ...args.map(String)]);
    return recipe;
  }

  get pid(): number {
    if (this.#child.pid === undefined) throw new Error("Java was not started");
    return this.#child.pid;
  }

  /** Kills the process by SIGKILL; resolves once it has ended. Unanswered requests reject. */
  async kill(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#gone;
  }

  /** Stops the process by SIGSTOP until `thaw`. */
  freeze(): void {
    this.#child.kill("SIGSTOP");
  }

  thaw(): void {
    this.#child.kill("SIGCONT");
  }

  /** Closes the client, which ends its session; then ends the process. */
  async close(): Promise<void> {
    await this.client.do("close");
    this.#child.stdin.end();
    await this.#gone;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.kill();
  }

  #ask(words: readonly string[]): Promise<string[]> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) {
      return Promise.reject(new Error("the Java process is gone"));
    }
    const number = String(++this.#count);
    return new Promise((resolve, reject) => {
      this.#asked.set(number, { resolve, reject });
      this.#child.stdin.write(`${[number, ...words].map(encodeURIComponent).join(" ")}\n`);
    });
  }

  #hear(line: string): void {
    const [kind, name = "", ...words] = line.split(" ").map((word) => decodeURIComponent(word.replaceAll("+", " ")));
    if (kind === "event") {
      const [event = "", ...details] = words;
      this.#recipes.get(name)?.hear(event, details.join(" "));
      return;
    }
    const asked = this.#asked.get(name);
    this.#asked.delete(name);
    if (kind === "reply") asked?.resolve(words);
    else asked?.reject(new JavaFailure(words[0] ?? "", words[1] ?? ""));
  }

  #end(): void {
    const gone = () => new Error(`the Java process is gone:\n${this.complaints.slice(-2_000)}`);
    for (const { reject } of this.#asked.values()) reject(gone());
    this.#asked.clear();
    for (const recipe of this.#recipes.values()) recipe.end(gone());
  }
}

interface Waiting {
  readonly event: string;
  readonly resolve: (detail: string) => void;
  readonly reject: (error: Error) => void;
}

/** One recipe in the Java process. */
export class JavaRecipe<K extends Kind> {
  readonly name: string;
  readonly #ask: (words: readonly string[]) => Promise<string[]>;
  readonly #events: { readonly event: string; readonly detail: string }[] = [];
  readonly #waiting = new Set<Waiting>();
  #ended: Error | undefined;

  constructor(name: string, ask: (words: readonly string[]) => Promise<string[]>) {
    this.name = name;
    this.#ask = ask;
  }

  /**
   * Executes an operation. @returns the words of the reply; see java-recipes.ts
   * @throws JavaFailure with Java's exception; another error if the process ends first
   */
  do<O extends keyof Operations<K> & string>(
    operation: O,
    ...args: Arguments<Operations<K>[O]>
  ): Promise<Reply<Operations<K>[O]>> {
    const words = args.filter((word) => word !== undefined).map(String);
    return this.#ask([this.name, operation, ...words]) as Promise<Reply<Operations<K>[O]>>;
  }

  /** Executes an operation whose reply is true or false. */
  async ask<O extends keyof Operations<K> & string>(
    operation: O,
    ...args: Arguments<Operations<K>[O]>
  ): Promise<boolean> {
    return (await this.do(operation, ...args))[0] === "true";
  }

  /**
   * Returns the detail of the oldest event with this name that has not been returned yet ("" if it has none), or waits for an event.
   * @throws if the process ends first, or no event comes within `patienceMs`
   */
  next(event: JavaRecipes[K]["events"]): Promise<string> {
    const at = this.#events.findIndex((known) => known.event === event);
    if (at >= 0) return Promise.resolve(this.#events.splice(at, 1)[0]?.detail ?? "");
    if (this.#ended) return Promise.reject(this.#ended);
    return new Promise((resolve, reject) => {
      const late = setTimeout(() => {
        this.#waiting.delete(waiting);
        reject(new Error(`${this.name} in Java: no event ${event} in ${patienceMs} ms`));
      }, patienceMs);
      const settled =
        <T>(settle: (value: T) => void) =>
        (value: T) => {
          clearTimeout(late);
          this.#waiting.delete(waiting);
          settle(value);
        };
      const waiting: Waiting = { event, resolve: settled(resolve), reject: settled(reject) };
      this.#waiting.add(waiting);
    });
  }

  /** Returns the details of all events with this name that `next` has not returned yet, without removing them. */
  untaken(event: JavaRecipes[K]["events"]): readonly string[] {
    return this.#events.filter((known) => known.event === event).map(({ detail }) => detail);
  }

  /** Called by `Java` for each event of this recipe. */
  hear(event: string, detail: string): void {
    const waiting = [...this.#waiting].find((one) => one.event === event);
    if (waiting) waiting.resolve(detail);
    else this.#events.push({ event, detail });
  }

  /** Called by `Java` when the process has ended. */
  end(reason: Error): void {
    this.#ended = reason;
    for (const { reject } of [...this.#waiting]) reject(reason);
  }
}

/**
 * Repeats `act` while Curator refuses it because the member has not received the answer to its node's creation, although other clients
 * already see the node.
 * @param act the operation to repeat
 */
export async function onceCreated(act: () => Promise<unknown>): Promise<void> {
  await until("its node to be its own", () =>
    act().then(
      () => true,
      (error) => {
        if (!/initial create has not been processed/.test(String(error))) throw error;
        return false;
      },
    ),
  );
}
