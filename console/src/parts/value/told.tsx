import { useWords } from "../../messages/words.ts";

const instant = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?Z$/;

/** Shows an instant in UTC a second time in the viewer's zone, beside the stored value. Renders nothing for any other value. */
export function InWords({ value }: { value: unknown }) {
  const { moment } = useWords();
  if (typeof value !== "string" || !instant.test(value) || Number.isNaN(Date.parse(value))) return null;
  return <span className="soft"> {moment(Date.parse(value))}</span>;
}
