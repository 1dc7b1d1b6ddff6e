import { type ChildProcessByStdio, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { mortal } from "../../src/testing/afterlife.ts";
import { javaClasses } from "./java-compiler.ts";
import type { JavaRecipes, Word } from "./java-recipes.ts";
import { curatorClasspath, javaProgram } from "./servers.ts";
import { until } from "./until.ts";

export interface JavaOptions {
  /** Milliseconds; default 10,000. */
  readonly sessionTimeout?: number;
  /** System properties, e.g. `ensemble.tls.javaProperties`. */
  readonly properties?: Readonly<Record<string, string | number>>;
  /** `user:password` of the digest scheme. */
  readonly digest?: string;
  /** The memory limit in the form of Java's -Xmx; default 128m. */
  readonly heap?: string;
}

type Kind = keyof JavaRecipes;
type Operations<K extends Kind> = JavaRecipes[K]["do"];
type Arguments<T> = T extends { readonly arguments: infer A extends Word[] } ? A : never;
type Reply<T> = T extends { readonly reply: infer R extends string[] } ? R : never;

/** The error for an exception in the Java process. */
export class JavaFailure extends Error {
  override readonly name = "JavaFailure";
  /** The exception's class without its package, e.g. "NoNodeException". */
  readonly exception: string;

  constructor(exception: string, message: string) {
    super(`${exception}: ${message}`);
    this.exception = exception;
  }
}

/** An awaited event comes in this time even on a busy machine, or not at all. */
const patienceMs = 60_000;

/**
 * Java Curator in a process of its own. Resolves once it is connected.
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
  /** The events of the Java client's connection, and plain operations. */
  readonly client: JavaRecipe<"client">;
  readonly #child: ChildProcessByStdio<Writable, Readable, Readable>;
  readonly #gone: Promise<void>;
  readonly #recipes = new Map<string, JavaRecipe<Kind>>();
  readonly #asked = new Map<string, { resolve: (words: string[]) => void; reject: (error: Error) => void }>();
  #count = 0;
  /** The end of its stderr: Curator's and ZooKeeper's log. */
  complaints = "";

  constructor(child: ChildProcessByStdio<Writable, Readable, Readable>) {
    this.#child = child;
    this.#gone = new Promise((resolve) => {
      child.once("error", () => resolve());
      child.once("close", () => resolve());
    });
    void this.#gone.then(() => this.#end());
    child.stdin.on("error", () => undefined); // The process has ended, and `close` reports it.
    child.stderr.setEncoding("utf8").on("data", (text) => {
      this.complaints = (this.complaints + text).slice(-20_000);
    });
    createInterface({ input: child.stdout }).on("line", (line) => this.#hear(line));
    this.client = new JavaRecipe("client", (words) => this.#ask(words));
    this.#recipes.set("client", this.client as unknown as JavaRecipe<Kind>);
  }

  /** Makes a recipe in this process. Two of the same path may live side by side; each has its own thread. */
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

  /** kill -9; resolves once the process is gone. Unanswered requests reject. */
  async kill(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#gone;
  }

  /** A long pause of the process (SIGSTOP), until `thaw`. */
  freeze(): void {
    this.#child.kill("SIGSTOP");
  }

  thaw(): void {
    this.#child.kill("SIGCONT");
  }

  /** Closes the client, which ends its session, and then the process. */
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

/** One recipe in a Java process. */
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

  /** The words of the reply, see java-recipes.ts. @throws JavaFailure with Java's exception */
  do<O extends keyof Operations<K> & string>(
    operation: O,
    ...args: Arguments<Operations<K>[O]>
  ): Promise<Reply<Operations<K>[O]>> {
    const words = args.filter((word) => word !== undefined).map(String);
    return this.#ask([this.name, operation, ...words]) as Promise<Reply<Operations<K>[O]>>;
  }

  /** The same for operations that answer yes or no. */
  async ask<O extends keyof Operations<K> & string>(
    operation: O,
    ...args: Arguments<Operations<K>[O]>
  ): Promise<boolean> {
    return (await this.do(operation, ...args))[0] === "true";
  }

  /** The oldest event of that name that has not been taken yet, or else the next to come: its detail, or "". */
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

  /** Details of the events of that name that have not been taken yet; they stay. */
  untaken(event: JavaRecipes[K]["events"]): readonly string[] {
    return this.#events.filter((known) => known.event === event).map(({ detail }) => detail);
  }

  /** Called by the object of the Java process that contains this recipe. */
  hear(event: string, detail: string): void {
    const waiting = [...this.#waiting].find((one) => one.event === event);
    if (waiting) waiting.resolve(detail);
    else this.#events.push({ event, detail });
  }

  /** Called by the object of the Java process that contains this recipe. */
  end(reason: Error): void {
    this.#ended = reason;
    for (const { reject } of [...this.#waiting]) reject(reason);
  }
}

/**
 * Does what Curator refuses to a member that has not received the answer to its creation: another may see the member's node before.
 * @param act is tried again for as long
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
