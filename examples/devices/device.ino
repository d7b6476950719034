// A sensor device on an ESP32 (or any Arduino with a network), with the library PubSubClient 2.8.
// Not run by the project's tests: they have no such board.
#include <WiFi.h>
#include <PubSubClient.h>
#include <time.h>

const char *ssid = "…";
const char *wifiPassword = "…";
const char *host = "192.168.1.10";
const uint16_t port = 1883;
const char *uuid = "…";   // deviceAuthUuid
const char *token = "…";  // deviceAuthToken

WiFiClient network;
PubSubClient mqtt(network);
char upMeasurements[80];
char downDisplay[80];

void onMessage(char *topic, byte *payload, unsigned int length) {
  Serial.print(topic);
  Serial.print(' ');
  Serial.write(payload, length);
  Serial.println();
}

void setup() {
  Serial.begin(115200);
  snprintf(upMeasurements, sizeof upMeasurements, "devices/%s/up/measurements", uuid);
  snprintf(downDisplay, sizeof downDisplay, "devices/%s/down/display", uuid);
  WiFi.begin(ssid, wifiPassword);
  while (WiFi.status() != WL_CONNECTED) delay(200);
  configTime(0, 0, "pool.ntp.org");

  mqtt.setServer(host, port);
  mqtt.setCallback(onMessage);
  // The library's default of 256 bytes holds CONNECT and small messages. What does not fit is
  // dropped by the library without a word: down/profile and down/configuration need more.
  mqtt.setBufferSize(512);
}

void connectDevice() {
  while (!mqtt.connected()) {
    if (mqtt.connect("sensor", uuid, token)) {
      mqtt.subscribe(downDisplay, 1);
    } else {
      Serial.printf("refused: %d\n", mqtt.state());  // 5: wrong token; 3: try again later
      delay(5000);
    }
  }
}

void loop() {
  if (!mqtt.connected()) connectDevice();
  mqtt.loop();

  static unsigned long last = 0;
  if (millis() - last < 10000) return;
  last = millis();

  // PubSubClient publishes with QoS 0 only: nobody tells it whether a measurement was stored.
  time_t seconds = time(nullptr);
  char payload[96];
  if (seconds > 1600000000)
    snprintf(payload, sizeof payload, "{\"sId\":\"0x10\",\"val\":%.2f,\"ts\":%lld000}",
             temperatureRead(), (long long)seconds);
  else  // The clock is not set yet: without ts the time of arrival counts.
    snprintf(payload, sizeof payload, "{\"sId\":\"0x10\",\"val\":%.2f}", temperatureRead());
  mqtt.publish(upMeasurements, payload);
}
