import { ActionIcon, Drawer, Kbd } from "@mantine/core";
import { IconMenu2, IconSearch } from "@tabler/icons-react";
import { Outlet, useNavigate, useRouterState } from "@tanstack/react-router";
import { lazy, Suspense, useEffect, useRef, useState } from "react";
import { useAnswer } from "../api/answers.ts";
import { useSees } from "../api/may.ts";
import { startLine } from "../live/live.ts";
import { useWords } from "../messages/words.ts";
import { Toasts } from "../parts/state/toasts.tsx";
import { Banner } from "./banner.tsx";
import { Choices } from "./choices.tsx";
import { Navigation } from "./navigation.tsx";
import type { PaletteAct } from "./palette/palette-act.tsx";
import { Pulse } from "./pulse.tsx";
import { screens } from "./screens.ts";
import css from "./shell.module.css";
import { useShortcuts } from "./shortcuts.ts";
import { TypedAhead } from "./typed-ahead.ts";
import { User } from "./user.tsx";

const loadPalette = () => import("./palette.tsx").then(({ Palette }) => ({ default: Palette }));
const Palette = lazy(loadPalette);
const ActOfPalette = lazy(() =>
  import("./palette/palette-act.tsx").then(({ ActOfPalette }) => ({ default: ActOfPalette })),
);
const Keys = lazy(() => import("./keys.tsx").then(({ Keys }) => ({ default: Keys })));

const restMs = 1_500;

const onMac = /Mac|iPhone|iPad/.test(navigator.platform);

export function Shell() {
  const { t } = useWords();
  const navigate = useNavigate();
  const [menu, setMenu] = useState(false);
  const [palette, setPalette] = useState<TypedAhead>();
  const openPalette = () => {
    if (!palette) setPalette(new TypedAhead());
  };
  const closePalette = () => {
    palette?.take();
    setPalette(undefined);
  };
  const [keys, setKeys] = useState(false);
  const [act, setAct] = useState<PaletteAct>();
  const content = useRef<HTMLElement>(null);
  const path = useRouterState({ select: ({ location }) => location.pathname });
  useEffect(startLine, []);
  // The palette's code is loaded in advance, so that the palette opens without delay.
  useEffect(() => {
    const timer = setTimeout(() => {
      loadPalette().catch(() => undefined); // Opening the palette tries again.
    }, restMs);
    return () => clearTimeout(timer);
  }, []);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the menu closes when the path changes.
  useEffect(() => setMenu(false), [path]);
  useShortcuts({
    "mod+k": openPalette,
    "/": () => {
      const field = document.querySelector<HTMLInputElement>("[data-search]");
      if (field) field.focus();
      else openPalette();
    },
    "?": () => setKeys(true),
    ...Object.fromEntries(screens.flat().map(({ key, to }) => [`g ${key}`, () => void navigate({ to })])),
  });
  const dialogs = (
    <Suspense>
      {palette && <Palette ahead={palette} onClose={closePalette} onKeys={() => setKeys(true)} onAct={setAct} />}
      {act && <ActOfPalette chosen={act} onClose={() => setAct(undefined)} />}
      {keys && <Keys onClose={() => setKeys(false)} />}
    </Suspense>
  );
  // The wallboard has the screen to itself. The live updates and the keys stay.
  if (path === "/wallboard")
    return (
      <>
        <Outlet />
        {dialogs}
        <Toasts />
      </>
    );
  return (
    <div className={css.shell}>
      <a className={css.skip} href="#content">
        {t("shell.skip")}
      </a>
      <header className={css.bar}>
        <ActionIcon
          className={css.menu}
          variant="subtle"
          color="gray"
          size={36}
          aria-label={t("shell.menu")}
          onClick={() => setMenu(true)}
        >
          <IconMenu2 size={20} color="var(--c-text)" />
        </ActionIcon>
        <Brand />
        <button type="button" className={css.search} onClick={openPalette}>
          <IconSearch size={16} aria-hidden />
          <span>{t("shell.search")}</span>
          <Kbd size="xs" aria-hidden>
            {onMac ? "⌘ K" : "Ctrl K"}
          </Kbd>
        </button>
        <div className={css.right}>
          <Pulse />
          <div className={css.choices}>
            <Choices />
          </div>
          <User />
        </div>
      </header>
      <nav className={css.side} aria-label={t("shell.screens")}>
        <Navigation />
      </nav>
      {menu && (
        <Drawer.Root opened onClose={() => setMenu(false)} size={264} padding="sm">
          <Drawer.Overlay />
          <Drawer.Content aria-label={t("shell.menu")}>
            <Drawer.Body>
              <nav aria-label={t("shell.menu")}>
                <Navigation />
              </nav>
              <div className={css.drawerChoices}>
                <Choices />
              </div>
            </Drawer.Body>
          </Drawer.Content>
        </Drawer.Root>
      )}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable area must be reachable by keyboard. */}
      <main id="content" className={css.content} ref={content} tabIndex={0}>
        <Banner />
        <Outlet />
      </main>
      {dialogs}
      <Toasts />
    </div>
  );
}

/** The logo, and the name of the node that answers; a tooltip names the cluster. */
function Brand() {
  const { t } = useWords();
  const sees = useSees("viewer");
  const { data } = useAnswer("getCluster", {}, { enabled: sees, everyMs: 15_000 });
  return (
    <div className={css.brand}>
      <svg width="26" height="26" viewBox="0 0 32 32" aria-hidden="true">
        <path
          d="M16 3.500c-4.600 0-7.200 3.400-7.500 7.900-.2 4.800-1.100 7.200-3.400 9.500-.7.700-.2 1.700.7 1.700h20.400c.9 0 1.400-1 .7-1.700-2.300-2.300-3.200-4.700-3.400-9.500-.3-4.500-2.900-7.900-7.500-7.900Z"
          className={css.bell}
        />
        <path d="M12.800 24.500h6.400a3.200 3.200 0 0 1-6.400 0Z" className={css.bell} />
      </svg>
      <span className={css.name}>Carillon</span>
      {data && (
        <span className={css.cluster} title={t("shell.cluster", { cluster: data.cluster })}>
          {data.node}
        </span>
      )}
    </div>
  );
}
