/** Generates docs/reference/task-options.md from the table of task options; a test checks that the file is up to date. */

import type { Json } from "../base/json.ts";
import { limits } from "../base/limits.ts";
import type { FieldShape, Shape } from "../task/kinds/kinds.ts";
import { type OptionRow, optionRows, usualWritten } from "../task/options.ts";

const head = `# Task options

The options of a task: in code (\`carillon.task(name, options, handler)\`), in a file of tasks ([Tasks as code](../tasks/as-code.md)), in the
HTTP API ([The HTTP API](api.md)) and with \`carillon tasks edit\` ([The command line](cli.md)). All of these, and this page, are made from
one table, [\`options.ts\`](../../scheduler/src/task/options.ts). [Policies, and what each makes of what happens](../tasks/policies.md) shows
the effect of each policy.

Code has three more options, which are not stored: \`payload\`, a schema of the payload in code, such as zod's; \`isolate\`, which runs the
handler in a thread or a process of its own ([Isolated handlers](../tasks/isolation.md#isolated-handlers)); and \`batch\`, with which the
handler takes several runs at once ([Flow](../tasks/flow.md#batches)).

A duration is a number of milliseconds or a text such as \`"15m"\` or \`"1h30m"\`. An error names the wrong option by its \`path\`, such as
\`retry.attempts\`. Where the table says *yes*, the option of a stored task can be edited with
\`carillon tasks edit NAME --set OPTION=VALUE\`, in the console and in the HTTP API: slots that are planned and not claimed are planned
again, and claimed runs continue unchanged ([Configuration](configuration.md#edits-by-hand-and-code)). Where the table lists *null*,
\`null\` removes the option; on the command line \`none\` does.
`;

const code = (text: string) => `\`${text.replace(/\|/g, "\\|")}\``;
const cell = (text: string) => text.replace(/\|/g, "\\|");

/** Formats a value as YAML on one line; texts are quoted, and the names of fields are not. */
function written(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(written).join(", ")}]`;
  if (typeof value === "object" && value !== null) {
    const fields = Object.entries(value).map(([name, one]) => `${name}: ${written(one)}`);
    return fields.length === 0 ? "{}" : `{ ${fields.join(", ")} }`;
  }
  return JSON.stringify(value);
}

/** Describes the values that a shape accepts. */
function typeText(shape: Shape): string {
  switch (shape.is) {
    case "count":
      return `${shape.least} to ${shape.most}`;
    case "share":
      return "a number from 0 to 1";
    case "flag":
      return "true or false";
    case "choice":
      return shape.values.map((value) => code(`"${value}"`)).join(", ");
    case "text":
      return shape.isName
        ? `a name of at most ${shape.longest} characters`
        : `a text${shape.longest === null ? "" : ` of at most ${shape.longest} characters`}`;
    case "texts":
      return "texts by name";
    case "json":
      return `JSON, at most ${limits.payloadBytes / 1024} kB`;
    case "schema":
      return "a JSON Schema";
    case "schedule":
      return "a [schedule](../tasks/schedules.md)";
    case "list":
      return `a list of at most ${shape.most}: ${typeText(shape.of)}`;
    case "object":
      return `{ ${Object.keys(shape.fields).map(code).join(", ")} }`;
    case "either":
      return shape.of.map(typeText).join("; ");
    case "duration":
      return "a duration";
  }
}

function optionLine(option: string, row: OptionRow): string {
  const { kind, nullable, usual, example, since, editable, description } = row;
  const type = `${typeText(kind.shape)}${nullable ? "; null" : ""}`;
  const usualText = usual === null ? "none" : code(written(usualWritten(row)));
  return `| ${[code(option), type, usualText, code(written(example)), editable ? "yes" : "no", since, cell(description)].join(" | ")} |`;
}

/** Returns the fields of an object's shape with their paths, including objects in lists and in alternatives. */
function fieldsOf(shape: Shape): [string, FieldShape][] {
  if (shape.is === "object")
    return Object.entries(shape.fields).flatMap(([name, field]) => [
      [name, field] as [string, FieldShape],
      ...fieldsOf(field.shape).map(([inner, one]) => [`${name}.${inner}`, one] as [string, FieldShape]),
    ]);
  if (shape.is === "list") return fieldsOf(shape.of).map(([name, field]) => [`[].${name}`, field]);
  return shape.is === "either" ? shape.of.flatMap(fieldsOf) : [];
}

function fieldLine(option: string, name: string, { shape, required, usual, description }: FieldShape): string {
  const usualText = usual === undefined ? (required ? "must be given" : "none") : code(written(usual));
  const path = name.startsWith("[") ? `${option}${name}` : `${option}.${name}`;
  return `| ${[code(path), typeText(shape), usualText, cell(description)].join(" | ")} |`;
}

export const optionsPage = (): string =>
  [
    head,
    "## Options\n",
    "| option | value | default | such as | can be edited | since | |",
    "|---|---|---|---|---|---|---|",
    ...optionRows.map(([option, row]) => optionLine(option, row)),
    "\n## Their fields\n",
    "| field | value | default | |",
    "|---|---|---|---|",
    ...optionRows.flatMap(([option, { kind }]) =>
      fieldsOf(kind.shape).map(([name, field]) => fieldLine(option, name, field)),
    ),
    "",
  ].join("\n");
