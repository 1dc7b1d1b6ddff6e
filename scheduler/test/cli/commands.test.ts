/**
 * Takes some two minutes: every command line starts a process, as a shell does, and the first command of each test creates a schema.
 * Conditions that a test only waits for are read from the store instead.
 */
import { execFile } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import pg from "pg";
import { describe, expect, it } from "vitest";
import {
  ask,
  file,
  folder,
  hasEnded,
  here,
  isClaimed,
  json,
  killAll,
  objects,
  schema,
  start,
  until,
  url,
} from "./process.ts";

/**
 * Matches the header of the live view, which every frame shows. The pattern leaves out the end of the header's last line, because the view
 * omits it when it does not fit: "Ctrl-C ends" does not fit into 72 columns once the latest runs began 100 ms late.
 */
const drawn = /node \S+ (?:leads|follows)/;

describe("carillon dev", () => {
  it("runs a file from any folder, prints each fire in a line, and ends cleanly", async () => {
    const dev = start(["dev", "tasks.ts", ...here(), "--name", "atlas"]);
    // Waits for the header, which is printed at the end of the start. A task may fire earlier, but a signal during the start would end the
    // process with exit code 130.
    await dev.says(/node atlas leads/);
    await dev.says(/beat +run \d+ +✓ .*\n(.*\n)*.*beat +run \d+ +✓/);
    const { code, stdout } = await dev.end("SIGINT");
    expect(code).toBe(0);
    expect(stdout).toMatch(/^carillon \d+\.\d+\.\d+ {3}PostgreSQL at [\w.]+:\d+\/\w+ {3}node atlas leads, term 1$/m);
    expect(stdout).toMatch(/^ {2}next +\d\d:\d\d:\d\d +beat +every 200ms$/m);
    expect(stdout).toMatch(/^ {2}\d\d:\d\d:\d\d\.\d{3} {2}beat +run \d+ +✓ \d+ ms +\(\d+ ms late\)$/m);
    expect(stdout).toMatch(/^stopped after .*: \d+ runs {3}✓ \d+ {3}✗ 0$/m);
    expect(stdout).not.toContain("\u001b");
    const ran = stdout.match(/beat +run \d+ +✓/g)?.length;
    const [beat] = (await json("tasks", "list")).filter(({ name }: { name: string }) => name === "beat");
    expect(beat.counters.succeeded).toBe(ran);
  });

  it("prints one JSON object per event, whatever handlers print", async () => {
    const dev = start(["dev", "tasks.ts", ...here(), "--json"]);
    await dev.says(/"event":"ready"/);
    await dev.says(/"event":"ended"/);
    const { code, stdout, stderr } = await dev.end("SIGTERM");
    expect(code).toBe(0);
    const events = objects(stdout);
    for (const event of ["ready", "leadership", "started", "ended", "stopping", "stopped"]) {
      expect(events.map((one) => one.event)).toContain(event);
    }
    const ended = events.find(({ event }) => event === "ended");
    expect(ended).toMatchObject({ task: "beat", attempt: 1, outcome: "succeeded", error: null });
    expect(ended?.lateMs).toBeGreaterThanOrEqual(0);
    expect(stderr).toContain("from the handler");
  });

  it("starts a file's Carillon once, even if the file starts it itself, with the operator's options", async () => {
    await file(
      "started.ts",
      `import { carillon } from "carillon";\nexport default await carillon({ name: "mine" }).start();\n`,
    );
    const dev = start(["dev", "started.ts", ...here(), "--name", "theirs"]);
    await dev.says(/node theirs leads, term 1/);
    const { members } = await json("nodes");
    expect(members.map(({ node }: { node: string }) => node)).toEqual(["theirs"]);
    expect((await dev.end("SIGINT")).code).toBe(0);
  });

  it("waits for running work after one Ctrl-C, and ends at once after two", async () => {
    const dev = start(["dev", "tasks.ts", ...here()]);
    await dev.says(/node/);
    const { run } = await json("tasks", "run", "deaf");
    await until(() => isClaimed(run));
    dev.signal("SIGINT");
    await dev.says(/stopping: waiting for what runs/);
    expect((await dev.end("SIGINT")).code).toBe(130);
  });

  it("ends a command's processes when it has to end quickly", async () => {
    await file("long.crontab", "0 0 1 1 * /bin/sleep 3600\n");
    const imported = await json("import", "crontab", "long.crontab", "--user");
    const worker = start(["worker", "--allow", "/bin/sleep", ...here()]);
    await worker.says(/worker is ready/);
    const { run } = await json("tasks", "run", imported.tasks[0].name);
    const sleepers = async () => {
      const { stdout } = await promisify(execFile)("ps", ["-eo", "ppid=,args="]);
      return stdout.split("\n").filter((line) => line.includes("sleep 3600") && !line.includes("<defunct>")).length;
    };
    await until(async () => (await sleepers()) === 1);
    worker.signal("SIGINT");
    await worker.says(/stopping: waiting/);
    expect((await worker.end("SIGINT")).code).toBe(130);
    await until(async () => (await sleepers()) === 0);
    expect((await json("runs", "show", String(run))).state).toBe("claimed");
  });

  it("retries while the store is away, logs that once, and continues when the store is back", async () => {
    const { hostname, port } = new URL(url);
    const holder = createServer((socket) => {
      const onward = connect({ host: hostname, port: Number(port || 5432) });
      for (const one of [socket, onward]) one.on("error", () => socket.destroy().emit("close"));
      socket.pipe(onward).pipe(socket);
    });
    holder.listen(0, "127.0.0.1");
    await once(holder, "listening");
    const { port: free } = holder.address() as { port: number };
    holder.close();
    await once(holder, "close");
    const proxied = new URL(url);
    proxied.host = `127.0.0.1:${free}`;
    const through = ["--store", proxied.href, "--schema", schema];
    expect(await start(["tasks", "list", ...through]).ended()).toMatchObject({ code: 4 });
    const dev = start(["dev", "tasks.ts", ...through]);
    await dev.says(/the store is away; trying again until it is back/);
    holder.listen(free, "127.0.0.1");
    // Waits for the header, which is printed at the end of the start. A task may fire earlier, but a signal during the start would end the
    // process with exit code 130.
    await dev.says(/node \S+ (?:leads|follows)(?:.*\n)+.*beat +run \d+ +✓/);
    const { code, stdout } = await dev.end("SIGINT");
    holder.close();
    expect(code).toBe(0);
    expect(stdout.match(/the store is away/g)).toHaveLength(1);
    expect(stdout).not.toMatch(/^ +at /m);
  });

  it("continues if its standard error is closed, and stops cleanly if its standard output is closed", async () => {
    const dev = start(["dev", "tasks.ts", ...here(), "--json"]);
    await dev.says(/"event":"ended"/);
    dev.unread("stderr");
    const fires = () => dev.stdout.match(/"event":"ended"/g)?.length ?? 0;
    const before = fires();
    await until(async () => fires() > before + 3);
    expect((await dev.end("SIGTERM")).code).toBe(0);
    const shown = start(["dev", "tasks.ts", ...here()]);
    await shown.says(/node \S+ leads(?:.*\n)+.*beat +run \d+ +✓/);
    shown.unread("stdout");
    expect((await shown.ended()).code).toBe(0);
    expect((await json("nodes")).terms).toMatchObject([{ endedWhy: "stopped" }, { endedWhy: "stopped" }]);
  });

  it("gives up its leadership when its terminal is closed", async () => {
    const dev = start(["dev", "tasks.ts", ...here()], { columns: 72 });
    await dev.says(drawn);
    const { run } = await json("tasks", "run", "endless");
    await until(() => isClaimed(run));
    await ask("runs", "cancel", String(run));
    dev.signal("SIGKILL");
    await until(async () => (await json("nodes")).terms[0].endedWhy === "stopped");
  });

  it("stops cleanly on a signal before its store is reachable", async () => {
    const dev = start(["dev", "tasks.ts", "--store", "postgres://nobody@127.0.0.1:1/none"]);
    await dev.says(/the store is away/);
    expect((await dev.end("SIGINT")).code).toBe(130);
  });

  it("redraws in place on a terminal, keeps failures above, and restores the terminal", async () => {
    const dev = start(["dev", "tasks.ts", ...here()], { columns: 72 });
    await dev.says(drawn);
    expect((await ask("tasks", "run", "broken", "--wait")).code).toBe(1);
    await dev.says(/✗/);
    dev.type("\u0003");
    const { code, stdout } = await dev.ended();
    expect(code).toBe(0);
    expect(stdout).toContain("\u001b[?25l");
    expect(stdout.lastIndexOf("\u001b[?25h")).toBeGreaterThan(stdout.lastIndexOf("\u001b[?25l"));
    expect(stdout).toMatch(/\p{Cc}\[\d+A/u);
    expect(stdout).toContain("\u001b[31m");
    expect(stdout).not.toContain("\u001b[2Jbank");
    expect(stdout).toContain("from the handler");
    expect(stdout).toMatch(/stopped after/);
  });

  it("uses no colour if the user disabled it", async () => {
    for (const [args, env] of [
      [["--no-color"], {}],
      [[], { NO_COLOR: "1" }],
    ] as const) {
      const shown = await start(["doctor", ...here(), ...args], { columns: 80, env }).ended();
      expect(shown.stdout).toContain("✓ Node.js");
      expect(shown.stdout).not.toContain("\u001b[3");
    }
  });
});

describe("server and worker", () => {
  it("share the work, and doctor reports a missing one", async () => {
    const server = start(["server", ...here(), "--name", "planner"]);
    await server.says(/"server is ready"/);
    const worker = start(["worker", "tasks.ts", ...here(), "--name", "runner", "--log-level", "debug"]);
    await worker.says(/"message":"run succeeded"/);
    for (const line of [...objects(server.stdout), ...objects(worker.stdout)]) expect(line).toHaveProperty("level");

    const { members, terms } = await json("nodes");
    expect(members).toMatchObject([
      { node: "planner", role: "node", leads: true, groups: [], silent: false },
      { node: "runner", role: "worker", leads: false, groups: ["default"] },
    ]);
    expect(terms).toMatchObject([{ term: 1, node: "planner", ended: null }]);
    expect((await ask("nodes")).stdout).toMatch(/^planner +leads +scheduler/m);

    const healthy = await ask("doctor");
    expect(healthy.stdout).toContain("all is well");
    expect(healthy.code).toBe(0);

    expect((await worker.end("SIGTERM")).code).toBe(0);
    const missing = await ask("doctor", "--json");
    expect(missing.code).toBe(5);
    const problems = JSON.parse(missing.stdout).checks.filter(
      ({ verdict }: { verdict: string }) => verdict === "problem",
    );
    expect(problems.map(({ what }: { what: string }) => what)).toContain("workers");
    expect((await server.end("SIGTERM")).code).toBe(0);
    expect((await json("nodes")).terms).toMatchObject([{ term: 1, endedWhy: "stopped" }]);
  });

  it("refuses a name that is in use", async () => {
    const first = start(["server", ...here(), "--name", "twin"]);
    await first.says(/"server is ready"/);
    const second = await ask("server", "--name", "twin", "--json");
    expect(second.code).toBe(1);
    expect(objects(second.stderr)).toMatchObject([{ code: "NODE_NAME_TAKEN" }]);
  });
});

describe("tasks and runs", () => {
  const dev = async () => {
    const one = start(["dev", "tasks.ts", ...here()]);
    await one.says(/node/);
    return one;
  };

  it("runs a task and waits for its end, which the exit code reflects", async () => {
    await dev();
    const good = await ask("tasks", "run", "echo", "--payload", '{"ledger":"eu"}', "--wait", "--json");
    expect(good.code).toBe(0);
    expect(JSON.parse(good.stdout)).toMatchObject({
      task: "echo",
      state: "succeeded",
      source: "manual",
      result: { ledger: "eu" },
    });
    const bad = await ask("tasks", "run", "broken", "--wait");
    expect(bad.code).toBe(1);
    expect(bad.stdout).toMatch(/✗ .*attempt 2 .*no route to ␛\[2Jbank/);
    const slow = await ask("tasks", "run", "endless", "--wait", "--timeout", "300ms");
    expect(slow).toMatchObject({ code: 1, stdout: "" });
    expect(slow.stderr).toMatch(/^carillon: TIMEOUT: run \d+ has not ended within 300ms\n {2}hint: /);
  });

  it("completes even if its output is not read, and exits with the right code", async () => {
    await dev();
    const { run } = await json("tasks", "run", "endless");
    const cancel = start(["runs", "cancel", String(run), "99999999", ...here()]);
    cancel.unread("stdout");
    expect(await cancel.ended()).toMatchObject({ code: 1, stderr: expect.stringContaining("RUN_UNKNOWN") });
    const tail = start(["runs", "tail", "--follow", "--task", "beat", ...here()]);
    await tail.says(/beat/);
    tail.unread("stdout");
    expect((await tail.ended()).code).toBe(0);
  });

  it("shows a run's history with its attempts and its log", async () => {
    await dev();
    const { run } = JSON.parse((await ask("tasks", "run", "broken", "--wait", "--json")).stdout);
    const shown = (await ask("runs", "show", String(run))).stdout;
    expect(shown).toMatch(/^run \d+ {2}broken {2}✗ failed$/m);
    for (const row of ["due", "claimed", "started", "ended"])
      expect(shown).toMatch(new RegExp(`^ {2}${row} +\\d{4}-\\d\\d-\\d\\d `, "m"));
    expect(shown).toMatch(/^ {2}try 1 .*failed: no route/m);
    expect(shown).toMatch(/^ {2}try 2 .*failed: no route/m);
    const [beat] = await json("runs", "list", "--task", "beat", "--state", "succeeded", "-n", "1");
    await until(async () => (await json("runs", "show", String(beat.run))).logs.length > 0);
    expect((await ask("runs", "show", String(beat.run))).stdout).toMatch(/info +ding +\{"n":1\}/);
    expect(await json("runs", "list", "--state", "failed")).toMatchObject([{ run, task: "broken", attempt: 2 }]);
  });

  it("pauses, resumes and shows when a task fires next", async () => {
    await dev();
    expect((await ask("tasks", "pause", "beat", "settle", "--reason", "bank is closed")).code).toBe(0);
    expect((await ask("tasks", "show", "beat")).stdout).toMatch(/paused +.* by .*@.*: bank is closed/);
    expect((await ask("tasks", "list")).stdout).toMatch(/^beat .* paused$/m);
    expect(await json("tasks", "list")).toContainEqual(expect.objectContaining({ name: "beat", next: null }));
    expect(await json("tasks", "resume", "beat", "settle")).toMatchObject([{ task: "beat" }, { task: "settle" }]);
    expect(await json("tasks", "pause", "beat", "settle")).toMatchObject([
      { task: "beat", paused: true },
      { task: "settle", paused: true },
    ]);
    expect(await json("tasks", "pause", "settle")).toMatchObject({ task: "settle", paused: true });
    expect((await ask("tasks", "resume", "beat", "settle")).stdout).toMatch(
      /^settle is resumed; next \d{4}-\d\d-\d\d 02:30:00 -0[45]:00$/m,
    );
    const next = await ask("tasks", "next", "settle", "-n", "2", "--after", "2027-03-13T12:00:00Z");
    expect(next.stdout.split("\n").slice(1, 3)).toEqual([
      expect.stringMatching(/^ {2}2027-03-14 03:30:00 -04:00 .* 02:30 does not exist: shifted by 1 h$/),
      expect.stringMatching(/^ {2}2027-03-15 02:30:00 -04:00 /),
    ]);
    expect((await json("tasks", "next", "beat", "-n", "3")).slots).toHaveLength(3);
  });

  it("cancels waiting and running runs", async () => {
    const one = await dev();
    const { run } = await json("tasks", "run", "endless");
    await until(() => isClaimed(run));
    expect((await ask("runs", "cancel", String(run))).code).toBe(0);
    await until(() => hasEnded(run));
    expect((await json("runs", "show", String(run))).state).toBe("cancelled");
    await one.end("SIGTERM");
    const waiting = (await json("tasks", "run", "echo")).run;
    expect((await ask("runs", "cancel", String(waiting))).stdout).toBe(`run ${waiting} is cancelled\n`);
    const again = await ask("runs", "cancel", String(waiting));
    expect(again.code).toBe(1);
    expect(again.stderr).toContain("RUN_STATE");
    const other = (await json("tasks", "run", "echo")).run;
    const both = await ask("runs", "cancel", String(waiting), String(other), "--json");
    expect([both.code, JSON.parse(both.stdout)]).toEqual([1, [{ run: other, outcome: "cancelled" }]]);
  });

  it("follows runs as they end, until Ctrl-C", async () => {
    await dev();
    const tail = start(["runs", "tail", "--follow", "-n", "0", "--task", "echo", ...here()]);
    const { run } = JSON.parse((await ask("tasks", "run", "echo", "--wait", "--json")).stdout);
    await tail.says(new RegExp(`echo +run ${run} +✓`));
    const { code, stdout } = await tail.end("SIGINT");
    expect(code).toBe(130);
    expect(stdout).not.toContain("beat");
    expect(stdout.match(new RegExp(`run ${run} `, "g"))).toHaveLength(1);
  });

  it("reports that a run waits because there is no worker", async () => {
    await (await dev()).end("SIGTERM");
    const run = start(["tasks", "run", "echo", "--wait", ...here()]);
    await run.says(/no live worker serves group default/, "stderr");
    const { code, stderr } = await run.end("SIGINT");
    expect(code).toBe(130);
    expect(stderr).toMatch(/run \d+ goes on/);
  });
});

describe("on the embedded store", () => {
  it("needs only a folder: dev creates the store, other commands use it, and it stops with the last process", async () => {
    const place = await mkdtemp(join(tmpdir(), "carillon-cli-embedded-"));
    await chmod(place, 0o777);
    try {
      const at = { cwd: place };
      expect(await start(["tasks", "list"], at).ended()).toMatchObject({
        code: 4,
        stderr: expect.stringContaining("there is no store here"),
      });
      expect((await start(["doctor"], at).ended()).code).toBe(5);
      const dev = start(["dev", join(folder, "tasks.ts")], at);
      await dev.says(/embedded PostgreSQL \d+ in \.carillon {3}node/);
      await dev.says(/beat +run \d+ +✓/);
      expect((await start(["tasks", "list"], at).ended()).stdout).toMatch(/^beat +every 200ms/m);
      const { checks } = JSON.parse((await start(["doctor", "--json"], at).ended()).stdout);
      const found = (name: string) => checks.find(({ what }: { what: string }) => what === name)?.found;
      expect(found("store")).toMatch(/^embedded PostgreSQL/);
      expect(found("data folder")).toMatch(/^\d+ MiB are free on the disk of \/.*\/data$/);
      const there = new pg.Client(found("connection"));
      await there.connect();
      expect((await there.query("select name from carillon.task where name = 'beat'")).rows).toEqual([
        { name: "beat" },
      ]);
      await there.end();
      expect((await dev.end("SIGINT")).code).toBe(0);
      const listed = await start(["runs", "list", "--json", "-n", "3", "--state", "succeeded"], at).ended();
      expect(JSON.parse(listed.stdout)).toHaveLength(3);
    } finally {
      await killAll();
      // A command that exits cleanly as the last process stops the private PostgreSQL server, even one that a failed test left running.
      await start(["doctor"], { cwd: place }).ended();
      await rm(place, { recursive: true, force: true });
    }
  });
});
