import { Loader } from "@mantine/core";
import { RouterProvider } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";
import { outdate, useAnswer } from "../api/answers.ts";
import { isRefusal } from "../api/call.ts";
import { useWords } from "../messages/words.ts";
import { Trouble } from "../parts/state/notice.tsx";
import { router } from "../router.tsx";
import { OwnFactor } from "./own-factor.tsx";
import { OwnPassword } from "./own-password.tsx";
import { takePlace } from "./provided.ts";
import css from "./sign-in.module.css";
import { SignIn, SignInAgain } from "./sign-in.tsx";

const knownKey = "carillon.signed-in";

function isKnownHere(): boolean {
  try {
    return localStorage.getItem(knownKey) !== null;
  } catch {
    // The browser stores nothing: the page behaves as if no user had signed in here before.
    return false;
  }
}

function rememberHere(isIn: boolean): void {
  try {
    if (isIn) localStorage.setItem(knownKey, "yes");
    else localStorage.removeItem(knownKey);
  } catch {
    // The browser stores nothing: the next page load behaves as if no user had signed in here before.
  }
}

/**
 * Shows the page only to a user who is signed in; the address stays, so a deep link survives the sign-in. When the sign-in ends,
 * the user signs in again in a dialog in front of the page, so that typed input is kept.
 */
export function Gate() {
  const { t } = useWords();
  // If no user has signed in with this browser before, the page first calls a route that the server never refuses, because browsers log
  // refused requests as errors.
  const [wasIn, setWasIn] = useState(isKnownHere);
  const ways = useAnswer("howToSignIn", {}, { enabled: !wasIn });
  const asks = wasIn || ways.data?.cookie === true;
  const me = useAnswer("getMe", {}, { everyMs: 60_000, enabled: asks });
  const isIn = me.data !== undefined;
  const isOut = isRefusal(me.error, "SIGN_IN_NEEDED");
  /** The server refuses all reads until the user has chosen a password or added a second factor. */
  const isHeld = me.data !== undefined && (me.data.temporary || me.data.factorNeeded);
  useEffect(() => {
    if (isIn || isOut) rememberHere(isIn && !isOut && !isHeld);
    if (isIn) setWasIn(true);
  }, [isIn, isOut, isHeld]);
  useEffect(() => {
    const place = isIn ? takePlace() : undefined;
    if (place !== undefined) router.history.replace(place);
  }, [isIn]);
  const user = me.data?.user;
  // If another user signs in, the page reloads: it must not show data of the previous user.
  const first = useRef(user);
  first.current ??= user;
  const isAnother = user !== first.current;
  useEffect(() => {
    if (isAnother) window.location.reload();
  }, [isAnother]);
  // Recovery codes are shown only once, so this screen stays until the user has saved them, whatever `getMe` returns meanwhile.
  const [showsCodes, setShowsCodes] = useState(false);
  const isUnseen = wasIn && !isIn && !me.error;
  useKeysKept((isOut && isIn) || isUnseen);
  if ((isOut && !isIn) || (!asks && !isIn && ways.data)) return <SignIn />;
  if (isIn && !isOut && me.data.temporary) return <OwnPassword user={me.data.user} />;
  if (isIn && !isOut && (me.data.factorNeeded || showsCodes))
    return (
      <OwnFactor
        user={me.data.user}
        isAdded={showsCodes}
        onAdded={() => setShowsCodes(true)}
        onDone={() => {
          setShowsCodes(false);
          outdate("getMe");
        }}
      />
    );
  const isShown = isIn && !isAnother;
  const asked = asks ? me : ways;
  if (asked.error && !isIn)
    return (
      <main className={css.place}>
        <Trouble error={asked.error} again={() => void asked.refetch()} />
      </main>
    );
  return (
    <>
      {/* In a browser that was signed in, the page is rendered unseen until the user is known, so that its reads need not wait for that. */}
      {(isShown || (wasIn && !isIn)) && (
        <div className={isShown ? css.page : css.unseen} inert={!isShown}>
          <RouterProvider router={router} />
        </div>
      )}
      {!isShown && (
        <main className={css.place}>
          <Loader aria-label={t("notice.loading")} />
        </main>
      )}
      {isShown && isOut && <SignInAgain />}
    </>
  );
}

/**
 * Blocks keys while the page waits behind the sign-in, or is unseen until the user is known. Otherwise the page's shortcuts would react,
 * and Escape would close its dialog.
 */
function useKeysKept(isKept: boolean): void {
  const present = useRef(isKept);
  present.current = isKept;
  useEffect(() => {
    // This listener precedes those of the page: it captures, and the page adds its own capturing listeners only on later keys.
    const keep = (event: KeyboardEvent) => {
      if (!present.current) return;
      event.stopImmediatePropagation();
      if (event.key === "Escape") event.preventDefault();
    };
    window.addEventListener("keydown", keep, true);
    return () => window.removeEventListener("keydown", keep, true);
  }, []);
}
