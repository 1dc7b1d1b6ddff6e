import type { ChildProcess } from "node:child_process";
import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** The part of a module of scripts/servers that is used here: finds an installed server, and starts it in a folder. */
interface ServerKind {
  find(): { bin: string; version: string; env?: Record<string, string> } | undefined;
  start(
    place: unknown,
    folder: string,
    conditions: { user: User; durable: boolean; tickMs?: number },
  ): Promise<{ url: string; children: ChildProcess[] }>;
}
interface User {
  uid?: number;
  gid?: number;
}

const scripts = new URL("../../../scripts/", import.meta.url);

/**
 * A coordination service of the bench's own, which the bench can kill and start again. ZooKeeper keeps its data across a restart, as in
 * production; Redis starts empty, which is the harder case.
 */
export class Service {
  readonly title: string;
  readonly #kind: ServerKind;
  readonly #name: "zookeeper" | "redis";
  readonly #folder: string;
  readonly #user: User;
  readonly #onExit = () => this.#killNow();
  #children: ChildProcess[] = [];
  #starts = 0;
  #url = "";

  private constructor(name: "zookeeper" | "redis", kind: ServerKind, user: User) {
    this.#name = name;
    this.#kind = kind;
    this.#user = user;
    this.title = `${name === "redis" ? "Redis" : "ZooKeeper"} ${kind.find()?.version}`;
    this.#folder = mkdtempSync(join(tmpdir(), `carillon-bench-${name}-`));
    chmodSync(this.#folder, 0o711);
    process.on("exit", this.#onExit);
  }

  static async start(name: "zookeeper" | "redis"): Promise<Service> {
    const { kinds } = (await import(new URL("servers.mjs", scripts).href)) as { kinds: Record<string, ServerKind> };
    const { serverUser } = (await import(new URL("servers/server.mjs", scripts).href)) as { serverUser: () => User };
    const service = new Service(name, kinds[name] as ServerKind, serverUser());
    await service.up();
    return service;
  }

  /** The URL after the last start. */
  get url(): string {
    return this.#url;
  }

  async up(): Promise<void> {
    const folder = join(this.#folder, this.#name === "redis" ? String(this.#starts++) : "data");
    mkdirSync(folder, { recursive: true, mode: 0o711 });
    const { uid, gid } = this.#user;
    if (uid !== undefined && gid !== undefined) chownSync(folder, uid, gid);
    // ZooKeeper ends sessions only on ticks of 500 ms, so a session may last up to 500 ms longer than its timeout.
    const conditions = { user: this.#user, durable: true, tickMs: 500 };
    const started = await this.#kind.start(this.#kind.find(), folder, conditions);
    this.#children = started.children;
    this.#url = started.url.includes("://") ? started.url : `zookeeper://${started.url}`;
  }

  async kill(): Promise<void> {
    const gone = this.#children.map((child) => new Promise((resolve) => child.once("exit", resolve)));
    this.#killNow();
    await Promise.all(gone);
    this.#children = [];
  }

  async close(): Promise<void> {
    await this.kill();
    process.off("exit", this.#onExit);
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #killNow(): void {
    for (const child of this.#children) child.kill("SIGKILL");
  }
}
