#!/bin/sh
# A Carillon worker for one task, with sh and curl alone: it runs a program for each run, one after the other, with the
# payload on its standard input. Exit code 0 is success.
#
#   CARILLON_WORKER_KEY=… worker.sh http://server:7373 TASK PROGRAM [ARGUMENT…]
set -u
server=$1 task=$2
shift 2

poll() { # JSON; prints the answer, or fails with the problem
  curl -sS --fail-with-body --compressed --retry 5 --retry-delay 1 --retry-connrefused --max-time 30 \
    -H "Authorization: Bearer $CARILLON_WORKER_KEY" -H 'Content-Type: application/json' -d "$1" "$server/v1/worker/poll"
}
number() { printf '%s' "$2" | sed -n "s/.*\"$1\":\([0-9][0-9]*\).*/\1/p"; } # of a field that is there once
join() {
  answer=$(poll "{\"join\":{\"name\":\"sh-$$\",\"instance\":\"$$-$(date +%s)\",\"tasks\":[\"$task\"],\"concurrency\":1}}") || exit 1
  session=$(number session "$answer")
  echo "joined $session"
}

stopping=
trap 'stopping=yes' TERM INT
join
while [ -z "$stopping" ]; do
  if ! answer=$(poll "{\"session\":$session,\"holds\":[],\"want\":1,\"waitMs\":5000}"); then
    case $answer in *SESSION_LOST*) join ;; *) exit 1 ;; esac
    continue
  fi
  case $answer in *'"runs":[]'*) continue ;; esac
  claim=$(printf '%s' "$answer" | sed -n 's/.*"runs":\[{\("runId":[0-9]*,"fence":[0-9]*\),.*/\1/p')
  fence=${claim##*:}
  printf '%s' "$answer" | sed -n 's/.*"key":[^,]*,"payload":\(.*\)}\],"tasks":\[.*/\1/p' | "$@" &
  program=$!
  ended=
  while kill -0 "$program" 2>/dev/null; do
    # Each poll is a sign of life, and hears of a cancellation at once.
    if ! answer=$(poll "{\"session\":$session,\"holds\":[$fence],\"waitMs\":500}"); then
      kill "$program" 2>/dev/null
      break
    fi
    case $answer in
      *'"kind":"cancel"'*) ended=cancelled && kill "$program" 2>/dev/null && break ;;
      *"\"lost\":[$fence]"*) kill "$program" 2>/dev/null && break ;;
    esac
  done
  if wait "$program"; then ended=${ended:-succeeded}; else code=$? ended=${ended:-failed}; fi
  error=
  [ "$ended" = succeeded ] || error=",\"error\":{\"message\":\"exit code ${code:-0}\"}"
  poll "{\"session\":$session,\"verdicts\":[{$claim,\"outcome\":\"$ended\"$error}]}" >/dev/null || join
done
poll "{\"session\":$session,\"leave\":true}" >/dev/null
