import { type RuleContent, ruleObject, ruleText } from "../../alarms/stored-rules.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { yamlObject } from "../files/yaml-object.ts";
import { withCluster } from "../reach.ts";
import type { Terminal } from "../screen/terminal.ts";
import { plain } from "../screen/text.ts";
import { ageText } from "../screen/times.ts";
import type { CommonOptions } from "../store-choice.ts";

interface ReasonOptions extends CommonOptions {
  reason?: string;
}

export function listRules(options: CommonOptions, terminal: Terminal): Promise<ExitCode> {
  return withCluster(options, async ({ cluster }) => {
    const { given, stored } = await cluster.alarms.rules();
    if (terminal.json) {
      terminal.object({ given, stored: stored.map(ruleObject) });
      return exitCodes.ok;
    }
    if (given.length === 0 && stored.length === 0)
      terminal.aside(`No alarm rules in ${cluster.place} yet: carillon alarms rules set NAME FILE`);
    else
      terminal.table(
        [
          { title: "RULE", least: 8 },
          { title: "FINDS", least: 16 },
          { title: "OF", least: 8, drop: 1 },
          { title: "TELLS", least: 8 },
        ],
        [
          ...stored.map(({ name, content }) => [
            plain(name),
            plain(ruleText(content)),
            plain(scopeText(content)),
            content.enabled === false ? "off" : plain(tellsText(content)),
          ]),
          ...given.map(({ rule, words, channels }) => [
            rule,
            words,
            "by the node's settings",
            channels.length === 0 ? "off" : plain(channels.join(", ")),
          ]),
        ],
      );
    return exitCodes.ok;
  });
}

function scopeText({ scope = {} }: RuleContent): string {
  const { tasks, groups, owners, labels, everywhere = false } = scope;
  const parts = [
    ...(tasks ?? []),
    ...(groups ?? []).map((group) => `group ${group}`),
    ...(owners ?? []).map((owner) => `owner ${owner}`),
    ...Object.entries(labels ?? {}).map(([label, value]) => `${label}=${value}`),
  ];
  if (parts.length === 0) parts.push("every task");
  if (everywhere) parts.push("everywhere");
  return parts.join(", ");
}

function tellsText({ channels = [], quiet, maintenance = [], escalate }: RuleContent): string {
  const parts = [channels.length === 0 ? "nobody" : channels.join(", ")];
  if (escalate) parts.push(`after ${escalate.after} also ${escalate.channels.join(", ")}`);
  if (quiet) parts.push(`quiet ${quiet.from} to ${quiet.to} ${quiet.zone}`);
  for (const { from, to } of maintenance) parts.push(`maintenance ${from} to ${to}`);
  return parts.join("; ");
}

export function showRule(name: string, options: CommonOptions, terminal: Terminal): Promise<ExitCode> {
  return withCluster(options, async ({ cluster }) => {
    const rule = await cluster.alarms.rule(name);
    if (terminal.json) {
      terminal.object(ruleObject(rule));
      return exitCodes.ok;
    }
    const { version, content, author, reason, changedMs, bundle } = rule;
    const { style } = terminal;
    const row = (title: string, text: string) => {
      if (text !== "") terminal.line(`  ${style.dim(title.padEnd(9))} ${plain(text)}`);
    };
    terminal.line(`${style.title(plain(name))}  ${style.dim(`version ${version}`)}`);
    terminal.line();
    row("finds", ruleText(content));
    row("of", scopeText(content));
    row("tells", tellsText(content));
    row("is", content.enabled === false ? "off" : "on");
    row("for", content.description ?? "");
    row("changed", `${ageText(changedMs, cluster.nowMs())} by ${author}`);
    row("why", reason);
    row("bundle", bundle ?? "");
    return exitCodes.ok;
  });
}

export async function setRule(
  name: string,
  file: string,
  options: ReasonOptions,
  terminal: Terminal,
): Promise<ExitCode> {
  const content = yamlObject(file, "docs/operate/alarm-rules.md") as RuleContent;
  return withCluster(options, async ({ cluster }) => {
    const rule = await cluster.alarms.setRule(name, content, options.reason ?? "");
    if (terminal.json) terminal.object(ruleObject(rule));
    else terminal.line(`${plain(name)} is at version ${rule.version}: ${plain(ruleText(rule.content))}`);
    return exitCodes.ok;
  });
}

export function removeRule(name: string, options: ReasonOptions, terminal: Terminal): Promise<ExitCode> {
  return withCluster(options, async ({ cluster }) => {
    await cluster.alarms.removeRule(name, options.reason ?? "");
    if (terminal.json) terminal.object({ rule: name, removed: true });
    else terminal.line(`${plain(name)} is removed`);
    return exitCodes.ok;
  });
}
