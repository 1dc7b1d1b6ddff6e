/** Runs Lighthouse with its desktop settings in the bench's browser, through the browser's debugging port. */
import type { Figures } from "../measure/figures.ts";

interface Audited {
  lhr: {
    categories: Record<string, { score: number | null; auditRefs: { id: string; weight: number }[] }>;
    audits: Record<string, { score: number | null; title: string; displayValue?: string }>;
  };
}
type Lighthouse = (url: string, flags: object, config: object) => Promise<Audited | undefined>;

const categories = { performance: "performance", accessibility: "accessibility", "best-practices": "best_practices" };

/** @param notes receives a line for each audit that scores below the maximum */
export async function audit(url: string, port: number, screen: string, notes: string[]): Promise<Figures> {
  const name = "lighthouse";
  const { default: lighthouse, desktopConfig } = (await import(name)) as { default: Lighthouse; desktopConfig: object };
  const flags = { port, onlyCategories: Object.keys(categories), logLevel: "error", disableStorageReset: true };
  const audited = await lighthouse(url, flags, desktopConfig);
  if (!audited) throw new Error(`Lighthouse said nothing of ${url}`);
  const { lhr } = audited;
  const figures: Figures = {};
  for (const [category, figure] of Object.entries(categories)) {
    const { score, auditRefs } = lhr.categories[category] ?? { score: null, auditRefs: [] };
    figures[`lighthouse_${figure}_${screen}`] = Math.round((score ?? Number.NaN) * 100);
    for (const { id, weight } of auditRefs) {
      const { score: mark, title, displayValue = "" } = lhr.audits[id] ?? { score: null, title: id };
      if (weight > 0 && mark !== null && mark < 1)
        notes.push(`Lighthouse, ${screen}, ${category}: ${title} ${displayValue} (${mark})`);
    }
  }
  return figures;
}
