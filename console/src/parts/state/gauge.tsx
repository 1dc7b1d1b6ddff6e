import { Progress } from "@mantine/core";

/** A progress bar. */
export function Gauge({ done, total, label }: { done: number; total: number; label: string }) {
  return <Progress value={total === 0 ? 100 : (100 * done) / total} aria-label={label} color="var(--c-run-fill)" />;
}
