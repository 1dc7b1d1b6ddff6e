import { isNode, nodesIn, type SyntaxNode, treeOf } from "./syntax.ts";
import { type HouseFile, isSource, type Rule } from "./tree.ts";

const levels = ["error", "warn", "info"];
const page = "docs/reference/logs.md";

/** Returns the text of a log message; `…` stands for values that are known only at run time. */
function textOf(node: SyntaxNode): string {
  if (node.type === "Literal") return String(node.value);
  if (node.type === "TemplateLiteral")
    return (node.quasis as { value: { cooked: string } }[]).map(({ value }) => value.cooked).join("…");
  if (node.type === "ConditionalExpression")
    return `${textOf(node.consequent as SyntaxNode)} / ${textOf(node.alternate as SyntaxNode)}`;
  return "…";
}

const nameOf = (node: unknown): string => {
  if (!isNode(node)) return "";
  return node.type === "MemberExpression" ? nameOf(node.property) : String(node.name ?? "").replace(/^#/, "");
};

/**
 * Returns the rows of the docs page, each once: the log calls at the levels that are logged by default whose message is known at
 * least in part.
 */
export function logRows(files: readonly HouseFile[]): string[] {
  const rows = new Set<string>();
  for (const file of files.filter((one) => isSource(one) && /\blog\b/i.test(one.text)))
    for (const node of nodesIn(treeOf(file))) {
      if (node.type !== "CallExpression" || !isNode(node.callee) || node.callee.type !== "MemberExpression") continue;
      const [level, log] = [nameOf(node.callee.property), nameOf(node.callee.object)];
      const [, message] = node.arguments as SyntaxNode[];
      if (log !== "log" || !levels.includes(level) || !message) continue;
      const text = textOf(message);
      const place = file.path.replace(/^scheduler\/src\//, "");
      if (text !== "…") rows.add(`| ${level} | ${text.replaceAll("|", "\\|")} | ${place} |`);
    }
  const orderOf = (row: string) => levels.findIndex((level) => row.startsWith(`| ${level} `));
  return [...rows].sort((a, b) => orderOf(a) - orderOf(b) || (a < b ? -1 : 1));
}

/** Rule: the table on the page has exactly the rows of `logRows`. */
export const logLinesListed: Rule = (files) => {
  const listed = (files.find(({ path }) => path === page)?.text ?? "")
    .split("\n")
    .filter((line) => /^\| (?:error|warn|info) \|/.test(line));
  const wanted = logRows(files);
  return [
    ...wanted.filter((row) => !listed.includes(row)).map((row) => `${page}:1 lacks the row ${row}`),
    ...listed.filter((row) => !wanted.includes(row)).map((row) => `${page}:1 has a row of no line of the log: ${row}`),
  ];
};
