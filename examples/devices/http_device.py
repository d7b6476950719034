"""A sensor device in Python over HTTP. It needs nothing but the standard library."""

import base64
import http.client
import json
import math
import os
import random
import time
from urllib.parse import quote, urlsplit

from unsent import Unsent

uuid, token = os.environ["DEVICE_UUID"], os.environ["DEVICE_TOKEN"]
token_file = os.environ.get("TOKEN_FILE", f"token-{uuid}.txt")
if os.path.exists(token_file):
    # A newer token than DEVICE_TOKEN, which the service sent.
    with open(token_file) as file:
        token = file.read()
interval = float(os.environ.get("INTERVAL", 10))
url = urlsplit(os.environ.get("DEVICE_HTTP_URL", "http://127.0.0.1:8080"))
headers = {"Content-Type": "application/json"}
kind = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
# Use one connection for all requests: a new one for each costs several times the bytes.
connection = kind(url.hostname, url.port, timeout=60)
unsent = Unsent(os.environ.get("UNSENT_FILE", f"unsent-{uuid}.ndjson"), max_bytes=1_000_000)
after = ""
not_before = 0.0
failures = 0


def log_in_with(token):
    login = base64.b64encode(f"{uuid}:{token}".encode()).decode()
    headers["Authorization"] = f"Basic {login}"


log_in_with(token)


def store_token(new_token):
    """Stores a new token before it is used: the first login with it ends the old one."""
    with open(os.open(f"{token_file}.new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(new_token)
        file.flush()
        os.fsync(file.fileno())
    os.replace(f"{token_file}.new", token_file)
    print("a new token")


def read_sensor(count):
    """Replace this with your sensor."""
    return 20 + count % 10


def ask(method, path, payload=None):
    """The answer; None if the device has to ask again later."""
    global not_before, failures
    if time.monotonic() < not_before:
        return None
    body = None if payload is None else json.dumps(payload)
    try:
        connection.request(method, f"/devices/{uuid}/{path}", body, headers)
        response = connection.getresponse()
        answer = json.loads(response.read())
    except (OSError, ValueError, http.client.HTTPException) as error:
        connection.close()
        print("no answer:", error)
        # Wait longer after each failure, and a random time, so that not all devices return at once.
        failures += 1
        not_before = time.monotonic() + min(interval * 2**failures, 300) * random.random()
        return None
    failures = 0
    if response.status == 429 or response.status >= 500:
        not_before = time.monotonic() + int(response.headers.get("Retry-After", 10))
        print("told to wait:", response.status)
        return None
    if response.status in (401, 404):
        raise SystemExit(f"{response.status}: {answer['detail']}")
    return answer


def send_unsent():
    """Sends kept values in order. It drops them when the service has answered that they are stored."""
    while lines := unsent.oldest(500):
        answer = ask("POST", "up/measurements", [json.loads(line) for line in lines])
        if answer is None:
            return print("kept for later")
        unsent.forget()
        # A 400 has `detail`: the service cannot read any of it, however often it is sent.
        print("stored:", answer.get("stored"), answer.get("rejected") or answer.get("detail", ""))


def listen(seconds):
    """Waits for the service's messages for the device; False: without success."""
    global after
    query = f"down?wait={seconds}&topics=profile,display,state,token&after={quote(after)}"
    answer = ask("GET", query)
    if answer is None or "messages" not in answer:
        return False
    for message in answer["messages"]:
        if message["topic"] == "token":
            store_token(message["payload"]["deviceAuthToken"])
            log_in_with(message["payload"]["deviceAuthToken"])
            continue
        print(message["topic"], message["payload"])
        if message["topic"] == "profile":
            taken = {"pId": message["payload"]["pId"], "state": "current", "engine": "service"}
            if ask("POST", "up/profile", taken) is None:
                return False
    # The next poll returns it, which acknowledges the messages.
    after = answer["after"]
    return True


count = 0
while True:
    next_at = time.monotonic() + interval
    value, ts = read_sensor(count), time.time_ns() // 1_000_000
    # A sensor that fails gives NaN. JSON has none: one NaN makes the service refuse the whole message.
    if math.isfinite(value):
        # Keep it first, with its ts: the service recognises it if it is sent again.
        unsent.add(json.dumps({"sId": "0x10", "val": value, "ts": ts}))
    else:
        print("no value:", value)
    send_unsent()
    count += 1
    # Listen during the pause.
    while listen(wait := min(25, max(0, round(next_at - time.monotonic())))) and wait > 0:
        pass
    time.sleep(max(0, next_at - time.monotonic()))
