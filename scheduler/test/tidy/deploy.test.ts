import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, it } from "vitest";
import { parseAllDocuments } from "yaml";
import { settings } from "../../src/cli/config/config-settings.ts";

const root = fileURLToPath(new URL("../../../", import.meta.url));
const read = (path: string) => readFileSync(join(root, path), "utf8");
const parsed = (path: string): Record<string, never>[] =>
  parseAllDocuments(read(path), { merge: true, strict: true }).map((document) => {
    expect([path, document.errors, document.warnings]).toEqual([path, [], []]);
    return document.toJS();
  });

/** Returns all values under keys of this name, at any depth. */
function all(value: unknown, name: string): unknown[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, part]) => [...(key === name ? [part] : []), ...all(part, name)]);
}

const files = ["deploy/compose.yaml", "deploy/kubernetes/carillon.yaml"];
const [compose = {}] = parsed(files[0] as string) as unknown as [
  Record<string, Record<string, Record<string, unknown>>>,
];
const manifests = parsed(files[1] as string) as unknown as { kind: string; metadata: { name: string } }[];
const unit = read("deploy/systemd/carillon.service");
const dockerfile = read("deploy/Dockerfile");
const texts = [...files.map(read), unit, dockerfile];
const source = ["cli", "cli/commands", "cli/config", "http", "."]
  .flatMap((folder) =>
    readdirSync(join(root, "scheduler/src", folder)).map((name) => join("scheduler/src", folder, name)),
  )
  .filter((path) => path.endsWith(".ts") && !path.endsWith(".test.ts"))
  .map(read)
  .concat(read("scheduler/src/access/secrets/read-keys.ts"))
  .join("\n");
/** True if the source contains the name, or if a setting is read from the variable of this name. */
const isRead = (name: string) => source.includes(name) || settings.some(({ variables }) => variables.includes(name));
const folder = mkdtempSync(join(tmpdir(), "carillon-deploy-"));
afterAll(() => rmSync(folder, { recursive: true }));

describe("the files in deploy/", () => {
  it("pin every image by version, and Node to a supported version", () => {
    const images = [...all(compose, "image"), ...all(manifests, "image")] as string[];
    images.push(...[...dockerfile.matchAll(/^FROM (\S+)/gm)].map(([, image = ""]) => image));
    expect(images.length).toBeGreaterThan(10);
    for (const image of images)
      expect(image).toMatch(/^[a-z0-9./-]+:\d+\.\d+(?:\.\d+)?(?:-[a-z-]+)?(?:@sha256:[\da-f]{64})?$/);
    const { version } = JSON.parse(read("scheduler/package.json"));
    for (const image of images.filter((one) => one.startsWith("carillon:"))) expect(image).toBe(`carillon:${version}`);
    // Images named `carillon` and `my-tasks` are built by the user, so they have no digest.
    for (const image of images.filter((one) => !/^(?:carillon|my-tasks):/.test(one)))
      expect(image).toMatch(/@sha256:[\da-f]{64}$/);
    expect(new Set(dockerfile.match(/node:\S+/g))).toHaveLength(1);
  });

  it("can get the digest of each foreign image added after its tag, repeatedly", async () => {
    const script = new URL("../../../scripts/pin-images.mjs", import.meta.url).href;
    const { pinned } = (await import(script)) as { pinned: (text: string, digestOf: () => string) => string };
    const digest = (letter: string) => () => `sha256:${letter.repeat(64)}`;
    for (const text of [...files.map(read), dockerfile]) {
      const images = [...text.matchAll(/^(?:FROM +|[ -]*image: *)(\S+)/gm)].map(([, image = ""]) => image);
      const others = images.filter((image) => !/^(?:carillon|my-tasks):/.test(image));
      const once = pinned(text, digest("a"));
      expect(once.match(/@sha256:a{64}/g) ?? []).toHaveLength(others.length);
      expect(pinned(once, digest("b"))).toBe(pinned(text, digest("b")));
      expect(once.replaceAll(`@${digest("a")()}`, "")).toBe(text.replaceAll(/@sha256:[\da-f]{64}/g, ""));
    }
  });

  it("have the parts that the page describes, and refer only to existing parts", () => {
    const services = Object.keys(compose.services ?? {});
    expect(services).toEqual([
      "postgres",
      "zookeeper-1",
      "zookeeper-2",
      "zookeeper-3",
      "migrate",
      "node-1",
      "node-2",
      "worker",
    ]);
    const wanted = all(compose.services, "depends_on").flatMap((one) => Object.keys(one as object));
    for (const name of wanted) expect(services).toContain(name);
    const volumes = all(compose.services, "volumes").flat() as string[];
    for (const volume of volumes.filter((one) => !one.startsWith(".")))
      expect(Object.keys(compose.volumes ?? {})).toContain(volume.split(":")[0]);
    for (const secret of all(compose.services, "secrets").flat())
      expect(Object.keys(compose.secrets ?? {})).toContain(secret);
    expect(manifests.map(({ kind }) => kind)).toEqual([
      "Job",
      "Deployment",
      "Service",
      "PodDisruptionBudget",
      "Deployment",
    ]);
    for (const { kind, metadata } of manifests)
      expect([kind, metadata.name]).toEqual([kind, expect.stringMatching(/^carillon/)]);
  });

  it("probe existing routes at the port on which the server listens", () => {
    const paths = all(manifests, "httpGet").map((one) => (one as { path: string; port: string }).path);
    expect(paths).toEqual(["/livez", "/livez", "/readyz"]);
    for (const text of texts)
      for (const [, port, path] of text.matchAll(/127\.0\.0\.1:(\d+)(\/\w+)/g))
        paths.push(path as string) && expect(port).toBe("7373");
    for (const path of paths) expect(source, path).toContain(`app.get("${path}", anyone`);
    expect(all(manifests, "containerPort")).toEqual([7373]);
  });

  it("use existing options and variables, each documented on the page", () => {
    const page = read("docs/operate/deploying.md");
    const flags = new Set(
      texts.flatMap((text) =>
        [...text.matchAll(/"(--[a-z-]+)"|carillon server (--[a-z-]+)/g)].map(([, a, b]) => a ?? b),
      ),
    );
    flags.delete("--help");
    flags.delete("--username");
    expect(flags.size).toBeGreaterThan(5);
    for (const flag of flags) expect(source, flag).toMatch(new RegExp(`"${flag}[ "]`));
    const names = new Set(texts.flatMap((text) => text.match(/\bCARILLON_[A-Z_]+\b/g) ?? []));
    expect(names.size).toBeGreaterThan(3);
    for (const name of names) expect([name, page.includes(`\`${name}\``), isRead(name)]).toEqual([name, true, true]);
    for (const [, name = ""] of page.matchAll(/^\| `(CARILLON_[A-Z_]+)`/gm))
      expect([name, isRead(name)]).toEqual([name, true]);
  });

  it("build the image from existing files, including the console, and start an existing program", () => {
    const stages = dockerfile.split(/^FROM .*$/m).slice(1);
    const copied = [...dockerfile.matchAll(/^COPY (?!--)(.+) \S+$/gm)].flatMap(([, paths = ""]) => paths.split(" "));
    expect(copied.length).toBeGreaterThan(10);
    for (const path of copied) expect([path, existsSync(join(root, path))]).toEqual([path, true]);
    const made = [...dockerfile.matchAll(/^COPY --from=\w+ (\S+) /gm)].map(([, path]) => path);
    expect(made).toEqual(["/app", "/build/zookeeper/dist", "/build/scheduler/lib", "/build/console/dist/site"]);
    expect(stages[0]).toContain("node scheduler/bundle.mjs && node scripts/console.mjs");
    const { bin } = JSON.parse(read("scheduler/package.json")) as { bin: { carillon: string } };
    expect(dockerfile).toContain(`ENTRYPOINT ["node", "/app/scheduler/${bin.carillon.slice(2)}"]`);
  });

  it("give running handlers time to end, and run nothing as root", () => {
    const graces = [...all(compose, "stop_grace_period"), ...all(manifests, "terminationGracePeriodSeconds")].map(
      (one) => Number.parseInt(String(one), 10),
    );
    graces.push(Number(/TimeoutStopSec=(\d+)s/.exec(unit)?.[1]));
    for (const grace of graces) expect(grace).toBeGreaterThan(30);
    const pods = all(manifests, "template").map(
      (one) => (one as { spec: { securityContext: object } }).spec.securityContext,
    );
    expect(pods).toHaveLength(3);
    for (const pod of pods) expect(pod).toMatchObject({ runAsNonRoot: true });
    expect(dockerfile).toMatch(/^USER 1000:1000$/m);
  });

  it("contain a unit that systemd accepts", () => {
    for (const line of [
      "NoNewPrivileges=yes",
      "DynamicUser=yes",
      "ProtectSystem=strict",
      "SystemCallFilter=@system-service",
    ])
      expect(unit.split("\n")).toContain(line);
    // Without systemd, as in most containers, only the checks above are possible.
    if (spawnSync("systemd-analyze", ["--version"]).status !== 0) return;
    const path = join(folder, "carillon.service");
    writeFileSync(path, unit.replace("/usr/bin/carillon", process.execPath).replace(/^Documentation=.*\n/m, ""));
    expect(execFileSync("systemd-analyze", ["verify", "--man=no", path], { encoding: "utf8", stdio: "pipe" })).toBe("");
  });
});
