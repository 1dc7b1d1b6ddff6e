import { isNode, nodesIn, type SyntaxNode, treeOf } from "./syntax.ts";
import { at, type HouseFile, isCode, isTest, type Rule } from "./tree.ts";

/** The shortest bound or deadline, in ms, that only ends a hanging test. The result of a shorter one depends on how busy the machine is. */
const guardMs = 60_000;

/** Files that may have assertions on time, each with the reason. */
const exceptions: ReadonlyMap<string, string> = new Map([]);
/** Tests of `npm run prove -- timing`, which may measure time. */
const measured = /^scheduler\/test\/timing\//;

const readsClock = /\b(?:performance\.now|Date\.now|process\.hrtime)\b|\belapsed\(/;
const namesTime = /^(?:took|elapsed|late(?:ness)?|lag)(?:Ms|S)?$|^\w+(?:Took|Late|Lag|Elapsed)Ms$/;
const bounds: ReadonlySet<unknown> = new Set(["toBeLessThan", "toBeLessThanOrEqual"]);
const waits: ReadonlySet<string> = new Set(["waitUntil", "waitFor", "poll"]);

const childOf = (node: SyntaxNode, part: string): SyntaxNode | undefined => {
  const child = node[part];
  return isNode(child) ? child : undefined;
};
const argumentsOf = (node: SyntaxNode): SyntaxNode[] => (node.arguments as unknown[]).filter(isNode);
const nameOf = (node: SyntaxNode | undefined): string | undefined =>
  typeof node?.name === "string" ? node.name : undefined;
const calledBy = (node: SyntaxNode): string | undefined => {
  const callee = childOf(node, "callee");
  return nameOf(callee?.type === "MemberExpression" ? childOf(callee, "property") : callee);
};

/** Returns the call of `expect` at the beginning of a chain of matchers. */
function expectOf(node: SyntaxNode | undefined): SyntaxNode | undefined {
  if (node === undefined) return undefined;
  if (node.type === "CallExpression" && nameOf(childOf(node, "callee")) === "expect") return node;
  return expectOf(childOf(node, "object") ?? childOf(node, "callee"));
}

/** Checks one file: records which of its variables are durations or numbers, and collects the violations. */
class Stopwatches {
  readonly #file: HouseFile;
  readonly #nodes: readonly SyntaxNode[];
  /** Names of variables whose initial value contains a reading of a clock and a subtraction. */
  readonly #durations = new Set<string>();
  readonly #numbers = new Map<string, number>();

  constructor(file: HouseFile) {
    this.#file = file;
    this.#nodes = [...nodesIn(treeOf(file))];
    for (const node of this.#nodes) {
      const [name, value] = [nameOf(childOf(node, "id")), childOf(node, "init")];
      if (node.type !== "VariableDeclarator" || name === undefined || value === undefined) continue;
      if (typeof value.value === "number") this.#numbers.set(name, value.value);
      if (
        value.type !== "ArrowFunctionExpression" &&
        readsClock.test(this.#text(value)) &&
        / - /.test(this.#text(value))
      )
        this.#durations.add(name);
    }
  }

  #text({ start, end }: SyntaxNode): string {
    return this.#file.text.slice(start, end);
  }

  #numberOf(node: SyntaxNode | undefined): number | undefined {
    if (typeof node?.value === "number") return node.value;
    return this.#numbers.get(nameOf(node) ?? "");
  }

  #isDuration(subject: SyntaxNode): boolean {
    if (readsClock.test(this.#text(subject))) return true;
    return [...nodesIn(subject)].some((node) => {
      const name = node.type === "Identifier" ? nameOf(node) : undefined;
      return name !== undefined && (this.#durations.has(name) || namesTime.test(name));
    });
  }

  /** Returns how the node breaks the rule; undefined if it does not. */
  #faultOf(node: SyntaxNode): string | undefined {
    if (node.type !== "CallExpression") return undefined;
    const [first, , third] = argumentsOf(node);
    const name = calledBy(node);
    if (bounds.has(name)) {
      const [subject] = argumentsOf(expectOf(childOf(node, "callee")) ?? { ...node, arguments: [] });
      const isGuard = (this.#numberOf(first) ?? 0) >= guardMs;
      return subject && !isGuard && this.#isDuration(subject) ? "says how fast" : undefined;
    }
    if (name === "until") return (this.#numberOf(third) ?? guardMs) < guardMs ? "waits for less than 60 s" : undefined;
    const timeout = waits.has(name ?? "") ? this.#timeoutOf(node) : undefined;
    return timeout !== undefined && timeout < guardMs ? "waits for less than 60 s" : undefined;
  }

  /** Returns the timeout in ms of a call, if it is known. @param call a call of a Vitest function whose last argument may have `timeout` */
  #timeoutOf(call: SyntaxNode): number | undefined {
    const options = argumentsOf(call).at(-1);
    if (options?.type !== "ObjectExpression") return undefined;
    for (const property of options.properties as SyntaxNode[])
      if (nameOf(childOf(property, "key")) === "timeout") return this.#numberOf(childOf(property, "value"));
    return undefined;
  }

  faults(): string[] {
    return this.#nodes.flatMap((node) => {
      const fault = this.#faultOf(node);
      return fault === undefined ? [] : [at(this.#file, node.start, `${fault}: ${this.#text(node).split("\n", 1)[0]}`)];
    });
  }
}

/** Rule: a test checks what happened, not how fast. It waits for events with a deadline so long that only a hang exceeds it. */
export const noStopwatches: Rule = (files) =>
  files
    .filter((file) => isCode(file) && isTest(file) && !measured.test(file.path) && !exceptions.has(file.path))
    .flatMap((file) => new Stopwatches(file).faults());
