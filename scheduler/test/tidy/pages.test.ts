import { type Case, holdsCases } from "./cases.ts";
import { fullWidthInChinese, guideInChinese, pagesShort, wordsMost } from "./pages.ts";

const words = (count: number) => "word ".repeat(count);

const cases: Case[] = [
  {
    name: "pagesShort",
    rule: pagesShort,
    broken: [{ "docs/a.md": words(wordsMost + 1) }, { "docs/guide/a.md": `# ${words(wordsMost)}` }],
    kept: {
      "docs/a.md": `${words(wordsMost)}\n\`\`\`ts\n${words(9)}\n\`\`\`\n| ${words(9)} |\n  \`\`\`sh\n  a\n  \`\`\`\n`,
      "README.md": words(wordsMost + 1),
    },
  },
  {
    name: "guideInChinese",
    rule: guideInChinese,
    broken: [{ "docs/guide/a.md": "" }, { "docs/zh/guide/a.md": "" }],
    kept: { "docs/guide/a.md": "", "docs/zh/guide/a.md": "", "docs/b.md": "", "docs/zh/README.md": "" },
  },
  {
    name: "fullWidthInChinese",
    rule: fullWidthInChinese,
    broken: ["任务,调度", "任务: 调度", "[任务](a.md), a", "**任务**, a", "`a`, `b`", "a, 任务"].map((text) => ({
      "docs/zh/a.md": text,
    })),
    kept: {
      "docs/zh/a.md": "任务，[调度](a.md)（`a(b, c)`）：cron, rrule、node:test\n```ts\nf(任务, 调度);\n```\n",
      "docs/a.md": "任务,调度",
    },
  },
];

holdsCases(cases);
