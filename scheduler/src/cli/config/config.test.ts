import { randomBytes } from "node:crypto";
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { inProcess } from "../../../test/support/in-process.ts";
import { recordingLog } from "../../../test/support/store-stage.ts";
import { silentLog } from "../../base/log.ts";
import { nearest } from "../../base/nearest.ts";
import { chosenReach } from "../reach.ts";
import { decidingRemote, type RemoteOptions } from "../remote-worker.ts";
import { deciding, type NodeOptions } from "../running.ts";
import { configNames, readConfig } from "./config-file.ts";
import { settings } from "./config-settings.ts";

const home = process.cwd();
let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "carillon-config-"));
  process.chdir(folder);
});
afterEach(() => {
  for (const name of configNames) rmSync(join(folder, name), { force: true });
});
afterAll(() => {
  process.chdir(home);
  rmSync(folder, { recursive: true, force: true });
});
const file = (text: string, name = "carillon.config.yaml") => writeFileSync(join(folder, name), text, { mode: 0o600 });
const check = async (environment: Record<string, string> = {}, ...args: string[]) => {
  const { code, stdout } = await inProcess(["config", "check", "--json", ...args], {
    XDG_CONFIG_HOME: folder,
    ...environment,
  });
  const told = JSON.parse(stdout);
  const of = (name: string) => told.settings.find(({ setting }: { setting: string }) => setting === name);
  return { code, ...told, of };
};
const codes = ({ problems }: { problems: { code: string; message: string; hint: string }[] }) =>
  problems.map(({ code, message, hint }) => `${code}: ${message} ${hint}`);

describe("settings", () => {
  it("are listed in docs/reference/configuration.md with their variables, flags and defaults", () => {
    const page = readFileSync(new URL("../../../../docs/reference/configuration.md", import.meta.url), "utf8");
    for (const { key, variables, flag, preset } of settings) {
      const row = [
        `\`${key}\``,
        variables.map((name) => `\`${name}\``).join(", "),
        flag === null ? "" : `\`${flag}\``,
        preset,
      ];
      expect(page).toContain(`| ${row.join(" | ")} |`.replace("|  |", "|  |"));
    }
  });

  it("come from flags, then the environment, then the file, then the defaults", async () => {
    file("schema: of_file\nconcurrency: 7\nstore: postgres://me:secret@file.example/app\nretention: 2d\n");
    const { code, of, goes } = await check(
      { CARILLON_SCHEMA: "of_variable", CARILLON_HORIZON: "1m", CARILLON_LABELS: "zone=eu-1" },
      "--schema",
      "of_flag",
    );
    expect(code).toBe(0);
    expect(of("schema")).toMatchObject({ value: "of_flag", from: "--schema" });
    expect((await check({ CARILLON_SCHEMA: "of_variable" })).of("schema")).toMatchObject({
      value: "of_variable",
      from: "CARILLON_SCHEMA",
    });
    expect(of("concurrency")).toMatchObject({ value: 7, from: "carillon.config.yaml" });
    expect(of("horizon")).toMatchObject({ value: "1m", from: "CARILLON_HORIZON" });
    expect(of("labels")).toMatchObject({ value: { zone: "eu-1" } });
    expect(of("drain")).toMatchObject({ value: null, preset: "30s", from: null });
    expect(goes).toEqual({ to: "a store", from: "store of carillon.config.yaml" });
  });

  it("from the file apply to a node unless its task file or its flags override them", async () => {
    file(
      "schema: of_file\nconcurrency: 7\nlisten: 127.0.0.1:7373\ncommands: { allow: [/bin/a] }\nlabels: { zone: eu-1 }\n",
    );
    const config = await readConfig(undefined, {});
    const options = {
      color: true,
      logLevel: "info",
      allow: ["/bin/c"],
      ...(config ? { file: config } : {}),
    } as NodeOptions;
    const given = { schema: "of_tasks", commands: { allow: ["/bin/b"] }, labels: { rack: "7" } };
    const made = deciding(options, silentLog, { scheduler: true, worker: true })(given);
    expect(made).toMatchObject({ schema: "of_tasks", concurrency: 7, listen: "127.0.0.1:7373" });
    expect(made.commands?.allow).toEqual(["/bin/a", "/bin/b", "/bin/c"]);
    expect(
      deciding({ ...options, concurrency: 3 }, silentLog, { scheduler: false, worker: true })(given),
    ).toMatchObject({ concurrency: 3 });
    expect(deciding(options, silentLog, { scheduler: false, worker: true })(given)).not.toHaveProperty("listen");
  });

  it("from the file also apply to a worker with --server; flags without effect there are refused", async () => {
    file("concurrency: 7\ndrain: 5s\nlabels: { zone: eu-1 }\nalarms: none.yaml\nlisten: 127.0.0.1:7373\n");
    const config = await readConfig(undefined, {});
    const options = {
      color: true,
      logLevel: "info",
      server: ["http://127.0.0.1:9"],
      label: [["gpu", "a100"]],
      ...(config ? { file: config } : {}),
    } as RemoteOptions;
    const before = { ...process.env };
    Object.assign(process.env, {
      CARILLON_GROUPS: "reports,mail",
      CARILLON_CONCURRENCY: "9",
      CARILLON_NAME: "of_variable",
    });
    try {
      const made = decidingRemote(options, silentLog)({ name: "own", labels: { rack: "7" } });
      expect(made).toMatchObject({
        server: ["http://127.0.0.1:9"],
        groups: ["reports", "mail"],
        concurrency: 9,
        drain: "5s",
        name: "own",
        labels: { zone: "eu-1", rack: "7", gpu: "a100" },
      });
      expect(made).not.toHaveProperty("alarms");
      expect(decidingRemote({ ...options, concurrency: 3 }, silentLog)({})).toMatchObject({ concurrency: 3 });
    } finally {
      process.env = before;
    }
    const wrong = { address: "a:1", allow: ["/bin/sh"], migrate: false, store: "postgres://x/y" };
    for (const [name, value] of Object.entries(wrong))
      expect(() => decidingRemote({ ...options, [name]: value }, silentLog), name).toThrow(
        expect.objectContaining({ code: "USAGE" }),
      );
  });

  it("are shown without secrets", async () => {
    file("store: env:BILLING\ncoordination: redis://:hush@r.example\nhttpTasks: { secret: hush }\n");
    const environment = { BILLING: "postgres://me:hush@db.example:5432/app", CARILLON_TOKEN: "hush" };
    const { stdout } = await inProcess(["config", "check"], { XDG_CONFIG_HOME: folder, ...environment });
    expect(stdout).toMatch(/^store +db\.example:5432\/app +carillon\.config\.yaml$/m);
    expect(stdout).toMatch(/^httpTasks\.secret +\(set, and not shown\)/m);
    expect(stdout).not.toContain("hush");
    expect(JSON.stringify(await check(environment))).not.toContain("hush");
    file("store: postgres://me:12/hush@db.example/app\nserver: https://me:hush@c.example\n");
    const unescaped = await check();
    expect(unescaped.of("store").value).toBe("(set, and not shown)");
    expect(codes(unescaped)).toContainEqual(
      expect.stringMatching(/^OPTION_INVALID: .*store: it has an @ after its hosts.*%2F/),
    );
    expect(JSON.stringify(unescaped)).not.toContain("hush");
    file("httpTasks: { secret: { api.example.com: hush }, namespaceSecrets: { billing: [hush] } }\n");
    const told = await check({ CARILLON_HTTP_NAMESPACE_SECRETS: "hush" });
    expect(codes(told)).toEqual([
      expect.stringMatching(/^CONFIG_INVALID: carillon\.config\.yaml: httpTasks\.secret cannot be so/),
      expect.stringMatching(/^CONFIG_INVALID: carillon\.config\.yaml: httpTasks\.namespaceSecrets cannot be so/),
      expect.stringMatching(
        /^CONFIG_INVALID: CARILLON_HTTP_NAMESPACE_SECRETS: httpTasks\.namespaceSecrets cannot be so/,
      ),
    ]);
    expect(JSON.stringify(told)).not.toContain("hush");
    const { stdout: set } = await inProcess(["config", "check"], {
      XDG_CONFIG_HOME: folder,
      CARILLON_HTTP_SECRET: "hush",
      CARILLON_HTTP_NAMESPACE_SECRETS: "billing=hush",
    });
    expect(set).toMatch(/^httpTasks\.namespaceSecrets +\(set, and not shown\) +CARILLON_HTTP_NAMESPACE_SECRETS/m);
    expect(set).not.toContain("hush");
  });

  it("with secrets in a file that other users may read are reported by the check and at each start", async () => {
    const decide = async () => {
      const { log, lines } = recordingLog();
      deciding({ file: await readConfig(undefined, {}) } as never, log, { scheduler: true, worker: true });
      return lines.map(({ fields, message }) => `${(fields as { code: string }).code}: ${message}`);
    };
    const path = join(folder, "carillon.config.yaml");
    const channels =
      "channels: { ops: { webhook: https://hooks.example/T0/hush, secret: hush }, mail: { smtp: smtps://me:hush@m.example, from: a@b.example, to: a@b.example } }";
    const provider =
      "issuer: https://login.example, url: https://carillon.example, clientId: me, clientSecret: hush, rules: [{ claim: groups, role: viewer }]";
    for (const [text, keys] of [
      ["httpTasks: { secret: hush }", "httpTasks.secret"],
      ["coordination: redis+sentinel://s1,s2/main?sentinelPassword=hush", "coordination"],
      ["store: postgres://me@db.example/app?password=hush", "store"],
      ["httpTasks: { namespaceSecrets: { billing: hush } }", "httpTasks.namespaceSecrets"],
      ["store: postgres://me:hush@db.example/app", "store"],
      ["store: postgres://me@db.example:5432/app", ""],
      [`alarms: { ${channels} }`, "alarms.channels.ops.secret, alarms.channels.ops.webhook, alarms.channels.mail.smtp"],
      ["alarms: { channels: { ops: { webhook: env:HOOK, secret: env:HOOK } } }", ""],
      [
        "webhooks: { billing: { url: https://b.example/hush, secret: hush }, own: { url: https://b.example, secret: env:HOOK } }",
        "webhooks.billing.secret, webhooks.billing.url",
      ],
      [`provider: { ${provider} }`, "provider.clientSecret"],
      ["store: env:BILLING\nhttpTasks: { secret: env:BILLING, namespaceSecrets: { billing: env:BILLING } }", ""],
    ] as const) {
      file(text);
      const variables = { BILLING: "postgres://me:hush@db.example/app", HOOK: "https://hooks.example/T0/hush" };
      for (const [name, value] of Object.entries(variables)) vi.stubEnv(name, value);
      const told = async () => codes(await check(variables));
      expect([await told(), await decide()], text).toEqual([[], []]);
      chmodSync(path, 0o644);
      const wanted = `SECRET_KEY_OPEN: carillon.config.yaml has secrets in it (${keys}), and other users may read it`;
      expect(await told(), text).toEqual(keys === "" ? [] : [expect.stringContaining(wanted)]);
      expect(await decide(), text).toEqual(keys === "" ? [] : [wanted]);
      chmodSync(path, 0o600);
    }
    vi.unstubAllEnvs();
  });

  it.each([
    ["alarms", "channels: { ops: { webhook: https://hooks.example/T0/hush } }", "channels.ops.webhook"],
    ["alarms", "channels: { ops: { webhook: https://ops.example/ } }", ""],
    [
      "alarms",
      'channels: { bot: { telegram: "1:hush", chat: 1 }, ding: { dingtalk: "https://d.example/send?access_token=hush", secret: hush }, duty: { pagerduty: hush } }\nping: { url: https://m.example/hush }',
      "channels.bot.telegram, channels.ding.secret, channels.ding.dingtalk, channels.duty.pagerduty, ping.url",
    ],
    [
      "provider",
      "issuer: https://login.example\nurl: https://carillon.example\nclientId: me\nclientSecret: hush\nrules: [{ claim: groups, role: viewer }]",
      "clientSecret",
    ],
  ] as const)(
    "for %s may be in a separate file, and its secrets are reported too if other users may read it",
    async (name, text, keys) => {
      const path = join(folder, "options.yaml");
      const decide = (options: object) => {
        const { log, lines } = recordingLog();
        deciding(options as never, log, { scheduler: true, worker: true });
        return lines.map(({ fields, message }) => `${(fields as { code: string }).code}: ${message}`);
      };
      const told = (shown: string) =>
        keys === "" ? [] : [`SECRET_KEY_OPEN: ${shown} has secrets in it (${keys}), and other users may read it`];
      file(text, "options.yaml");
      chmodSync(path, 0o600);
      file(`${name}: options.yaml`);
      const byFile = { file: await readConfig(undefined, {}) };
      expect([decide({ [name]: path }), decide(byFile), codes(await check())]).toEqual([[], [], []]);
      chmodSync(path, 0o644);
      expect([decide({ [name]: path }), decide(byFile)]).toEqual([told(path), told("options.yaml")]);
      expect(codes(await check())).toEqual(told("options.yaml").map((one) => expect.stringContaining(one)));
    },
  );

  it("are checked one by one: also in production, valid settings without a store are no problem", async () => {
    file("concurrency: 3\nlisten: 127.0.0.1:7070\n");
    expect(codes(await check({ NODE_ENV: "production" }))).toEqual([]);
  });

  it("are checked as at a start, including key files, password files and nested settings", async () => {
    const key = randomBytes(32).toString("base64");
    writeFileSync(join(folder, "keys"), `${key}\n`, { mode: 0o600 });
    expect(codes(await check({ CARILLON_SECRET_KEYS: `file:keys, ${key}` }))).toEqual([]);
    file("horizon: 9s\nsessionTimeout: 4s\nsecretKeys: file:keys\nhttpTasks: { allow: [api.example.com] }\n");
    expect(codes(await check({ CARILLON_ADMIN_PASSWORD: "violet otter marmalade 71" }))).toEqual([]);
    for (const [environment, wrong] of [
      [{ CARILLON_SECRET_KEYS: "hush" }, "OPTION_INVALID: CARILLON_SECRET_KEYS"],
      [
        { CARILLON_SECRET_KEYS: "file:none" },
        "FILE_INVALID: CARILLON_SECRET_KEYS: keys for secrets cannot be read from none",
      ],
      [
        { CARILLON_ADMIN_PASSWORD: "file:none" },
        "FILE_INVALID: CARILLON_ADMIN_PASSWORD: the first user's password cannot be read from none",
      ],
      [{ CARILLON_ADMIN_PASSWORD: "hush" }, "PASSWORD_WEAK: CARILLON_ADMIN_PASSWORD"],
      [{ CARILLON_COMMANDS_ALLOW_ENV: "A B" }, "OPTION_INVALID: CARILLON_COMMANDS_ALLOW_ENV: commands.allowEnv"],
      [{ CARILLON_HTTP_TASKS_ALLOW: "http://a b" }, "OPTION_INVALID: CARILLON_HTTP_TASKS_ALLOW: httpTasks.allow"],
    ] as const) {
      const told = await check(environment);
      expect([wrong, told.code, ...codes(told)]).toEqual([wrong, 5, expect.stringContaining(wrong)]);
      expect(JSON.stringify(told)).not.toContain("hush");
    }
    file("horizon: 15s\nsessionTimeout: 20s\nsecretKeys: file:none\n");
    expect(
      codes(await check())
        .sort()
        .reverse(),
    ).toEqual([
      expect.stringMatching(/^FILE_INVALID: carillon\.config\.yaml: keys for secrets cannot be read from none/),
      expect.stringMatching(/^DURATION_INVALID: carillon\.config\.yaml: horizon/),
    ]);
  });

  it("that are wrong are all reported at once, with suggestions", async () => {
    file("schema: 'a b'\nconcurency: 3\ncommands: { alow: [x] }\nobserver: maybe\nhorizon: 1s\n");
    const told = await check({ CARILLON_LISTN: "1", CARILLON_CONCURRENCY: "many", CARILLON_SERVER: "nowhere" });
    expect(told.code).toBe(5);
    expect(codes(told)).toEqual([
      'CONFIG_INVALID: carillon.config.yaml: there is no setting "concurency" Did you mean concurrency?',
      'CONFIG_INVALID: carillon.config.yaml: there is no setting "commands.alow" Did you mean allow?',
      'CONFIG_INVALID: carillon.config.yaml: observer cannot be "maybe" Give true or false.',
      'CONFIG_INVALID: CARILLON_CONCURRENCY: concurrency cannot be "many" Give a whole number.',
      expect.stringMatching(/^USAGE: CARILLON_SERVER: server "nowhere" is no address of a server/),
      expect.stringMatching(/^OPTION_INVALID: carillon\.config\.yaml: schema cannot be "a b"/),
      expect.stringMatching(/^DURATION_INVALID: carillon\.config\.yaml: horizon/),
      "CONFIG_INVALID: no setting is read from the variable CARILLON_LISTN Did you mean CARILLON_LISTEN?",
      expect.stringMatching(/^USAGE: CARILLON_SERVER "nowhere" is no address/),
    ]);
  });

  it("are refused by every command if the file is invalid", async () => {
    const failed = async (...args: string[]) => {
      const { code, stderr } = await inProcess(["tasks", "list", ...args], { XDG_CONFIG_HOME: folder });
      return [code, stderr.split("\n")[0]];
    };
    file("concurency: 3\n");
    expect(await failed()).toEqual([
      2,
      'carillon: CONFIG_INVALID: carillon.config.yaml: there is no setting "concurency"',
    ]);
    file("a: [\n");
    expect(await failed()).toEqual([2, expect.stringContaining("carillon.config.yaml cannot be read")]);
    file("schema: a\n---\nschema: b\n");
    expect(await failed()).toEqual([2, expect.stringContaining("several documents")]);
    file("{}", "carillon.config.json");
    expect(await failed()).toEqual([2, expect.stringContaining("several configuration files")]);
    expect(await failed("--config", "carillon.config.json")).toEqual([4, expect.stringContaining("STORE_UNREACHABLE")]);
    expect(await failed("--config", "none.yaml")).toEqual([2, expect.stringContaining("none.yaml cannot be read")]);
  });

  it("may be JSON or a module", async () => {
    file('{"schema": "of_json"}', "carillon.config.json");
    expect((await check()).of("schema").value).toBe("of_json");
    rmSync(join(folder, "carillon.config.json"));
    file(`export default { schema: "of_module" as string, groups: ["a"] };\n`, "carillon.config.ts");
    expect((await check()).of("schema")).toMatchObject({ value: "of_module", from: "carillon.config.ts" });
  });

  it("suggest the nearest name for a misspelt one, and no name if none is near", () => {
    expect(nearest("CARILLON_STOER", ["CARILLON_STORE", "CARILLON_SCHEMA"])).toBe("CARILLON_STORE");
    expect(nearest("zzzzzzzzzz", ["store", "schema"])).toBe("");
  });
});

describe("the target of a command", () => {
  const of = (given: Partial<Parameters<typeof chosenReach>[0]>, environment: Record<string, string> = {}) => {
    const { kind, from } = chosenReach({ color: true, ...given }, { XDG_CONFIG_HOME: folder, ...environment });
    return [kind, from];
  };
  const profiles = {
    current: "prod",
    profiles: { prod: { server: "https://a.example", token: "t", user: "u", tokenName: null, expires: null } },
  };

  it("is taken from the source with the highest precedence", async () => {
    const { writeProfiles } = await import("./profiles.ts");
    expect(of({})).toEqual(["store", null]);
    writeProfiles(profiles, { XDG_CONFIG_HOME: folder });
    expect(of({})).toEqual(["server", "the last carillon login"]);
    const inFile = { file: { path: "carillon.config.yaml", values: { server: "https://b.example" } } };
    expect(of(inFile)).toEqual(["server", "server of carillon.config.yaml"]);
    expect(of(inFile, { DATABASE_URL: "postgres://x/y" })).toEqual(["store", "DATABASE_URL"]);
    expect(of({}, { DATABASE_URL: "x", CARILLON_SERVER: "https://c.example" })).toEqual(["server", "CARILLON_SERVER"]);
    expect(of({ store: "postgres://x/y" }, { CARILLON_SERVER: "https://c.example" })).toEqual(["store", "--store"]);
    expect(of({ profile: "prod" }, { CARILLON_SERVER: "https://c.example" })).toEqual(["server", "--profile"]);
  });

  it("receives a profile's token only if it is that profile's server, and only over an encrypted connection", () => {
    const reach = (server: string, environment: Record<string, string> = {}) =>
      chosenReach({ color: true, server: [server] }, { XDG_CONFIG_HOME: folder, ...environment });
    expect(reach("https://a.example/")).toMatchObject({ token: "t" });
    expect(reach("https://a.example.evil")).toMatchObject({ token: undefined });
    expect(() => reach("http://a.example")).toThrow(expect.objectContaining({ code: "USAGE" }));
    expect(reach("http://a.example", { CARILLON_PLAIN_HTTP: "1" })).toMatchObject({ url: "http://a.example" });
    for (const [off, code] of [
      ["0", "USAGE"],
      ["false", "USAGE"],
      ["maybe", "CONFIG_INVALID"],
    ] as const)
      expect(() => reach("http://a.example", { CARILLON_PLAIN_HTTP: off })).toThrow(expect.objectContaining({ code }));
    for (const server of ["https://me:hush@a.example", "http://me:1/hush@a.example", "http://me:1?hush@a.example"])
      expect(() => reach(server), server).toThrow(
        expect.objectContaining({ code: "USAGE", message: expect.not.stringContaining("hush") }),
      );
  });
});
