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
# For the flash of a small board: some 300 values.
unsent = Unsent("unsent.ndjson", 16000)
# Values measured before the board knew the time; in memory only.
undated = []
# Milliseconds to add to the board's clock, whose epoch may differ; None: not known yet.
offset = None


def now():
    return time.time_ns() // 1000000


def read_sensor(count):
    """Replace this with your sensor."""
    return 20 + count % 10


def set_clock():
    global offset
    if service.ask_time():
        offset = service.timestamp - now()


def keep_dated():
    """Keeps the value in the file, with a fixed ts: the service recognises it if it is sent again."""
    while undated and offset is not None:
        at, value = undated[0]
        unsent.add(json.dumps({"sId": "0x10", "val": value, "ts": at + offset}))
        undated.pop(0)


def send_unsent():
    """Sends kept values in order. It drops them when the service has acknowledged them. False: out of reach."""
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
    """Waits for messages, and answers a profile. False: the service is out of reach."""
    messages = service.listen(seconds)
    if messages is None:
        return False
    for message in messages:
        print(message["topic"], message["payload"])
        if message["topic"] == "profile":
            # This device accepts every profile; the service evaluates it.
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
    # A sensor that fails gives NaN. JSON has none: one NaN makes the service refuse the whole message.
    if math.isfinite(value):
        undated.append((now(), value))
    else:
        print("no value:", value)
    # Keep the newest hundred of them.
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
        # Wait longer after each failure, and a random time, so that not all devices return at once.
        failures += 1
        pauses = random.randint(0, min(2**failures, 60))
    # Listen for the rest of the time.
    while failures == 0:
        left = next_at - now()
        if left <= 0 or not listen(left / 1000) or left < 1000:
            break
    time.sleep(max(0, next_at - now()) / 1000)
