import type { Command } from "commander";
import { CarillonError } from "../base/errors.ts";
import { type Candidate, type Completion, completionOf, type Named, wordsOf } from "./completion.ts";
import { readProfiles } from "./config/profiles.ts";
import { type ExitCode, exitCodes } from "./exit-codes.ts";
import { chosenReach } from "./reach.ts";
import type { Terminal } from "./screen/terminal.ts";
import { plain } from "./screen/text.ts";
import { lookingOptions } from "./store-choice.ts";

/** The time limit in ms for reading names after the user has pressed Tab; after that no names are offered. */
const answerMs = 1_500;
const namesMost = 200;

/**
 * Prints completions for a shell: on the first line `files` or `words`, then one candidate per line; for zsh and fish, a candidate's
 * description follows after a tab. Prints no errors, because a message would appear in the middle of the line that the user is typing.
 * @param given for bash: the last word as bash split it, and the line up to the cursor; for the other shells: the words
 */
export async function complete(program: Command, [shell = "", ...given]: string[]): Promise<ExitCode> {
  const words = shell === "bash" ? wordsOf(given[1] ?? "").slice(1) : given;
  const completion = completionOf(program, words);
  const { before, beginning } = completion;
  const candidates = [...completion.candidates, ...(await named(completion))].map(({ value, description }) => ({
    value: before + value,
    description,
  }));
  // Bash splits "eu:settle" and "--task=eu" into several words and replaces only the last one, so the start of each candidate is
  // cut off.
  const whole = before + beginning;
  const cut = shell === "bash" && whole.endsWith(given[0] ?? "") ? whole.length - (given[0] ?? "").length : 0;
  const line = ({ value, description }: Candidate) =>
    shell === "bash" || description === "" ? value.slice(cut) : `${value}\t${plain(description)}`;
  process.stdout.write(`${[completion.files ? "files" : "words", ...candidates.map(line)].join("\n")}\n`);
  return exitCodes.ok;
}

async function named({ named: thing, beginning, options }: Completion): Promise<Candidate[]> {
  if (thing === null) return [];
  try {
    const { readConfig } = await import("./config/config-file.ts");
    const file = await readConfig(undefined, process.env);
    const names = await namesOf(thing, beginning, { color: false, ...options, ...(file ? { file } : {}) });
    return names.map((value) => ({ value, description: "" }));
  } catch {
    // The cluster is unreachable or refuses the request, so no names are offered.
    return [];
  }
}

/** Returns names of the given kind that start with `beginning`, up to a limit. */
export async function namesOf(
  thing: Named,
  beginning: string,
  options: Parameters<typeof chosenReach>[0],
): Promise<string[]> {
  return (await namesAt(thing, beginning, options)).filter((name) => name.startsWith(beginning));
}

/** Returns names of one kind. For some kinds the caller must still filter them by `beginning`. */
async function namesAt(thing: Named, beginning: string, options: Parameters<typeof chosenReach>[0]): Promise<string[]> {
  if (thing === "profiles") return Object.keys(readProfiles(process.env).profiles);
  const reach = chosenReach(options);
  if (reach.kind === "store") {
    const { store, directory, schema = "carillon" } = lookingOptions(options);
    const { runningUrl } = await import("../embedded/running.ts");
    const url = store ?? runningUrl(directory ?? ".carillon");
    if (url === null) return [];
    const { namesIn } = await import("../store/postgres/names.ts");
    return namesIn({ url, schema, answerMs }, thing, beginning, namesMost);
  }
  const { patientClient } = await import("./cluster/calls.ts");
  const api = patientClient(reach, new AbortController().signal, answerMs);
  const page = { limit: namesMost };
  switch (thing) {
    case "tasks":
      return (await api.listTasks({ ...page, matching: `${beginning.replace(/[*?]/g, "?")}*` })).items.map(
        ({ name }) => name,
      );
    case "calendars":
      return (await api.listCalendars(page)).items.map(({ name }) => name);
    case "groups":
      return (await api.listGroups(page)).items.map(({ name }) => name);
    case "keys":
      return (await api.listWorkerKeys(page)).items.flatMap(({ name, revoked }) => (revoked === null ? [name] : []));
    case "nodes": {
      const [nodes, workers] = await Promise.all([api.listNodes(page), api.listWorkers(page)]);
      return [...new Set([...nodes.items, ...workers.items].map(({ node }) => node))];
    }
  }
}

const scripts: Readonly<Record<string, string>> = {
  bash: `# carillon completion for bash. In ~/.bashrc: eval "$(carillon completion bash)"
_carillon() {
  local IFS=$'\\n' word="\${COMP_WORDS[COMP_CWORD]}" answer
  case "$word" in :|=) word="" ;; esac
  answer=($("\${COMP_WORDS[0]}" __complete bash "$word" "\${COMP_LINE:0:COMP_POINT}" 2>/dev/null))
  COMPREPLY=("\${answer[@]:1}")
  if [ "\${answer[0]}" = files ]; then
    COMPREPLY+=($(compgen -f -- "$word"))
    compopt -o filenames 2>/dev/null
  fi
}
complete -F _carillon carillon
`,
  zsh: `#compdef carillon
# carillon completion for zsh. In ~/.zshrc, after compinit: eval "$(carillon completion zsh)"
_carillon() {
  local -a answer described
  local line value
  answer=("\${(@f)$("\${words[1]}" __complete zsh "\${(@Q)words[2,CURRENT-1]}" "\${(Q)words[CURRENT]}" 2>/dev/null)}")
  for line in "\${(@)answer[2,-1]}"; do
    value="\${line%%$'\\t'*}"
    if [[ "$line" == *$'\\t'* ]]; then described+=("\${value//:/\\\\:}:\${line#*$'\\t'}"); else described+=("\${value//:/\\\\:}"); fi
  done
  (( \${#described} )) && _describe carillon described
  [[ "\${answer[1]}" == files ]] && _files
  return 0
}
compdef _carillon carillon
`,
  fish: `# carillon completion for fish. Save as ~/.config/fish/completions/carillon.fish
function __carillon_complete
  set -l words (commandline -opc)
  set -l typed (commandline -ct)
  set -l answer ($words[1] __complete fish $words[2..-1] "$typed" 2>/dev/null)
  if test "$answer[1]" = files
    __fish_complete_path "$typed"
  end
  string join \\n -- $answer[2..-1]
end
complete -c carillon -f -a '(__carillon_complete)'
`,
};

/** Prints the completion script for a shell. @throws USAGE for an unknown shell */
export async function completionScript(shell: string, terminal: Terminal): Promise<ExitCode> {
  const script = scripts[shell];
  if (script === undefined)
    throw new CarillonError("USAGE", `there is no completion for ${JSON.stringify(shell)}`, {
      hint: "There is one for bash, zsh and fish.",
    });
  terminal.line(script.trimEnd());
  return exitCodes.ok;
}
