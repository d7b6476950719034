"""Talks to the service over MQTT, by umqtt.simple (mip install umqtt.simple), with QoS 1. For MicroPython."""

import json
import time

from secure import context_of
from umqtt.simple import MQTTClient, MQTTException

problems = (OSError, ValueError, MQTTException, IndexError, AssertionError, MemoryError)
keepalive = 60


class Service:
    def __init__(self, config):
        self.config = config
        self.client = None
        self.secure = context_of(config)
        # The service's time in ms, from its answer to the device's question.
        self.timestamp = None
        self.messages = []
        self.topics = ["profile", "display", "time"]
        self.next_ping = 0

    def ask_time(self):
        """Asks for the time. Whether there was an answer; then `timestamp` is set."""
        self.timestamp = None
        return self.publish("time", "{}") and self.wait(5, lambda: self.timestamp is not None)

    def send(self, lines):
        """Whether these measurements are acknowledged."""
        return self.publish("measurements", "[" + ",".join(lines) + "]")

    def answer_profile(self, answer):
        return self.publish("profile", json.dumps(answer))

    def listen(self, seconds):
        """Waits, and returns the messages that arrived: [{topic, payload}]. None if the connection is lost."""
        if not self.wait(seconds):
            return None
        messages, self.messages = self.messages, []
        return messages

    def wait(self, seconds, is_over=lambda: False):
        """False if the connection is lost."""
        end = time.time_ns() + int(seconds * 1_000_000_000)
        try:
            while time.time_ns() < end and not is_over():
                client = self.connected()
                if time.time_ns() >= self.next_ping:
                    self.next_ping = time.time_ns() + keepalive * 500_000_000
                    client.ping()
                client.check_msg()
                time.sleep(0.05)
        except problems as error:
            self.close(error)
            return False
        return True

    def acknowledge(self):
        """Does nothing: umqtt sent PUBACK. The service sends a profile again until the device answers it."""

    def publish(self, topic, text):
        try:
            client = self.connected()
            # umqtt waits for ever for a message that does not come, unless it gets a time-out before each wait.
            client.sock.settimeout(30)
            client.publish(self.name("up/" + topic), text.encode(), qos=1)
            return True
        except problems as error:
            self.close(error)
            return False

    def connected(self):
        # umqtt counts beyond MQTT's 65,535, and would then wait for ever.
        if self.client and self.client.pid > 60000:
            self.client.disconnect()
            self.client = None
        if self.client:
            return self.client
        config = self.config
        client = MQTTClient(
            config.UUID, config.HOST, config.PORT, config.UUID, config.TOKEN, keepalive, ssl=self.secure
        )
        client.set_callback(self.keep)
        client.connect(timeout=30)
        self.client = client
        # A device asks by subscribing: the service then sends what waits for it.
        for topic in self.topics:
            client.sock.settimeout(30)
            client.subscribe(self.name("down/" + topic), 1)
        return client

    def keep(self, topic, payload):
        topic = topic.decode()[len(self.name("down/")) :]
        payload = json.loads(payload)
        if topic == "time":
            self.timestamp = payload["ts"]
        else:
            self.messages.append({"topic": topic, "payload": payload})

    def name(self, rest):
        return "devices/" + self.config.UUID + "/" + rest

    def close(self, error):
        print("no connection:", repr(error))
        try:
            if self.client:
                self.client.sock.close()
        except OSError:
            pass
        self.client = None
        if isinstance(error, MemoryError) and "profile" in self.topics:
            # Otherwise it would come again and again.
            print("the profile does not fit into this board's memory")
            self.topics.remove("profile")
