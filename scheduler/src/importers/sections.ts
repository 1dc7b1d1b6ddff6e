/** Reads the YAML files of Rails applications, which use merge keys and may have one section per environment. */
import { yamlDocuments } from "../apply/yaml-documents.ts";
import { type Findings, isRow, type Row, type SourceFile } from "./findings.ts";

/**
 * Returns the first document of a file, with merge keys resolved, and {} for an empty document. Returns undefined after reporting
 * a problem for a file that is not a YAML map.
 */
export function readRailsYaml({ path, text }: SourceFile, findings: Findings): Row | undefined {
  const [read] = yamlDocuments(text);
  if (read && "content" in read && isRow(read.content)) return merged(read.content) as Row;
  if (read && "content" in read && read.content === null) return {};
  const why = read && "problem" in read ? read.problem : "it is no map of names";
  const hint = text.includes("<%") ? "It is an ERB template: render it first." : "Give the file as Rails reads it.";
  findings.problem("", `${path} is not YAML: ${why}`, hint);
  return undefined;
}

/**
 * Resolves the merge keys `<<: *name` and `<<: [*a, *b]`. The first source in the list has precedence over later ones, and the map's own
 * entries have precedence over all sources.
 */
function merged(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(merged);
  if (!isRow(value)) return value;
  const sources = [value["<<"]].flat().filter(isRow).map(merged).filter(isRow).reverse();
  const own = Object.entries(value).filter(([name]) => name !== "<<");
  return Object.assign({}, ...sources, Object.fromEntries(own.map(([name, one]) => [name, merged(one)])));
}

/**
 * Returns the tasks of a file. If the tasks are in sections, one per environment, the section `production` is used, or else the first
 * section that has tasks.
 */
export function tasksOfSections(
  content: Row,
  isTask: (row: Row) => boolean,
  path: string,
  findings: Findings,
): [string, Row][] {
  const rows = Object.entries(content).filter((entry): entry is [string, Row] => isRow(entry[1]));
  const flat = rows.filter(([, row]) => isTask(row));
  const sections = rows.filter(
    ([, row]) => !isTask(row) && Object.values(row).some((one) => isRow(one) && isTask(one)),
  );
  if (sections.length === 0 || flat.length > 0) return flat;
  const [name, section] = sections.find(([one]) => one === "production") ?? (sections[0] as [string, Row]);
  const others = sections.filter(([one]) => one !== name).map(([one]) => one);
  if (others.length > 0)
    findings.note(
      "",
      `${path}: the section ${name} is imported; passed over: ${others.join(", ")}`,
      "For another, give a file with that section alone.",
    );
  return Object.entries(section).filter((entry): entry is [string, Row] => isRow(entry[1]));
}
