"""Talks to the service over HTTP, on one connection that stays open. For MicroPython (and Python)."""

import binascii
import json
import socket

from secure import context_of

# After any of these the rest of the connection cannot be read, so it is closed.
problems = (OSError, ValueError, IndexError, MemoryError)


class Service:
    def __init__(self, config):
        self.config = config
        self.stream = None
        self.secure = context_of(config)
        self.topics = ["profile", "display"]
        self.after = self.next_after = ""
        # The service's time in ms, from its newest answer.
        self.timestamp = None
        login = binascii.b2a_base64("{}:{}".format(config.UUID, config.TOKEN).encode()).decode().strip()
        self.headers = "Host: {}\r\nAuthorization: Basic {}\r\n".format(config.HOST, login)

    def ask_time(self):
        """Asks for the time. Whether there was an answer; then `timestamp` is set."""
        return self.ask("POST", "up/time", "{}") is not None

    def send(self, lines):
        """Whether these measurements can be dropped: they are stored, or never can be."""
        answer = self.ask("POST", "up/measurements", "[" + ",".join(lines) + "]")
        if answer is not None and answer.get("rejected"):
            print("rejected:", answer["rejected"])
        return answer is not None

    def listen(self, seconds):
        """Waits for messages, and returns them: [{topic, payload}]. None if that fails."""
        wait = max(0, min(25, round(seconds)))
        query = "down?wait={}&topics={}&after={}".format(wait, ",".join(self.topics), self.after)
        answer = self.ask("GET", query)
        if answer is None or "messages" not in answer:
            return None
        # The next poll returns it, which acknowledges them.
        self.next_after = answer["after"]
        return answer["messages"]

    def acknowledge(self):
        self.after = self.next_after

    def answer_profile(self, answer):
        return self.ask("POST", "up/profile", json.dumps(answer)) is not None

    def ask(self, method, path, body=""):
        """The answer; None if the device has to ask again later."""
        try:
            if self.stream is None:
                self.stream = self.open()
            request = "{} /devices/{}/{} HTTP/1.1\r\n{}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{}"
            self.stream.write(
                request.format(method, self.config.UUID, path, self.headers, len(body), body).encode()
            )
            status, answer = self.read_answer()
        except problems as error:
            print("no answer:", repr(error))
            self.close()
            if isinstance(error, MemoryError) and "profile" in self.topics:
                # Otherwise it would come again and again.
                print("the profile does not fit into this board's memory")
                self.topics.remove("profile")
            return None
        self.timestamp = answer.get("timestamp", self.timestamp)
        if status not in (200, 400):
            print(status, answer.get("detail"))
            return None
        return answer

    def open(self):
        connection = socket.socket()
        # This is longer than a poll waits.
        connection.settimeout(40)
        connection.connect(socket.getaddrinfo(self.config.HOST, self.config.PORT)[0][-1])
        if self.secure:
            connection = self.secure.wrap_socket(connection, server_hostname=self.config.HOST)
        return connection.makefile("rwb", 0)

    def read_answer(self):
        status = int(self.stream.readline().split()[1])
        length = 0
        while True:
            line = self.stream.readline().strip().lower()
            if not line:
                break
            if line.startswith(b"content-length:"):
                length = int(line[15:])
        body = b""
        while len(body) < length:
            part = self.stream.read(length - len(body))
            if not part:
                raise OSError("cut off")
            body += part
        return status, json.loads(body)

    def close(self):
        if self.stream is not None:
            self.stream.close()
        self.stream = None
