"""A sensor device in Python over MQTT: pip install paho-mqtt (1.6 or 2), or Debian's python3-paho-mqtt."""

import json
import math
import os
import queue
import threading
import time

import paho.mqtt.client as mqtt

from unsent import Unsent

uuid, token = os.environ["DEVICE_UUID"], os.environ["DEVICE_TOKEN"]
token_file = os.environ.get("TOKEN_FILE", f"token-{uuid}.txt")
if os.path.exists(token_file):
    # A newer token than DEVICE_TOKEN, which the service sent.
    with open(token_file) as file:
        token = file.read()
interval = float(os.environ.get("INTERVAL", 10))
up, down = f"devices/{uuid}/up", f"devices/{uuid}/down"
senses = {"0x10"}
unsent = Unsent(os.environ.get("UNSENT_FILE", f"unsent-{uuid}.ndjson"), max_bytes=1_000_000)
acknowledged = queue.Queue()
in_flight = None


def read_sensor(count):
    """Replace this with your sensor."""
    return 20 + count % 10


def on_connect(client, userdata, flags, reason, properties=None):
    print("connected:", reason)
    # A device asks by subscribing: its profile, configuration and state follow.
    # `#` does not bring a new token.
    client.subscribe([(f"{down}/#", 1), (f"{down}/token", 1)])


def on_message(client, userdata, message):
    payload = json.loads(message.payload)
    if message.topic == f"{down}/token":
        store_token(payload["deviceAuthToken"])
        client.username_pw_set(uuid, payload["deviceAuthToken"])
        # This runs in paho's thread, which must not wait for itself, so another thread reconnects.
        threading.Thread(target=client.reconnect).start()
        return
    print(message.topic[len(down) + 1 :], payload)
    if message.topic == f"{down}/profile":
        client.publish(f"{up}/profile", json.dumps(answer_to(payload)), qos=1)


def store_token(new_token):
    """Stores a new token before it is used: the first login with it ends the old one."""
    with open(os.open(f"{token_file}.new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(new_token)
        file.flush()
        os.fsync(file.fileno())
    os.replace(f"{token_file}.new", token_file)
    print("a new token")


def answer_to(profile):
    """Accepts a profile if the device has its senses. The service evaluates it (`engine`)."""
    needed = {
        cause["sId"]
        for purpose in profile["purposes"]
        for state in purpose["states"]
        for event in state["events"]
        for cause in event["causes"]
    }
    if needed <= senses:
        return {"pId": profile["pId"], "state": "current", "engine": "service"}
    text = "No such sense: " + ", ".join(sorted(needed - senses))
    return {"pId": profile["pId"], "state": "rejected", "text": text}


def send_unsent(client):
    """Sends kept values in order. It drops values when their PUBACK has arrived."""
    global in_flight
    while client.is_connected():
        if in_flight is None:
            lines = unsent.oldest(500)
            if not lines:
                return
            in_flight = client.publish(f"{up}/measurements", f"[{','.join(lines)}]", qos=1).mid
        # After a lost connection paho sends it again by itself. The service stores it once, because it has its ts.
        try:
            while acknowledged.get(timeout=30) != in_flight:
                pass
        except queue.Empty:
            return
        in_flight = None
        print("stored:", unsent.given)
        unsent.forget()


# paho 2 has two kinds of callbacks and asks which; 1.6 has one.
kind = [mqtt.CallbackAPIVersion.VERSION2] if hasattr(mqtt, "CallbackAPIVersion") else []
client = mqtt.Client(*kind, client_id="sensor", protocol=mqtt.MQTTv311)
client.username_pw_set(uuid, token)
client.on_connect = on_connect
client.on_message = on_message
client.on_publish = lambda client, userdata, mid, *more: acknowledged.put(mid)
if os.environ.get("DEVICE_PROTOCOL") == "mqtts":
    # DEVICE_CA: the certificate of the authority that signed the service's, if the system does not know it.
    client.tls_set(os.environ.get("DEVICE_CA"))
client.reconnect_delay_set(min_delay=1, max_delay=120)
client.connect_async(os.environ.get("DEVICE_HOST", "127.0.0.1"), int(os.environ.get("DEVICE_PORT", 1883)))
client.loop_start()

count = 0
while True:
    value, ts = read_sensor(count), time.time_ns() // 1_000_000
    # A sensor that fails gives NaN. JSON has none: one NaN makes the service refuse the whole message.
    if math.isfinite(value):
        # Keep it first, with its ts: the service recognises it if it is sent again.
        unsent.add(json.dumps({"sId": "0x10", "val": value, "ts": ts}))
    else:
        print("no value:", value)
    if not client.is_connected():
        print("kept for later")
    send_unsent(client)
    count += 1
    time.sleep(interval)
