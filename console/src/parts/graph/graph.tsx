/**
 * A directed graph that is navigated by arrow keys. Lines are SVG; nodes are links and buttons of the page, so that they have its colours,
 * its focus and its text, and a node opens like any other link. One node is selected at a time; it is the graph's only tab stop.
 */
import { ActionIcon } from "@mantine/core";
import { useElementSize, useMediaQuery } from "@mantine/hooks";
import { IconMinus, IconPlus, IconZoomScan } from "@tabler/icons-react";
import { Link, useNavigate } from "@tanstack/react-router";
import {
  type KeyboardEvent,
  type PointerEvent,
  type ReactNode,
  useEffect,
  useId,
  useMemo,
  useRef,
  useState,
} from "react";
import { useWords } from "../../messages/words.ts";
import type { Tone } from "../state/mark.tsx";
import css from "./graph.module.css";
import { curve, type Direction, type Laid, laid } from "./layout.ts";
import { isWay, nodeTowards } from "./steps.ts";

export interface GraphNode {
  id: string;
  tone: Tone;
  name: ReactNode;
  /** The whole name, for a tooltip. */
  title: string;
  /** The state below the name: a shape, a word and a colour. */
  state: ReactNode;
  /** Text that only screen readers read, after name and state; it says what the lines show. */
  unseen: string;
  /** The page that the node opens; undefined for a node that stands for several runs, which `onPress` opens. */
  opens?: { to: "/tasks/$task"; params: { task: string } } | { to: "/runs/$run"; params: { run: string } };
  onPress?: () => void;
  /** True for the node that the page is about. */
  isOwn?: boolean;
  isPaused?: boolean;
}

export interface GraphLine {
  from: string;
  to: string;
  /** The text on the line. */
  word?: string;
  /** The look of the line, in addition to its word. */
  kind?: "usual" | "failure" | "any";
}

interface GraphProps {
  label: string;
  nodes: readonly GraphNode[];
  lines: readonly GraphLine[];
  chosen: string;
  onChoose: (id: string) => void;
}

const box = { width: 208, height: 66 };
const [leastZoom, mostZoom, zoomStep] = [0.2, 1.6, 1.25];
/** The initial zoom of a graph that is larger than its place is at least this, so that its text can be read. */
const readableZoom = 0.7;

export function Graph({ label, nodes, lines, chosen, onChoose }: GraphProps) {
  const { t } = useWords();
  const narrow = useMediaQuery("(max-width: 640px)", false, { getInitialValueInEffect: false }) ?? false;
  const direction: Direction = narrow ? "down" : "right";
  const help = useId();
  const shape = JSON.stringify([
    nodes.map(({ id }) => id),
    lines.map(({ from, to, word }) => [from, to, word]),
    direction,
  ]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the layout does not depend on the states of the nodes.
  const picture = useMemo(
    () =>
      laid(
        nodes.map(({ id }) => id),
        lines,
        box,
        direction,
      ),
    [shape],
  );
  const place = useRef<HTMLDivElement>(null);
  const { ref: frame, width } = useElementSize<HTMLDivElement>();
  const { zoom, zoomBy, fit } = useZoom(picture, width, place);
  const dragging = useDragging(place);
  const here = picture.places.has(chosen) ? chosen : (nodes[0]?.id ?? "");

  /** True after a press that expands a node, until its runs are drawn: the node that had the focus no longer exists then. */
  const losesFocus = useRef(false);
  // biome-ignore lint/correctness/useExhaustiveDependencies: scrolls only for a new picture, or when the zoom becomes known.
  useEffect(() => {
    const [at, node] = [place.current, picture.places.get(here)];
    if (!at || !node || zoom === undefined) return;
    at.scrollTo({ left: node.x * zoom - at.clientWidth / 2, top: node.y * zoom - at.clientHeight / 2 });
    if (losesFocus.current) nodeIn(at, here)?.focus({ preventScroll: true });
    losesFocus.current = false;
  }, [picture, zoom === undefined]);

  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (isWay(event.key)) {
      event.preventDefault();
      const next = nodeTowards(event.key, here, { ...picture, lines, direction });
      if (next === undefined) return;
      onChoose(next);
      const there = nodeIn(place.current, next);
      there?.focus({ preventScroll: true });
      there?.scrollIntoView({ block: "nearest", inline: "nearest" });
      return;
    }
    const act = { "+": () => zoomBy(zoomStep), "=": () => zoomBy(zoomStep), "-": () => zoomBy(1 / zoomStep), "0": fit };
    if (!(event.key in act)) return;
    event.preventDefault();
    act[event.key as keyof typeof act]();
  };

  return (
    <div ref={frame}>
      <p id={help} className="unseen">
        {t("graph.help")}
      </p>
      <div className={css.zoom}>
        <ZoomButton name={t("graph.out")} onClick={() => zoomBy(1 / zoomStep)}>
          <IconMinus size={16} />
        </ZoomButton>
        <ZoomButton name={t("graph.fit")} onClick={fit}>
          <IconZoomScan size={16} />
        </ZoomButton>
        <ZoomButton name={t("graph.in")} onClick={() => zoomBy(zoomStep)}>
          <IconPlus size={16} />
        </ZoomButton>
      </div>
      {/* biome-ignore lint/a11y/useSemanticElements: a fieldset belongs in a form. */}
      <div
        ref={place}
        role="group"
        aria-label={label}
        aria-describedby={help}
        className={css.place}
        onKeyDown={onKeyDown}
        {...dragging}
      >
        {zoom !== undefined && (
          <div className={css.sheet} style={{ width: picture.width * zoom, height: picture.height * zoom }}>
            <div
              className={css.picture}
              style={{ width: picture.width, height: picture.height, transform: `scale(${zoom})` }}
            >
              <Lines lines={lines} picture={picture} direction={direction} chosen={here} />
              {nodes.map((node) => (
                <Node
                  key={node.id}
                  node={node}
                  picture={picture}
                  isChosen={node.id === here}
                  onChoose={onChoose}
                  onOpening={() => {
                    losesFocus.current = true;
                  }}
                />
              ))}
            </div>
          </div>
        )}
      </div>
    </div>
  );
}

const nodeIn = (place: HTMLElement | null, id: string) =>
  [...(place?.querySelectorAll<HTMLElement>("[data-node]") ?? [])].find(({ dataset }) => dataset.node === id);

function ZoomButton({ name, onClick, children }: { name: string; onClick: () => void; children: ReactNode }) {
  return (
    <ActionIcon variant="default" size={32} aria-label={name} title={name} onClick={onClick}>
      {children}
    </ActionIcon>
  );
}

interface NodeProps {
  node: GraphNode;
  picture: Laid;
  isChosen: boolean;
  onChoose: (id: string) => void;
  /** Called before a node that stands for several runs is expanded. */
  onOpening: () => void;
}

function Node({ node, picture, isChosen, onChoose, onOpening }: NodeProps) {
  const { id, tone, opens, onPress, isOwn, isPaused } = node;
  const navigate = useNavigate();
  const { x = 0, y = 0 } = picture.places.get(id) ?? {};
  const given = {
    className: css.node,
    "data-node": id,
    "data-tone": tone,
    "data-chosen": isChosen || undefined,
    "data-own": isOwn || undefined,
    "data-paused": isPaused || undefined,
    tabIndex: isChosen ? 0 : -1,
    style: { left: x - box.width / 2, top: y - box.height / 2, ...box },
    onFocus: () => onChoose(id),
  };
  const content = (
    <>
      <span className={css.name} title={node.title}>
        {node.name}
      </span>
      <span className={css.state}>{node.state}</span>
      {node.unseen !== "" && <span className="unseen">{node.unseen}</span>}
    </>
  );
  if (opens === undefined)
    return (
      <button
        type="button"
        {...given}
        onClick={() => {
          onOpening();
          onPress?.();
        }}
      >
        {content}
      </button>
    );
  return (
    <Link
      {...opens}
      draggable={false}
      {...given}
      onClick={(event) => {
        // A click selects the node, so that its actions are shown. Enter (`detail` 0) and a click with a modifier key follow the link.
        if (event.detail === 0 || event.ctrlKey || event.metaKey || event.shiftKey) return;
        event.preventDefault();
        onChoose(id);
      }}
      onDoubleClick={() => void navigate(opens)}
    >
      {content}
    </Link>
  );
}

function Lines({
  lines,
  picture,
  direction,
  chosen,
}: {
  lines: readonly GraphLine[];
  picture: Laid;
  direction: Direction;
  chosen: string;
}) {
  const head = useId();
  return (
    <>
      <svg className={css.lines} width={picture.width} height={picture.height} aria-hidden="true">
        <defs>
          <marker id={head} viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="8" markerHeight="8" orient="auto">
            <path d="M0 .5 7.5 4 0 7.5Z" className={css.head} />
          </marker>
        </defs>
        {lines.map(({ from, to, kind = "usual" }, at) => (
          <path
            key={`${from} ${to}`}
            d={curve(picture.bends[at] ?? [], direction)}
            className={css.line}
            data-kind={kind}
            data-near={from === chosen || to === chosen || undefined}
            markerEnd={`url(#${head})`}
          />
        ))}
      </svg>
      {lines.map(({ from, to, word, kind }, at) => {
        const bends = picture.bends[at] ?? [];
        const middle = bends[Math.floor(bends.length / 2)];
        if (word === undefined || !middle) return null;
        return (
          <span
            key={`${from} ${to}`}
            aria-hidden
            className={css.word}
            data-kind={kind}
            style={{ left: middle.x, top: middle.y }}
          >
            {word}
          </span>
        );
      })}
    </>
  );
}

/** The zoom of a picture; undefined until the width of its place is known. Ctrl with the wheel zooms too. */
function useZoom(picture: Laid, width: number, place: React.RefObject<HTMLDivElement | null>) {
  const [own, setOwn] = useState<number>();
  const fitting = width === 0 ? undefined : Math.min(1, width / picture.width);
  const zoom = own ?? (fitting === undefined ? undefined : Math.max(readableZoom, fitting));
  const zoomBy = (by: number) => setOwn(Math.min(mostZoom, Math.max(leastZoom, (zoom ?? 1) * by)));
  const fit = () => {
    const tall = (place.current?.clientHeight ?? picture.height) / picture.height;
    setOwn(Math.max(leastZoom, Math.min(fitting ?? 1, tall)));
  };
  const turned = useRef(zoomBy);
  turned.current = zoomBy;
  useEffect(() => {
    const at = place.current;
    // React registers wheel listeners as passive, so they cannot prevent the browser's own zoom.
    const onWheel = (event: WheelEvent) => {
      if (!event.ctrlKey) return;
      event.preventDefault();
      turned.current(event.deltaY < 0 ? 1.1 : 1 / 1.1);
    };
    at?.addEventListener("wheel", onWheel, { passive: false });
    return () => at?.removeEventListener("wheel", onWheel);
  }, [place]);
  return { zoom, zoomBy, fit };
}

/** Dragging the background with the mouse scrolls the picture. On touch screens, the browser itself scrolls it. */
function useDragging(place: React.RefObject<HTMLDivElement | null>) {
  const held = useRef<{ x: number; y: number; left: number; top: number }>(undefined);
  return {
    onPointerDown: (event: PointerEvent) => {
      const at = place.current;
      if (!at || event.pointerType !== "mouse" || event.button !== 0) return;
      const { left, top } = at.getBoundingClientRect();
      const onBar = event.clientX - left > at.clientWidth || event.clientY - top > at.clientHeight;
      if (onBar || (event.target as HTMLElement).closest("[data-node]")) return;
      held.current = { x: event.clientX, y: event.clientY, left: at.scrollLeft, top: at.scrollTop };
      at.setPointerCapture(event.pointerId);
    },
    onPointerMove: ({ clientX, clientY }: PointerEvent) => {
      const from = held.current;
      if (from) place.current?.scrollTo({ left: from.left + from.x - clientX, top: from.top + from.y - clientY });
    },
    onPointerUp: () => {
      held.current = undefined;
    },
  };
}
