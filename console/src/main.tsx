// Mantine's styles are in a CSS layer, so that the console's own rules override them whatever the order of the style sheets.
import "@mantine/core/styles.layer.css";
import "./theme.css";
import { MantineProvider } from "@mantine/core";
import { QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { answers } from "./api/answers.ts";
import { basePath } from "./api/base.ts";
import { usePreferences } from "./preferences.ts";
import { Gate } from "./sign-in/gate.tsx";
import { theme } from "./theme.ts";

/** The CSP nonce for style elements that libraries insert. One library reads the nonce from a global variable. */
const nonce = document.querySelector<HTMLMetaElement>('meta[property="csp-nonce"]')?.nonce ?? "";
Object.assign(globalThis, { __webpack_nonce__: nonce });

/** The page's root. The colour scheme is stored in the preferences and passed to Mantine. */
function Console() {
  const { scheme, language } = usePreferences();
  document.documentElement.lang = language === "zh" ? "zh-CN" : "en";
  return (
    <MantineProvider
      theme={theme}
      getStyleNonce={() => nonce}
      {...(scheme === "auto" ? { defaultColorScheme: "auto" as const } : { forceColorScheme: scheme })}
    >
      <QueryClientProvider client={answers}>
        <Gate />
      </QueryClientProvider>
    </MantineProvider>
  );
}

const reloadedKey = "carillon.reloaded";
const reloadEveryMs = 30_000;

// After an update of the server, an open page may import a file that no longer exists; the page then reloads itself, at most once
// per 30 s. The page does not reload while the server is unreachable, because the browser would replace it with an error page.
window.addEventListener("vite:preloadError", () => {
  fetch(`${basePath}/v1/sign-in`, { cache: "no-store" }).then(
    ({ ok }) => {
      const last = Number(sessionStorage.getItem(reloadedKey));
      if (!ok || Date.now() - last < reloadEveryMs) return;
      sessionStorage.setItem(reloadedKey, String(Date.now()));
      window.location.reload();
    },
    () => undefined, // The banner already reports the missing server.
  );
});

/** The browser has an empty sheet for a link whose request failed, and refuses to read its rules if the connection broke. */
function isLoaded({ sheet }: HTMLLinkElement): boolean {
  try {
    return sheet !== null && sheet.cssRules.length > 0;
  } catch {
    return false;
  }
}

// The server links the style sheets of the screen in the page. The screen's code does not request a sheet that is already linked, so links
// whose sheet could not be loaded are removed; the screen's code then requests these sheets again.
for (const link of document.querySelectorAll<HTMLLinkElement>('link[rel="stylesheet"]'))
  if (!isLoaded(link)) link.remove();

const place = document.getElementById("console");
if (!place) throw new Error("the page has no place for the console");
createRoot(place).render(
  <StrictMode>
    <Console />
  </StrictMode>,
);
