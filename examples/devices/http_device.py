"""A sensor device in Python over HTTP, with nothing but the standard library."""

import base64
import http.client
import json
import os
import time
from urllib.parse import urlsplit

uuid, token = os.environ["DEVICE_UUID"], os.environ["DEVICE_TOKEN"]
url = urlsplit(os.environ.get("DEVICE_HTTP_URL", "http://127.0.0.1:8080"))
login = base64.b64encode(f"{uuid}:{token}".encode()).decode()
headers = {"Authorization": f"Basic {login}", "Content-Type": "application/json"}
kind = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
# One connection for all requests: a new one for each costs several times the bytes.
connection = kind(url.hostname, url.port, timeout=30)
unsent = []


def post(topic, payload):
    """The answer; None where it is to be sent again later."""
    try:
        connection.request("POST", f"/devices/{uuid}/up/{topic}", json.dumps(payload), headers)
        response = connection.getresponse()
        answer = json.loads(response.read())
    except (OSError, http.client.HTTPException) as error:
        connection.close()
        print("not sent:", error)
        return None
    if response.status in (429, 503):
        print("told to wait for", response.headers["Retry-After"], "s")
        return None
    if response.status != 200:
        raise SystemExit(f"{response.status}: {answer['detail']}")
    return answer


def send_unsent():
    """Sends what was kept, in its order; the same again changes nothing, as each value has its ts."""
    while unsent:
        batch = unsent[:500]
        answer = post("measurements", batch)
        if answer is None:
            return
        del unsent[: len(batch)]
        print("stored:", answer["stored"], "repeated:", answer["repeated"])
        for one in answer["rejected"]:
            print("rejected:", one["path"], one["message"])


# A board without a clock begins with what the service says. 0: as far as this machine's is off.
answer = post("time", {})
offset_ms = answer["timestamp"] - time.time_ns() // 1_000_000 if answer else 0

for count in range(3):
    ts = time.time_ns() // 1_000_000 + offset_ms
    unsent.append({"sId": "0x10", "val": 20 + count, "ts": ts})
    send_unsent()
    time.sleep(1)
connection.close()
