import { CarillonError } from "./errors.ts";
import { shownValue } from "./json.ts";
import { limits } from "./limits.ts";

/** Which ends of a run begin the next one. A cancelled or skipped run begins nothing. */
export type Ends = "success" | "failure" | "any";

/** What a task comes after, complete and sorted. */
export interface AfterSpec {
  tasks: string[];
  on: Ends;
}

export type AfterOption = string | string[] | { tasks: string | string[]; on?: Ends };

/** @throws TASK_INVALID */
export function afterSpec(task: string, given: AfterOption): AfterSpec {
  const {
    tasks,
    on = "success",
    ...rest
  } = typeof given === "object" && given !== null && !Array.isArray(given) ? given : { tasks: given };
  const unknown = Object.keys(rest)[0];
  if (unknown !== undefined) throw invalid(task, `after has no ${JSON.stringify(unknown)}`, "It has tasks and on.");
  // A hole in a list is no name either.
  const names = typeof tasks === "string" ? [tasks] : Array.isArray(tasks) ? Array.from(tasks) : tasks;
  if (!Array.isArray(names) || names.length === 0 || !names.every((name) => typeof name === "string" && name !== ""))
    throw invalid(task, "after must name one task or more", 'For example after: ["fetch", "parse"].');
  if (new Set(names).size > limits.upstreamTasks)
    throw invalid(task, `after names ${names.length} tasks`, `${limits.upstreamTasks} are the most.`);
  if (!["success", "failure", "any"].includes(on))
    throw invalid(task, `after.on cannot be ${shownValue(on)}`, "Give one of success, failure, any.");
  if (names.includes(task))
    throw invalid(task, "it cannot come after itself", "To go on as another run: run.continueAs.");
  return { tasks: [...new Set(names)].sort(), on };
}

const invalid = (task: string, what: string, hint: string) =>
  new CarillonError("TASK_INVALID", `task ${task}: ${what}`, { hint });

interface Following {
  name: string;
  after?: AfterSpec;
}

/** Each after those that it comes after, as far as they are among these. @throws TASK_INVALID for a circle, naming it */
export function inOrder<Definition extends Following>(definitions: readonly Definition[]): Definition[] {
  const byName = new Map(definitions.map((definition) => [definition.name, definition]));
  const ordered = new Set<Definition>(definitions.filter(({ after }) => !after));
  // Without recursion: a chain of tasks may be as long as there are tasks.
  for (const first of definitions) {
    const path = [{ definition: first, at: 0 }];
    const within = new Set([first.name]);
    for (let last = path.at(-1); last; last = path.at(-1)) {
      const { definition, at } = last;
      const upstream = ordered.has(definition) ? undefined : definition.after?.tasks[at];
      if (upstream === undefined) {
        ordered.add(definition);
        within.delete(definition.name);
        path.pop();
        continue;
      }
      last.at += 1;
      const next = byName.get(upstream);
      if (!next || ordered.has(next)) continue;
      if (within.has(upstream)) {
        const names = path.map((step) => step.definition.name);
        throw circle([...names.slice(names.indexOf(upstream)), upstream]);
      }
      within.add(upstream);
      path.push({ definition: next, at: 0 });
    }
  }
  return [...ordered];
}

/** @param names each comes after the next; the last is the first again */
export const circle = (names: string[]): CarillonError =>
  invalid(names[0] as string, `it would come after itself: ${names.join(" after ")}`, "Leave out one of these.");
