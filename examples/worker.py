#!/usr/bin/env python3
"""A whole Carillon worker, for a run at a time: CARILLON_WORKER_KEY=… worker.py http://server:7373[,http://other:7373]"""
import http.client, json, os, signal, sys, threading, time, urllib.error, urllib.request, uuid

class Later(Exception):  # a handler raises it: puts its run off by this many ms; with `why` the attempt has failed
    def __init__(self, ms, why=None):
        self.said = {"outcome": "failed", "error": {"message": why}} if why else {"outcome": "snoozed"}
        self.said["retryInMs"] = ms

def count(payload, stop):  # a handler: returns the result, or raises; looks at `stop` now and then
    if time.time() < payload.get("notBefore", 0):
        raise Later(1000)
    for _ in range(payload["to"]):
        if stop.wait(payload.get("pause", 0)):
            raise InterruptedError("told to stop")
    return {"counted": payload["to"]}

TASKS, stop, leaving = {"count": count}, threading.Event(), threading.Event()
servers, session, sure_until = sys.argv[1].split(","), None, 0.0  # until then nobody takes us for dead
headers = {"authorization": "Bearer " + os.environ["CARILLON_WORKER_KEY"], "content-type": "application/json"}

def ask(**body):  # repeated until a server answers: whatever is asked may be asked again, of any of them
    global sure_until
    while True:
        sent, url = time.monotonic(), servers[0] + "/v1/worker/poll"
        try:
            request = urllib.request.Request(url, json.dumps(body).encode(), headers)
            with urllib.request.urlopen(request, timeout=2 + body.get("waitMs", 0) / 1000) as reply:
                answer = json.load(reply)
            sure_until = sent + (answer["tookMs"] + answer["sureForMs"]) / 1000
            return answer
        except urllib.error.HTTPError as error:
            if error.code < 500 and error.code != 429:
                problem = json.load(error)
                body["session"] = join(session) if problem.get("code") == "SESSION_LOST" else sys.exit(problem["detail"])
        except (OSError, http.client.HTTPException, ValueError):
            servers.append(servers.pop(0))  # no answer, or half of one: the next server knows all that this one did
        if time.monotonic() > sure_until:
            stop.set()  # another may have our run by now
        time.sleep(0.2)

def join(former=None):
    global session
    me = {"name": f"python-{os.getpid()}", "instance": uuid.uuid4().hex, "tasks": list(TASKS), "concurrency": 1}
    session = ask(join={**me, "former": former} if former else me)["session"]
    return session

def work(run, timeout_ms):
    claim, began, said, why = {"runId": run["runId"], "fence": run["fence"]}, time.monotonic(), {}, None
    def call():
        try:
            result = json.dumps(TASKS[run["task"]](run["payload"], stop), allow_nan=False)
            said.update(outcome="succeeded", result=json.loads(result) if len(result) < 2**20 else None)
        except Later as later:
            said.update(later.said)
        except Exception as error:  # whatever it is, it is this run's failure and not the worker's
            said.update(outcome="failed", error={"message": str(error)[:2000]})
    stop.clear()
    handler = threading.Thread(target=call, daemon=True)
    handler.start()
    while handler.join(1) or handler.is_alive():  # each second: a sign of life, and whether it is to stop
        ago = 1000 * (time.monotonic() - began)
        told = ask(session=session, holds=[run["fence"]], reports=[{**claim, "startedAgoMs": ago}], draining=leaving.is_set())
        if any(recall["kind"] == "cancel" for recall in told["recalls"]):
            why = why or "cancelled"
        if ago > (timeout_ms or ago):
            why = why or "failed"
        if why or told["lost"]:
            stop.set()
    if said["outcome"] == "failed" and stop.is_set():
        said["outcome"] = why or "stopped"
    told = ask(session=session, verdicts=[{**claim, **said, "startedAgoMs": 1000 * (time.monotonic() - began)}])
    for refused in told["refused"]:
        if refused["status"] == 400:  # it cannot be kept as it is, such as a number of 20 digits: the claim stands
            failed = {"outcome": "failed", "retry": False, "error": {"message": refused["message"]}}
            ask(session=session, verdicts=[{**claim, **failed}])

signal.signal(signal.SIGTERM, lambda *_: leaving.set())
join()
while not leaving.is_set():
    answer = ask(session=session, holds=[], want=1, waitMs=5000)
    for run in answer["runs"]:
        work(run, next(task["timeoutMs"] for task in answer["tasks"] if task["task"] == run["task"]))
ask(session=session, leave=True)
