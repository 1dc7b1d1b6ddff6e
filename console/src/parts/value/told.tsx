import { useWords } from "../../messages/words.ts";

const instant = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?Z$/;

/** For a value that is an instant in UTC: the same time as the page writes times, beside the value as it is stored. */
export function InWords({ value }: { value: unknown }) {
  const { moment } = useWords();
  if (typeof value !== "string" || !instant.test(value) || Number.isNaN(Date.parse(value))) return null;
  return <span className="soft"> {moment(Date.parse(value))}</span>;
}
