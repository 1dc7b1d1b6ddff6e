#!/bin/sh
# A whole Carillon worker with sh and curl: it runs a program for each run of one task, one after the other, with the payload
# on its standard input. Exit code 0 is success.
#
#   CARILLON_WORKER_KEY=… worker.sh http://server:7373[,http://other:7373] TASK PROGRAM [ARGUMENT…]
set -u
servers="$(printf %s "$1" | tr , ' ') " task=$2 session='' stopping='' sure=0
shift 2

seconds() { read -r up _ </proc/uptime && echo "${up%.*}"; } # by a clock that nobody sets
field() { value=${answer#*"\"$1\":"} value=${value%%[!0-9]*} && echo "${value:-0}"; } # the first of that name, whole
ask() { # SECONDS JSON. 0: answered; 1: refused; 2: nobody answered, and another server is next
  sent=$(seconds)
  answer=$(curl -s --fail-with-body --compressed --max-time "$1" -H "Authorization: Bearer $CARILLON_WORKER_KEY" \
    -H 'Content-Type: application/json' -d "$2" "${servers%% *}/v1/worker/poll") &&
    sure=$((sent + $(field sureForMs) / 1000)) && return 0 # until then nobody takes us for dead
  case $answer in *'"status":429,'*) ;; *'"status":4'*) return 1 ;; esac
  servers="${servers#* }${servers%% *} "
  sleep 0.3
  return 2
}
say() { # JSON without a session: repeated until it is answered, by a new session where the old one was lost
  while :; do
    ask 10 "{\"session\":$session,$1}" && return
    case $?$answer in 1*SESSION_LOST*) join ;; 1*) refused ;; esac
  done
}
join() {
  me="\"name\":\"sh-$$\",\"instance\":\"$$-$(seconds)\",\"tasks\":[\"$task\"],\"concurrency\":1"
  until ask 10 "{\"join\":{$me${session:+,\"former\":$session}}}"; do [ $? = 2 ] || refused; done
  session=$(field session)
}
refused() {
  echo "refused: $answer" >&2
  exit 1
}

trap 'stopping=yes' TERM INT
join
echo "joined $session"
while [ -z "$stopping" ]; do
  say '"holds":[],"want":1,"waitMs":5000'
  case $answer in *'"runs":[]'*) continue ;; esac
  claim=${answer#*'"runs":[{'} claim=${claim%%',"task":'*} fence=${claim##*:}
  payload=${answer#*'"payload":'} payload=${payload%'}],"tasks":['*}
  answer=${answer##*'}],"tasks":['} timeout=$(($(field timeoutMs) / 1000)) began=$(seconds) ended='' why=''
  printf %s "$payload" | "$@" &
  program=$!
  while kill -0 "$program" 2>/dev/null; do # each poll is a sign of life, and hears of a cancellation at once
    now=$(seconds)
    started="[{$claim,\"startedAgoMs\":$(((now - began) * 1000))}]"
    ask 2 "{\"session\":$session,\"holds\":[$fence],\"reports\":$started,\"waitMs\":500${stopping:+,\"draining\":true}}"
    case $?$answer in
      0*"\"lost\":[$fence]"*) ended=lost ;;
      0*'"kind":"cancel"'*) ended=${ended:-cancelled} ;;
      1*SESSION_LOST*) join ;;
      1*) ended=lost stopping=yes ;;
    esac
    [ "$(seconds)" -lt "$sure" ] || ended=${ended:-stopped} # another may have it by now
    [ "$timeout" = 0 ] || [ $((now - began)) -le "$timeout" ] || ended=${ended:-failed} why='it took too long, '
    [ -z "$ended" ] || kill "$program" 2>/dev/null
  done
  if wait "$program"; then code=0 outcome=succeeded; else code=$? outcome=${ended:-failed}; fi
  [ "$ended" = lost ] ||
    say "\"verdicts\":[{$claim,\"outcome\":\"$outcome\",\"error\":{\"message\":\"${why}exit code $code\"}}]"
done
say '"leave":true'
