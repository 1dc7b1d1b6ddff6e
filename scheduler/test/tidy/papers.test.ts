import { type Case, holdsCases } from "./cases.ts";
import {
  benchesNamed,
  changesTold,
  dependenciesUsed,
  errorsListed,
  errorsReal,
  noMachinePaths,
  noRegistryHosts,
} from "./papers.ts";

const AB = "### AB\n\nIt\nbroke.\n\nMend it.";
const CD = "### CD\n\nIt ended.\n\nGo on.";

const cases: Case[] = [
  {
    name: "noMachinePaths",
    rule: noMachinePaths,
    broken: ["see /work/main", 'cd "/home/anna/x"', "/Users/anna", "C:\\Users\\anna", "/root/x"].map((text) => ({
      "docs/a.md": text,
    })),
    kept: {
      "scheduler/src/crontab/a.test.ts": "HOME=/home/anna",
      "docs/a.md": "https://a.org/work/x, ../home/x and `0 0 * * * /usr/bin/true`; /home/linuxbrew/.linuxbrew",
    },
  },
  {
    name: "noRegistryHosts",
    rule: noRegistryHosts,
    broken: [
      { "package-lock.json": '"resolved": "https://example.org/a.tgz"' },
      { "docs/a.md": "from registry.npmjs.org" },
      { ".npmrc": "registry=https://registry.example.org/" },
    ],
    kept: { "package-lock.json": '"resolved": "scheduler"', "docs/a.md": "a registry. Then" },
  },
  {
    name: "dependenciesUsed",
    rule: dependenciesUsed,
    broken: [
      { "scheduler/package.json": '{"dependencies":{"pg":"1"}}', "scheduler/src/a.ts": 'const text = "pgx";' },
      { "scheduler/package.json": '{"dependencies":{"pg":"1"}}', "scheduler/src/a.test.ts": 'import "pg";' },
      { "package.json": '{"devDependencies":{"zod":"1"}}', "scheduler/src/a.ts": "" },
      { "package.json": '{"devDependencies":{"@types/pg":"1"}}', "scheduler/src/a.ts": "" },
      { "scheduler/package.json": '{"optionalDependencies":{"@embedded/linux-x64":"1"}}', "scheduler/src/a.ts": "" },
      { "scheduler/package.json": '{"dependencies":{}}', "scheduler/src/a.ts": 'import { z } from "zod/v4";' },
    ],
    kept: {
      "package.json": '{"devDependencies":{"@types/node":"1","@types/pg":"1","zod":"1","@biomejs/biome":"1"}}',
      "scheduler/package.json":
        '{"dependencies":{"pg":"1","@standard-schema/spec":"1"},"optionalDependencies":{"@embedded/linux-x64":"1"}}',
      "scheduler/src/binaries.ts": "const name = `@embedded/${process.platform}-${process.arch}`;",
      "scheduler/src/a.ts": 'import pg from "pg"; import type { A } from "@standard-schema/spec"; import "node:fs";',
      "scheduler/src/a.test.ts": 'import { z } from "zod";',
      "scripts/test.mjs": 'join(root, "node_modules/@biomejs/biome/bin/biome")',
    },
  },
  {
    name: "errorsListed",
    rule: errorsListed({ AB: "It broke.", CD: "It ended." }),
    broken: [
      [CD],
      [AB],
      ["### AB\n\nIt broke.", CD],
      ["### AB\n\nOther.\n\nMend it.", CD],
      [CD, AB],
      [AB, CD, "### EF\n\nGone.\n\nGo."],
    ].map((sections) => ({ "docs/reference/errors.md": `# Errors\n\n${sections.join("\n\n")}\n` })),
    kept: { "docs/reference/errors.md": `# Errors\n\nText.\n\n## A family\n\n${AB}\n\n## Another\n\n${CD}\n` },
  },
  {
    name: "errorsReal",
    rule: errorsReal({ AB: "It broke." }),
    broken: [
      { "scheduler/src/a.ts": 'fail("AB")' },
      { "scheduler/src/base/errors.ts": '"AB"', "scheduler/test/a.test.ts": '"AB"' },
      { "scheduler/src/a.ts": 'fail("ABC")', "scheduler/src/a.test.ts": '"AB"' },
    ],
    kept: { "scheduler/src/a.ts": 'fail("AB")', "scheduler/src/a.test.ts": 'expect(code).toBe("AB")' },
  },
  {
    name: "changesTold",
    rule: changesTold,
    broken: [
      {},
      { "CHANGELOG.md": "# Changes\n\n## 0.0.9\n\n- old\n" },
      { "CHANGELOG.md": "## Unreleased\n\n## 0.0.9\n\n- old" },
    ],
    kept: { "CHANGELOG.md": "# Changes\n\n## 0.1.0 (unreleased)\n\n### Added\n\n- new\n" },
  },
  {
    name: "benchesNamed",
    rule: benchesNamed,
    broken: [{ "bench/burst.ts": "" }, { "bench/burst.ts": "", "README.md": "`npm run bench -- bursting`" }],
    kept: { "bench/burst.ts": "", "bench/support/table.ts": "", "README.md": "`npm run bench -- burst`" },
  },
];

holdsCases(cases);
