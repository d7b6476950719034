"""A sensor device in MicroPython: the files of this directory, config.py and unsent.py on a board."""

import json
import math
import random
import time

import config
from unsent import Unsent

if config.PROTOCOL == "mqtt":
    from over_mqtt import Service
else:
    from over_http import Service

service = Service(config)
# Flash of a small board: some 300 values.
unsent = Unsent("unsent.ndjson", 16000)
# Measured before the board knew what time it was; in memory only.
undated = []
# What to add to the board's clock, whose epoch may be another one, ms; None: not known yet.
offset = None


def now():
    return time.time_ns() // 1000000


def read_sensor(count):
    """Stands in for a sensor."""
    return 20 + count % 10


def set_clock():
    global offset
    if service.ask_time():
        offset = service.timestamp - now()


def keep_dated():
    """Into the file, with a ts that it keeps: what is sent again is then recognised."""
    while undated and offset is not None:
        at, value = undated[0]
        unsent.add(json.dumps({"sId": "0x10", "val": value, "ts": at + offset}))
        undated.pop(0)


def send_unsent():
    """In its order. It is forgotten when the service has acknowledged it. False: out of reach."""
    while True:
        lines = unsent.oldest(50)
        if not lines:
            return True
        if not service.send(lines):
            print("kept for later")
            return False
        print("stored:", len(lines))
        unsent.forget()


def listen(seconds):
    """False: out of reach."""
    messages = service.listen(seconds)
    if messages is None:
        return False
    for message in messages:
        print(message["topic"], message["payload"])
        if message["topic"] == "profile":
            # It takes every profile; the service evaluates it.
            answer = {"pId": message["payload"]["pId"], "state": "current", "engine": "service"}
            if not service.answer_profile(answer):
                return False
    service.acknowledge()
    return True


count = 0
failures = 0
pauses = 0
while True:
    next_at = now() + int(config.INTERVAL * 1000)
    value = read_sensor(count)
    # A sensor that fails gives NaN. JSON has none: one would have the service refuse all values of its message.
    if math.isfinite(value):
        undated.append((now(), value))
    else:
        print("no value:", value)
    # Of those the newest hundred.
    del undated[:-100]
    if pauses == 0 and (offset is None or count % 1000 == 999):
        set_clock()
    count += 1
    keep_dated()
    if pauses > 0:
        pauses -= 1
    elif offset is not None and send_unsent():
        failures = 0
    else:
        # Longer after each failure, and not all devices at once.
        failures += 1
        pauses = random.randint(0, min(2**failures, 60))
    # The rest of the time is spent listening.
    while failures == 0:
        left = next_at - now()
        if left <= 0 or not listen(left / 1000) or left < 1000:
            break
    time.sleep(max(0, next_at - now()) / 1000)
