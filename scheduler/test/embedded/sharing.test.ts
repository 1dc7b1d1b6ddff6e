import { mkdir } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import pg from "pg";
import { expect, test } from "vitest";
import { seeded } from "../../src/base/random.ts";
import { type EmbeddedStore, openEmbedded } from "../../src/embedded/index.ts";
import { holdStartLock } from "../../src/embedded/start-lock.ts";
import { countUsers, isStopped, kill, postmasterOf, query, scratch, startUser, until } from "./stage.ts";

const never = () => new AbortController().signal;
const after = (ms: number) => new Promise((resolve) => setTimeout(resolve, Math.max(0, ms)));
const leave = (store: EmbeddedStore) => store.release();

test("if eight processes start at once on an empty folder, one creates the store and all use one server", async () => {
  const directory = await scratch();
  const users = Array.from({ length: 8 }, () => startUser({ directory, open: "told" }));
  await Promise.all(users.map((user) => user.next("ready")));
  for (const user of users) user.tell("open");
  const opened = await Promise.all(users.map((user) => user.next("open")));
  expect(opened.map((one) => one.started).sort()).toEqual([...Array(7).fill("attached"), "first"]);
  const url = opened[0]?.url as string;
  for (const user of users) user.tell("query select system_identifier::text as id from pg_control_system()");
  const answers = await Promise.all(users.map((user) => user.next("rows")));
  expect(new Set(answers.map((one) => JSON.stringify(one.rows))).size).toBe(1);
  expect(await countUsers(url)).toBe(8);

  const last = users.pop();
  for (const user of users) user.tell("release");
  await Promise.all(users.map((user) => user.next("released")));
  await postmasterOf(directory);
  last?.tell("release");
  await last?.next("released");
  expect(await isStopped(directory)).toBe(true);
});

test("after a process is killed, the next one uses its server, and the killed one does not count as a user", async () => {
  const directory = await scratch();
  const user = startUser({ directory });
  const { url } = await user.next("open");
  user.tell("query create table kept as select 1 as n");
  await user.next("rows");
  const server = await postmasterOf(directory);
  await user.kill();

  expect(await postmasterOf(directory)).toBe(server);
  const store = await openEmbedded({ directory });
  expect(store).toMatchObject({ started: "attached", url });
  expect(await query(store.url, "select n from kept")).toEqual([{ n: 1 }]);
  await until("the dead one is forgotten", async () => (await countUsers(store.url)) === 1);

  const other = startUser({ directory });
  await other.next("open");
  await other.kill();
  // Releases the store at once, while the server may not have noticed yet that the other process is dead.
  await store.release();
  expect(await isStopped(directory)).toBe(true);
});

test("a terminal's Ctrl-C and the end of the process group do not reach the server", async () => {
  const directory = await scratch();
  const user = startUser({ directory });
  await user.next("open");
  const server = await postmasterOf(directory);
  user.child.kill("SIGINT");
  await user.ended;
  expect(await postmasterOf(directory)).toBe(server);
  const store = await openEmbedded({ directory });
  expect(store.started).toBe("attached");
  await store.release();
});

test("an open store does not keep a process alive that has nothing else to do", async () => {
  const directory = await scratch();
  const user = startUser({ directory });
  await user.next("open");
  user.child.stdin?.end();
  expect(await user.ended).toBe(0);
  const store = await openEmbedded({ directory });
  expect(store.started).toBe("attached");
  await store.release();
});

test("a process that attaches while the last one leaves ends up with a running server", async () => {
  const seed = Number(process.env.SEED ?? 20_261);
  const random = seeded(seed);
  const directory = await scratch();
  let store = await openEmbedded({ directory });
  await query(store.url, "create table kept (n int)");
  const how: Record<string, number> = {};
  // One user leaves and another one attaches, each after a random delay, so that the steps of leaving and of attaching overlap in many
  // ways. The delays are shifted towards the moment at which the outcome changes, because the duration of the steps depends on the machine.
  let [shift, step, before] = [0, 0, ""];
  const sides = ["again", "attached"];
  let rounds = 0;
  for (; rounds < 30 || !sides.every((side) => how[side]); rounds++) {
    const delay = random.next() * 60 - 35 + shift;
    const [leaving, next] = await Promise.all([
      after(-delay).then(() => ({ end: leave(store) })),
      after(delay).then(() => openEmbedded({ directory })),
    ]);
    how[next.started] = (how[next.started] ?? 0) + 1;
    step = next.started === before ? Math.min(2 * step, 500) : 2;
    shift += next.started === "attached" ? step : -step;
    before = next.started;
    await leaving.end;
    await query(next.url, `insert into kept values (${rounds})`).catch((error: unknown) => {
      throw new Error(`seed ${seed}, round ${rounds}, ${next.started} after ${delay} ms`, { cause: error });
    });
    store = next;
  }
  expect(await query(store.url, "select count(*)::int as n from kept")).toEqual([{ n: rounds }]);
  await store.release();
  expect(await isStopped(directory)).toBe(true);
  process.stdout.write(`embedded hand-over, seed ${seed}: ${JSON.stringify(how)}\n`);
});

test("a process that gets the users' lock while the server stops does not assume that the server is running", async () => {
  const directory = await scratch();
  const user = startUser({ directory });
  const { url } = await user.next("open");
  await user.kill();
  const connected = async () => {
    const owner = (url as string).replace("//carillon@", "//carillon_owner@").replace("/carillon?", "/postgres?");
    const client = new pg.Client(owner);
    client.on("error", () => undefined); // the server stops, which ends the connection
    await client.connect();
    return client;
  };
  const [leaving, looking] = [await connected(), await connected()];
  // Acts as the last user that leaves: this connection holds the lock exclusively, and another user waits for the lock.
  const { rows } = await leaving.query("select pg_advisory_lock(7161130679611977582), pg_backend_pid() as pid");
  const opening = openEmbedded({ directory });
  const shares = (granted: boolean) => async () => {
    const text = "select from pg_locks where locktype = 'advisory' and mode = 'ShareLock' and granted = $1";
    return (await looking.query(text, [granted])).rows.length > 0;
  };
  await until("the other user to wait", shares(false));
  // Creates the moment of a stop at which the server has ended the connection of the user that leaves, but not that of the other
  // user.
  const server = await postmasterOf(directory);
  kill(server, "SIGSTOP");
  kill(server, "SIGINT");
  kill(rows[0].pid, "SIGTERM");
  await until("the other user to have the lock", shares(true));
  kill(server, "SIGCONT");
  const store = await opening;
  expect(store.started).toBe("again");
  expect(await postmasterOf(directory)).not.toBe(server);
  expect(await query(store.url, "select 1 as one")).toEqual([{ one: 1 }]);
  await store.release();
  expect(await isStopped(directory)).toBe(true);
});

test("the start lock is exclusive, wakes waiters when it is released, and a wait for it can be aborted", async () => {
  const run = join(await scratch(), "run");
  await mkdir(run);
  let inside = 0;
  let most = 0;
  const work = async () => {
    for (let n = 0; n < 5; n++) {
      const release = await holdStartLock(run, never());
      most = Math.max(most, ++inside);
      await new Promise((resolve) => setImmediate(resolve));
      inside -= 1;
      await release();
    }
  };
  await Promise.all(Array.from({ length: 12 }, work));
  expect(most).toBe(1);

  const release = await holdStartLock(run, never());
  await expect(holdStartLock(run, AbortSignal.timeout(50))).rejects.toMatchObject({ code: "CANCELLED" });
  await release();
  await (await holdStartLock(run, never()))();
});

test("a dead holder's place in the start lock is skipped, and a live holder's is not", async () => {
  const run = join(await scratch(), "run");
  await mkdir(run);
  const living = createServer();
  await new Promise<void>((resolve) => living.listen(join(run, "start.41"), resolve));
  await expect(holdStartLock(run, AbortSignal.timeout(50))).rejects.toMatchObject({ code: "CANCELLED" });
  const child = startUser({ directory: run, open: "told" });
  await child.kill();
  await new Promise((resolve) => living.close(resolve));
  const release = await holdStartLock(run, never());
  await release();
});
