/** Imports Jenkins projects from a config.xml with a TimerTrigger, or from the schedule as plain text. */
import { basename } from "node:path";
import { bothDays } from "../both-days.ts";
import { fieldTable, tellFields, tellZone } from "../fields.ts";
import { Findings, type ImportOptions, type SourceFile } from "../findings.ts";
import { childText, type Element, everywhere, readXml } from "../xml.ts";
import { type Hash, jenkinsHash, spreadCron } from "./jenkins-hash.ts";

export const jenkinsFields = fieldTable(`
triggers | carried | TimerTrigger as schedule, each line of its spec a task |
properties | carried | the timer of a pipeline |
description | carried | description |
disabled | carried | true: imported without its schedule |
concurrentBuild | carried | true: overlap: allow; else queue |
displayName | unused | |
actions | unused | |
keepDependencies | unused | |
canRoam | unused | |
builders | lost | its build steps | Give the task a command, or a worker a handler.
definition | lost | its pipeline | Give the task a command, or a worker a handler.
publishers | lost | what follows a build | See after, and docs/operate/alarms.md.
scm | lost | the source that it checks out |
buildWrappers | lost | its environment |
assignedNode | lost | the machines that it runs on | Set labels.
quietPeriod | lost | its delay |
`);

export function importJenkins(files: readonly SourceFile[], options: ImportOptions): Findings {
  const findings = new Findings(options);
  const place = { options, findings, unzoned: 0, spread: 0 };
  for (const { path, text } of files) {
    if (!/^\s*</.test(text)) {
      addSpec(text, { name: nameOf(path), suspended: false, described: {} }, place);
      continue;
    }
    let root: Element | undefined;
    try {
      [root] = readXml(text).children;
    } catch (cause) {
      findings.problem("", `${path} is not XML: ${(cause as Error).message}`, "Give config.xml of a Jenkins project.");
    }
    if (root === undefined) continue;
    const name = nameOf(path);
    const timers = everywhere(root, "hudson.triggers.TimerTrigger");
    if (timers.length === 0) findings.note(name, "has no TimerTrigger, and was passed over");
    else tellFields(rowOf(root), jenkinsFields, name, findings);
    const described = {
      description: childText(root, "description") || undefined,
      // Unless concurrent builds are enabled, Jenkins starts a build only after the project's earlier build has ended.
      overlap: childText(root, "concurrentBuild") === "true" ? undefined : "queue",
    };
    const suspended = childText(root, "disabled") === "true";
    for (const timer of timers) addSpec(childText(timer, "spec"), { name, suspended, described }, place);
  }
  if (place.spread > 0)
    findings.note(
      "",
      `H of ${place.spread} is the time that Jenkins has for a project of that full name`,
      "The name is made of the path: jobs/FOLDER/jobs/NAME/config.xml.",
    );
  tellZone(place.unzoned, options.zone, "It is the zone of the Jenkins controller", findings);
  return findings;
}

/** Returns a project's full name: the path jobs/a/jobs/b/config.xml belongs to the project a/b. */
function nameOf(path: string): string {
  const names = [...path.matchAll(/(?:^|\/)jobs\/([^/]+)(?=\/)/g)].map(([, name]) => name);
  return names.length > 0 ? names.join("/") : basename(path).replace(/(?:\.config)?\.[a-z]+$/, "");
}

const rowOf = (root: Element): Record<string, unknown> =>
  Object.fromEntries(
    root.children.map(({ name, children, text }) => [name, children.length > 0 ? childNames(children) : text.trim()]),
  );
const childNames = (children: readonly Element[]): string[] => [...new Set(children.map(({ name }) => name))];

interface Project {
  name: string;
  suspended: boolean;
  described: Record<string, unknown>;
}

function addSpec(
  spec: string,
  { name, suspended, described }: Project,
  place: { options: ImportOptions; findings: Findings; unzoned: number; spread: number },
): void {
  const { options, findings } = place;
  let zone = "";
  const lines: string[] = [];
  for (const line of spec.split(/\r?\n/).map((one) => one.trim())) {
    const [, named] = /^TZ=(\S+)$/.exec(line) ?? [];
    if (named !== undefined) {
      if (zone !== "" || lines.length > 0) {
        findings.problem(
          name,
          `its schedule has ${line} after other lines`,
          "Jenkins takes one zone, in the first line.",
        );
        return;
      }
      zone = named;
    } else if (line !== "" && !line.startsWith("#")) lines.push(line);
  }
  if (lines.length === 0) findings.problem(name, "its schedule is empty", "A TimerTrigger has a spec.");
  // As in Jenkins, all lines of a project take their numbers from one sequence, so the order of the lines matters.
  const hash: Hash = jenkinsHash(name);
  for (const [at, line] of lines.entries()) {
    const source = lines.length === 1 ? name : `${name}-${at + 1}`;
    const cron = spreadCron(line, hash);
    const [minute, hour, day, month, weekday, ...rest] = (cron ?? "").split(" ") as [
      string,
      string,
      string,
      string,
      string,
    ];
    const both = cron === undefined || rest.length > 0 || weekday === undefined ? undefined : bothDays(day, weekday);
    if (both === undefined) {
      findings.problem(
        source,
        `its schedule ${line} is not understood, or no cron has its days`,
        "Jenkins means days that match both day fields.",
      );
      continue;
    }
    const isSpread = /[H@]/.test(line);
    const added = findings.add(
      source,
      source.replace(/\s+/g, "-"),
      {
        ...described,
        group: options.group,
        schedule: { cron: [minute, hour, both[0], month, both[1]].join(" "), zone: zone || options.zone },
        misfire: { policy: "skip" },
      },
      {
        comment: `ran the Jenkins project ${name}`,
        suspended,
        times: isSpread ? undefined : { dialect: "jenkins", text: line, zone: zone || options.zone },
      },
    );
    if (added === undefined) continue;
    if (isSpread) place.spread++;
    if (zone === "") place.unzoned++;
  }
}
