# Publishes with QoS 1, disconnects and closes its socket, and reads nothing but the CONNACK.
# Arguments: port, user name, password, protocol level (4 or 5), number of messages.
import json
import socket
import struct
import sys

port, user, password = int(sys.argv[1]), sys.argv[2], sys.argv[3]
level, count = int(sys.argv[4]), int(sys.argv[5])


def text(value):
    encoded = value.encode()
    return struct.pack(">H", len(encoded)) + encoded


def packet(first, body):
    length, left = b"", len(body)
    while True:
        left, digit = divmod(left, 128)
        length += bytes([digit | (128 if left else 0)])
        if not left:
            return bytes([first]) + length + body


properties = b"\0" if level == 5 else b""
connect = text("MQTT") + bytes([level, 0xC2, 0, 60]) + properties
connection = socket.create_connection(("127.0.0.1", port))
connection.sendall(packet(0x10, connect + text("") + text(user) + text(password)))
_, length = connection.recv(2)
connection.recv(length)


def publish(n):
    topic = text("devices/%s/up/measurements" % user)
    payload = json.dumps({"sId": "0x1", "val": n, "ts": n + 1}).ljust(100)
    return packet(0x32, topic + struct.pack(">H", n + 1) + properties + payload.encode())


connection.sendall(b"".join(map(publish, range(count))) + b"\xe0\0")
connection.close()
