import { partsOf } from "./code.ts";
import { isNode, type SyntaxNode, treeOf } from "./syntax.ts";
import { at, type HouseFile, isCode, isTest, type Rule } from "./tree.ts";

const linesMost = 120;
const parametersMost = 5;

/** Migrations may have long functions: each is one text of SQL that never changes, so splitting it would not help. */
const exempt = /^scheduler\/src\/store\/postgres\/migrations\/\d{4}-[\w-]+\.ts$/;
/** The packages whose sources are checked. Test files are left out, because a `describe` is one long function. */
const measured = /^(?:scheduler|zookeeper|console|simulation|faults|fuzz|bench|examples)\//;

const functionTypes: ReadonlySet<string> = new Set([
  "FunctionDeclaration",
  "FunctionExpression",
  "ArrowFunctionExpression",
]);

interface Found {
  node: SyntaxNode;
  /** The function's name, or the name of the variable that the function is assigned to. */
  name: string;
}

const nameIn = (node: SyntaxNode | undefined): string | undefined => {
  const named = node?.id ?? node?.key;
  return isNode(named) && typeof named.name === "string" ? named.name : undefined;
};

/** Returns all functions that have a body, so not overloads or function types. */
function functionsIn(node: SyntaxNode, parent?: SyntaxNode): Found[] {
  const own = functionTypes.has(node.type) && node.body ? [node] : [];
  const found = own.map((one) => ({ node: one, name: nameIn(one) ?? nameIn(parent) ?? "a function without a name" }));
  for (const part of Object.values(node))
    for (const child of Array.isArray(part) ? part : [part]) if (isNode(child)) found.push(...functionsIn(child, node));
  return found;
}

function wrongIn(file: HouseFile): string[] {
  return functionsIn(treeOf(file)).flatMap(({ node, name }) => {
    const lines = file.text.slice(node.start, node.end).split("\n").length;
    const parameters = (node.params as unknown[]).length;
    return [
      ...(lines > linesMost ? [at(file, node.start, `${name} has ${lines} lines, more than ${linesMost}`)] : []),
      ...(parameters > parametersMost
        ? [at(file, node.start, `${name} has ${parameters} positional parameters; take an object`)]
        : []),
    ];
  });
}

/** Rule: a function has few lines and few parameters, so that it can be read in one go and its calls are clear. */
export const smallFunctions: Rule = (files) =>
  files
    .filter((file) => isCode(file) && measured.test(file.path) && !isTest(file) && !exempt.test(file.path))
    .flatMap(wrongIn);

/**
 * Rule: no object literal is spread (`...{ a, b }`), because its properties can be listed directly. Such a spread changes nothing except
 * that the formatter puts several properties on one line.
 */
export const noSpreadLiterals: Rule = (files) =>
  files
    .filter(isCode)
    .flatMap((file) =>
      [...partsOf(file.text).code.matchAll(/\.\.\.\{/g)].map(({ index }) =>
        at(file, index, "spreads an object literal"),
      ),
    );
