import { Loader } from "@mantine/core";
import { RouterProvider } from "@tanstack/react-router";
import { useEffect } from "react";
import { useAnswer } from "../api/answers.ts";
import { isRefusal } from "../api/call.ts";
import { useWords } from "../messages/words.ts";
import { Trouble } from "../parts/notice.tsx";
import { router } from "../router.tsx";
import { takePlace } from "./provided.ts";
import css from "./sign-in.module.css";
import { SignIn } from "./sign-in.tsx";

/** Lets through who is signed in; the address stays what it was, so a deep link survives the signing in. */
export function Gate() {
  const { t } = useWords();
  const me = useAnswer("getMe", {}, { everyMs: 60_000 });
  const isIn = me.data !== undefined;
  useEffect(() => {
    const place = isIn ? takePlace() : undefined;
    if (place !== undefined) router.history.replace(place);
  }, [isIn]);
  if (isRefusal(me.error, "SIGN_IN_NEEDED")) return <SignIn />;
  if (me.data) return <RouterProvider router={router} />;
  if (me.error)
    return (
      <main className={css.place}>
        <Trouble error={me.error} again={() => void me.refetch()} />
      </main>
    );
  return (
    <main className={css.place}>
      <Loader aria-label={t("notice.loading")} />
    </main>
  );
}
