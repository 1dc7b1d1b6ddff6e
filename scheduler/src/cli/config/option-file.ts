import { yamlDocuments } from "../../apply/yaml-documents.ts";
import { CarillonError } from "../../base/errors.ts";
import { textOfFile } from "../files/read-tasks.ts";
import { fromEnvironment } from "../variables.ts";
import { pages } from "./config-settings.ts";
import { openSecrets, secretsInOptions } from "./open-secrets.ts";

/**
 * Reads an option of a node from a YAML file. A text "env:NAME" is replaced by the value of that variable, so that secrets need not be in
 * the file.
 * @param name the option, such as "alarms" or "provider"
 * @param tell called with a SECRET_KEY_OPEN error if the file contains a secret in plain text and other users may read it
 * @throws FILE_INVALID, OPTION_INVALID
 */
export function readOptionFile<Options>(name: string, file: string, tell: (open: CarillonError) => void): Options {
  const page = pages[name] ?? "docs";
  const [read] = yamlDocuments(textOfFile(file, `Give the path of a YAML file; see ${page}.`));
  if (read && "problem" in read)
    throw new CarillonError("FILE_INVALID", `${file} is not YAML: ${read.problem}`, { hint: `See ${page}.` });
  const open = file === "-" ? undefined : openSecrets(file, file, secretsInOptions(name, read?.content));
  if (open) tell(open);
  return fromEnvironment(read?.content) as Options;
}
