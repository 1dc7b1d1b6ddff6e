"""
Local times of recurrence rules by python-dateutil, which shares no code with this project.

Reads a JSON list from standard input: each item has "text" (lines DTSTART, RRULE, RDATE, EXDATE without zones), "end" (a local
time) and "most". Writes a JSON list: for each item the first `most` times up to `end`, or null where the search takes longer
than `patience_s` of processor time, for dateutil goes through a rule that never matches second by second, or where it refuses such a rule.
"""

import itertools
import json
import signal
import sys
import warnings
from datetime import datetime

from dateutil.rrule import rruleset, rrulestr

warnings.simplefilter("ignore")
patience_s = 0.2


def bounded(rule, end):
    """Without an end dateutil searches a rule that never matches up to the year 9999."""
    until = end if rule._until is None else min(rule._until, end)
    return rule.replace(until=until)


class TooLong(Exception):
    pass


def give_up(signal_number, frame):
    raise TooLong


def timely(item):
    try:
        signal.setitimer(signal.ITIMER_PROF, patience_s)
        try:
            return expand(item)
        finally:
            # The signal may still come before this line, so what it raises is caught around it.
            signal.setitimer(signal.ITIMER_PROF, 0)
    except TooLong:
        return None
    except ValueError as error:
        if "empty set" in str(error):
            return []
        # Of a rule that never matches among others that do: dateutil ends the whole set there.
        if "empty rule" in str(error):
            return None
        raise


def expand(item):
    end = datetime.fromisoformat(item["end"])
    rules = rrulestr(item["text"], forceset=True)
    ended = rruleset()
    for rule in rules._rrule:
        ended.rrule(bounded(rule, end))
    for added in rules._rdate:
        ended.rdate(added)
    for left in rules._exdate:
        ended.exdate(left)
    within = itertools.takewhile(lambda at: at <= end, ended)
    return [at.isoformat() for at in itertools.islice(within, item["most"])]


signal.signal(signal.SIGPROF, give_up)
json.dump([timely(item) for item in json.load(sys.stdin)], sys.stdout)
