// A sensor device on an ESP32 or ESP8266, over HTTP or MQTT (secrets.h says which).
#ifdef ESP8266
#include <ESP8266WiFi.h>
#else
#include <WiFi.h>
#endif
#include <LittleFS.h>
#include "secrets.h"
#include "unsent.h"
#if OVER_MQTT
#include "over_mqtt.h"
#else
#include "over_http.h"
#endif

Service service;
Unsent unsent;

/** Values measured before the board knew the time; in memory only. */
struct Undated {
  uint64_t atMs;
  float value;
};
const int maxUndated = 100;
Undated undated[maxUndated];
int undatedCount = 0;

/** Add this to uptimeMs() to get the time; 0: the service has not been asked yet. */
uint64_t offsetMs = 0;
int failures = 0;
int pauses = 0;
int measured = 0;

/** millis() restarts at 0 after 49 days. */
uint64_t uptimeMs() {
  static uint32_t last = 0, rounds = 0;
  uint32_t now = millis();
  if (now < last) rounds += 1;
  last = now;
  return ((uint64_t)rounds << 32) | now;
}

/** Replace this with your sensor. */
float readSensor() { return 20 + measured % 10; }

void measure() {
  float value = readSensor();
  measured += 1;
  // A sensor that fails gives NaN. JSON has none: one NaN makes the service refuse the whole message.
  if (isnan(value) || isinf(value)) {
    Serial.println("no value");
    return;
  }
  if (undatedCount == maxUndated) memmove(undated, undated + 1, --undatedCount * sizeof(Undated));
  undated[undatedCount++] = {uptimeMs(), value};
}

/** Keeps the value in flash, with a fixed ts: the service then recognises it if it is sent again. */
void keepDated() {
  for (int n = 0; n < undatedCount; n++) {
    uint64_t ts = undated[n].atMs + offsetMs;
    char json[80];
    // Not every board's printf supports 64 bits.
    snprintf(json, sizeof json, "{\"sId\":\"0x10\",\"val\":%.2f,\"ts\":%lu%03lu}", undated[n].value,
             (unsigned long)(ts / 1000), (unsigned long)(ts % 1000));
    unsent.add(json);
  }
  undatedCount = 0;
}

/** Sends kept values in order. It drops them when the service has acknowledged them. False: out of reach. */
bool sendUnsent() {
  for (;;) {
    String values = unsent.oldest();
    if (values.length() == 0) return true;
    if (!service.send(values)) {
      Serial.println("kept for later");
      return false;
    }
    unsent.forget();
    Serial.println("stored: " + values);
  }
}

/** Waits for messages, and answers a profile. False: the service is out of reach. */
bool listen(uint32_t ms) {
  String profileId;
  if (!service.listen(ms, profileId)) return false;
  if (profileId.length() > 0) {
    // This device accepts every profile; the service evaluates it.
    String answer = "{\"pId\":\"" + profileId + "\",\"state\":\"current\",\"engine\":\"service\"}";
    if (!service.answerProfile(answer)) return false;
    Serial.println("took profile " + profileId);
  }
  service.acknowledge();
  return true;
}

void setup() {
  Serial.begin(115200);
#ifdef ESP8266
  LittleFS.begin();
#else
  LittleFS.begin(true);  // format a new flash
#endif
  WiFi.mode(WIFI_STA);
  // Do not wait for it: values are kept meanwhile.
  WiFi.begin(wifiName, wifiPassword);
}

void loop() {
  uint64_t dueMs = uptimeMs() + intervalMs;
  // The board's own clock may be off by a minute a month.
  if (pauses == 0 && (offsetMs == 0 || measured % 1000 == 999) && service.askTime())
    offsetMs = service.timestamp - uptimeMs();
  measure();
  if (offsetMs != 0) keepDated();
  if (pauses > 0) {
    pauses -= 1;
  } else if (offsetMs != 0 && sendUnsent()) {
    failures = 0;
  } else {
    // Wait longer after each failure, and a random time, so that not all devices return at once.
    failures = failures < 6 ? failures + 1 : 6;
    pauses = random(0, 1 << failures);
  }
  // Listen for the rest of the time.
  while (failures == 0 && uptimeMs() < dueMs) {
    uint32_t leftMs = dueMs - uptimeMs();
    if (!listen(leftMs) || leftMs < 1000) break;
  }
  while (uptimeMs() < dueMs) delay(10);
}
