/** One interface for the clients that run in Node. Each client is used in its fastest way, the peers by callbacks. */
import { createRequire } from "node:module";
import { connect } from "@carillon/zookeeper";
import type { NodeClient } from "./order.ts";

/** `done` is called with undefined or the error. A get that does not return the expected number of bytes is an error. */
export interface Client {
  creates(path: string, done: Done): void;
  gets(path: string, done: Done): void;
  sets(path: string, done: Done): void;
  close(): Promise<void>;
}

export type Done = (problem: unknown) => void;

const sessionTimeoutMs = 30_000;
/** Peers are installed only in the node_modules of bench/, and have no types. */
const require = createRequire(import.meta.url);

export const clients: Record<NodeClient, (url: string, data: Buffer) => Promise<Client>> = {
  carillon: async (url, data) => {
    const zk = await connect(url, { sessionTimeoutMs });
    return {
      creates: (path, done) => void zk.create(path, data).then(() => done(undefined), done),
      gets: (path, done) => void zk.get(path).then((got) => done(differs(got.data, data)), done),
      sets: (path, done) => void zk.set(path, data).then(() => done(undefined), done),
      close: () => zk.close(),
    };
  },

  "node-zookeeper-client": async (url, data) => {
    type Answer = (error: unknown, answer?: unknown) => void;
    const { createClient } = require("node-zookeeper-client") as {
      createClient(
        url: string,
        options: object,
      ): {
        once(event: "connected", listener: () => void): void;
        connect(): void;
        close(): void;
        create(path: string, data: Buffer, answer: Answer): void;
        getData(path: string, answer: Answer): void;
        setData(path: string, data: Buffer, version: number, answer: Answer): void;
      };
    };
    const client = createClient(url, { sessionTimeout: sessionTimeoutMs });
    const connected = new Promise<void>((resolve) => client.once("connected", resolve));
    client.connect();
    await connected;
    return {
      creates: (path, done) => client.create(path, data, (error) => done(error ?? undefined)),
      gets: (path, done) => client.getData(path, (error, got) => done(error ?? differs(got, data))),
      sets: (path, done) => client.setData(path, data, -1, (error) => done(error ?? undefined)),
      close: async () => client.close(),
    };
  },

  zookeeper: async (url, data) => {
    type Answer = (code: number, error: string, ...answer: unknown[]) => void;
    const Native = require("zookeeper") as new (
      options: object,
    ) => {
      connect(options: object, answer: (error: unknown) => void): void;
      close(): void;
      a_create(path: string, data: Buffer, flags: number, answer: Answer): void;
      a_get(
        path: string,
        watch: boolean,
        answer: (code: number, error: string, stat: unknown, got: unknown) => void,
      ): void;
      a_set(path: string, data: Buffer, version: number, answer: Answer): void;
    };
    const settings = { connect: url, timeout: sessionTimeoutMs, debug_level: 1, host_order_deterministic: false };
    const client = new Native(settings);
    await new Promise<void>((resolve, reject) => {
      client.connect(settings, (error) => (error ? reject(error) : resolve()));
    });
    const problem = (code: number, error: string) => (code === 0 ? undefined : new Error(`${code}: ${error}`));
    return {
      creates: (path, done) => client.a_create(path, data, 0, (code, error) => done(problem(code, error))),
      gets: (path, done) =>
        client.a_get(path, false, (code, error, _, got) => done(problem(code, error) ?? differs(got, data))),
      sets: (path, done) => client.a_set(path, data, -1, (code, error) => done(problem(code, error))),
      close: async () => client.close(),
    };
  },
};

function differs(got: unknown, data: Buffer): Error | undefined {
  const bytes = (got as Buffer | undefined)?.length;
  return bytes === data.length ? undefined : new Error(`${bytes} bytes came instead of ${data.length}`);
}
