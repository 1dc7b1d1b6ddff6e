import type { HookContent } from "../../access/hooks/hook.ts";
import { tasksOf } from "../../access/hooks/hook-tasks.ts";
import { type RuleContent, ruleText } from "../../alarms/stored-rules.ts";
import type { applyWhole } from "../../apply/apply-items.ts";
import { acting, type PlanStep } from "../../apply/apply-plan.ts";
import { type ApplyPlan, type ItemStep, itemWords } from "../../apply/plan-items.ts";
import { appliedItemObject, appliedObject, itemStepObject, stalePlan, stepObject } from "../../apply/plan-json.ts";
import { itemParts } from "../../apply/read.ts";
import { CarillonError } from "../../base/errors.ts";
import { type Json, sortedJson } from "../../base/json.ts";
import { compileSchedule } from "../../schedule/schedule.ts";
import type { FieldChange } from "../../task/written.ts";
import { changesExit, type ExitCode, exitCodes } from "../exit-codes.ts";
import { askToGoOn, isWatched } from "../question.ts";
import { type Reached, withCluster } from "../reach.ts";
import type { Terminal } from "../screen/terminal.ts";
import { cut, pad, plain, widthOf } from "../screen/text.ts";
import { ageText } from "../screen/times.ts";
import type { CommonOptions } from "../store-choice.ts";
import { partText } from "../tasks/edit-task.ts";
import { readTaskFiles, tellProblems } from "./read-tasks.ts";

type WholeApplied = Awaited<ReturnType<typeof applyWhole>>;

export interface ApplyOptions extends CommonOptions {
  bundle?: string;
  prune?: boolean;
  adopt?: boolean;
  overwriteEdits?: boolean;
  plan?: boolean;
  expectPlan?: string;
  reason?: string;
  author?: string;
  yes?: boolean;
}

/**
 * Shows the plan, asks for confirmation on a terminal, and executes the plan. With `--plan`, if a step is refused, or if there is nothing
 * to do, only shows the plan.
 */
export async function applyFiles(files: string[], options: ApplyOptions, terminal: Terminal): Promise<ExitCode> {
  const { prune = false, adopt = false, overwriteEdits = false } = options;
  const { bundle, named, definitions, items, problems } = await readTaskFiles(files, options.bundle);
  if (problems.length > 0) {
    tellProblems(problems, terminal);
    return options.plan ? exitCodes.failed : exitCodes.usage;
  }
  if (prune && !named)
    throw new CarillonError("USAGE", "--prune needs a bundle that has a name", {
      hint: "Name it with --bundle, or in the files (bundle: billing): what others applied without a name would be removed too.",
    });
  const work = async ({ cluster, signal }: Reached): Promise<ExitCode> => {
    if (options.author !== undefined && cluster.by === "server")
      throw new CarillonError("USAGE", "--author was given, and a server puts the change down to the token's user", {
        hint: "Leave it out, or say in --reason on whose behalf.",
      });
    const asked = { bundle, prune, adopt, overwriteEdits };
    const { plan, id, apply } = await cluster.bundles.plan(definitions, items, asked);
    if (options.expectPlan !== undefined && options.expectPlan !== id) throw stalePlan(id, options.expectPlan);
    const steps = acting([...plan.steps, ...plan.items]);
    const refused = steps.filter(({ kind }) => kind === "refused");
    if (!terminal.json) printPlan(plan, id, cluster.nowMs(), terminal);
    if (options.plan || refused.length > 0 || steps.length === 0) {
      if (terminal.json) terminal.object(planObject(plan, id, { tasks: [], items: [] }));
      if (refused.length > 0) return exitCodes.failed;
      return options.plan && steps.length > 0 ? changesExit : exitCodes.ok;
    }
    // The question is asked only on a terminal; in a script the command itself counts as confirmation.
    if (!options.yes && isWatched()) {
      if (terminal.json)
        throw new CarillonError(
          "CONFIRMATION_NEEDED",
          "with --json on a terminal nobody is asked, and nothing is done",
          {
            hint: "Look at it with carillon diff, then say --yes.",
          },
        );
      const answer = await askToGoOn(signal);
      if (answer !== "yes") {
        terminal.aside("nothing was done");
        return answer === "no" ? exitCodes.failed : exitCodes.interrupted;
      }
    }
    const applied = await apply(options.reason ?? "", options.author);
    if (terminal.json) terminal.object(planObject(plan, id, applied));
    else printApplied(applied, terminal);
    return [...applied.tasks, ...applied.items].some(({ error }) => error) ? exitCodes.failed : exitCodes.ok;
  };
  return withCluster(options, work, { make: !options.plan });
}

const signs = { create: "+", change: "~", adopt: "»", remove: "-", none: "=", refused: "!" } as const;

function printPlan(plan: ApplyPlan, id: string, now: number, terminal: Terminal): void {
  const { style } = terminal;
  const paint = {
    create: style.good,
    change: style.warning,
    adopt: style.warning,
    remove: style.bad,
    refused: style.bad,
    none: style.dim,
  };
  const all = linesOf(plan);
  const shown = all.filter(({ kind, drift }) => kind !== "none" || drift.length > 0);
  const width = Math.max(8, ...shown.map(({ title }) => Math.min(50, widthOf(plain(title)))));
  for (const step of shown) {
    const name = pad(cut(plain(step.title), 50), width);
    terminal.line(
      `${paint[step.kind](`${signs[step.kind]} ${name}`)}  ${style.dim(plain(stepText(step, now)))}`.trimEnd(),
    );
    for (const change of step.changes) terminal.line(`    ${changeText(change)}`);
    if (step.item === undefined) printDrift(step, terminal);
    else printItemDrift(step, terminal);
    if (step.item === undefined && step.waiting)
      terminal.line(style.warning(`    ${waitingText(step.waiting)} with it`));
    if (step.hint) terminal.line(`    ${style.dim("hint:")} ${plain(step.hint)}`);
  }
  const count = (kind: PlanStep["kind"]) => all.filter((step) => step.kind === kind).length;
  const words = {
    create: "to create",
    change: "to change",
    adopt: "to adopt",
    remove: "to remove",
    refused: "refused",
    none: "unchanged",
  };
  const told = (Object.keys(words) as PlanStep["kind"][]).flatMap((kind) =>
    count(kind) > 0 ? [`${count(kind)} ${words[kind]}`] : [],
  );
  terminal.line(`bundle ${plain(plan.bundle)}: ${told.length === 0 ? "no tasks" : told.join(", ")}; plan ${id}`);
  const left = [...plan.left, ...plan.leftItems.map(({ item, name }) => `${itemWords[item]} ${name}`)];
  if (left.length > 0)
    terminal.aside(`not in the files any more, and left as they are without --prune: ${left.map(plain).join(", ")}`);
  const unread = (plan.unreadItems ?? []).map((item) => itemParts[item]);
  if (unread.length > 0) terminal.aside(`left as they are, because the token is not for them: ${unread.join(" and ")}`);
}

type Line = { title: string } & ((PlanStep & { item?: undefined }) | ItemStep);

/** Returns all steps with the titles under which they are shown: a task's name, or the kind and the name. */
const linesOf = ({ steps, items }: ApplyPlan): Line[] => [
  ...steps.map((step) => ({ ...step, title: step.task })),
  ...items.map((step) => ({ ...step, title: `${itemWords[step.item]} ${step.name}` })),
];

const waitingText = (runs: number) => (runs === 1 ? "1 waiting run ends" : `${runs} waiting runs end`);

function stepText(step: Line, now: number): string {
  if (step.why) return step.why;
  if (step.kind === "create" && step.item !== undefined) return itemText(step);
  if (step.kind === "create" && step.item === undefined)
    return step.definition ? compileSchedule(step.definition.schedule).words() : "";
  const by = step.by ? `, by ${step.by.author} ${ageText(step.by.changedMs, now)}` : "";
  return `version ${step.version}${by}${step.by?.reason ? ` (${step.by.reason})` : ""}`;
}

function printDrift({ drift, keepsEdits, kind, definition }: PlanStep, terminal: Terminal): void {
  for (const { part, applied, stored } of drift) {
    const [was, is] = [{ [part]: applied }, { [part]: stored }];
    const agreed = kind === "change" && !(definition?.asDefined && part in definition.asDefined);
    const kept = agreed ? "; the files say so by now" : "; it stays so";
    const becomes = kind === "remove" ? "" : keepsEdits ? kept : "; it is put back";
    const files =
      keepsEdits && definition?.asDefined && part in definition.asDefined ? definition.asDefined : undefined;
    const says =
      files && sortedJson(files[part]) !== sortedJson(applied) ? `, the files say ${partText(files, part, is)}` : "";
    terminal.line(
      terminal.style.warning(
        `    edited by hand: ${part} ${partText(was, part, is)} → ${partText(is, part, was)}${says}${becomes}`,
      ),
    );
  }
}

function itemText({ item, content }: ItemStep): string {
  if (content === undefined) return "";
  if (item === "alarm") return ruleText(content as unknown as RuleContent);
  return `runs ${tasksOf(content as unknown as HookContent).join(", ")}`;
}

function printItemDrift({ drift, keepsEdits, kind }: ItemStep, terminal: Terminal): void {
  const becomes = kind === "remove" || kind === "refused" ? "" : keepsEdits ? "; it stays so" : "; it is put back";
  for (const { part, applied, stored } of drift)
    terminal.line(
      terminal.style.warning(
        `    edited by hand: ${plain(part)} ${valueText(applied)} → ${valueText(stored)}${becomes}`,
      ),
    );
}

function changeText({ path, was, is }: FieldChange): string {
  return `${plain(path)}: ${valueText(was)} → ${valueText(is)}`;
}

const valueText = (value: Json | undefined): string => {
  if (value === undefined || value === null) return "none";
  return plain(typeof value === "string" ? (value === "" ? '""' : value) : JSON.stringify(value));
};

function printApplied({ tasks, items }: WholeApplied, terminal: Terminal): void {
  const { style } = terminal;
  const past = { create: "created", change: "changed", adopt: "adopted", remove: "removed" } as Record<string, string>;
  const applied = [
    ...tasks.map(({ step, ...one }) => ({ ...one, kind: step.kind, title: step.task })),
    ...items.map(({ step, ...one }) => ({ ...one, kind: step.kind, title: `${itemWords[step.item]} ${step.name}` })),
  ];
  for (const { title, error } of applied) {
    if (!error) continue;
    terminal.line(`${style.bad(`! ${plain(title)}: ${error.code}:`)} ${plain(error.message)}`);
    if (error.hint !== "") terminal.line(`    ${style.dim("hint:")} ${plain(error.hint)}`);
  }
  const done = applied.filter(({ error }) => !error);
  const counts = Object.entries(past).flatMap(([kind, word]) => {
    const many = done.filter((one) => one.kind === kind).length;
    return many > 0 ? [`${many} ${word}`] : [];
  });
  const failed = applied.length - done.length;
  const ended = tasks.reduce((sum, one) => sum + (one.error ? 0 : (one.ended ?? 0)), 0);
  if (ended > 0) counts.push(`${ended} waiting ${ended === 1 ? "run" : "runs"} ended`);
  terminal.line([...counts, ...(failed > 0 ? [style.bad(`${failed} not done`)] : [])].join(", "));
}

const planObject = (
  { bundle, steps, left, items, leftItems, unreadItems = [] }: ApplyPlan,
  plan: string,
  applied: WholeApplied,
) => ({
  plan,
  bundle,
  steps: steps.map(stepObject),
  left,
  applied: applied.tasks.map(appliedObject),
  items: items.map(itemStepObject),
  leftItems,
  unreadItems,
  appliedItems: applied.items.map(appliedItemObject),
});
