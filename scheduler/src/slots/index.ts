/** carillon/slots: computes when one slot of a schedule runs under its calendar and blackouts; pure, also for browsers. */
export { judgedSlot } from "./coming-slots.ts";
