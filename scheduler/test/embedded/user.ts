/**
 * A program that uses an embedded store. It reads commands as lines on its standard input, and reports events as JSON lines on
 * its standard output. It is started with `node --import jiti/register user.ts '{"directory": …}'`.
 */
import { createInterface } from "node:readline";
import pg from "pg";
import { isCarillonError, messageOf } from "../../src/base/errors.ts";
import { type EmbeddedStore, openEmbedded } from "../../src/embedded/index.ts";

const tell = (event: string, what: object = {}) => process.stdout.write(`${JSON.stringify({ event, ...what })}\n`);

const tellError = (error: unknown) =>
  tell(
    "error",
    isCarillonError(error)
      ? { code: error.code, message: error.message, hint: error.hint }
      : { code: "", message: messageOf(error) },
  );

const options = JSON.parse(process.argv[2] as string) as { directory: string; binaries?: string; open?: "told" };
let store: EmbeddedStore | undefined;

const commands: Record<string, (text: string) => Promise<void>> = {
  async open() {
    const began = performance.now();
    store = await openEmbedded({ ...options, log: (line) => tell("log", { line }) });
    tell("open", {
      started: store.started,
      url: store.url,
      version: store.version,
      ms: Math.round(performance.now() - began),
    });
  },
  async query(text) {
    const client = new pg.Client(store?.url);
    client.on("error", () => tell("broken"));
    await client.connect();
    const { rows } = await client.query(text).finally(() => client.end());
    tell("rows", { rows });
  },
  async revive() {
    await store?.revive();
    tell("revived");
  },
  async release() {
    await store?.release();
    tell("released");
  },
};

const perform = (line: string) => {
  const [name, ...rest] = line.split(" ");
  commands[name as string]?.(rest.join(" ")).catch(tellError);
};

createInterface({ input: process.stdin }).on("line", perform);
tell("ready");
if (options.open !== "told") perform("open");
