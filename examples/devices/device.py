"""A sensor device in Python: pip install paho-mqtt (2.x)."""

import json
import os
import time

import paho.mqtt.client as mqtt

uuid = os.environ["DEVICE_UUID"]
up, down = f"devices/{uuid}/up", f"devices/{uuid}/down"


def on_connect(client, userdata, flags, reason, properties):
    print("connected:", reason)
    # Subscribing is how a device asks: its profile, configuration and state follow.
    client.subscribe(f"{down}/#", qos=1)


def on_message(client, userdata, message):
    payload = json.loads(message.payload)
    print(message.topic.removeprefix(f"{down}/"), payload)
    if message.topic == f"{down}/profile":
        answer = {"pId": payload["pId"], "state": "current", "engine": "service"}
        client.publish(f"{up}/profile", json.dumps(answer), qos=1)


client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, client_id="sensor", protocol=mqtt.MQTTv311)
client.username_pw_set(uuid, os.environ["DEVICE_TOKEN"])
client.on_connect = on_connect
client.on_message = on_message
client.connect(os.environ.get("DEVICE_HOST", "127.0.0.1"), int(os.environ.get("DEVICE_PORT", 1883)))
client.loop_start()

for count in range(3):
    measurement = {"sId": "0x10", "val": 20 + count, "ts": time.time_ns() // 1_000_000}
    sent = client.publish(f"{up}/measurements", json.dumps(measurement), qos=1)
    # Returns when the service has acknowledged it: from then on it is stored.
    sent.wait_for_publish(timeout=30)
    print("stored:", measurement)
    time.sleep(1)

client.disconnect()
client.loop_stop()
