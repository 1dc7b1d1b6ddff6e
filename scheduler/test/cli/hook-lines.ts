/** The command lines of `lines` (command-lines.ts) that concern incoming webhooks. */
export const hookLines: Readonly<Record<string, readonly string[]>> = {
  "hooks list": [""],
  "hooks show": ["github", "no-such", "two~words"],
  "hooks set": [
    "github {folder}/hook.yaml --reason key",
    "github {folder}/hook.yaml",
    "other {folder}/hook.yaml",
    "team/other {folder}/hook.yaml",
    "two~words {folder}/hook.yaml",
    "other {folder}/wrong-hook.yaml",
    "other {folder}/no-secret.yaml",
    "other {folder}/rule.yaml",
    "other {folder}/no-such.yaml",
    "other",
  ],
  "hooks delete": ["github --reason gone", "github", "no-such"],
};
