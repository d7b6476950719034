// Talks to the service over MQTT, with QoS 1, by the library "MQTT" 2.5 (arduino-mqtt, lwmqtt) by Joel Gaehwiler.
#pragma once
#include <MQTT.h>

/** Messages to the device, for later: the library forbids publishing in the callback that receives them. */
static String arrivedProfile;
static uint64_t arrivedTime = 0;

static String memberOf(const String &payload, const char *name, char end) {
  int at = payload.indexOf(name);
  if (at < 0) return "";
  at += strlen(name);
  return payload.substring(at, payload.indexOf(end, at));
}

static void onMessage(String &topic, String &payload) {
  if (topic.endsWith("/profile")) arrivedProfile = memberOf(payload, "\"pId\":\"", '"');
  else if (topic.endsWith("/time")) arrivedTime = strtoull(memberOf(payload, "\"ts\":", '}').c_str(), nullptr, 10);
  else Serial.println(topic + " " + payload);
}

class Service {
 public:
  /** The service's time in ms, from its answer to the device's question. */
  uint64_t timestamp = 0;

  bool askTime() {
    arrivedTime = 0;
    if (!publish("time", "{}")) return false;
    uint32_t since = millis();
    while (arrivedTime == 0 && millis() - since < 5000 && mqtt.loop()) delay(10);
    timestamp = arrivedTime;
    return arrivedTime != 0;
  }

  /** Whether these values are acknowledged. */
  bool send(const String &values) { return publish("measurements", values); }

  bool answerProfile(const String &answer) {
    if (!publish("profile", answer)) return false;
    arrivedProfile = "";
    return true;
  }

  /** Waits for a profile, and returns its identifier; empty: none came. False: the service is out of reach. */
  bool listen(uint32_t ms, String &profileId) {
    if (!connect()) return false;
    uint32_t since = millis();
    while (arrivedProfile.length() == 0 && millis() - since < ms) {
      if (!mqtt.loop()) return false;
      delay(10);
    }
    profileId = arrivedProfile;
    return true;
  }

  /** Does nothing: the library sent PUBACK. The service sends a profile again until the device answers it. */
  void acknowledge() {}

 private:
  WiFiClient network;
  // A message to the board must fit into the first buffer. The library skips a larger profile, which stays pending.
  MQTTClient mqtt{4096, 256};

  bool connect() {
    if (mqtt.connected()) return true;
    mqtt.begin(serviceHost, servicePort, network);
    mqtt.onMessage(onMessage);
    mqtt.dropOverflow(true);
    // Keep-alive in s, a clean session, and how long an acknowledgement may take in ms.
    mqtt.setOptions(60, true, 30000);
    if (!mqtt.connect("sensor", deviceUuid, deviceToken)) {
      // Return code 5: wrong token; 3: try again later.
      Serial.println("not connected: " + String((int)mqtt.lastError()) + " " + String((int)mqtt.returnCode()));
      return false;
    }
    // A device asks by subscribing: the service then sends what waits for it.
    for (const char *topic : {"time", "display", "profile"})
      if (!mqtt.subscribe(name("down/", topic).c_str(), 1)) return false;
    return true;
  }

  /** Returns once the service has acknowledged the message, which means that it is stored. */
  bool publish(const char *topic, const String &payload) {
    return connect() && mqtt.publish(name("up/", topic).c_str(), payload.c_str(), payload.length(), false, 1);
  }

  static String name(const char *direction, const char *topic) {
    return String("devices/") + deviceUuid + "/" + direction + topic;
  }
};
