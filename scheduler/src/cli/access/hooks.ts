import { type Hook, type HookContent, hookObject } from "../../access/hooks/hook.ts";
import { tasksOf } from "../../access/hooks/hook-tasks.ts";
import { CarillonError, isCarillonError, messageOf } from "../../base/errors.ts";
import { readJson } from "../../base/json.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { textOfFile } from "../files/read-tasks.ts";
import { yamlObject } from "../files/yaml-object.ts";
import { withCluster } from "../reach.ts";
import type { Terminal } from "../screen/terminal.ts";
import { plain } from "../screen/text.ts";
import { ageText } from "../screen/times.ts";
import type { CommonOptions } from "../store-choice.ts";

interface ReasonOptions extends CommonOptions {
  reason?: string;
}

interface PreviewOptions extends CommonOptions {
  header?: [string, string][];
  hook?: string;
}

const tasksText = ({ task }: HookContent): string =>
  typeof task === "string" ? task : `by ${task.by}: ${tasksOf({ task }).join(", ")}`;

export function listHooks(options: CommonOptions, terminal: Terminal): Promise<ExitCode> {
  return withCluster(options, async ({ cluster }) => {
    const hooks = await cluster.hooks.list();
    const now = cluster.nowMs();
    if (terminal.json) terminal.object(hooks.map(hookObject));
    else if (hooks.length === 0) terminal.aside("There are no hooks. Make one: carillon hooks set NAME FILE");
    else
      terminal.table(
        [
          { title: "NAME", least: 8 },
          { title: "RUNS", least: 8 },
          { title: "SCHEME" },
          { title: "SECRET", least: 8 },
          { title: "STATE" },
          { title: "CHANGED", drop: 1 },
        ],
        hooks.map(({ name, content, changedMs }) => [
          plain(name),
          plain(tasksText(content)),
          content.scheme,
          plain(content.secret),
          content.enabled === false ? "off" : "on",
          ageText(changedMs, now),
        ]),
      );
    return exitCodes.ok;
  });
}

export function showHook(name: string, options: CommonOptions, terminal: Terminal): Promise<ExitCode> {
  return withCluster(options, async ({ cluster }) => {
    const hook = await cluster.hooks.find(name);
    if (terminal.json) terminal.object(hookObject(hook));
    else show(hook, cluster.nowMs(), terminal);
    return exitCodes.ok;
  });
}

function show(
  { name, version, content, author, reason, changedMs, bundle }: Hook,
  nowMs: number,
  terminal: Terminal,
): void {
  const { style } = terminal;
  terminal.line(`${style.title(plain(name))}  ${style.dim(`version ${version}`)}`);
  terminal.line();
  const row = (title: string, text: string) => terminal.line(`  ${style.dim(title.padEnd(10))} ${plain(text)}`);
  row("request", `POST /v1/hooks/${name}`);
  for (const [part, value] of Object.entries(content))
    row(part, typeof value === "string" ? value : JSON.stringify(value));
  row("changed", `${ageText(changedMs, nowMs)} by ${author}`);
  if (reason !== "") row("why", reason);
  if (bundle !== null) row("bundle", bundle);
}

export async function setHook(
  name: string,
  file: string,
  options: ReasonOptions,
  terminal: Terminal,
): Promise<ExitCode> {
  const content = yamlObject(file, "docs/tasks/hooks.md") as HookContent;
  return withCluster(options, async ({ cluster }) => {
    const hook = await cluster.hooks.set(name, content, options.reason ?? "");
    if (terminal.json) terminal.object(hookObject(hook));
    else
      terminal.line(
        `${plain(name)} is at version ${hook.version}: POST /v1/hooks/${plain(name)} runs ${plain(tasksText(hook.content))}`,
      );
    return exitCodes.ok;
  });
}

/** Returns the body of a request, read as `POST /v1/hooks/NAME` reads it. @throws FILE_INVALID, PAYLOAD_NOT_JSON */
function bodyOf(file: string, page: string): unknown {
  const text = textOfFile(file, `Give the path of a JSON file with the body of a request; see ${page}.`);
  try {
    return readJson(text, "the body");
  } catch (cause) {
    if (isCarillonError(cause)) throw cause;
    throw new CarillonError("FILE_INVALID", `${file} is not JSON: ${messageOf(cause)}`, {
      hint: `Give the body as the sender sends it, in JSON; see ${page}.`,
      cause,
    });
  }
}

export async function previewHook(
  name: string,
  bodyFile: string,
  options: PreviewOptions,
  terminal: Terminal,
): Promise<ExitCode> {
  const page = "docs/tasks/hooks.md";
  const body = bodyOf(bodyFile, page);
  const content = options.hook === undefined ? undefined : (yamlObject(options.hook, page) as HookContent);
  const headers = Object.fromEntries(options.header ?? []);
  return withCluster(options, async ({ cluster }) => {
    const run = await cluster.hooks.preview(name, { headers, body, ...(content === undefined ? {} : { content }) });
    if (terminal.json) terminal.object({ hook: name, run });
    else if (run === null) terminal.line(`${plain(name)} has no task for such a request: it is taken, and ignored`);
    else {
      const { task, payload, key, delay } = run;
      terminal.line(`a run of ${plain(task)}, due ${delay === null ? "at once" : `after ${delay}`}`);
      terminal.line(`  key      ${key === null ? "none: each request is another run" : plain(key)}`);
      terminal.line(`  payload  ${plain(JSON.stringify(payload))}`);
    }
    return exitCodes.ok;
  });
}

export function removeHook(name: string, options: ReasonOptions, terminal: Terminal): Promise<ExitCode> {
  return withCluster(options, async ({ cluster }) => {
    await cluster.hooks.remove(name, options.reason ?? "");
    if (terminal.json) terminal.object({ hook: name, removed: true });
    else terminal.line(`${plain(name)} is removed`);
    return exitCodes.ok;
  });
}
