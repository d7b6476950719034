# To be copied to the board as config.py, and nowhere else: it has the token.
WIFI = ("name", "password")
PROTOCOL = "http"  # or "mqtt"
HOST, PORT = "192.168.1.10", 8080  # 1883 for MQTT
TLS = False
UUID = "…"  # deviceAuthUuid
TOKEN = "…"  # deviceAuthToken
INTERVAL = 60  # seconds
