import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { every } from "../../src/schedule/schedule.ts";
import { ApiStage } from "../support/api-stage.ts";
import { postgres } from "../support/servers.ts";
import { folder, main, start } from "./process.ts";

const stage = new ApiStage();
beforeAll(async () => {
  await stage.open();
  await stage.task("beat", { schedule: every("1h") });
  await stage.task("eu:settle");
  await stage.task("us:settle");
});
afterAll(() => stage.close());

const leave = "\u001b[?1049l";
const environment = () => ({ CARILLON_TOKEN: stage.tokens.viewer, XDG_CONFIG_HOME: folder });

describe("carillon top", () => {
  it("uses the whole terminal, reports when the server is unreachable, continues, and restores the terminal", async () => {
    const server = await stage.serve();
    const address = server.listening as string;
    const args = ["top", "--server", `http://${address}`, "--every", "500ms"];
    const top = start(args, { columns: 100, env: { ...environment(), NO_COLOR: "1" } });
    await top.says(/● no worker/);
    await top.says(/beat +in \d/);
    expect(top.stdout).toContain("\u001b[?1049h");
    top.type("f");
    await top.says(/\[f failed\]/);
    await server.stop();
    stage.servers.splice(stage.servers.indexOf(server), 1);
    await top.says(/cannot be asked since [\d:]+, trying again/);
    await stage.serve({ listen: address });
    await top.says(/cannot be asked[\s\S]*● no worker/);
    expect(top.stdout).not.toContain(leave);
    expect(top.stdout).not.toContain("\u001b[3");
    top.type("q");
    const { code, stdout } = await top.ended();
    expect(code).toBe(0);
    expect(stdout.slice(stdout.lastIndexOf("\u001b[?25h"))).toContain(leave);
  });
});

describe("a full disk", () => {
  it.each([["cron '* * * * *'"], ["--help"], ["tasks list --json"]])(
    "makes %s fail with an error that gives the reason",
    async (words) => {
      const env = { ...process.env, ...environment(), CARILLON_SERVER: stage.urlOf() };
      const command = promisify(execFile)("sh", ["-c", `"${process.execPath}" "${main}" ${words} > /dev/full`], {
        env,
      });
      const failure = { code: 1, stderr: expect.stringContaining("OUTPUT_FAILED") };
      await expect(command).rejects.toMatchObject(failure);
    },
  );
});

describe("carillon completion", () => {
  it("completes commands, options and names in a real bash, from the store and through a server", async () => {
    const script = join(folder, "completion.sh");
    const ask = `carillon() { "${process.execPath}" "${main}" "$@"; }
eval "$(carillon completion bash)"
complete -p carillon
try() { COMP_LINE="$1"; COMP_POINT=\${#1}; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _carillon; echo "\${COMPREPLY[*]}"; }
try "carillon ta" carillon ta
try "carillon tasks sh" carillon tasks sh
try "carillon tasks show b" carillon tasks show b
try "carillon tasks show eu:se" carillon tasks show eu : se
try "carillon runs tail --task=us" carillon runs tail --task = us
try "carillon apply ta" carillon apply ta
CARILLON_STORE="" CARILLON_SERVER="${stage.urlOf()}" try "carillon tasks pause eu" carillon tasks pause eu
CARILLON_STORE="postgres://nobody@127.0.0.1:1/none" try "carillon tasks pause eu" carillon tasks pause eu
`;
    await writeFile(script, ask);
    const env = { ...process.env, ...environment(), CARILLON_STORE: postgres().url, CARILLON_SCHEMA: stage.schema };
    const { stdout, stderr } = await promisify(execFile)("bash", ["--norc", script], { cwd: folder, env });
    expect([stdout.split("\n"), stderr]).toEqual([
      [
        "complete -F _carillon carillon",
        "tasks",
        "show",
        "beat",
        "settle",
        "us:settle",
        "tasks.ts",
        "eu:settle",
        "",
        "",
      ],
      "",
    ]);
  });
});
