#!/usr/bin/env python3
"""A Carillon worker, standard library only. CARILLON_WORKER_KEY=… worker.py http://server:7373[,http://other:7373]"""
import json, os, signal, sys, threading, time, urllib.error, urllib.request, uuid

PLACES = 4
servers, key = sys.argv[1].split(","), os.environ["CARILLON_WORKER_KEY"]
session, running, sure_until, stopping = None, {}, 0.0, threading.Event()


def count(run, cancelled):
    """A handler: returns the result, or raises. It looks at `cancelled` now and then."""
    for n in range(run["payload"]["to"]):
        if cancelled.wait(run["payload"].get("pause", 0)):
            raise InterruptedError("cancelled")
    return {"counted": run["payload"]["to"]}


tasks = {"count": count}


def poll(**body):
    """One poll, repeated until a server answers. What a repeated one could double, `holds` and fences prevent."""
    global servers, sure_until
    while True:
        sent = time.monotonic()
        headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
        request = urllib.request.Request(servers[0] + "/v1/worker/poll", json.dumps(body).encode(), headers)
        try:
            with urllib.request.urlopen(request, timeout=body.get("waitMs", 0) / 1000 + 2) as reply:
                answer = json.load(reply)
            sure_until = max(sure_until, sent + (answer["tookMs"] + answer["sureForMs"]) / 1000)
            return answer
        except urllib.error.HTTPError as error:
            if error.code < 500:
                raise ValueError(json.load(error).get("code"))
        except OSError:
            pass  # no answer: the next server knows all that this one did
        if time.monotonic() > sure_until:  # taken for dead, perhaps: others may have our runs
            for cancelled in list(running.values()):
                cancelled.set()
        servers = servers[1:] + servers[:1]
        time.sleep(0.2)


def join(former=None):
    global session, sure_until
    me = {"name": f"python-{os.getpid()}", "instance": uuid.uuid4().hex, "tasks": list(tasks), "concurrency": PLACES}
    session = poll(join={**me, **({"former": former} if former else {})})["session"]


def say(**body):
    """A poll that only tells. After a lost session it is told under the new one."""
    while True:
        told = session
        try:
            return poll(session=told, **body)
        except ValueError as error:
            if str(error) != "SESSION_LOST":
                raise
            time.sleep(0.2 if told == session else 0)  # the main loop joins again


def work(run, cancelled):
    began = time.monotonic()
    try:
        verdict = {"outcome": "succeeded", "result": tasks[run["task"]](run, cancelled)}
    except Exception as error:  # whatever it is, it is this run's failure and not the worker's
        verdict = {"outcome": "cancelled" if cancelled.is_set() else "failed", "error": {"message": str(error)}}
    claim = {"runId": run["runId"], "fence": run["fence"]}
    say(verdicts=[{**claim, **verdict, "startedAgoMs": 1000 * (time.monotonic() - began)}])
    del running[run["fence"]]  # only now: a fence that is not named in `holds` is given again


signal.signal(signal.SIGTERM, lambda *_: stopping.set())
join()
print("joined", session, flush=True)
while not stopping.is_set() or running:
    want = 0 if stopping.is_set() else max(0, PLACES - len(running))
    try:
        stop = {"draining": True} if stopping.is_set() else {}
        answer = poll(session=session, holds=list(running), want=want, waitMs=1000 if running else 5000, **stop)
    except ValueError as error:
        if str(error) != "SESSION_LOST":
            raise
        join(former=session)
        continue
    for run in answer["runs"]:
        running[run["fence"]] = threading.Event()
        threading.Thread(target=work, args=(run, running[run["fence"]])).start()
    for recall in answer["recalls"]:
        if recall["kind"] == "cancel":
            running.get(recall["fence"], threading.Event()).set()
        elif recall["fence"] in running:  # withdraw: it has started, so it goes on
            say(reports=[{"runId": recall["runId"], "fence": recall["fence"], "startedAgoMs": 0}])
    for fence in answer["lost"]:
        running.get(fence, threading.Event()).set()
say(leave=True)
