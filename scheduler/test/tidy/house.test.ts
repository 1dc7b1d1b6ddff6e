import { describe, expect, it } from "vitest";
import { errorCodes } from "../../src/base/errors.ts";
import { noSpreadLiterals, smallFunctions } from "./functions.ts";
import {
  everyTestRuns,
  expressionsWritten,
  hooksHold,
  linksByRouter,
  nothingEvaluated,
  nothingLeftOver,
  nothingSwallowed,
  timeArrives,
} from "./honesty.ts";
import { dependencyRule, importDirection, noCircles, smallFolders } from "./imports.ts";
import { logLinesListed } from "./logs.ts";
import { commentsPlain, oneWordInProse, oneWordPerIdea, smallFiles, tellingPaths } from "./names.ts";
import { fullWidthInChinese, guideInChinese, pagesShort } from "./pages.ts";
import {
  benchesNamed,
  changesTold,
  dependenciesUsed,
  errorsListed,
  errorsReal,
  noMachinePaths,
  noRegistryHosts,
} from "./papers.ts";
import { testsNamed } from "./shown.ts";
import { runsMadeInOnePlace } from "./statements.ts";
import { noStopwatches } from "./stopwatches.ts";
import { type Rule, readHouse } from "./tree.ts";

const house = readHouse();

const rules: Record<string, Rule> = {
  "keeps the list of rooms": dependencyRule,
  "has no circle of imports": noCircles,
  "has folders that one person can survey": smallFolders,
  "imports nothing from simulation, faults, test, bench or examples": importDirection,
  "takes time and chance as arguments": timeArrives,
  "runs every test": everyTestRuns,
  "hooks into every file of tests": hooksHold,
  "says in tests what happened, not how fast": noStopwatches,
  "leaves nothing unfinished": nothingLeftOver,
  "swallows no error": nothingSwallowed,
  "runs no text as code": nothingEvaluated,
  "makes no regular expression of text": expressionsWritten,
  "takes no text for an address in the console": linksByRouter,
  "has files that one person can hold": smallFiles,
  "has functions that one person can read": smallFunctions,
  "spreads no literal": noSpreadLiterals,
  "has paths that tell something": tellingPaths,
  "uses one word per idea in code": oneWordPerIdea,
  "uses one word per idea in prose": oneWordInProse,
  "has comments in plain sentences": commentsPlain,
  "shows nobody's machine": noMachinePaths,
  "names no registry": noRegistryHosts,
  "uses every dependency, and declares it": dependenciesUsed,
  "lists every error with advice": errorsListed(errorCodes),
  "throws and tests every error": errorsReal(errorCodes),
  "makes runs in one place": runsMadeInOnePlace,
  "tells its changes": changesTold,
  "names every bench": benchesNamed,
  "shows what holds by tests that there are": testsNamed,
  "lists every line of the log": logLinesListed,
  "has pages that say one thing": pagesShort,
  "has the guide in Chinese": guideInChinese,
  "punctuates Chinese in full width": fullWidthInChinese,
};

describe("the code base's rules", () => {
  it("apply to all of its files", () => {
    const paths = house.map(({ path }) => path);
    expect(paths).toContain("scheduler/src/base/errors.ts");
    expect(paths).toContain("package.json");
    expect(paths.filter((path) => path.includes("node_modules"))).toEqual([]);
  });

  it.each(Object.entries(rules))("%s", (_, rule) => {
    expect(rule(house)).toEqual([]);
  });
});
