# A device by Eclipse Paho, in MQTT 5: connects, subscribes, waits for a text, publishes at QoS 1 and 2, leaves.
import sys
import paho.mqtt.client as mqtt

port, uuid, token = int(sys.argv[1]), sys.argv[2], sys.argv[3]
# Version 2 of the library asks which callbacks are meant.
first = [mqtt.CallbackAPIVersion.VERSION1] if hasattr(mqtt, "CallbackAPIVersion") else []
client = mqtt.Client(*first, client_id="paho", protocol=mqtt.MQTTv5)
client.username_pw_set(uuid, token)
published = set()


def say(*words):
    print(*words, flush=True)


def on_connect(client, userdata, flags, reason, properties):
    say("connected", reason.value, properties.ReceiveMaximum)
    client.subscribe(f"devices/{uuid}/down/#", qos=1)


def on_subscribe(client, userdata, mid, reasons, properties):
    say("subscribed", reasons[0].value)


def on_message(client, userdata, message):
    say(message.topic.split("/")[-1], message.payload.decode())
    for qos, topic, payload in [
        (1, "measurements", '{"sId":"0x1","val":1}'),
        (2, "measurements", '{"sId":"0x1","val":2}'),
        (1, "state", "{"),
    ]:
        client.publish(f"devices/{uuid}/up/{topic}", payload, qos=qos)


def on_publish(client, userdata, mid):
    published.add(mid)
    if len(published) == 3:
        say("stored", len(published))
        client.disconnect()


client.on_connect = on_connect
client.on_subscribe = on_subscribe
client.on_message = on_message
client.on_publish = on_publish
client.connect("127.0.0.1", port)
client.loop_forever()
