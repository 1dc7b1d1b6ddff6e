/**
 * The script that measures inside the page; the browser runs it before the page's own scripts. It is a string, because this project's
 * TypeScript settings do not include the DOM types.
 */
export const inPage = `
globalThis.bench = (() => {
  const bench = { events: [], lcp: NaN };
  new PerformanceObserver((list) => {
    for (const { interactionId, duration } of list.getEntries()) if (interactionId) bench.events.push(duration);
  }).observe({ type: "event", durationThreshold: 16 });
  new PerformanceObserver((list) => {
    for (const { startTime } of list.getEntries()) bench.lcp = startTime;
  }).observe({ type: "largest-contentful-paint", buffered: true });
  const content = () => document.querySelector("#content");
  // The time of the first frame that shows it.
  bench.when = (test) => new Promise((resolve) => {
    const look = () => requestAnimationFrame(test() ? () => resolve(performance.now()) : look);
    look();
  });
  bench.overview = () => bench.when(() => {
    const shown = content();
    return shown && shown.querySelectorAll("li a").length > 0 && !shown.textContent.includes("…");
  });
  bench.says = (text) => bench.when(() => content() && content().textContent.includes(text));
  // The time of the first frame that shows the text, in the page or on the wallboard, which has no #content; null after the limit.
  bench.shows = (text, limitMs) => {
    const place = () => content() ?? document.querySelector("main");
    return Promise.race([
      bench.when(() => place() && place().innerText.includes(text)),
      new Promise((resolve) => setTimeout(() => resolve(null), limitMs)),
    ]);
  };
  bench.slowestAnswer = () => Math.max(0, ...performance.getEntriesByType("resource")
    .filter(({ name }) => new URL(name).pathname.startsWith("/v1/"))
    .map(({ requestStart, responseEnd }) => responseEnd - requestStart));
  // To the end, so many pixels a frame; where the list is not there yet it waits, and the frames count all the same.
  bench.scroll = async (pixels, rows) => {
    const place = document.querySelector("#content [role=table]").parentElement;
    const frames = [];
    // A frame's own time, which is the screen's: one that was missed is twice as long.
    let before = await new Promise(requestAnimationFrame);
    for (let still = 0; still < 120; ) {
      const now = await new Promise(requestAnimationFrame);
      frames.push(now - before);
      before = now;
      const top = place.scrollTop;
      place.scrollTop = top + pixels;
      const last = [...place.querySelectorAll("[aria-rowindex]")].at(-1);
      still = place.scrollTop === top && Number(last.ariaRowIndex ?? last.getAttribute("aria-rowindex")) >= rows ? still + 40 : place.scrollTop === top ? still + 1 : 0;
    }
    return frames;
  };
  return bench;
})();
`;
