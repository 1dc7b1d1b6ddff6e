import { yamlDocuments } from "../../apply/yaml-documents.ts";
import { CarillonError } from "../../base/errors.ts";
import { textOfFile } from "./read-tasks.ts";

/** Returns the first document of a YAML file, which is not checked. @param page the docs page for the hint @throws FILE_INVALID */
export function yamlObject(file: string, page: string): unknown {
  const [read] = yamlDocuments(textOfFile(file, `Give the path of a YAML file; see ${page}.`));
  if (read && "problem" in read)
    throw new CarillonError("FILE_INVALID", `${file} is not YAML: ${read.problem}`, { hint: `See ${page}.` });
  return read?.content;
}
