# Copy this to the board as config.py, and nowhere else: it has the token.
WIFI = ("name", "password")
PROTOCOL = "http"  # or "mqtt"
HOST, PORT = "192.168.1.10", 8080  # 1883 for MQTT
CA = None  # "ca.der" for TLS: the certificate of the authority that signed the service's; copy it to the board too
UUID = "…"  # deviceAuthUuid
TOKEN = "…"  # deviceAuthToken
INTERVAL = 60  # seconds
