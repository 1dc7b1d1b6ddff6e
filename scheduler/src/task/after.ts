import { CarillonError } from "../base/errors.ts";
import type { Json } from "../base/json.ts";
import { limits } from "../base/limits.ts";
import { choice, inner, isObject, type Kind, type Shape, stranger, wrong } from "./kinds/kinds.ts";

/** The outcomes of a run after which the following run is created. A cancelled or skipped run never has followers. */
export type Ends = "success" | "failure" | "any";

/** The stored form of which tasks a task follows: complete and sorted. */
export interface AfterSpec {
  tasks: string[];
  on: Ends;
}

export type AfterOption = string | string[] | { tasks: string | string[]; on?: Ends };

const ends = ["success", "failure", "any"] as const;
const upstream = {
  is: "either",
  of: [
    { is: "text", longest: limits.taskNameLength, isName: true },
    {
      is: "list",
      of: { is: "text", longest: limits.taskNameLength, isName: true },
      most: limits.upstreamTasks,
    },
  ],
} as const satisfies Shape;
const single = (names: string[]): Json => (names.length === 1 ? (names[0] as string) : names);

export const afterKind: Kind<AfterSpec> = {
  shape: {
    is: "either",
    of: [
      ...upstream.of,
      {
        is: "object",
        fields: {
          tasks: { shape: upstream, required: true, description: "The tasks that it comes after.", usual: undefined },
          on: {
            shape: { is: "choice", values: ends },
            required: false,
            description: "Which of their ends begin a run.",
            usual: "success",
          },
        },
      },
    ],
  },
  hint: 'For example "fetch", ["fetch", "parse"] or { tasks: "fetch", on: "any" }.',
  read(given, place) {
    const { tasks, on = "success", ...rest } = isObject(given) ? given : { tasks: given };
    const unknown = Object.keys(rest)[0];
    if (unknown !== undefined) throw stranger(place, unknown, ["tasks", "on"]);
    // `Array.from` makes the holes of a sparse list undefined, so that the check below rejects them.
    const names = typeof tasks === "string" ? [tasks] : Array.isArray(tasks) ? Array.from(tasks) : undefined;
    if (!names || names.length === 0 || !names.every((one) => typeof one === "string" && one !== ""))
      throw wrong(place, " must name one task or more", 'For example after: ["fetch", "parse"].');
    if (new Set(names).size > limits.upstreamTasks)
      throw wrong(place, ` names ${names.length} tasks`, `${limits.upstreamTasks} are the most.`);
    return { tasks: [...new Set(names)].sort(), on: choice(ends).read(on, inner(place, "on")) };
  },
  write: ({ tasks, on }) => (on === "success" ? single(tasks) : { tasks: single(tasks), on }),
};

interface Following {
  name: string;
  after?: AfterSpec;
  of?: string;
}

/**
 * Sorts the definitions so that each one comes after the tasks that it follows and after the task of which it is a schedule, if these are
 * in the list.
 * @throws TASK_INVALID for a circle, which the error names
 */
export function inOrder<Definition extends Following>(definitions: readonly Definition[]): Definition[] {
  const byName = new Map(definitions.map((definition) => [definition.name, definition]));
  const before = ({ after, of }: Following): readonly string[] => after?.tasks ?? (of === undefined ? [] : [of]);
  const ordered = new Set<Definition>(definitions.filter((definition) => before(definition).length === 0));
  // A loop and not a recursion, because a chain may be as long as the number of tasks.
  for (const first of definitions) {
    const path = [{ definition: first, at: 0 }];
    const within = new Set([first.name]);
    for (let last = path.at(-1); last; last = path.at(-1)) {
      const { definition, at } = last;
      const upstream = ordered.has(definition) ? undefined : before(definition)[at];
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

/** @param names task names, each of which follows the next one; the last name equals the first */
const circle = (names: string[]): CarillonError =>
  new CarillonError("TASK_INVALID", `task ${names[0]}: it would come after itself: ${names.join(" after ")}`, {
    hint: "Leave out one of these.",
    path: "after",
  });
